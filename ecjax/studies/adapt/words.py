"""What the table and the figures of ``ecjax adapt`` share: means over seeds, names and colours of strategies."""

import math
from typing import Any

import matplotlib
import pandas as pd

from ecjax.plotting.panels import COLOURS
from ecjax.status import Status

matplotlib.use("Agg")

POINT = ("delays", "arrivals", "rate_per_s", "load", "rate_scale")
LATENCIES = {"mean_s": "ci_s"} | {
    name: name.replace("_s", "_ci_s") for name in ("p50_s", "p90_s", "p99_s", "std_s")
}
STATIC, BEST_STATIC = "static", "best_static"
_OTHERS = ("utilisation", "tasks_per_request", "mean_n", "mean_k", "capacity_per_s", "capacity_share")
_NAMES = {
    "calibrated": "calibrated",
    "replication": "replication",
    "greedy": "Greedy",
    "fast_cloud": "FAST CLOUD",
    "tofec": "TOFEC",
    BEST_STATIC: "best static code",
}
_OVERLOADED = str(Status.NOT_STATIONARY)


def strategy_name(method: str, n: Any = None, k: Any = None) -> str:
    """What figures and tables call a strategy; static codes by their n and k."""
    if method == STATIC:
        return "static" if pd.isna(n) or pd.isna(k) else f"({n:.0f}, {k:.0f})"
    return _NAMES.get(method, method.replace("_", " "))


def basic() -> str:
    """Name of the code without any coding."""
    return strategy_name(STATIC, 1, 1)


def colours(methods: list[str]) -> dict[str, Any]:
    """A colour per strategy other than static codes: the same in every figure."""
    order = dict.fromkeys([*_NAMES, *methods])
    return {name: colour for name, colour in zip(order, COLOURS, strict=False) if name in methods}


def replayed(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that ended, with their ``name`` and whether they are ``overloaded``."""
    found = runs[runs["mean_s"].notna()]
    names = [strategy_name(*row) for row in found[["method", "n", "k"]].itertuples(index=False, name=None)]
    return found.assign(name=names, overloaded=found["status"] == _OVERLOADED)


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per point and strategy: means over the seeds.

    Args:
        runs: rows of the ``runs`` dataset.

    Returns:
        The columns of a point, ``name`` and ``method``, ``seeds``, ``overloaded`` (whether any seed was), the means of
        latencies and of what else is told, half widths of the latencies (those of the seeds are independent: their
        squares add up), and ``code``, of static codes the most frequent one; points in their order, strategies
        too.
    """
    found = []
    keys = [*POINT, "name"]
    done = replayed(runs)
    # a search may find another code with every seed
    done = done.assign(name=done["name"].where(done["method"] != BEST_STATIC, _NAMES[BEST_STATIC]))
    for values, own in done.groupby(keys, sort=False, dropna=False):
        row: dict[str, Any] = dict(zip(keys, values, strict=True))
        row |= {"method": own["method"].iloc[0], "seeds": len(own), "overloaded": own["overloaded"].any()}
        row |= {name: own[name].astype(float).mean() for name in (*LATENCIES, *_OTHERS)}
        for half in LATENCIES.values():
            row[half] = math.sqrt((own[half].astype(float) ** 2).sum(skipna=False)) / len(own)
        code = own[["n", "k"]].dropna().value_counts()
        row |= {"n": code.index[0][0], "k": code.index[0][1]} if len(code) else {"n": None, "k": None}
        found.append(row)
    return pd.DataFrame(found)
