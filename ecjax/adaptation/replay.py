"""Exact replay of a proxy: a recursion over the times at which its threads become free."""

import math
from typing import NamedTuple

import numpy as np

from ecjax.adaptation.proxy import EMPIRICAL, EXPONENTIAL, IDLE, IN_SYSTEM, LOGNORMAL, Strategy, Tasks
from ecjax.machine_code import njit
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws

PURPOSE = 11  # of the random numbers: delays of tasks


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
    completion, admitted, level = np.empty(count), np.empty(count), np.empty(count, np.uint16)
    arrival = np.ascontiguousarray(arrival_s, dtype=float)
    busy_s, started = _replay(
        arrival,
        np.ascontiguousarray(class_of, dtype=np.uint8),
        np.uint64(streams.key(seed, PURPOSE)),  # a plain integer would be taken as signed
        threads,
        tasks,
        (strategy.signal, strategy.edges, strategy.n, strategy.k),
        (strategy.memory, strategy.weight),
        (completion, admitted, level),
    )
    return Outcome(np.subtract(completion, arrival, out=completion), admitted, level, busy_s, started)


def alone(tasks: Tasks, code: tuple[int, int], requests: int, seed: int) -> tuple[float, float]:
    """Mean service delay and mean thread time, s, of requests that have a proxy to themselves, each from the start.

    A replay with long gaps would give the same where delays are not so heavy-tailed that one outlasts every gap.

    Args:
        tasks: delays of the tasks, of one class.
        code: n, k of all requests.
        requests: whose delays are drawn, as in a replay.
        seed: of the delays.
    """
    key = np.uint64(streams.key(seed, PURPOSE))
    delay_s, busy_s = _alone(requests, key, tasks, *code)
    return delay_s / requests, busy_s / requests


@njit(inline="always")
def _insert(values, first, count, value):
    """Insert into the ascending values[first:count]; there must be room for one more."""
    place = count
    while place > first and values[place - 1] > value:
        values[place] = values[place - 1]
        place -= 1
    values[place] = value


@njit(inline="always", error_model="numpy")
def _unit(kind, shape, rho, common, state):
    """U of a task, or of EMPIRICAL the probability; ``common`` is what its request's tasks share."""
    if kind == EXPONENTIAL and rho == 0.0:
        value = draws.exponential(state)
    elif kind == EMPIRICAL and rho == 0.0:
        value = streams.uniform(state)
    else:
        score = draws.normal(state)
        if rho > 0.0:
            score = math.sqrt(rho) * common + math.sqrt(1.0 - rho) * score
        if kind == LOGNORMAL:
            value = math.exp(shape * score)
        else:
            value = 0.5 * math.erfc(-score * math.sqrt(0.5))
            if kind == EXPONENTIAL:
                value = -math.log(0.5 * math.erfc(score * math.sqrt(0.5)))
    return value


@njit(inner=True, error_model="numpy")
def _interpolated(quantiles, c, k, probability):
    steps = quantiles.shape[2] - 1
    place = probability * steps
    cell = min(int(place), steps - 1)
    low = quantiles[c, k, cell]
    return low + (place - cell) * (quantiles[c, k, cell + 1] - low)


@njit(inline="always")
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


@njit(inline="always")
def _merged(free, busy, completions, k, n):
    """Merge completions[:k], ascending, and n - k times its last into the ascending free[:busy]; returns how many."""
    unmerged, place = busy, n
    while place > 0:
        value = completions[min(place, k) - 1]
        if unmerged > 0 and free[unmerged - 1] > value:
            free[unmerged + place - 1] = free[unmerged - 1]
            unmerged -= 1
        else:
            free[unmerged + place - 1] = value
            place -= 1
    return busy + n


@njit(error_model="numpy")
def _replay(arrival, class_of, key, threads, tasks, strategy, smoothing, results):
    kind, shape, rho, shift, scale, quantiles, background = tasks
    signal, edges, lengths, dimensions = strategy
    memory, weight = smoothing
    done_at, admitted, level_of = results
    levels = edges.shape[1]
    free = np.empty(threads)  # free[:busy]: when the busy threads become free, ascending
    serving = np.empty(threads)  # serving[:served]: when the requests in service will be done, ascending
    completions = np.empty(lengths.max())  # [:begun]: completions of a request's tasks, ascending
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
            backlog = i - first_waiting + served
            if signal == IDLE:
                # while a request waits, threads that become free are not idle
                backlog = threads - busy if first_waiting == i else 0
            smoothed = memory * smoothed + (1.0 - memory) * backlog
            compared = weight * smoothed + (1.0 - weight) * backlog
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
        law, law_shape, law_rho, least, most = kind[c], shape[c], rho[c], shift[c, k], scale[c, k]
        common = draws.normal(draws.task_state(state, 0)) if law_rho > 0.0 else 0.0
        idle = threads - busy
        if n <= idle and not background[c]:
            # all begin at once, and only the k shortest delays matter
            for j in range(n):
                end = _unit(law, law_shape, law_rho, common, draws.task_state(state, j + 1))
                end = _interpolated(quantiles, c, k, end) if law == EMPIRICAL else least + most * end
                for place in range(min(j, k)):
                    low = min(completions[place], end)
                    end = max(completions[place], end)
                    completions[place] = low
                if j < k:
                    completions[j] = end
            for j in range(k):
                spent += completions[j]
                completions[j] += start
            done_at[i] = completions[k - 1]
            started += n
            spent += (n - k) * (completions[k - 1] - start)
            busy = _merged(free, busy, completions, k, n)
            continue
        # the first tasks find idle threads, later ones take those that become free: its own or others' (free[:freed])
        begun = reused = freed = 0
        while begun < n:
            if begun >= idle:
                own_first = freed == busy or (reused < begun and completions[reused] <= free[freed])
                start = completions[reused] if own_first else free[freed]
                if begun >= k and completions[k - 1] <= start and not background[c]:
                    break
                if own_first:
                    spent += start
                    reused += 1
                else:
                    freed += 1
            end = _unit(law, law_shape, law_rho, common, draws.task_state(state, begun + 1))
            end = start + (_interpolated(quantiles, c, k, end) if law == EMPIRICAL else least + most * end)
            _insert(completions, reused, begun, end)
            spent -= start
            begun += 1
        started += begun
        completion = completions[k - 1]
        done_at[i] = completion
        busy -= freed
        for j in range(busy):
            free[j] = free[j + freed]
        for j in range(reused, begun):
            end = completions[j] if background[c] else min(completions[j], completion)
            _insert(free, 0, busy, end)
            spent += end
            busy += 1
    return spent, started


@njit(error_model="numpy")
def _alone(requests, key, tasks, n, k):
    kind, shape, rho, shift, scale, quantiles, background = tasks
    law, law_shape, law_rho, least, most = kind[0], shape[0], rho[0], shift[0, k], scale[0, k]
    completions = np.empty(n)
    delay = spent = 0.0
    for i in range(requests):
        state = streams.stream(key, i)
        common = draws.normal(draws.task_state(state, 0)) if law_rho > 0.0 else 0.0
        for j in range(n):
            end = _unit(law, law_shape, law_rho, common, draws.task_state(state, j + 1))
            end = _interpolated(quantiles, 0, k, end) if law == EMPIRICAL else least + most * end
            _insert(completions, 0, j, end)
        delay += completions[k - 1]
        for j in range(n):
            spent += completions[j] if background[0] else min(completions[j], completions[k - 1])
    return delay, spent
