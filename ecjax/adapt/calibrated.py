"""Our own strategy: codes by the smoothed number of requests in the system, at thresholds that replays have set.

TOFEC takes its thresholds from an M/M/1 queue, which overstates the queue of L threads, and counts the requests that
wait, of which there are hardly any at light load. Here

- the signal is the number of requests that are not done, N. By Little's law a static code of mean latency D shows N =
  rate D, at every load, and where the curves of two codes over the rate cross, so do their N: a threshold on N at
  the crossing is right from both sides, and needs to know neither the rate nor how busy the threads are;
- a price of thread time orders the codes. At price p a class takes the code with the least mean service delay + p x
  usage; all classes share the threads and so the price. With a growing price the codes run along the lower hull of
  (usage, delay) from the longest to the cheapest;
- these codes are replayed as static ones at loads from 0.005 to 0.95 of the capacity. Where mean and 99 % quantile,
  relative to the best of both at that load, are level for neighbours is the first guess of the threshold;
- then thresholds and memory are tuned on replays at those loads (Nelder-Mead over factors that vary with the
  threshold, and the memory), so that latencies become short, and not longer than under the best static code or TOFEC.

All replays share their random numbers, so that differences between codes and thresholds stand out of the noise.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import optimize

from ecjax.adapt import arrivals, strategies, thresholds
from ecjax.adapt.delays import DelayModel, tasks_of
from ecjax.adapt.proxy import IN_SYSTEM, RequestClass, Strategy
from ecjax.adapt.replay import replay
from ecjax.adapt.static_code import all_codes
from ecjax.adapt.thresholds import Ladder

Code = tuple[int, int]
Plan = tuple[Code, ...]  # a code per class

_REQUESTS = 60_000  # of a replay
_ALONE = 20_000  # requests by which a code is known without a queue
_WARM_UP = 0.05
# load, as a share of the largest capacity; tuned at every second one
_LOADS = np.array(
    [0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
    + [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
)
_TUNED = np.arange(0, len(_LOADS), 2)
_STABLE = 0.97  # of the capacity; beyond it a static code is not replayed
_MOST_PLANS = 12
_NEAR_HULL = 1.05  # codes whose delay is so near to the hull may be the best for the 99 % quantile
_KNOTS = 3
_MEMORY = 0.995
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
    tasks = tasks_of(classes, models)
    shares = np.array([c.share for c in classes])
    profiles = [_profile(c, model, seed) for c, model in zip(classes, models, strict=True)]
    plans = _plans(profiles)
    usage = np.array(
        [
            sum(share * own[code][1] for share, own, code in zip(shares, profiles, plan, strict=True))
            for plan in plans
        ]
    )
    rates = _LOADS * threads / usage.min()
    drawn = [arrivals.poisson(arrivals.constant(rate, shares), _REQUESTS, seed) for rate in rates]

    def latencies(strategy: Strategy, place: int) -> np.ndarray:
        """Mean and 99 % quantile, s."""
        found = replay(
            drawn[place].arrival_s, drawn[place].class_of, tasks, strategy, threads, seed
        ).latency_s
        kept = found[int(_WARM_UP * len(found)) :]
        return np.array([kept.mean(), np.quantile(kept, 0.99)])

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # replays let go of the interpreter

        def replayed(pairs: list[tuple[Strategy, int]]) -> np.ndarray:
            return np.array(list(pool.map(lambda pair: latencies(*pair), pairs)))

        static = np.full((len(plans), len(rates), 2), np.inf)
        stable = [
            (j, i)
            for j in range(len(plans))
            for i in range(len(rates))
            if rates[i] * usage[j] < _STABLE * threads
        ]
        fixed = [strategies.static(list(plan)) for plan in plans]
        static[tuple(np.transpose(stable))] = replayed([(fixed[j], i) for j, i in stable])
        longest = int(np.argmin(static[:, 0, 0]))
        used, edges = _crossings(static, rates)
        if (
            used[0] > longest
        ):  # where its quantile is too long, it is still the best for the mean when all is quiet
            used, edges = [longest, *used], np.append(rates[0] * static[longest, 0, 0], edges)
        ladder = [plans[j] for j in used]
        if not len(edges):
            return _strategy(ladder, edges, 0.5)
        peer = strategies.tofec(classes, models, threads)
        allowed = np.minimum(1.01 * static[:, _TUNED].min(axis=0), replayed([(peer, i) for i in _TUNED]))
        return _tuned(ladder, edges, lambda strategy: replayed([(strategy, i) for i in _TUNED]), allowed)


def _profile(given: RequestClass, model: DelayModel, seed: int) -> dict[Code, tuple[float, float]]:
    """Mean service delay and usage (thread-seconds) of every code of a class, each request alone, s."""
    tasks = tasks_of([given], [model])
    found = {}
    # far enough apart that no request meets the one before
    arrival = (
        np.arange(_ALONE) * 1e4 * (tasks.shift.max() + tasks.scale.max() + tasks.quantiles.max(initial=0.0))
    )
    for n, k in all_codes(given.k_max, given.r_max):
        alone = replay(arrival, np.zeros(_ALONE, np.uint8), tasks, strategies.static([(n, k)]), n, seed)
        found[n, k] = float(alone.latency_s.mean()), alone.busy_s / _ALONE
    return found


def _plans(profiles: list[dict[Code, tuple[float, float]]]) -> list[Plan]:
    """Codes per class, from the most to the least usage: those of a growing price of thread time.

    For one class, codes near the hull are among them too.
    """
    hulls = [_hull(own) for own in profiles]
    prices = np.unique(np.concatenate([price for _, price in hulls]))
    if len(prices) >= _MOST_PLANS:
        prices = np.geomspace(prices[0], prices[-1], _MOST_PLANS - 1)
    found = {
        tuple(codes[int(np.searchsorted(price, level, side="right"))] for codes, price in hulls)
        for level in [0.0, *(prices * (1 + 1e-9))]
    }
    if len(profiles) == 1:
        own, codes = profiles[0], hulls[0][0]
        delay, used = np.array([own[code] for code in codes[::-1]]).T
        found |= {
            (code,)
            for code, (mean, usage) in own.items()
            if mean <= _NEAR_HULL * np.interp(usage, used, delay)
        }
    return sorted(
        found, key=lambda plan: -sum(own[code][1] for own, code in zip(profiles, plan, strict=True))
    )


def _hull(profile: dict[Code, tuple[float, float]]) -> tuple[list[Code], np.ndarray]:
    """Codes on the lower hull of (usage, delay), the longest first, and the prices between neighbours, ascending."""
    codes: list[Code] = []
    prices: list[float] = []
    for code in sorted(profile, key=lambda code: profile[code]):  # by delay: the best without a price first
        delay, usage = profile[code]
        if codes and usage >= profile[codes[-1]][1]:
            continue
        price = 0.0
        while codes:
            before = profile[codes[-1]]
            price = (delay - before[0]) / (before[1] - usage)
            if not prices or price > prices[-1]:
                break
            codes.pop()
            prices.pop()
        if codes:
            prices.append(price)
        codes.append(code)
    return codes, np.array(prices)


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
    replayed: Callable[[Strategy], np.ndarray],
    allowed: np.ndarray,
) -> Strategy:
    """The strategy with the shortest latencies that are nowhere longer than allowed, as near as a search finds it.

    Args:
        ladder: plans, the longest first.
        edges: thresholds to begin with.
        replayed: latencies (R, 2) of a strategy at R loads, s.
        allowed: (R, 2) s.
    """
    place = np.log(edges)
    knots = np.linspace(place[0], place[-1], min(_KNOTS, len(edges)))

    def strategy(x: np.ndarray) -> Strategy:
        factors = np.interp(place, knots, x[:-1]) if len(knots) > 1 else x[:1]
        moved = np.maximum.accumulate(np.exp(place + factors))
        return _strategy(ladder, moved, float(np.clip(x[-1], 0.0, 1.0)))

    def score(x: np.ndarray) -> float:
        ratio = replayed(strategy(x)) / allowed
        above = np.maximum(ratio - 1.0, 0.0)
        return float(ratio.mean() + 20.0 * above.mean() + 5.0 * above.max())

    start = np.append(np.zeros(len(knots)), 0.5)
    steps = np.diag([0.15] * len(knots) + [0.2])
    found = optimize.minimize(
        score,
        start,
        method="Nelder-Mead",
        options={"maxfev": _EVALUATIONS, "initial_simplex": np.vstack([start, start + steps])},
    )
    return strategy(found.x)


def _strategy(ladder: list[Plan], edges: np.ndarray, weight: float) -> Strategy:
    ladders = [
        Ladder(edges, np.array([plan[c][0] for plan in ladder]), np.array([plan[c][1] for plan in ladder]))
        for c in range(len(ladder[0]))
    ]
    return thresholds.joined("calibrated", IN_SYSTEM, _MEMORY, ladders)._replace(weight=weight)
