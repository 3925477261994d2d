"""Logarithmic bins: a histogram of stated relative width over all sizes and times, with a bin for zero."""

import numpy as np

from ecjax.machine_code import njit

SIZE_BINS_PER_OCTAVE = 16  # sizes within 4.4 % of each other may fall together
DELAY_BINS_PER_OCTAVE = 32  # edges 2.2 % apart
BINS = 4096  # bin 0 holds zeros


@njit(inline="always")
def log_bin(value, per_octave):
    """Bin of a value >= 0: bin b > 0 holds 2^((b - 2048) / per_octave) <= value < the edge of bin b + 1."""
    if value <= 0.0:
        return 0
    place = int(np.floor(np.log2(value) * per_octave)) + BINS // 2
    return min(max(place, 1), BINS - 1)


def bin_edges(bins: np.ndarray, per_octave: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edges of bins."""
    bins = np.asarray(bins)
    lower = np.where(bins > 0, np.exp2((bins - BINS / 2) / per_octave), 0.0)
    upper = np.where(bins > 0, np.exp2((bins + 1 - BINS / 2) / per_octave), 0.0)
    return lower, upper
