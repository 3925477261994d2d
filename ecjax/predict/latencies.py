"""Latencies of groups of reads, from whichever source."""

from typing import NamedTuple

import numpy as np


class Latencies(NamedTuple):
    """Latencies from one source: one value per group, nan where it is not known."""

    source: str
    requests: np.ndarray | None  # (G,)
    mean: np.ndarray  # (G,) s
    half_width: np.ndarray | None  # (G,) s
    deviation: np.ndarray | None  # (G,) s
    quantiles: np.ndarray | None  # (G, 4) s, of QUANTILES
    utilisation: np.ndarray | None = None  # (G,)
