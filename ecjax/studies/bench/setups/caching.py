"""Plans of caches, one and many, beside the whole dynamic programme; and replays under every policy."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, milp

from ecjax.cache.knapsack import exact, exact_full, plan
from ecjax.cache.replay import POLICIES, replay
from ecjax.cache.system import Network, Policy, Reads, Stored
from ecjax.cache.valuation import valuation
from ecjax.cache.workload import LATENCY_S, Popularity, placed, zipf_reads
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import Timing, peak_rss_bytes, side_by_side

# items, chunks that are kept, chunks per item: seconds that a plan may take
OFFLINE = {(1000, 100, 6): 1e-3, (1000, 1000, 15): 2e-3, (10**6, 10**5, 10): 5.0}
QUICK_OFFLINE = {(100, 20, 6): 1.0}
MOST_CELLS = 10**8  # of the whole dynamic programme, which is left out above
SOLVER = (60, 30, 6)  # SciPy's integer programme takes seconds beyond
CACHES, BATCHED_TARGET_S = 1000, 2.0
BATCHED = (1000, 100, 6)
ONLINE = (1000, 1000, 15)
READS, QUICK_READS = 10**6, 2000
EXACT_PER_S, DECISION_S = 3e5, 50e-6  # requests/s and p99.99 of a decision of the exact policy
ABOVE_STATIC = {"exact": 1e-3, "near_optimal": 4e-3, "samplex": 15e-3}  # of the mean latency
SLOW = ("near_optimal", "samplex")  # replayed once


def offline(settings: Settings) -> list[Row]:
    """One cache: the core of the knapsack, the whole dynamic programme, and on a small case SciPy's solver."""
    found = []
    for size, target_s in (QUICK_OFFLINE if settings.quick else OFFLINE).items():
        items, capacity, _ = size
        tau = _tau(size, settings.seed)
        rivals: dict[str, Callable[[], Any]] = {"ecjax exact": partial(plan, tau, capacity)}
        if tau.size * capacity <= MOST_CELLS:
            rivals["whole dynamic programme"] = partial(exact_full, tau, capacity)
        best = plan(tau, capacity)
        note = f"relaxation {best.upper_bound / best.value - 1:.1e} above the optimum"
        for name, timing in _side_by_side(rivals, settings.repeats).items():
            own = name == "ecjax exact"
            judged = own and not settings.quick
            found.append(
                _row(
                    name,
                    size,
                    timing,
                    rows=items,
                    target_s=target_s if judged else None,
                    note=note if own else None,
                )
            )
    tau = _tau(SOLVER, settings.seed)
    small = {
        "ecjax exact": partial(exact, tau, SOLVER[1]),
        "SciPy milp (HiGHS)": partial(_solved, tau, SOLVER[1]),
    }
    found += [
        _row(name, SOLVER, timing, rows=SOLVER[0])
        for name, timing in _side_by_side(small, settings.repeats).items()
    ]
    return found


