"""What the table and the figures of ``ecjax cache`` share: means over seeds, names and colours of policies, panels."""

import math
from typing import Any

import numpy as np
import pandas as pd

from ecjax.intervals import half_width, half_width_over_seeds
from ecjax.plotting.looks import COLOURS
from ecjax.studies.cache.tables import ALL, BEST, BOUND, COOPERATIVE, MIXTURE, REFERENCE

POINT = ("k", "capacity", "copies", "items", "zipf", "failed", "half_life_s")
POINT_WORDS = {
    "k": "data chunks of an item",
    "capacity": "chunks that an edge can keep",
    "copies": "further copies of every chunk",
    "items": "items",
    "zipf": "exponent of popularity",
    "failed": "down",
    "half_life_s": "half-life of popularity (s)",
}
SHORT = {
    "k": "data\nchunks",
    "capacity": "chunks\nkept",
    "copies": "copies",
    "items": "items",
    "zipf": "exponent",
    "failed": "down",
    "half_life_s": "half-life\ns",
}
NEVER_DECIDES = ("none", REFERENCE, BOUND, "samplex_static")
LATENCIES = {"mean_s": "ci_s", "p50_s": "p50_ci_s", "p90_s": "p90_ci_s", "p99_s": "p99_ci_s"}
DECISIONS = {"decision_mean_s": "mean", "decision_p99_s": "99 %", "decision_p9999_s": "99.99 %"}
_OTHERS = (
    "p999_s",
    "chunk_hit_ratio",
    "full_hit_ratio",
    "neighbour_hit_ratio",
    "filled_chunks",
    "failed_reads",
    *DECISIONS,
    "requests_per_s",
    "above_optimum",
)
_NAMES = {
    "exact": "exact",
    "near_optimal": "near-optimal",
    "near_optimal_dp": "near-optimal DP",
    "samplex": "SampleX",
    "agar": "Agar",
    "exact_periodic": "exact per period",
    "decayed_lfu": "decayed LFU",
    "lfu": "LFU",
    "lru": "LRU",
    "none": "no cache",
    REFERENCE: "static optimum",
    COOPERATIVE: "neighbours",
    "samplex_static": "static SampleX",
    "arc": "ARC",
    "s3_fifo": "S3-FIFO",
    "sieve": "SIEVE",
    "w_tinylfu": "W-TinyLFU",
    "gdsf": "GDSF",
    BOUND: "Belady, a bound",
}
SCHEMES = {
    ALL: "all partitions",
    BEST: "exact",
    "samplex": "SampleX",
    "rands": "RandS",
    "clus": "CluS",
    "probs": "ProbS",
    "syss": "SysS",
}


def policy_name(policy: str, samples: Any = None, neighbour_s: Any = None) -> str:
    """What figures and tables call a policy; SampleX with its number of partitions, neighbours with their distance."""
    words = _NAMES.get(policy, policy.replace("_", " "))
    if neighbour_s is not None and pd.notna(neighbour_s):
        return f"{words} ({1e3 * neighbour_s:.3g} ms)"
    return words if samples is None or pd.isna(samples) else f"{words} ({samples:.0f})"


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the ``name`` of their policy, at points that others can be compared at.

    A policy that learned by a mixture has no half-life: where all others have the same one, it tells no points apart.
    """
    columns = (rows[column] for column in ("policy", "samples", "neighbour_s"))
    names = [policy_name(*row) for row in zip(*columns, strict=True)]
    mixture = (rows["policy"] == MIXTURE) & rows["half_life_s"].isna()
    if mixture.any():
        counters = (rows["policy"] == MIXTURE) & ~mixture
        names = [f"{name}, counters" if other else name for name, other in zip(names, counters, strict=True)]
        if rows["half_life_s"].nunique() == 1:
            rows = rows.assign(half_life_s=math.nan)
    return rows.assign(name=names)


def colours(names: list[str]) -> dict[str, Any]:
    """A colour per policy name: those without a number of partitions have the same in every figure."""
    order = dict.fromkeys([*_NAMES.values(), *names])
    every = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(order)}
    return {name: every[name] for name in names}


def replayed(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that ended and served a read, with their ``name``."""
    return named(runs[runs["mean_s"].notna()])


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per point and policy: means over the seeds.

    Args:
        runs: rows of the ``runs`` dataset.

    Returns:
        The columns of a point, ``neighbour_s``, ``name`` and ``policy``, ``seeds``, the means of the results, and half
        widths of the latencies' 95 % intervals; points and policies in their order.
    """
    rows = []
    keys = [*POINT, "neighbour_s", "name"]
    for values, group in replayed(runs).groupby(keys, sort=False, dropna=False):
        row: dict[str, Any] = dict(zip(keys, values, strict=True))
        row |= {"policy": group["policy"].iloc[0], "seeds": group["seed"].nunique()}
        row |= {name: group[name].astype(float).mean() for name in (*LATENCIES, *_OTHERS)}
        row |= {half: _half_width(group, name, half) for name, half in LATENCIES.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def _half_width(replays: pd.DataFrame, name: str, half: str) -> float:
    """Half width of the 95 % interval of a mean over seeds, the larger of two; nan where it is not known.

    One is by the half widths of the single replays, the other by what seeds differ by: a single replay does not know
    how far other places of the chunks would shift its mean.

    Args:
        replays: of one point and policy.
        name: column of the value.
        half: column of its half width.
    """
    logged = bool((replays["arrivals"] == "trace").any())
    of_reads = half_width_over_seeds(replays[half].to_numpy(float), logged)
    if logged and math.isnan(of_reads):
        return math.nan  # seeds that all replay the same reads do not tell it
    of_seeds = half_width(replays[name].astype(float).groupby(replays["seed"]).mean().to_numpy())
    return float(np.fmax(of_reads, of_seeds))


def varying(runs: pd.DataFrame, but: str | None = None) -> list[str]:
    """The columns of a point that differ between runs."""
    return [name for name in POINT if name != but and runs[name].nunique(dropna=False) > 1]


def parts(runs: pd.DataFrame, columns: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """The rows divided by some columns of a point, with what tells each part from the others."""
    if not columns:
        return [("", runs)]
    divided = []
    for values, part in runs.groupby(columns, sort=False, dropna=False):
        words = [point_words(name, value) for name, value in zip(columns, values, strict=True)]
        divided.append((", ".join(words), part))
    return divided


def point_words(name: str, value: Any) -> str:
    """One coordinate of a point, in words."""
    if name == "failed":
        return "all up" if pd.isna(value) else f"{value} down"
    short = SHORT[name].replace("\n", " ")  # of a heading of a table
    return f"{short} = {value:g}"
