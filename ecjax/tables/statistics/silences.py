"""The longest times without any arrival, streamed: where a log may have gaps."""

import numpy as np

from ecjax.machine_code import njit

_FEWEST = 32  # times without arrivals that are no stretches, which tell long ones from others
_LONGEST = 1023 + _FEWEST  # times without arrivals that are followed: the nights of some years, and others
_LEAST_SHARE, _LEAST_S = 0.01, 4 * 3600.0  # of the span, and s: a silent stretch lasts at least one of them
_APART = 5.0  # times as long as the longest wait between arrivals that is not one
_PART = 1 << 16  # arrivals at a time, whose gaps are more than those that are followed


@njit()
def _longer(times, last, least):
    """Begin and length of the gaps longer than ``least``, (gaps, 2); ``last`` is the arrival before."""
    count = 0
    for i in range(times.shape[0]):
        count += times[i] - (times[i - 1] if i else last) > least
    gaps = np.empty((count, 2))
    count = 0
    for i in range(times.shape[0]):
        before = times[i - 1] if i else last
        if times[i] - before > least:
            gaps[count, 0], gaps[count, 1] = before, times[i] - before
            count += 1
    return gaps


class Silences:
    """The longest gaps between arrivals."""

    def __init__(self) -> None:
        self._gaps = np.zeros((0, 2))  # begin and length (s), longest first
        self._first_s, self._last_s = np.nan, np.nan

    def add(self, times: np.ndarray) -> None:
        """Add arrivals in order, seconds (n,)."""
        if not times.shape[0]:
            return
        if np.isnan(self._last_s):
            self._first_s = self._last_s = float(times[0])
        for begin in range(0, times.shape[0], _PART):
            part = times[begin : begin + _PART]
            least = self._gaps[-1, 1] if len(self._gaps) == _LONGEST else 0.0
            self._merge(_longer(part, self._last_s, least))
            self._last_s = float(part[-1])

    def absorb(self, other: "Silences") -> None:
        """Add arrivals that come later."""
        if np.isnan(other._last_s):
            return
        self.add(np.array([other._first_s]))
        self._merge(other._gaps)
        self._last_s = other._last_s

    def _merge(self, gaps: np.ndarray) -> None:
        gaps = np.concatenate([self._gaps, gaps])
        self._gaps = gaps[np.lexsort((gaps[:, 0], -gaps[:, 1]))[:_LONGEST]]

    def stretches(self, tick_s: float) -> np.ndarray:
        """Begin and end (s since the first arrival) of each silent stretch, (stretches, 2), in order.

        Gaps are stretches where each is at least 1 % of the span, or 4 hours as the nights of a log by day are, and 5
        times as long as all others, of which there are at least 32, and the clock's step: arrivals that go on all the
        time, be it in bursts, hardly ever have such.

        Args:
            tick_s: step of the clock (s); 0 where it is continuous.
        """
        lengths = self._gaps[:, 1]
        most = len(lengths) - _FEWEST
        if most <= 0:
            return np.zeros((0, 2))
        lengths, others = lengths[:most], np.maximum(lengths[1 : most + 1], tick_s)
        long = lengths >= min(_LEAST_SHARE * (self._last_s - self._first_s), _LEAST_S)
        apart = np.flatnonzero(long & (lengths >= _APART * others))
        gaps = self._gaps[: apart[-1] + 1 if apart.size else 0]
        begins = np.sort(gaps[:, 0]) - self._first_s
        return np.stack([begins, begins + gaps[np.argsort(gaps[:, 0]), 1]], axis=1)
