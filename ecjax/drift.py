"""Whether a plan still fits: its read rates, service times and loads beside those of a newer log.

A log of N reads of a file in T seconds has the rate N / T; its 95 % interval is that of a Poisson count (Garwood),
which is too narrow where reads of one file come in bursts. The load of a node is the planned one, with the part that
reads make moved to the rates, and to the service times where the log has them, of the log: probabilities and sizes are
those of the plan.

References:
    F. Garwood, Fiducial limits for the Poisson distribution, Biometrika 28 (1936) 437-442.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaincinv

RATE, UNPLANNED, ALL, SERVICE, LOAD = (
    "reads of a file (1/s)",
    "reads of files without a plan (1/s)",
    "reads of all files (1/s)",
    "mean service time (s)",
    "load",
)
COLUMNS = ("quantity", "of", "planned", "log", "low", "high", "changed")
_LEVEL, _NORMAL = 0.05, 1.959963984540054
_UNPLANNED_SHARE = 0.05  # of reads: more than this is worth a new plan
_GROWTH = 1.1  # of the largest load, and of its inverse: less is not worth moving chunks
_FULL = 1.0


class Plan(NamedTuple):
    """What was planned.

    Attributes:
        files: (r,) index file_id; rate_per_s.
        placements: rows of file_id, node_id, probability, service_s: mean service time planned for its chunk (s).
        loads: (m,) index node_id; planned loads.
    """

    files: pd.Series
    placements: pd.DataFrame
    loads: pd.Series


class Log(NamedTuple):
    """What a log has.

    Attributes:
        reads: (f,) index file_id; numbers of reads.
        span_s: its length.
        service: (n,) index node_id; planned_s, mean_s and error_s: mean service times of its chunks by the plan's law,
            and by the log with their standard errors; no rows where the log has none.
    """

    reads: pd.Series
    span_s: float
    service: pd.DataFrame


def poisson_interval(counts: np.ndarray, level: float = _LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Means of a Poisson count that it does not reject, (r,) each: from the lower to the upper end."""
    counts = np.asarray(counts, np.float64)
    lower = np.where(counts > 0, gammaincinv(np.maximum(counts, 1.0), level / 2), 0.0)
    return lower, gammaincinv(counts + 1.0, 1 - level / 2)


def drift_table(plan: Plan, log: Log) -> pd.DataFrame:
    """Every number of the plan beside that of the log: ``COLUMNS``.

    Intervals hold for each row by itself; ``changed`` allows for the number of rows of its quantity (Bonferroni).
    """
    counts = log.reads.reindex(plan.files.index, fill_value=0)
    unplanned = float(log.reads.sum() - counts.sum())
    tables = [
        _rates(ALL, [""], np.array([plan.files.sum()]), np.array([float(log.reads.sum())]), log.span_s),
        _rates(UNPLANNED, [""], np.zeros(1), np.array([unplanned]), log.span_s),
        _loads(plan, log, counts),
        _rates(RATE, list(plan.files.index), plan.files.to_numpy(), counts.to_numpy(), log.span_s),
    ]
    if len(log.service):
        service = log.service
        error = service["error_s"].to_numpy()
        tables.append(
            _rows(
                SERVICE,
                list(service.index),
                service["planned_s"].to_numpy(),
                service["mean_s"].to_numpy(),
                error,
            )
        )
    return pd.concat(tables, ignore_index=True)


def _rates(quantity: str, of: list, planned: np.ndarray, counts: np.ndarray, span_s: float) -> pd.DataFrame:
    low, high = (end / span_s for end in poisson_interval(counts))
    least, most = (end / span_s for end in poisson_interval(counts, _LEVEL / max(len(of), 1)))
    rows = (quantity, of, planned, counts / span_s, low, high, (planned < least) | (planned > most))
    return pd.DataFrame(dict(zip(COLUMNS, rows, strict=True)))


