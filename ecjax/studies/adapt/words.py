"""What the table and the figures of ``ecjax adapt`` share: means over seeds, names and colours of strategies."""

import json
from typing import Any

import pandas as pd

from ecjax.intervals import HALF_WIDTHS, half_width_over_seeds
from ecjax.plotting.looks import COLOURS
from ecjax.status import Status
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.spine.settings import differing_settings

POINT = ("delays", "arrivals", "rate_per_s", "load", "rate_scale")
_OTHERS = ("utilisation", "tasks_per_request", "mean_n", "mean_k", "capacity_per_s", "capacity_share")
# in ``params``: what has columns, results, and what the sizes of classes or their input id say
_NO_SETTINGS = {
    *("input", "strategy", "codes", "codes_by_class", "memory", "rate_per_s", "rate_scale"),
    *("name", "op", "share", "background"),
}
_NAMES = {"greedy": "Greedy", "fast_cloud": "FAST CLOUD", "tofec": "TOFEC", BEST_STATIC: "best static code"}
# in the order of their colours
_COLOURED = ("calibrated", "replication", "greedy", "fast_cloud", "tofec", BEST_STATIC)


def strategy_name(strategy: str, n: float | None = None, k: float | None = None) -> str:
    """What figures and tables call a strategy; static codes by their n and k."""
    if strategy == STATIC:
        return "static" if pd.isna(n) or pd.isna(k) else f"({n:.0f}, {k:.0f})"
    return _NAMES.get(strategy, strategy)


def basic() -> str:
    """Name of the code without any coding."""
    return strategy_name(STATIC, 1, 1)


def colours(strategies: list[str]) -> dict[str, Any]:
    """A colour per strategy other than static codes: the same in every figure."""
    every = dict(zip(_COLOURED, COLOURS, strict=False))
    return {name: colour for name, colour in every.items() if name in set(strategies)}


def replayed(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that ended, with their ``name`` and whether they are ``overloaded``."""
    ended = runs[runs["mean_s"].notna()]
    names = [strategy_name(*row) for row in ended[["strategy", "n", "k"]].itertuples(index=False, name=None)]
    return ended.assign(name=names, overloaded=ended["status"] == str(Status.NOT_STATIONARY))


def by_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that ended, with their ``setting``, ``variant`` and ``name`` (see ``over_seeds``)."""
    ended = replayed(runs)
    # a search may find another code with every seed
    ended = ended.assign(name=ended["name"].where(ended["strategy"] != BEST_STATIC, _NAMES[BEST_STATIC]))
    variant = _memories(ended)
    return ended.assign(
        setting=differing_settings(ended, ["delays", "arrivals", "name"], _NO_SETTINGS),
        variant=variant,
        name=[", ".join(filter(None, words)) for words in zip(ended["name"], variant, strict=True)],
    )


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per point and strategy: means over the seeds.

    Args:
        runs: rows of the ``runs`` dataset.

    Returns:
        The columns of a point, ``setting`` (of runs in one folder that differ in what is no column: threads, classes,
        requests), ``name`` and ``strategy``, ``variant`` (the memory of TOFEC where there are several), ``seeds``,
        ``overloaded`` (whether any seed was), the means of latencies and other numbers, half widths of the intervals of
        latencies, and ``n`` and ``k``, of static codes the most frequent ones; points in their order, strategies too.
    """
    ended = by_setting(runs)
    if ended.empty:
        return pd.DataFrame()
    keys = [*POINT, "setting", "name"]
    rows = []
    for values, seeds in ended.groupby(keys, sort=False, dropna=False):
        row: dict[str, Any] = dict(zip(keys, values, strict=True))
        row |= {
            "strategy": seeds["strategy"].iloc[0],
            "variant": seeds["variant"].iloc[0],
            "seeds": len(seeds),
        }
        row |= {"overloaded": seeds["overloaded"].any()}
        row |= {name: seeds[name].astype(float).mean() for name in (*HALF_WIDTHS, *_OTHERS)}
        logged = row["arrivals"] == "trace"
        for half in HALF_WIDTHS.values():
            row[half] = half_width_over_seeds(seeds[half].to_numpy(float), logged)
        codes = seeds[["n", "k"]].dropna().value_counts()
        row |= {"n": codes.index[0][0], "k": codes.index[0][1]} if len(codes) else {"n": None, "k": None}
        rows.append(row)
    table = pd.DataFrame(rows)
    # strategies of a point stay together
    place = table.groupby([*POINT, "setting"], sort=False, dropna=False).ngroup()
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def _memories(runs: pd.DataFrame) -> list[str]:
    """The memory of runs of TOFEC where there are several, as words; empty elsewhere."""
    memories = [None if pd.isna(text) else json.loads(text).get("memory") for text in runs["params"]]
    several = len({memory for memory in memories if memory is not None}) > 1
    return ["" if memory is None or not several else f"memory={memory:g}" for memory in memories]
