"""What ``ecjax analyze`` prints of how bursty a log is: words, the table of scales, and a line per class."""

from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from ecjax.console import say
from ecjax.studies.analyze.burst_words import burstier_from, burstiness_text, scale_text, window_text
from ecjax.studies.spine.printed import number, print_table
from ecjax.traffic.burstiness import POISSON, UNKNOWN
from ecjax.units import plain

_SCALES_SHOWN, _CLASSES_SHOWN = 12, 12
_LEAST_PAIRS = 2.0  # of a scale that is shown
_NAMED_WINDOW_S = 60.0  # the busiest minute, where the log is long enough
Tables = dict[str, pa.Table]


def burst_facts(tables: Tables) -> list[tuple[str, str]]:
    """How bursty reads and writes are, a name and words for each; empty without dataset ``burstiness``."""
    return [(f"{op}s", _sentence(tables, op, None)) for op in ("read", "write") if _scales(tables, op, None)]


def burstier_scale(tables: Tables) -> float | None:
    """The shortest scale at which reads are burstier than Poisson (s); None where none is, or that was not written."""
    rows = _scales(tables, "read", None)
    return burstier_from([row["scale_s"] for row in rows], [row["verdict"] for row in rows])


def _sentence(tables: Tables, op: str, service_class: Any) -> str:
    rows = _scales(tables, op, service_class)
    words = burstiness_text([row["scale_s"] for row in rows], [row["verdict"] for row in rows])
    peak = busiest_text(tables, op, service_class)
    return f"{words}; {peak}" if peak else words


def busiest_text(tables: Tables, op: str = "read", service_class: Any = None) -> str:
    """What the busiest minute is to the mean, in words; of a log shorter than two minutes the busiest second."""
    rows = _of(tables, "busiest", op, service_class)
    if not rows:
        return ""
    row = min(rows, key=lambda each: abs(each["window_s"] - _NAMED_WINDOW_S))
    return f"the busiest {window_text(row['window_s'])} has {plain(row['mean_ratio'], 3)} times the mean"


def _scales(tables: Tables, op: str, service_class: Any) -> list[dict[str, Any]]:
    return sorted(_of(tables, "burstiness", op, service_class), key=lambda row: row["scale_s"])


def _of(tables: Tables, dataset: str, op: str, service_class: Any) -> list[dict[str, Any]]:
    if dataset not in tables:
        return []
    table = tables[dataset]
    name = table["service_class"]
    same = pc.is_null(name) if service_class is None else pc.equal(name, service_class)
    return table.filter(pc.and_(pc.equal(table["op"], op), same)).to_pylist()


def show_burstiness(tables: Tables, console: Console) -> None:
    """Print the dispersion of reads by scale, and a line for each class; nothing without dataset ``burstiness``."""
    rows = [row for row in _scales(tables, "read", None) if row["pairs"] >= _LEAST_PAIRS]
    if rows:
        print_table(
            console,
            "reads: dispersion I(s) of neighbouring windows of length s (Poisson: 1 ± error)",
            ("window", "I(s)", "error", "pairs", "verdict"),
            [_cells(row) for row in _chosen(rows)],
            words=("verdict",),
            least=("pairs",),
            dataset="burstiness",
        )
    _show_classes(tables, console)


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        scale_text(row["scale_s"]),
        number(row["dispersion"], ".3g"),
        number(row["standard_error"], ".2g"),
        number(row["pairs"], ".3g"),
        row["verdict"],
    ]


def _chosen(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Scales to show: where a verdict begins and ends, then longer ones rather than shorter ones.

    That arrivals are as Poisson where hardly two are ever within one window goes without saying.
    """
    runs = [list(group) for _, group in groupby(rows, lambda row: row["verdict"])]
    ends = [row for run in runs if run[0]["verdict"] != UNKNOWN for row in (run[0], run[-1])]
    first = 1 if ends and ends[0]["verdict"] == POISSON else 0
    scales = {row["scale_s"] for row in ends[first:][-_SCALES_SHOWN:]}
    for row in reversed(rows):
        if len(scales) >= _SCALES_SHOWN:
            break
        scales.add(row["scale_s"])
    return [row for row in rows if row["scale_s"] in scales]


def _show_classes(tables: Tables, console: Console) -> None:
    if "burstiness" not in tables or "busiest" not in tables:
        return
    names = pc.unique(tables["burstiness"]["service_class"].drop_null()).to_pylist()
    for name in names[:_CLASSES_SHOWN]:
        say(console, f"class {name}: reads are {_sentence(tables, 'read', name)}")
    if len(names) > _CLASSES_SHOWN:
        say(console, f"... and {len(names) - _CLASSES_SHOWN} more classes: dataset burstiness")
