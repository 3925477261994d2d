"""The resolution of a clock, told from the times that it wrote."""

import numpy as np

TIED = 0.01  # largest share of arrivals that tie by a clock that is not coarse
_FINEST = 9
_ROUNDINGS = 4
_DOUBTFUL = 0.3
LEAST_TIMES = 16  # different ones, of which a common divisor says something


def clock_resolution(times: np.ndarray) -> float:
    """Largest step that all times are multiples of; 0 where there is none.

    It is a power of ten, from 1 s to 1 ns, or where times tie, as those of a coarse clock do, a multiple of one.

    Args:
        times: seconds, (n,), in order. Where their size leaves too few digits to tell, the answer is 0.
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
            return common_step(np.round(times * 10.0**digits).astype(np.int64)) * 10.0**-digits
    return 0.0


def common_step(ticks: np.ndarray) -> int:
    """The step of a clock in ticks of the power of ten that it is written in: the common divisor of times that tie.

    Times that do not tie may be regular, whatever the clock; few may have a divisor in common by chance.

    Args:
        ticks: times, (n,) int64, in order.
    """
    different = 1 + np.count_nonzero(np.diff(ticks))
    if different < LEAST_TIMES or len(ticks) - different <= TIED * len(ticks):
        return 1
    return max(1, int(np.gcd.reduce(ticks)))
