"""Our own strategy: codes by the smoothed number of requests in the system, at thresholds that replays have set.

TOFEC takes its thresholds from an M/M/1 queue, which overstates the queue of L threads, and counts the requests that
wait, of which there are hardly any at light load. Here

- the signal is the number of requests that are not done, N. By Little's law a static code of mean latency D shows N =
  rate D, at every load, and where the curves of two codes over the rate cross, so do their N: a threshold on N at
  the crossing is right from both sides, and needs to know neither the rate nor how busy the threads are;
- half of the signal (a weight that is tuned) is N as it is, which reacts to what arrived by chance, half is smoothed,
  which knows how busy the proxy is in general: with either alone the best code at a load of 0.5 is left too often,
  or that at 0.8 is missed;
- candidates are the codes that a growing price of thread time leads through (``thread_price``), replayed as static
  ones at loads from 0.01 to 0.95 of the capacity. Where mean and 99 % quantile, relative to the best of both at
  that load, are level for neighbours is the first guess of a threshold;
- then thresholds and weight are tuned on replays at every second of these loads (Nelder-Mead over factors that vary
  with the threshold), so that latencies become short, and not longer than under the best static code or TOFEC.

All replays share their random numbers, so that differences between codes and thresholds stand out of the noise.
"""

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np

from ecjax.adaptation import arrivals, strategies, thresholds
from ecjax.adaptation.delays import DelayModel, tasks_of
from ecjax.adaptation.proxy import IN_SYSTEM, RequestClass, Strategy, Tasks
from ecjax.adaptation.replay import replay
from ecjax.adaptation.thread_price import Plan, plans_by_price, profile
from ecjax.adaptation.thresholds import Ladder
from ecjax.cores import available_cores

