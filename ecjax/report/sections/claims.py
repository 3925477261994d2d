"""What became of the papers' claims."""

import re
from collections import Counter

import pyarrow as pa

from ecjax.report.drawing import COLOURS, look, numbers
from ecjax.report.parts import Chart, Json, Listing, Section
from ecjax.report.results import Results, pick, words

_VERDICTS = ("holds", "holds in shape", "does not hold", "testbed", "not judged")
_PATTERNS = ("", "/", "x", ".", "-")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")


def section(results: Results) -> Section | None:
    """Verdicts by paper, our values beside the papers', and the table of claims."""
    table = results.table("claims") if results.job == "reproduce" else None
    if table is None:
        return None
    shown = pick(table, [name for name in table.column_names if name != "run_id"])
    counts = Counter(words(table, "verdict"))
    named = [f"{verdict}: {counts[verdict]}" for verdict in _VERDICTS if counts[verdict]]
    charts = [_verdicts(table), _values(table)]
    failing = [
        f"{claim} does not hold: {why}"
        for claim, verdict, why in zip(
            *(table.column(name).to_pylist() for name in ("id", "verdict", "why")), strict=True
        )
        if verdict == "does not hold"
    ]
    return Section(
        "Claims of the papers",
        [f"Claims: {len(table)}; {', '.join(named)}.", *failing],
        [chart for chart in charts if chart is not None],
        [Listing("Claims", shown)],
    )


def _verdicts(table: pa.Table) -> Chart:
    counts = Counter(zip(words(table, "paper"), words(table, "verdict"), strict=True))
    papers = sorted({paper for paper, _ in counts})
    verdicts = [each for each in _VERDICTS if any(counts[paper, each] for paper in papers)]
    traces: list[dict[str, Json]] = [
        {
            "type": "bar",
            "name": verdict,
            "x": papers,
            "y": [counts[paper, verdict] for paper in papers],
            "hovertemplate": "%{x}: %{y}",
            "marker": {
                "color": COLOURS[_VERDICTS.index(verdict)],
                "pattern": {"shape": _PATTERNS[_VERDICTS.index(verdict)]},
            },
        }
        for verdict in verdicts
    ]
    behind = pa.table(
        {"paper": papers} | {each: [counts[paper, each] for paper in papers] for each in verdicts}
    )
    layout: dict[str, Json] = {"barmode": "stack", "xaxis": {"type": "category"}}
    return Chart("Verdicts by paper", traces, "paper", "claims", behind, layout)


def _values(table: pa.Table) -> Chart | None:
    """Ours over the paper's value, of claims whose value is a positive number alone; 1: the same."""
    rows = []
    for row in table.to_pylist():
        value = row["paper_value"] or ""
        if _NUMBER.fullmatch(value) and float(value) > 0 and (row["ours"] or 0) > 0:
            low, high = row["ours_low"], row["ours_high"]
            rows.append(
                {
                    "id": row["id"],
                    "verdict": row["verdict"],
                    "paper_value": float(value),
                    "ours": row["ours"],
                    "ratio": row["ours"] / float(value),
                    "ratio_low": None if low is None else low / float(value),
                    "ratio_high": None if high is None else high / float(value),
                }
            )
    if not rows:
        return None
    shown = pa.Table.from_pylist(rows)
    ratios = numbers(shown, "ratio")
    ends = [
        [
            abs(end - ratio) if end is not None and ratio is not None else 0
            for end, ratio in zip(numbers(shown, name), ratios, strict=True)
        ]
        for name in ("ratio_high", "ratio_low")
    ]
    trace: dict[str, Json] = {
        "type": "scatter",
        "mode": "markers",
        "name": "ours / the paper's",
        "x": ratios,
        "y": words(shown, "id"),
        "error_x": {"type": "data", "array": ends[0], "arrayminus": ends[1]},
        "hovertemplate": "%{y}: %{x:.5g}",
        **look(0),
    }
    layout: dict[str, Json] = {
        "xaxis": {"type": "log"},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "height": 130 + 26 * len(rows),
        "shapes": [
            {
                "type": "line",
                "x0": 1,
                "x1": 1,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"dash": "dot", "color": "#8a8a8a"},
            }
        ],
    }
    axes = ("ours / the paper's value (1: the same)", "claim")
    return Chart("Our values beside the papers'", [trace], *axes, shown, layout)
