"""Which code to take."""

from dataclasses import replace
from typing import Any

import pandas as pd

from ecjax.studies.codes.nearest import nearest_text, target_text
from ecjax.studies.codes.rows import by_cost, chosen
from ecjax.studies.codes.words import by_class_text, hours, outages_of, pace_of, reads_of, rules, what_matters
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
    run = runs.iloc[0].to_dict()
    target = target_text(run)
    rows = codes.to_dict("records")
    best = chosen(rows)
    if best is None:
        return Recommendation(f"No code of {len(rows)} has {target}. {nearest_text(rows, run)}")
    sentence = (
        f"For {target} take {best['code']}: {best['overhead']:.4g} times the data "
        f"({dollars_text(best['dollars_per_period'])} for 30 days), {best['nines']:.1f} nines, any loss "
        f"{best['any_loss_probability']:.1e} a year, {hours(best['disk_repair_s'])} h to repair a disk.{pace_of(best)}"
    )
    others = sorted((row for row in rows if row["durable"] and row["code"] != best["code"]), key=by_cost)
    front = [row for row in others if row["pareto"]]
    alike = [row for row in front if row["overhead"] <= best["overhead"]][:_MOST_OTHERS]
    dearer = [row for row in front if row["overhead"] > best["overhead"]][:_MOST_OTHERS]
    beside = (f" At the same price: {_price_of(alike, best)}." if alike else "") + (
        f" Dearer: {_price_of(dearer, best)}." if dearer else ""
    )
    reads = reads_of(best, next(iter(front or others), None))
    return Recommendation(
        f"{sentence}{beside}{outages_of(best)}{reads} {rules(best)} {what_matters(best)}",
        str(run["run_id"]),
        "the least overhead, of equal ones the least repair traffic",
    )


def _price_of(rows: list[dict[str, Any]], best: dict[str, Any]) -> str:
    """Codes with what they cost more than the best in dollars, or where that is nothing in repair traffic."""
    parts = []
    for row in rows:
        more = f"{dollars_text(row['dollars_per_period'] - best['dollars_per_period'])} more"
        if row["overhead"] <= best["overhead"]:
            times = row["repair_bytes_per_day"] / best["repair_bytes_per_day"]
            more = f"with {times:.2g} times the repair traffic"
        parts.append(f"{row['code']} {more} ({row['nines']:.1f} nines)")
    return listed(parts)
