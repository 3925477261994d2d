"""The resolution of a clock, told from the times that it wrote."""

import numpy as np

_FINEST = 9
_ROUNDINGS = 4
_DOUBTFUL = 0.3


def clock_resolution(times: np.ndarray) -> float:
    """Largest power of ten, from 1 s to 1 ns, that all times are multiples of; 0 where there is none.

    Args:
        times: seconds, (n,). Where their size leaves too few digits to tell, the answer is 0.
    """
    times = times[np.isfinite(times)]
    if times.size == 0:
        return 0.0
    for digits in range(_FINEST + 1):
        ticks = np.abs(times) * 10.0**digits
        slack = _ROUNDINGS * np.finfo(float).eps * ticks
        if slack.max() > _DOUBTFUL:
            return 0.0
        if np.all(np.abs(ticks - np.round(ticks)) <= slack):
            return 10.0**-digits
    return 0.0
