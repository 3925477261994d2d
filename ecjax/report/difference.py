"""How one study differs from another of its job, in a sentence: the numbers of the runs that they recommend."""

import math
from typing import Any, NamedTuple

import numpy as np

from ecjax.report.results import Results
from ecjax.status import Status


class _Headline(NamedTuple):
    """A column of ``runs`` and what it is called, with its unit; the first that both have is compared."""

    column: str
    words: str


_HEADLINES = {
    "analyze": (
        _Headline("max_load", "a largest node load of"),
        _Headline("file_count", "a number of files of"),
    ),
    "schedule": (_Headline("mean_s", "a mean completion time, in s, of"),),
    "adapt": (_Headline("mean_s", "a mean latency, in s, of"),),
    "cache": (_Headline("mean_s", "a mean latency, in s, of"),),
    "ceph": (_Headline("max_over_mean", "a load of the busiest OSD, to the mean, of"),),
    "codes": (_Headline("recommended_code", "a recommended code of"),),
}


def difference(one: Results, other: Results) -> str:
    """The sentence.

    Args:
        one: called A.
        other: called B.
    """
    if one.job != other.job:
        return f"A holds results of ecjax {one.job}, B of ecjax {other.job}: no number stands for both."
    if one.job == "bench":
        return _timings(one, other)
    if one.job == "reproduce":
        return _claims(one, other)
    if one.run is None or other.run is None:
        which = " and ".join(name for name, side in (("A", one), ("B", other)) if side.run is None)
        return f"{which} has no run that finished, so there is nothing to compare."
    for column, words in _HEADLINES.get(one.job, ()):
        before, after = one.run.get(column), other.run.get(column)
        if before is not None and after is not None:
            return f"B has {words} {_shown(after)}, A {_shown(before)}{_share(before, after)}."
    return "A and B have no number in common."


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _share(before: Any, after: Any) -> str:
    if not isinstance(before, float | int) or not before or not math.isfinite(before):
        return ""
    return ": the same" if after == before else f" ({(after - before) / before:+.2%})"


def _timings(one: Results, other: Results) -> str:
    """Ratio of the medians of what both measured."""
    sides = []
    for side in (one, other):
        table = side.table("bench", ("case", "variant", "size", "median_s"))
        rows = table.to_pylist() if table is not None else []
        sides.append(
            {
                (row["case"], row["variant"], row["size"]): row["median_s"]
                for row in rows
                if (row["median_s"] or 0) > 0
            }
        )
    both = [key for key in sides[0] if key in sides[1]]
    if not both:
        return "A and B have no timing in common."
    ratio = math.exp(float(np.mean([math.log(sides[1][key] / sides[0][key]) for key in both])))
    return f"Over the {len(both)} timings that both have, B takes {ratio:.3g} times as long as A (geometric mean)."


def _claims(one: Results, other: Results) -> str:
    """How many claims hold of those that both judged at the same size."""
    sides = [_holding(side) for side in (one, other)]
    both = [key for key in sides[0] if key in sides[1]]
    if not both:
        return "A and B judged no claim in common."
    before, after = (sum(side[key] for key in both) for side in sides)
    judged = f"{len(both)} that both judged"
    return f"Claims that hold, of the {judged}: {after} in B, {before} in A{_share(before, after)}."


def _holding(side: Results) -> dict[tuple[str, str], bool]:
    """Whether each claim holds, by id and size of the studies that judged it."""
    table = side.table("claims", ("run_id", "id", "size", "verdict"))
    if table is None:
        return {}
    # of several versions of a paper's claims those of the run with the most count
    most = {
        row["run_id"]: row["claim_count"] for row in side.runs.to_pylist() if Status(row["status"]).finished
    }
    rows = [row for row in table.to_pylist() if row["run_id"] in most and row["verdict"] != "not judged"]
    rows.sort(key=lambda row: most[row["run_id"]])
    return {(row["id"], row["size"]): row["verdict"] == "holds" for row in rows}