def batched(settings: Settings) -> list[Row]:
    """Many caches at once on the device, beside one after the other on a core; and all capacities of one cache."""
    from ecjax.cache.batched import exact_batched  # the other cases do not load JAX

    size, caches = (next(iter(QUICK_OFFLINE)), 3) if settings.quick else (BATCHED, CACHES)
    _, most, _ = size
    random = np.random.default_rng(settings.seed)
    tau = _tau(size, settings.seed) * random.uniform(0.5, 2, (caches, size[0], 1))
    capacity = random.integers(most // 2, most + 1, caches)
    capacity[0] = most
    sweep = range(most + 1)
    variants: dict[str, tuple[Callable[[], Any], int, str]] = {
        "ecjax exact_batched": (lambda: exact_batched(tau, capacity), caches, "float64"),
        "ecjax exact_batched, single precision": (
            lambda: exact_batched(tau, capacity, "float32"),
            caches,
            "float32",
        ),
        "exact, one after the other": (
            lambda: [exact(values, room) for values, room in zip(tau, capacity, strict=True)],
            caches,
            "float64",
        ),
        "ecjax exact_batched, all capacities of a cache": (
            lambda: exact_batched(tau[:1], [sweep]),
            len(sweep),
            "float64",
        ),
        "exact, all capacities of a cache": (
            lambda: [exact(tau[0], room) for room in sweep],
            len(sweep),
            "float64",
        ),
    }
    compile_s = {name: _timed(run) for name, (run, _, _) in variants.items()}
    times = _side_by_side({name: run for name, (run, _, _) in variants.items()}, settings.repeats)
    return [
        _row(
            name,
            size,
            times[name],
            rows=size[0] * lanes,
            lanes=lanes,
            dtype=dtype,
            compile_s=compile_s[name],
            peak_rss_bytes=peak_rss_bytes(),
            target_s=BATCHED_TARGET_S if name == "ecjax exact_batched" and not settings.quick else None,
        )
        for name, (_, lanes, dtype) in variants.items()
    ]


def online(settings: Settings) -> list[Row]:
    """Reads of Zipf's law at one edge under every policy: reads per second, decisions, and latency.

    The bound of the latency is that of the best fixed plan for the known popularity, on the same reads, of which the
    second half counts.
    """
    reads, stored, network, known = _setting(settings)
    names = ["optimal_static", *(name for name in POLICIES if name != "optimal_static")]
    found, bound = [], None
    count = len(reads.time_s)
    for name in names:
        policy = _policy(name, float(reads.time_s[-1]), settings.seed)
        few = Reads(*(column[:50] for column in reads))
        compile_s = _timed(partial(replay, few, stored, network, policy, known))
        taken, slowest = [], []
        for _ in range(1 if name in SLOW else settings.repeats):
            began = time.perf_counter()
            outcome = replay(reads, stored, network, policy, known)
            taken.append(time.perf_counter() - began)
            slowest.append(float(np.quantile(outcome.decision_s, 0.9999)))
        latency_s = float(outcome.latency_s[count // 2 :].mean())
        bound = latency_s if bound is None else bound
        judged = not settings.quick
        common: dict[str, Any] = {
            "rows": count,
            "objective": latency_s,
            "lower_bound": bound,
            "gap": latency_s / bound - 1,
        }
        found += [
            _row(
                f"ecjax {name}",
                ONLINE,
                _timing(taken),
                compile_s=compile_s,
                target_s=count / EXACT_PER_S if judged and name == "exact" else None,
                target_gap=ABOVE_STATIC.get(name) if judged else None,
                note=f"{count / min(taken):,.0f} reads/s; {outcome.hit_chunks.mean() / stored.k:.3f} of the chunks hit",
                **common,
            ),
            _row(
                f"ecjax {name}, p99.99 of a decision",
                ONLINE,
                _timing(slowest),
                target_s=DECISION_S if judged and name == "exact" else None,
                **common,
            ),
        ]
    return found


def _tau(size: tuple[int, int, int], seed: int) -> np.ndarray:
    """Values of items of Zipf's law whose chunks are spread over six nodes, each a little nearer or farther."""
    items, _, k = size
    random = np.random.default_rng(seed)
    stored = placed(items, k, 0, 1, LATENCY_S.shape[1], 1, seed)
    latency_s = LATENCY_S[0][stored.node_of[:, :, 0]] * random.uniform(0.95, 1.05, (items, k))
    return valuation(1 / np.arange(1.0, items + 1), latency_s)


def _solved(tau: np.ndarray, capacity: int) -> np.ndarray:
    """The same by SciPy's integer programme: one choice per item, all choices together within the capacity."""
    items, options = tau.shape
    one_each = np.kron(np.eye(items), np.ones(options))
    weights = np.tile(np.arange(options), items)
    result = milp(
        -tau.ravel(),
        integrality=np.ones(tau.size),
        bounds=(0, 1),
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(weights, 0, capacity)],
    )
    return result.x.reshape(items, options).round() @ np.arange(options)


def _setting(settings: Settings) -> tuple[Reads, Stored, Network, np.ndarray]:
    items, _, k = ONLINE
    popularity = Popularity(items=items, exponent=1.0, drift=0.0, period_s=1.0)
    count = QUICK_READS if settings.quick else READS
    reads = zipf_reads(popularity, count, 100.0, 1, settings.seed)
    none = np.zeros(0)
    network = Network(LATENCY_S[:1], 0.0, 1e-3, 0.03, none.astype(np.int64), none, none)
    stored = placed(items, k, 3, 1, LATENCY_S.shape[1], 1, settings.seed)
    return reads, stored, network, 1 / np.arange(1.0, items + 1)[None]


def _policy(name: str, duration_s: float, seed: int) -> Policy:
    return Policy(
        name=name,
        capacity=ONLINE[1],
        half_life_s=duration_s,
        memory=0.9,
        samples=5,
        period_s=duration_s / 20,
        replan_reads=0,
        seed=seed,
    )


def _timed(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _side_by_side(rivals: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Timing]:
    return side_by_side({name: partial(_timed, run) for name, run in rivals.items()}, repeats)


def _timing(taken: list[float]) -> Timing:
    return Timing(float(np.median(taken)), min(taken), len(taken))


def _row(
    variant: str, size: tuple[int, int, int], timing: Timing, dtype: str = "float64", **more: Any
) -> Row:
    items, capacity, k = size
    text = f"{items:,} items of {k} chunks, {capacity:,} kept"
    return Row(variant=variant, size=text, dtype=dtype, **timing._asdict(), **more)