def _rows(quantity: str, of: list, planned: np.ndarray, value: np.ndarray, error: np.ndarray) -> pd.DataFrame:
    half = _NORMAL * error
    # of a normal law: the quantile of a level is that of a chi-square with one degree of freedom
    wide = np.sqrt(2 * gammaincinv(0.5, 1 - _LEVEL / max(len(of), 1))) * error
    changed = np.abs(value - planned) > wide + 1e-9 * np.abs(planned)
    rows = (quantity, of, planned, value, np.maximum(value - half, 0), value + half, changed)
    return pd.DataFrame(dict(zip(COLUMNS, rows, strict=True)))


def _loads(plan: Plan, log: Log, counts: pd.Series) -> pd.DataFrame:
    rows = plan.placements
    work = rows["probability"].to_numpy() * rows["service_s"].to_numpy()  # (rows,) s of the node for a read
    rates, reads = (series.reindex(rows["file_id"]).to_numpy() for series in (plan.files, counts))

    def at_nodes(values: np.ndarray) -> pd.Series:
        return pd.Series(values).groupby(rows["node_id"].to_numpy()).sum().reindex(plan.loads.index).fillna(0)

    service = log.service.reindex(plan.loads.index)
    slower = (service["mean_s"] / service["planned_s"]).fillna(1.0).to_numpy()
    doubt = (service["error_s"] / service["mean_s"]).fillna(0.0).to_numpy()
    other = plan.loads.to_numpy() - at_nodes(rates * work).to_numpy()  # writes and other work
    of_reads = at_nodes(reads / log.span_s * work).to_numpy() * slower
    # a count of n has the variance n; none at all still leaves that of one
    spread = np.sqrt(at_nodes(np.maximum(reads, 1) * (work / log.span_s) ** 2).to_numpy()) * slower
    error = np.hypot(spread, of_reads * doubt)
    return _rows(LOAD, list(plan.loads.index), plan.loads.to_numpy(), other + of_reads, error)


def verdict(table: pd.DataFrame) -> tuple[bool | None, str]:
    """Whether a new plan is worth it, None where the log is too short to tell, and why, in a sentence."""
    loads = table[table["quantity"] == LOAD]
    every, without = (table[table["quantity"] == name].iloc[0] for name in (ALL, UNPLANNED))
    before = loads["planned"].max()
    busiest = loads.loc[loads["log"].idxmax()]
    share = without["log"] / every["log"]
    text = (
        f"the largest load is {_between(busiest)} at node {busiest['of']}, where {before:.3g} was planned for "
        "the busiest"
    )
    changed = _most_changed(table)
    if without["low"] / every["log"] > _UNPLANNED_SHARE:
        return (
            True,
            f"Worth replanning: {share:.0%} of reads are of files without a plan, and {text}{changed}.",
        )
    if loads["low"].max() > min(_GROWTH * before, _FULL):
        return True, f"Worth replanning: {text}{changed}."
    if every["high"] < every["planned"] / _GROWTH and loads["high"].max() < before / _GROWTH:
        return True, f"Worth replanning, for less redundancy costs latency less now: {text}{changed}."
    if loads["high"].max() > min(_GROWTH * before, _FULL):
        return None, f"Too few reads to tell whether to plan again: {text}{changed}."
    return False, f"Not worth replanning: {text}{changed}."


def _between(row: pd.Series) -> str:
    return f"{row['log']:.3g} ({row['low']:.3g} to {row['high']:.3g})"


def _most_changed(table: pd.DataFrame) -> str:
    rows = table[table["changed"] & table["quantity"].isin((RATE, SERVICE))]
    if not len(rows):
        return ""
    # by what it means: reads of a file among all reads, or a node's time relative to what it was
    every = table.loc[table["quantity"] == ALL, ["planned", "log"]].to_numpy().max()
    scale = np.where(rows["quantity"] == RATE, every, rows["planned"])
    row = rows.iloc[int(np.argmax(np.abs(rows["log"] - rows["planned"]) / scale))]
    name, _, unit = row["quantity"].rpartition(" (")
    kind = "" if row["quantity"] == RATE else " of node"
    now = f"{row['log']:.3g} {unit.rstrip(')')}"
    return f"; most changed: {name}{kind} {row['of']}, {now} instead of {row['planned']:.3g}"
