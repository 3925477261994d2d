"""Exact replay of a proxy: a recursion over the times at which its threads become free."""

import math
from typing import NamedTuple

import numba
import numpy as np

from ecjax.adapt.proxy import EMPIRICAL, EXPONENTIAL, IDLE, IN_SYSTEM, LOGNORMAL, Strategy, Tasks
from ecjax.replay import streams

_PURPOSE = 11  # of the random numbers: delays of tasks


class Outcome(NamedTuple):
    """What became of N requests."""

    latency_s: np.ndarray  # (N,) from arrival to the k-th completion
    admitted_s: np.ndarray  # (N,) time at which the request left the queue
    level: np.ndarray  # (N,) uint16, of the strategy
    busy_s: float  # thread-seconds spent, cancelled tasks until they were
    tasks: int  # that were started


def replay(
    arrival_s: np.ndarray, class_of: np.ndarray, tasks: Tasks, strategy: Strategy, threads: int, seed: int
) -> Outcome:
    """Replay requests through a proxy.

    The j-th task of request i has the same random numbers whatever the strategy (common random numbers).

    Args:
        arrival_s: (N,) s, ascending.
        class_of: (N,) class of each request, from 0; any integer type.
        tasks: delays of the tasks of every class.
        strategy: which code a request is served with.
        threads: L >= 1.
        seed: of the delays.
    """
    count = len(arrival_s)
    done, admitted, level = np.empty(count), np.empty(count), np.empty(count, np.uint16)
    arrival = np.ascontiguousarray(arrival_s, dtype=float)
    busy_s, started = _replay(
        arrival,
        np.ascontiguousarray(class_of, dtype=np.uint8),
        np.uint64(streams.key(seed, _PURPOSE)),  # a plain integer would be taken as signed
        threads,
        tasks,
        (strategy.signal, strategy.edges, strategy.n, strategy.k),
        (strategy.memory, strategy.weight),
        done,
        admitted,
        level,
    )
    return Outcome(np.subtract(done, arrival, out=done), admitted, level, busy_s, started)


@numba.njit(cache=True, nogil=True, inline="always")
def _insert(values, first, count, value):
    """Insert into the ascending values[first:count]; there must be room for one more."""
    place = count
    while place > first and values[place - 1] > value:
        values[place] = values[place - 1]
        place -= 1
    values[place] = value


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _delay(kind, shape, rho, shift, scale, quantiles, common, state):
    """Delay of a task; ``common`` is what the tasks of its request share, ``state`` is its own."""
    if kind == EXPONENTIAL and rho == 0.0:
        return shift + scale * streams.exponential(state)
    if kind == EMPIRICAL and rho == 0.0:
        return _interpolated(quantiles, streams.uniform(state))
    score = math.sqrt(rho) * common + math.sqrt(1.0 - rho) * streams.normal(state)
    if kind == EXPONENTIAL:
        return shift - scale * math.log(0.5 * math.erfc(score * math.sqrt(0.5)))
    if kind == EMPIRICAL:
        return _interpolated(quantiles, 0.5 * math.erfc(-score * math.sqrt(0.5)))
    return shift + scale * math.exp(shape * score)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _interpolated(quantiles, probability):
    place = probability * (quantiles.size - 1)
    cell = min(int(place), quantiles.size - 2)
    return quantiles[cell] + (place - cell) * (quantiles[cell + 1] - quantiles[cell])


@numba.njit(cache=True, nogil=True, inline="always")
def _dropped(times, count, now):
    """Drop what is at most ``now`` from the ascending times[:count]; returns how many remain."""
    gone = 0
    while gone < count and times[gone] <= now:
        gone += 1
    if gone > 0:
        count -= gone
        for j in range(count):
            times[j] = times[j + gone]
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _replay(arrival, class_of, key, threads, tasks, strategy, smoothing, done_at, admitted, level_of):
    kind, shape, rho, shift, scale, quantiles, background = tasks
    signal, edges, lengths, dimensions = strategy
    memory, weight = smoothing
    levels = edges.shape[1]
    free = np.empty(threads)  # free[:busy]: when the busy threads become free, ascending
    serving = np.empty(threads)  # serving[:served]: when the requests in service will be done, ascending
    own = np.empty(lengths.max())  # own[:begun]: completions of a request's tasks, ascending
    busy = served = first_waiting = started = 0
    smoothed = spent = 0.0
    for i in range(arrival.size):
        now, c = arrival[i], int(class_of[i])
        busy = _dropped(free, busy, now)
        level = 0
        if levels > 0:
            served = _dropped(serving, served, now) if signal == IN_SYSTEM else 0
            while first_waiting < i and admitted[first_waiting] <= now:
                if signal == IN_SYSTEM and done_at[first_waiting] > now:
                    _insert(serving, 0, served, done_at[first_waiting])
                    served += 1
                first_waiting += 1
            seen = i - first_waiting + served
            if signal == IDLE:
                # while a request waits, threads that become free are not idle
                seen = threads - busy if first_waiting == i else 0
            smoothed = memory * smoothed + (1.0 - memory) * seen
            compared = weight * smoothed + (1.0 - weight) * seen
            while level < levels and compared >= edges[c, level]:
                level += 1
        level_of[i] = level
        n, k = lengths[c, level], dimensions[c, level]
        # several threads become free at once where tasks are cancelled: the request before may leave some of them
        start = max(now, admitted[i - 1]) if i > 0 else now
        if busy == threads:
            start = free[0]
            busy = _dropped(free, busy, start)
        admitted[i] = start
        state = streams.stream(key, i)
        common = 0.0
        if rho[c] > 0.0:
            common = streams.normal(state)
            state = streams.advance(streams.advance(state))
        # the first tasks find idle threads, later ones take those that become free: own or others' (free[:taken])
        begun = reused = taken = 0
        idle = threads - busy
        while begun < n:
            if begun >= idle:
                own_first = taken == busy or (reused < begun and own[reused] <= free[taken])
                start = own[reused] if own_first else free[taken]
                if begun >= k and own[k - 1] <= start and not background[c]:
                    break
                if own_first:
                    spent += start
                    reused += 1
                else:
                    taken += 1
            end = start + _delay(
                kind[c], shape[c], rho[c], shift[c, k], scale[c, k], quantiles[c, k], common, state
            )
            state = streams.advance(state)
            if kind[c] == LOGNORMAL or rho[c] > 0.0:  # a normal score took two numbers
                state = streams.advance(state)
            _insert(own, reused, begun, end)
            spent -= start
            begun += 1
        started += begun
        done = own[k - 1]
        done_at[i] = done
        busy -= taken
        for j in range(busy):
            free[j] = free[j + taken]
        for j in range(reused, begun):
            end = own[j] if background[c] else min(own[j], done)
            _insert(free, 0, busy, end)
            spent += end
            busy += 1
    return spent, started
