"""Which code to take."""

import pandas as pd

from ecjax.studies.codes.rows import by_cost, chosen
from ecjax.studies.codes.words import hours, matters_most, rules
from ecjax.studies.spine.sentences import dollars_text, listed
from ecjax.tables.recommendation import Recommendation

_MOST_OTHERS = 2  # that are named


def recommend(runs: pd.DataFrame, codes: pd.DataFrame) -> Recommendation | None:
    """The recommended code in a sentence, with what its durability rests on; None where codes were not written.

    Args:
        runs: the row of ``runs``.
        codes: its rows of ``codes``.
    """
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
            f"No code of {len(rows)} has {target}{reached}. Next: more parity, faster repair."
        )
    sentence = (
        f"For {target} take {best['code']}: {best['overhead']:.4g} times the data "
        f"({dollars_text(best['dollars_per_period'])} for 30 days), {best['nines']:.1f} nines, any loss "
        f"{best['any_loss_probability']:.1e} a year, {hours(best['disk_repair_s'])} h to repair a disk."
    )
    front = [row for row in rows if row["durable"] and row["pareto"] and row["code"] != best["code"]]
    dearer = [
        f"{row['code']} {dollars_text(row['dollars_per_period'] - best['dollars_per_period'])} more "
        f"({row['nines']:.1f} nines)"
        for row in sorted(front, key=by_cost)[:_MOST_OTHERS]
    ]
    beside = f" Dearer: {listed(dearer)}." if dearer else ""
    return Recommendation(
        f"{sentence}{beside} {rules(best)} {matters_most(best)}", str(run["run_id"]), "the least overhead"
    )
