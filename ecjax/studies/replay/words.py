"""What the figures of ``ecjax replay`` share: words and colours of sources, and what is an axis."""

from pathlib import Path
from typing import Any

import pandas as pd

from ecjax.plotting.looks import COLOURS
from ecjax.plotting.runs import names, swept

SOURCES = {
    "observed": ("observed", COLOURS[6]),
    "replayed": ("replayed", COLOURS[0]),
    "estimated": ("estimated", COLOURS[2]),
    "trace_estimated": ("estimated, arrivals as they come", COLOURS[4]),
    "bound": ("bound (Poisson arrivals)", COLOURS[1]),
    "split_merge": ("split-merge bound", "black"),
    "forks": ("forks bound", "dimgrey"),
}  # of ``latencies``: word and colour, in the order of bars
STYLES: dict[str, Any] = {
    "observed": ":",
    "replayed": "-",
    "estimated": "--",
    "trace_estimated": (0, (6, 1, 1, 1, 1, 1)),
    "bound": "-.",
}
EARLIER = {"split_merge", "forks"}  # bounds of other systems: they do not depend on the policy
LOAD = "load of the busiest node"
LATENCY = "latency of a read"
MOST_CURVES = 12
MOST_BARS = 40


def horizontal(out: Path, runs: pd.DataFrame) -> tuple[str, pd.Series, str] | None:
    """What ``swept`` gives, or else the load of the busiest node."""
    axis = swept(out, runs)
    if axis is not None:
        return axis
    load = loads(runs)
    return None if load is None else ("max_load", load, LOAD)


def loads(runs: pd.DataFrame) -> pd.Series | None:
    """Load of the busiest node by run (its utilisation where the policy decides the load); None where none varies."""
    load = runs["max_load"].fillna(runs["max_utilisation"])
    varies = load.groupby(names(runs, "max_load")).nunique().max() > 1
    return load if varies else None