_REQUESTS = 60_000  # of a replay
_WARM_UP = 0.05
# load, as a share of the largest capacity; tuned at every second one
_LOADS = np.array(
    [0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
    + [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
)
_STABLE = 0.97  # of the capacity; beyond it a static code is not replayed
_KNOTS = 3
_MEMORY = 0.99
_WEIGHT = 0.5  # of the smoothed signal, before it is tuned
_EVALUATIONS = 40


def calibrated(
    classes: list[RequestClass],
    models: list[DelayModel],
    threads: int,
    seed: int = 0,
) -> Strategy:
    """Thresholds on the requests in the system, set by replays of this proxy with Poisson arrivals.

    Args:
        classes: (C,) classes.
        models: (C,) delays of their tasks.
        threads: L.
        seed: of the replays.
    """
    profiles = [profile(c, model, seed) for c, model in zip(classes, models, strict=True)]
    plans = plans_by_price(profiles)
    shares = np.array([c.share for c in classes])
    usage = np.array(
        [shares @ [codes[code][1] for codes, code in zip(profiles, plan, strict=True)] for plan in plans]
    )
    rates = _LOADS * threads / usage.min()
    with ThreadPoolExecutor(available_cores()) as pool:  # replays let go of the interpreter
        latencies = _Latencies(pool, shares, tasks_of(classes, models), threads, rates, seed)
        stable = rates * usage[:, None] < _STABLE * threads
        static = latencies([strategies.static(list(plan)) for plan in plans], stable)
        used, edges = _crossings(static, rates)
        longest = int(np.argmin(static[:, 0, 0]))
        if used[0] > longest:  # for its quantile; for the mean it is the best when all is quiet
            used, edges = [longest, *used], np.append(rates[0] * static[longest, 0, 0], edges)
        ladder = [plans[j] for j in used]
        if not len(edges):
            return _strategy(ladder, edges, _WEIGHT)
        at = np.arange(len(rates)) % 2 == 0
        (peer,) = latencies([strategies.tofec(classes, models, threads)], at[None])
        allowed = np.minimum(1.01 * static.min(axis=0), peer)[at]
        return _tuned(ladder, edges, lambda strategy: latencies([strategy], at[None])[0, at], allowed)


class _Latencies:
    """Mean and 99 % quantile of replays with Poisson arrivals, the same ones for all strategies.

    Args:
        pool: where they run.
        shares: (C,) of the classes.
        tasks: their delays.
        threads: L.
        rates: (R,) 1/s.
        seed: of arrivals and delays.
    """

    def __init__(
        self, pool: Executor, shares: np.ndarray, tasks: Tasks, threads: int, rates: np.ndarray, seed: int
    ) -> None:
        self._pool, self._proxy, self._seed = pool, (tasks, threads), seed
        self._drawn = [arrivals.poisson(arrivals.constant(rate, shares), _REQUESTS, seed) for rate in rates]

    def __call__(self, candidates: list[Strategy], mask: np.ndarray) -> np.ndarray:
        """(S, R, 2) s, of S strategies at the rates that in ``mask`` (S, R); inf elsewhere."""
        latencies = np.full((*mask.shape, 2), np.inf)
        places = np.argwhere(mask)
        latencies[mask] = list(
            self._pool.map(lambda place: self._one(candidates[place[0]], place[1]), places)
        )
        return latencies

    def _one(self, strategy: Strategy, rate: int) -> np.ndarray:
        tasks, threads = self._proxy
        latency = replay(*self._drawn[rate], tasks, strategy, threads, self._seed).latency_s
        steady = latency[int(_WARM_UP * len(latency)) :]
        return np.array([steady.mean(), np.quantile(steady, 0.99)])


def _crossings(static: np.ndarray, rates: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Plans that are the best somewhere, and the requests in the system where one follows the other.

    Args:
        static: (P, R, 2) s, mean and 99 % quantile of static plans; inf where not stable.
        rates: (R,) 1/s, ascending.

    Returns:
        Places of the plans, ascending, and the (plans - 1,) thresholds, ascending.
    """
    score = (static / static.min(axis=0)).max(axis=2)  # the worse of the two, against the best of each
    best = np.maximum.accumulate(score.argmin(axis=0))
    used = list(dict.fromkeys(best.tolist()))
    edges = []
    for before, after in zip(used[:-1], used[1:], strict=True):
        right = int(np.argmax(best >= after))
        left = max(right - 1, 0)
        with np.errstate(invalid="ignore"):  # where neither is stable
            ahead, behind = (score[after] - score[before])[[left, right]]
        part = (
            0.5
            if not np.isfinite(ahead) or not np.isfinite(behind) or ahead <= behind
            else ahead / (ahead - behind)
        )
        part = min(max(part, 0.0), 1.0)
        rate = rates[left] ** (1 - part) * rates[right] ** part
        mean = static[after, left, 0] ** (1 - part) * static[after, right, 0] ** part
        edges.append(rate * mean)
    return used, np.maximum.accumulate(edges) if edges else np.empty(0)


def _tuned(
    ladder: list[Plan],
    edges: np.ndarray,
    latencies: Callable[[Strategy], np.ndarray],
    allowed: np.ndarray,
) -> Strategy:
    """The strategy with the shortest latencies that are nowhere longer than allowed, as near as a search finds it.

    Args:
        ladder: plans, the longest first.
        edges: thresholds to begin with.
        latencies: (R, 2) of a strategy at R loads, s.
        allowed: (R, 2) s.
    """
    from scipy.optimize import minimize  # takes 0.2 s, and is not for every command

    place = np.log(edges)
    knots = np.linspace(place[0], place[-1], min(_KNOTS, len(edges)))

    def strategy(x: np.ndarray) -> Strategy:
        factors = np.interp(place, knots, x[:-1]) if len(knots) > 1 else x[:1]
        moved = np.maximum.accumulate(np.exp(place + factors))
        return _strategy(ladder, moved, float(np.clip(x[-1], 0.0, 1.0)))

    def score(x: np.ndarray) -> float:
        ratio = latencies(strategy(x)) / allowed
        above = np.maximum(ratio - 1.0, 0.0)
        return float(ratio.mean() + 20.0 * above.mean() + 5.0 * above.max())

    start = np.append(np.zeros(len(knots)), _WEIGHT)
    steps = np.diag([0.15] * len(knots) + [0.2])
    solution = minimize(
        score,
        start,
        method="Nelder-Mead",
        options={"maxfev": _EVALUATIONS, "initial_simplex": np.vstack([start, start + steps])},
    )
    return strategy(solution.x)


def _strategy(ladder: list[Plan], edges: np.ndarray, weight: float) -> Strategy:
    ladders = [
        Ladder(edges, np.array([plan[c][0] for plan in ladder]), np.array([plan[c][1] for plan in ladder]))
        for c in range(len(ladder[0]))
    ]
    return thresholds.joined("calibrated", IN_SYSTEM, _MEMORY, ladders)._replace(weight=weight)
