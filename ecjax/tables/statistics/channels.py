"""How many accesses each node serves at once, from a log: its channels c.

Where starts are logged, an access that had to wait begins when a channel falls free, so that all c are busy then: the
number in service at such moments is c, at all of them. Without a single wait a log shows no more than how many were in
service at once, which c is at least.

Where only arrivals and finishes are logged, c first-come first-served channels begin access i at s_i(c) =
max(arrival_i, F_c), with F_c the c-th latest finish of the accesses before it (Kiefer and Wolfowitz, On the theory of
queues with many servers, Trans. AMS 78, 1955, in finish times). Too few channels let services end before they begin, or
make those that waited shorter than those that came to an idle node; too many make them longer. Of the true c they have
one law, as the time that an access takes does not depend on what it meets. c is told where the mean and the second
moment of those that waited agree with those of accesses to an idle node, and c + 1 channels would contradict them.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.index import grown

MOST = 32  # channels that can be told from finish times
_MOST_AT_ONCE = 1024  # channels that can be told from starts
_AGREED = 0.9  # share of the accesses that waited which began with all channels busy
_ABOVE = 0.01  # share of accesses that may have begun with more in service
_LEAST = 30  # accesses behind a mean that is compared
_DEVIATIONS, _SECOND_DEVIATIONS = (
    4.0,
    6.0,
)  # standard errors between what agrees, of means and of second moments
_RARELY_IDLE = 20  # accesses that wait for each that does not, above which one server is hardly believed
_BACKWARDS = 1e-3  # share of services that may end before they begin
_SLACK = 0.05  # of a service, that a tick of the clock may be taken for nothing
_HEAD = 64  # accesses of each node at the beginning of a piece, which those before it may still touch
_NEVER = -np.inf


class Channels(NamedTuple):
    """What a log tells of the channels of its nodes.

    Attributes:
        servers: (nodes,) int64, channels; 0 where they cannot be told.
        at_once: (nodes,) int64, most accesses that were in service at once, or 0 without starts: c is at least this.
        inferred: whether from finish times, so that services follow from ``servers``.
        doubtful: (nodes,) bool, whether accesses finish in order, as one server makes them, but take another time
            where they waited than where they came to an idle node; ``servers`` is 1.
    """

    servers: np.ndarray
    at_once: np.ndarray
    inferred: bool
    doubtful: np.ndarray

    @staticmethod
    def none(nodes: int) -> "Channels":
        """Nothing is told."""
        return Channels(np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), False, np.zeros(nodes, bool))


@njit(inline="always")
def _smallest_first(values, count):
    """Move the last of ``count`` values of a heap to its place."""
    i = count - 1
    while i > 0:
        above = (i - 1) // 2
        if values[above] <= values[i]:
            break
        values[above], values[i] = values[i], values[above]
        i = above


@njit(inline="always")
def _without_smallest(values, count):
    """Take the smallest of ``count`` values out of a heap; the rest are its first ``count - 1``."""
    values[0] = values[count - 1]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= count - 1:
            break
        if below + 1 < count - 1 and values[below + 1] < values[below]:
            below += 1
        if values[i] <= values[below]:
            break
        values[i], values[below] = values[below], values[i]
        i = below


@njit()
def _begin(nodes, starts, finishes, waited, counted, tick, ends, busy, seen):
    """Count accesses by the number in service as they begin, (nodes, 2, at once): those that did not wait, and did.

    Rows are in order of their starts at each node. Returns the rows that were added: fewer where ``ends`` has no room.
    """
    for i in range(nodes.shape[0]):
        node, start = nodes[i], starts[i]
        count, running = busy[node], ends[node]
        while count > 0 and running[0] <= start:
            _without_smallest(running, count)
            count -= 1
        busy[node] = count
        if count == running.shape[0]:
            if count < _MOST_AT_ONCE:
                return i
            _without_smallest(running, count)
            count -= 1
        # a clock in steps may end a service one step late
        length = finishes[i] - start
        running[count] = finishes[i] - min(tick, _SLACK * length) - 4e-16 * abs(start)
        count += 1
        _smallest_first(running, count)
        busy[node] = count
        if counted[i]:
            seen[node, 1 if waited[i] else 0, min(count, seen.shape[2] - 1)] += 1
    return nodes.shape[0]


@njit()
def _hypotheses(nodes, arrivals, finishes, skipped, latest, met, idle, waiting):
    """Add accesses, in order of arrival, to what each number of channels makes of them.

    Args:
        nodes: (n,).
        arrivals: (n,) s.
        finishes: (n,) s.
        skipped: accesses of each node that are not compared.
        latest: (nodes, MOST + 1) latest finishes at each node, descending.
        met: (nodes,) accesses so far.
        idle: (nodes, 4) accesses to an idle node: number, sums of S, S^2, S^4.
        waiting: (nodes, MOST, 8) accesses that would have waited for c channels: number, services below 0, sums of S,
            S^2, S^4, and of S, S^2, S^4 as if there was one channel more.
    """
    for i in range(nodes.shape[0]):
        node, arrival, finish = nodes[i], arrivals[i], finishes[i]
        if np.isnan(finish):
            continue
        row = latest[node]
        met[node] += 1
        if met[node] > skipped:
            if row[0] <= arrival:
                square = (finish - arrival) ** 2
                idle[node, 0] += 1
                idle[node, 1] += finish - arrival
                idle[node, 2] += square
                idle[node, 3] += square * square
            c = 0
            while c < MOST and row[c] > arrival:
                sums = waiting[node, c]
                service, more = finish - row[c], finish - max(arrival, row[c + 1])
                sums[0] += 1
                # what a float cannot tell is no contradiction
                if service < -4e-16 * abs(finish):
                    sums[1] += 1
                square = service * service
                sums[2] += service
                sums[3] += square
                sums[4] += square * square
                square = more * more
                sums[5] += more
                sums[6] += square
                sums[7] += square * square
                c += 1
        place = MOST
        if finish > row[place]:
            while place > 0 and row[place - 1] < finish:
                row[place] = row[place - 1]
                place -= 1
            row[place] = finish


@njit()
def _services(nodes, arrivals, finishes, channels, latest, service):
    """Service times of first-come first-served channels, NaN where there are none or a service would be below 0."""
    for i in range(nodes.shape[0]):
        node, finish = nodes[i], finishes[i]
        service[i] = np.nan
        c = channels[node]
        if c == 0 or np.isnan(finish):
            continue
        row = latest[node]
        length = finish - max(arrivals[i], row[c - 1])
        if length >= 0:
            service[i] = length
        place = c - 1
        if finish > row[place]:
            while place > 0 and row[place - 1] < finish:
                row[place] = row[place - 1]
                place -= 1
            row[place] = finish


class StartedServices:
    """Counts how many accesses are in service at each node as another begins, from logged starts and finishes.

    Accesses come in order of arrival; those that have not begun by the arrival of the last one are held.

    Args:
        tick_s: step of the clock (s), 0 where it is as good as continuous.
        continues: whether rows come before: the first of each node are not counted then, as they may meet those.
    """

    def __init__(self, tick_s: float, continues: bool) -> None:
        self._tick, self._skipped = tick_s, _HEAD if continues else 0
        self._ends, self._busy = np.empty((0, 8)), np.zeros(0, np.int64)
        self._met = np.zeros(0, np.int64)
        self._seen = np.zeros((0, 2, 16), np.int64)
        self._held: list[np.ndarray] = []

    def add(
        self, nodes: np.ndarray, arrivals: np.ndarray, starts: np.ndarray, finishes: np.ndarray, count: int
    ) -> None:
        """Add rows in order of arrival, each (n,); a start or finish may be NaN: none. ``count``: nodes so far."""
        fresh = np.stack([nodes.astype(float), arrivals, starts, finishes])[:, finishes >= starts]
        self._count(np.concatenate([*self._held, fresh], axis=1), float(arrivals[-1]), count)

    def _count(self, rows: np.ndarray, until: float, count: int) -> None:
        rows = rows[:, np.argsort(rows[2], kind="stable")]
        begun = int(np.searchsorted(rows[2], until, side="right"))
        self._held = [rows[:, begun:].copy()]
        self._met, self._busy = grown(self._met, count), grown(self._busy, count)
        self._ends, self._seen = grown(self._ends, count), grown(self._seen, count)
        nodes = rows[0, :begun].astype(np.int64)
        _, arrivals, starts, finishes = np.ascontiguousarray(rows[:, :begun])
        # both are written in steps of the clock
        waited = starts - arrivals > 1.5 * self._tick + 1e-9 * (finishes - starts)
        counted = np.ones(begun, bool)
        if self._skipped and begun:
            order = np.argsort(nodes, kind="stable")
            firsts = np.searchsorted(nodes[order], nodes[order])
            place = np.empty(begun, np.int64)
            place[order] = np.arange(begun) - firsts
            counted = self._met[nodes] + place >= self._skipped
        self._met += np.bincount(nodes, minlength=len(self._met))
        done = 0
        while True:
            rest = slice(done, None)
            done += _begin(
                *(nodes[rest], starts[rest], finishes[rest], waited[rest], counted[rest], self._tick),
                *(self._ends, self._busy, self._seen),
            )
            if done == begun:
                return
            width = self._ends.shape[1]
            self._ends = np.concatenate([self._ends, np.empty((len(self._ends), width))], axis=1)
            more = np.zeros((len(self._seen), 2, 2 * width), np.int64)
            self._seen = np.concatenate([self._seen, more], axis=2)

    def absorb(self, other: "StartedServices", nodes: np.ndarray, count: int) -> None:
        """Add rows that follow, with the numbers here of the nodes there."""
        self._count(np.concatenate([*self._held, np.empty((4, 0))], axis=1), np.inf, count)
        wide = max(self._seen.shape[2], other._seen.shape[2])
        seen = np.zeros((len(self._seen), 2, wide), np.int64)
        seen[:, :, : self._seen.shape[2]] = self._seen
        there = other._seen[: len(nodes)]
        seen[nodes[: len(there)], :, : there.shape[2]] += there
        self._seen, self._busy = seen, np.zeros(len(self._busy), np.int64)
        self._held = []
        if other._held:
            held = other._held[0].copy()
            held[0] = nodes[held[0].astype(np.int64)]
            self._held = [held]

    def channels(self, count: int) -> Channels:
        """What was seen."""
        self._count(np.concatenate([*self._held, np.empty((4, 0))], axis=1), np.inf, count)
        seen = self._seen[:count]
        waited = seen[:, 1]
        total, waits = seen.sum(axis=(1, 2)), waited.sum(axis=1)
        places = np.arange(seen.shape[2])
        at_once = np.max(np.where(seen.any(axis=1), places, 0), axis=1)
        channels = np.argmax(waited, axis=1)
        agreed = waited[np.arange(count), channels] >= _AGREED * waits
        above = np.where(places > channels[:, None], seen.sum(axis=1), 0).sum(axis=1)
        clear = (waits > 0) & agreed & (above <= _ABOVE * total) & (channels < seen.shape[2] - 1)
        return Channels(np.where(clear, channels, 0), at_once, False, np.zeros(count, bool))


class FinishedServices:
    """Tells from arrivals and finishes how many channels fit, of first-come first-served nodes.

    Args:
        continues: whether rows come before: the first of each node are not compared then, as they may meet those.
    """

    def __init__(self, continues: bool) -> None:
        self._skipped = _HEAD if continues else 0
        self._latest = np.empty((0, MOST + 1))
        self._met = np.zeros(0, np.int64)
        self._idle, self._waiting = np.zeros((0, 4)), np.zeros((0, MOST, 8))

    def add(self, nodes: np.ndarray, arrivals: np.ndarray, finishes: np.ndarray, count: int) -> None:
        """Add rows in order of arrival, each (n,); a finish may be NaN: none. ``count``: nodes so far."""
        self._make_room(count)
        _hypotheses(
            *(nodes, arrivals, finishes, self._skipped),
            *(self._latest, self._met, self._idle, self._waiting),
        )

    def _make_room(self, count: int) -> None:
        fresh = len(self._latest)
        self._latest, self._met = grown(self._latest, count), grown(self._met, count)
        self._latest[fresh:] = _NEVER
        self._idle, self._waiting = grown(self._idle, count), grown(self._waiting, count)

    def absorb(self, other: "FinishedServices", nodes: np.ndarray, count: int) -> None:
        """Add rows that follow, with the numbers here of the nodes there."""
        self._make_room(count)
        there = len(other._met[: len(nodes)])
        places = nodes[:there]
        self._idle[places] += other._idle[:there]
        self._waiting[places] += other._waiting[:there]
        both = np.concatenate([self._latest[places], other._latest[:there]], axis=1)
        self._latest[places] = -np.sort(-both, axis=1)[:, : MOST + 1]

    def channels(self, count: int) -> Channels:
        """What fits: the least number of channels that agrees, if one more does not; else one where all is in order."""
        self._make_room(count)
        servers = np.array(
            [_fitting(*sums) for sums in zip(self._idle, self._waiting, strict=True)][:count], np.int64
        )
        ordered = (servers == 0) & (self._waiting[:count, 0, 1] == 0)
        doubtful = [
            _doubtful(*sums) for sums in zip(self._idle[:count], self._waiting[:count, 0], strict=True)
        ]
        servers[ordered] = 1
        return Channels(servers, np.zeros(count, np.int64), True, ordered & np.array(doubtful, bool))


def _fitting(idle: np.ndarray, waiting: np.ndarray) -> int:
    """The channels of a node, 0 where its log does not tell; arguments as of ``_hypotheses``, of one node."""
    if idle[0] < _LEAST:
        return 0
    for c, sums in enumerate(waiting, 1):
        if sums[0] < _LEAST:
            return 0
        if sums[1] > _BACKWARDS * sums[0]:
            continue
        first, second = _apart(sums[0], sums[2:5], idle)
        if first > _DEVIATIONS:
            return 0
        if first < -_DEVIATIONS or abs(second) > _SECOND_DEVIATIONS:
            continue
        return c if _apart(sums[0], sums[5:8], idle)[0] > _DEVIATIONS else 0
    return 0


def _doubtful(idle: np.ndarray, waiting: np.ndarray) -> bool:
    """Whether one channel is not what the services show; arguments as of ``_fitting``, those of one channel."""
    if waiting[0] < _LEAST:
        return False
    if idle[0] < _LEAST:
        return bool(waiting[0] > _RARELY_IDLE * _LEAST)
    return abs(_apart(waiting[0], waiting[2:5], idle)[0]) > _DEVIATIONS


def _apart(count: float, sums: np.ndarray, idle: np.ndarray) -> tuple[float, float]:
    """How many standard errors the mean and the second moment are above those of accesses to an idle node."""
    apart = []
    for power in (0, 1):
        mean, square = sums[power] / count, sums[power + 1] / count
        other, other_square = idle[power + 1] / idle[0], idle[power + 2] / idle[0]
        variance = max(square - mean**2, 0) / count + max(other_square - other**2, 0) / idle[0]
        # equal services have no spread but that of rounding
        apart.append((mean - other) / np.sqrt(variance + (1e-9 * other) ** 2 + np.finfo(float).tiny))
    return apart[0], apart[1]


class ChannelServices:
    """Service times of first-come first-served nodes whose channels are known, from arrivals and finishes.

    Args:
        channels: (nodes,) int64; 0: no service times.
    """

    def __init__(self, channels: np.ndarray) -> None:
        self._channels = channels
        self._latest = np.full((len(channels), max(int(channels.max(initial=1)), 1)), _NEVER)

    def add(self, nodes: np.ndarray, arrivals: np.ndarray, finishes: np.ndarray) -> np.ndarray:
        """Service times (s) of rows in order of arrival, each (n,)."""
        service = np.empty(nodes.shape[0])
        _services(nodes, arrivals, finishes, self._channels, self._latest, service)
        return service
