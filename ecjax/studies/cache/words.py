"""What the table and the figures of ``ecjax cache`` share: means over seeds, names and colours of policies, panels."""

import math
from typing import Any

import numpy as np
import pandas as pd

from ecjax.intervals import half_width, half_width_over_seeds
from ecjax.plotting.looks import COLOURS
from ecjax.studies.cache.tables import ALL, BEST, BOUND, COOPERATIVE, MIXTURE, REFERENCE
from ecjax.studies.spine.settings import differing_parameters, differing_settings

POINT = ("k", "capacity", "copies", "items", "zipf", "failed", "half_life_s")
# in ``params``, of some policies only
_OF_POLICY = ("period_s", "replan_reads", "neighbours")
# in ``params``: what has columns, what names policies apart, and what is said of inputs
_NO_SETTINGS = {*POINT, *_OF_POLICY, "policy", "samples", "input"}
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
    "setting": "setting",
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
    Where runs of one policy differ in a parameter that others do not have, as ``period_s``, their names say it.
    """
    of_policy = ["policy", "samples", "neighbour_s"]
    names = [policy_name(*row) for row in zip(*(rows[column] for column in of_policy), strict=True)]
    mixture = (rows["policy"] == MIXTURE) & rows["half_life_s"].isna()
    if mixture.any():
        counters = (rows["policy"] == MIXTURE) & ~mixture
        names = [f"{name}, counters" if other else name for name, other in zip(names, counters, strict=True)]
        if rows["half_life_s"].nunique() == 1:
            rows = rows.assign(half_life_s=math.nan)
    variants = differing_parameters(rows, of_policy, _OF_POLICY)
    return rows.assign(name=[", ".join(filter(None, words)) for words in zip(names, variants, strict=True)])


def colours(names: list[str]) -> dict[str, Any]:
    """A colour per policy name: those without a number of partitions have the same in every figure."""
    order = dict.fromkeys([*_NAMES.values(), *names])
    every = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(order)}
    return {name: every[name] for name in names}


def replayed(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that ended and served a read, with their ``name`` and ``setting`` (see ``over_seeds``)."""
    return _by_setting(named(runs[runs["mean_s"].notna()]), ["neighbour_s", "name"])


def planned(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of the study of sampling, with their ``setting`` (see ``over_seeds``)."""
    return _by_setting(runs, ["scheme", "samples"])


def _by_setting(runs: pd.DataFrame, ways: list[str]) -> pd.DataFrame:
    """Runs with their ``setting``, those of a point together; ``ways``: columns of what is compared there."""
    # the rate of a log follows from its scale
    rate = runs["rate_per_s"].mask(runs["arrivals"] == "trace")
    columns = ("rate_per_s", "rate_scale")
    setting = differing_settings(runs.assign(rate_per_s=rate), [*POINT, *ways], _NO_SETTINGS, columns)
    told = runs.assign(setting=setting)
    place = told.groupby([*POINT, "setting"], sort=False, dropna=False).ngroup()
    return told.iloc[np.argsort(place.to_numpy(), kind="stable")]


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per point and policy: means over the seeds.

    Args:
        runs: rows of the ``runs`` dataset.

    Returns:
        The columns of a point, ``setting`` (of runs in one folder that differ in what is not among them: parity,
        times, inputs), ``neighbour_s``, ``name`` and ``policy``, ``seeds``, the means of the results, and half widths
        of the latencies' 95 % intervals; points in their order, policies too.
    """
    rows = []
    keys = [*POINT, "setting", "neighbour_s", "name"]
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
    """The columns of a point, and the setting, that differ between runs."""
    names = [name for name in ("setting", *POINT) if name != but and name in runs]
    return [name for name in names if runs[name].nunique(dropna=False) > 1]


def parts(runs: pd.DataFrame, columns: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """The rows divided by setting or columns of a point, with what tells each part from the others."""
    if not columns:
        return [("", runs)]
    divided = []
    for values, part in runs.groupby(columns, sort=False, dropna=False):
        words = [point_words(name, value) for name, value in zip(columns, values, strict=True)]
        divided.append((", ".join(filter(None, words)), part))
    return divided


def point_words(name: str, value: Any) -> str:
    """One coordinate of a point, or the setting, in words."""
    if name == "setting":
        return str(value)
    if name == "failed":
        return "all up" if pd.isna(value) else f"{value} down"
    short = SHORT[name].replace("\n", " ")  # of a heading of a table
    return f"{short} = {value:g}"
