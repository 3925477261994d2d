"""Which code to take."""

from dataclasses import replace
from typing import Any

import pandas as pd

from ecjax.status import Status
from ecjax.studies.codes.rows import by_cost, chosen
from ecjax.studies.codes.words import by_class_text, hours, pace_of, reads_of, rules, what_matters
from ecjax.studies.spine.sentences import dollars_text, listed
from ecjax.tables.recommendation import Recommendation

_MOST_OTHERS = 2  # that are named


def recommend(
    runs: pd.DataFrame, codes: pd.DataFrame, combinations: pd.DataFrame | None = None
) -> Recommendation | None:
    """The recommended code in a sentence, with what its durability rests on; None where codes were not written.

    Where codes are chosen for classes of files, what each class is to have comes after.

    Args:
        runs: the row of ``runs``.
        codes: its rows of ``codes``.
        combinations: its rows of ``combinations``, if classes have codes of their own.
    """
    alone = _of_all_files(runs, codes)
    if alone is None or combinations is None or combinations.empty:
        return alone
    return replace(alone, sentence=f"{alone.sentence} {by_class_text(runs.iloc[0], combinations)}")


def _of_all_files(runs: pd.DataFrame, codes: pd.DataFrame) -> Recommendation | None:
    if codes.empty:
        return None
    run = runs.iloc[0]
    target = f"{run['durability_nines']:g} nines per object and year"
    if pd.notna(run["max_any_loss"]):
        target += f" and any loss below {run['max_any_loss']:g} a year"
    rows = codes.to_dict("records")
    best = chosen(rows)
    if best is None:
        most = max(rows, key=lambda row: -1.0 if pd.isna(row["nines"]) else row["nines"])
        reached = (
            "" if pd.isna(most["nines"]) else f"; {most['code']} comes nearest, {most['nines']:.1f} nines"
        )
        return Recommendation(
            f"No code of {len(rows)} has {target}{reached}. {_overloaded(rows, run['durability_nines'])}"
        )
    sentence = (
        f"For {target} take {best['code']}: {best['overhead']:.4g} times the data "
        f"({dollars_text(best['dollars_per_period'])} for 30 days), {best['nines']:.1f} nines, any loss "
        f"{best['any_loss_probability']:.1e} a year, {hours(best['disk_repair_s'])} h to repair a disk.{pace_of(best)}"
    )
    others = sorted((row for row in rows if row["durable"] and row["code"] != best["code"]), key=by_cost)
    front = [row for row in others if row["pareto"]]
    dearer = [
        f"{row['code']} {dollars_text(row['dollars_per_period'] - best['dollars_per_period'])} more "
        f"({row['nines']:.1f} nines)"
        for row in front[:_MOST_OTHERS]
    ]
    beside = f" Dearer: {listed(dearer)}." if dearer else ""
    reads = reads_of(best, next(iter(front or others), None))
    return Recommendation(
        f"{sentence}{beside}{reads} {rules(best)} {what_matters(best)}",
        str(run["run_id"]),
        "the least overhead",
    )


def _overloaded(rows: list[dict[str, Any]], target: float) -> str:
    """What to do next, where no code is durable: another, or nodes that can bear reads and repairs."""
    bare = [
        row["code"]
        for row in rows
        if row["status"] == Status.UNSTABLE and pd.notna(row["nines"]) and row["nines"] >= target
    ]
    if not bare:
        return "Next: more parity, faster repair."
    return (
        f"{listed(bare)} would, but reads overload their nodes, or leave nothing for repairs. Next: lower rates, or "
        "more nodes."
    )
