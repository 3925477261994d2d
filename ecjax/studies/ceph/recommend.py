"""Which plan to take, and what to do with it."""

import math

import pandas as pd

from ecjax.status import Status
from ecjax.studies.ceph.options import LOAD, MEAN, P99
from ecjax.studies.spine.sentences import percent_text
from ecjax.tables.recommendation import Recommendation
from ecjax.units import bytes_text, count_text, time_text

# what is least by an objective, and what it is before
_COLUMNS = {
    LOAD: ("max_over_mean", "max_over_mean_before"),
    MEAN: ("estimated_mean_s", "estimated_mean_before_s"),
    P99: ("estimated_p99_s", "estimated_p99_before_s"),
}
_WORDS = {LOAD: "load of the busiest OSD", MEAN: "mean latency", P99: "99 % quantile of the latency"}
NOTHING_GAINED = "nothing is to be gained"  # why a run was chosen whose plan is not worth its commands
_NOTHING = 0.005  # of the max load, or of a latency: not worth a command


def recommend(runs: pd.DataFrame, folders: dict[str, str], objective: str = LOAD) -> Recommendation | None:
    """The plan that is best by the objective; where several are as good, the one that copies least.

    Args:
        runs: rows of the ``runs`` dataset of one study.
        folders: where the scripts of a run are, by run id.
        objective: LOAD of the busiest OSD, MEAN or P99 of the estimated latency.
    """
    table = runs[runs["status"] == str(Status.OK)]
    if table.empty:
        return None
    after, before = _COLUMNS[objective]
    best = table.sort_values([after, "moved_chunks"], kind="stable").iloc[0]
    gain = 1 - best["max_over_mean"] / best["max_over_mean_before"]
    if _saved(best[before], best[after]) < _NOTHING or not best["changed_groups"]:
        return Recommendation(_nothing(best, objective), str(best["run_id"]), NOTHING_GAINED)
    sentence = (
        f"Recommended: change {int(best['changed_groups'])} of {count_text(best['group_count'], 'group')}; the busiest "
        "OSD then has "
        f"{best['max_over_mean']:.3f} instead of {best['max_over_mean_before']:.3f} times the present mean load "
        f"(least possible {best['lower_bound']:.3f})"
    )
    counted = best.get("counted_osds")  # rows of earlier versions have none
    if gain > 0 and pd.notna(counted) and counted < best["osd_count"]:
        sentence += ", of those OSDs whose load it can change"
    elif gain > 0:
        sentence += f", so the cluster serves {percent_text(1 / (1 - gain) - 1)} more reads before it is full"
    elif gain < -_NOTHING:
        sentence += f", which is {percent_text(-gain)} more: slow OSDs are spared"
    if pd.notna(best["estimated_mean_s"]):
        sentence += ". " + latency_text(best)
    # counts are no integers where other plans failed
    batches = count_text(best["batch_count"], "batch", "batches")
    shards = count_text(best["moved_chunks"], "shard")
    sentence += f". It copies {shards}, {bytes_text(best['moved_bytes'])}, in {batches}"
    if best["run_id"] in folders:
        sentence += f": {folders[best['run_id']]}"
    among = f"the least {_WORDS[objective]}" if len(table) > 1 else "the only plan"
    return Recommendation(sentence + ".", str(best["run_id"]), among)


def _nothing(run: pd.Series, objective: str) -> str:
    if objective == LOAD:
        return (
            f"Nothing to change: the busiest OSD has {run['max_over_mean_before']:.3f} times the mean load, no choice "
            f"of roles gets below {run['lower_bound']:.3f}."
        )
    after, before = _COLUMNS[objective]
    others = "no plan that was tried has less"
    if run["changed_groups"]:
        others = f"the best plan that was tried has {time_text(run[after])}"
    return f"Nothing to change: the expected {_WORDS[objective]} is {time_text(run[before])}, {others}."


def _saved(before: float, after: float) -> float:
    """Share that is saved; 1 where what was infinite is finite."""
    if not math.isfinite(before):
        return 1.0 if math.isfinite(after) else 0.0
    return 1 - after / before


def latency_text(run: pd.Series) -> str:
    """What becomes of latencies at the rates of the dumps, in words: also where they become no better.

    Args:
        run: row of ``runs`` with estimates.
    """
    if not math.isfinite(run["estimated_mean_s"]):
        return "No expected latency: at these rates, and with these service times, an OSD is overloaded"
    saved = _saved(run["estimated_mean_before_s"], run["estimated_mean_s"])
    texts = [
        f"{name} {time_text(run[f'estimated_{name}_before_s'])} to {time_text(run[f'estimated_{name}_s'])}"
        f" (no plan below {time_text(run[f'least_{name}_s'])})"
        for name in ("mean", "p99")
    ]
    line = f"Expected latency at these rates: {', '.join(texts)}"
    if saved < _NOTHING:
        line += "; what is gained is room for more reads, not latency now (objective=mean plans for that)"
    return line
