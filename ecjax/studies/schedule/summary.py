"""What ``ecjax schedule`` prints at its end: a line per point, source rule and scheduler, over all seeds."""

import math
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.intervals import half_width, half_width_of, half_width_over_seeds
from ecjax.status import Status
from ecjax.studies.schedule.rows import slowdown_of
from ecjax.studies.schedule.words import POINT, by_setting, same_transfers
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.units import Unit, count_text, fitting_unit, plain

_TIMES = {"mean_s": "mean", "p50_s": "p50", "p95_s": "p95", "p99_s": "p99"}
_PEER_SOURCES = ("smallest_load", "given")  # of D-Target as published
_INTERVALS = {name: half_width_of(name) for name in _TIMES}
_INTERVALS |= {slowdown_of(name): slowdown_of(half) for name, half in _INTERVALS.items()}
_NUMBERS = (*_INTERVALS, "improvement", "gap")


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per point, source rule and scheduler: means over the seeds, and how far they go.

    Args:
        runs: rows of the ``runs`` dataset.

    Returns:
        The columns of a point, ``setting`` (of runs in one folder that differ in what has no column: capacities of
        ports, inputs), ``sources``, ``scheduler``, ``group`` (number of point, setting, source rule), ``seeds`` (that
        did not fail), the means of the numbers, half widths of the 95 % intervals of times and slowdowns (over seeds,
        by Student's t; of one seed, and of the reads of a log, which every seed has alike, no less than that of a
        single replay, nan where it has none), ``improvement_least`` and ``improvement_most``; points and source rules
        in their order, schedulers by ``mean_s``.
    """
    runs = by_setting(runs)
    keys = [*POINT, "setting", "sources", "scheduler"]
    rows = []
    for values, replays in runs.groupby(keys, sort=False, dropna=False):
        row = dict(zip(keys, values, strict=True))
        finished = replays[replays["status"] == str(Status.OK)]
        row |= {name: finished[name].astype(float).mean() for name in _NUMBERS}
        row |= {"seeds": len(finished)}
        same = same_transfers(replays.iloc[0])
        row |= {half: _interval(finished, name, half, same) for name, half in _INTERVALS.items()}
        row |= {
            "improvement_least": finished["improvement"].astype(float).min(),
            "improvement_most": finished["improvement"].astype(float).max(),
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    group = table.groupby([*POINT, "setting", "sources"], sort=False, dropna=False).ngroup()
    return table.assign(group=group).sort_values(["group", "mean_s"], kind="stable", ignore_index=True)


def _interval(replays: pd.DataFrame, name: str, half: str, same: bool) -> float:
    """Half width of the 95 % interval of a mean over seeds; nan where it is not known.

    Seeds that all replay the reads of a log differ by random choices only: what the reads would shift the mean by, a
    single replay tells.

    Args:
        replays: of one point, source rule and scheduler.
        name: column of the value.
        half: column of its half width.
        same: whether all seeds have the same transfers.
    """
    of_seeds = half_width(replays[name].to_numpy(float))
    if len(replays) > 1 and not same:
        return of_seeds
    has_widths = half in replays and len(replays) > 0
    of_reads = half_width_over_seeds(replays[half].to_numpy(float), True) if has_widths else math.nan
    return math.nan if math.isnan(of_reads) else float(np.fmax(of_reads, of_seeds))


def against_dtarget(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean completion times relative to ``dtarget`` with smallest load first, seed by seed.

    Args:
        runs: rows of the ``runs`` dataset.

    Returns:
        The columns of a point, ``setting``, ``sources``, ``scheduler``, ``change`` (mean over seeds of mean_s / that
        of D-Target - 1) and ``ci`` (half width of its 95 % interval, paired by seed; nan of one seed, and of a log,
        whose reads every seed has alike), least ``change`` first; given sources are compared with D-Target's replay of
        the same.
    """
    runs = by_setting(runs)
    finished = runs[runs["status"] == str(Status.OK)]
    peer = finished[(finished["scheduler"] == "dtarget") & finished["sources"].isin(_PEER_SOURCES)]
    keys = [*POINT, "setting", "seed"]
    # sources may be given for one part of a sweep only if they are for all of it
    both = finished.merge(peer[[*keys, "mean_s"]], on=keys, suffixes=("", "_peer"))
    both["change"] = both["mean_s"] / both["mean_s_peer"] - 1
    names = [*POINT, "setting", "sources", "scheduler"]
    rows = []
    for values, pairs in both.groupby(names, sort=False, dropna=False):
        reach = half_width(pairs["change"].to_numpy(float))
        row = dict(zip(names, values, strict=True)) | {"change": pairs["change"].mean()}
        rows.append(row | {"ci": math.nan if same_transfers(pairs.iloc[0]) else reach})
    return pd.DataFrame(rows).sort_values("change", kind="stable") if rows else pd.DataFrame()


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the replays of a study and what went wrong."""
    table = over_seeds(runs)
    swept = [name for name in POINT if table[name].nunique(dropna=False) > 1]
    settings = ["setting"] if table["setting"].any() else []
    several = table["seeds"].max() > 1
    # without a lower bound nothing says what is left to gain
    bounded = table["gap"].notna().any()
    unit = fitting_unit(*(table[name] for name in _TIMES))
    times = {name: f"{word} {unit.name}" for name, word in _TIMES.items()}
    rows = [
        [*(row[name] for name in settings), *_cells(row, swept, bounded, unit)]
        for row in table.to_dict("records")
    ]
    print_table(
        console,
        f"schedule: {count_text(len(runs), 'run')}{f', {table.seeds.max()} seeds' if several else ''} in {out}",
        [
            *settings,
            *(name.replace("_", "\n") for name in swept),
            *("sources", "scheduler", *times.values(), "improvement", "slowdown"),
            *(["gap"] if bounded else []),
        ],
        rows,
        words=(*settings, "sources", "scheduler"),
        groups=table["group"].tolist(),
        least=(times["p95_s"], times["p50_s"], "slowdown", times["p99_s"], "improvement"),
        dataset="runs",
    )
    if several:
        say(
            console,
            "Means over the seeds, ± their 95 % intervals, improvement (least-most); improvement is over fair with the "
            "same sources and seed.",
        )
    _show_best(runs, swept, console)
    print_errors(runs, console)


def _cells(row: dict[Any, Any], swept: list[str], bounded: bool, unit: Unit) -> list[str]:
    improvement = number(row["improvement"], ".3g")
    if row["improvement_most"] > row["improvement_least"]:
        improvement += f" ({row['improvement_least']:.3g}-{row['improvement_most']:.3g})"
    cells = [*(number(row[name], "g") for name in swept), row["sources"], row["scheduler"]]
    cells += [unit.interval(row[name], row[_INTERVALS[name]]) for name in _TIMES]
    cells += [improvement, "" if pd.isna(row["slowdown"]) else plain(row["slowdown"], 3)]
    return cells + ([number(row["gap"], "z.1%" if row["gap"] < 1 else ".0%")] if bounded else [])


def _show_best(runs: pd.DataFrame, swept: list[str], console: Console) -> None:
    """What the best scheduler gains over D-Target as published, where that is among the replays."""
    changes = against_dtarget(runs)
    if changes.empty:
        return
    for _, point in changes.groupby([*POINT, "setting"], sort=False, dropna=False):
        chosen_sources = point["sources"].isin(["least_work_ahead", "given"])
        ours = point[(point["scheduler"] == "local_search") & chosen_sources]
        shown = pd.concat([point.iloc[:1], ours]).drop_duplicates()
        itself = (shown["scheduler"] == "dtarget") & shown["sources"].isin(_PEER_SOURCES)
        for row in shown[~itself].to_dict("records"):
            with_sources = "" if row["sources"] == "given" else f" with {row['sources']}"
            where = ", ".join(filter(None, [row["setting"], *(f"{name}={row[name]:g}" for name in swept)]))
            margin = f" ± {row['ci']:.2%}" if math.isfinite(row["ci"]) else ""
            say(
                console,
                f"{where + ': ' if where else ''}{row['scheduler']}{with_sources}: mean completion time "
                f"{row['change']:+z.2%}{margin} against dtarget"
                + (" with smallest_load, seed by seed" if with_sources else ""),
            )
