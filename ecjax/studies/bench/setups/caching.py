"""Plans of caches, one and many, beside the whole dynamic programme; and replays under every policy."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, milp

from ecjax.caching.knapsack import exact, exact_full, plan
from ecjax.caching.replay import POLICIES, replay
from ecjax.caching.system import Network, Outcome, Policy, Reads, Stored
from ecjax.caching.valuation import valuation
from ecjax.caching.workload import LATENCY_S, Popularity, placed, zipf_reads
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Runner, Timing, clocked

Size = tuple[int, int, int]  # items, chunks of the capacity, chunks of an item
MOST_CELLS = 10**8  # of the whole dynamic programme, which is left out above
SLOW = ("near_optimal", "near_optimal_dp", "samplex")  # replayed once
READS_PER_S = 100.0


def offline(runner: Runner, size: Size) -> Iterator[Row]:
    """One cache: the core of the knapsack beside the whole dynamic programme."""
    tau, capacity = _tau(size, runner.seed), size[1]
    variants: dict[str, Callable[[], Any]] = {"ecjax exact": partial(plan, tau, capacity)}
    if tau.size * capacity <= MOST_CELLS:
        variants["whole dynamic programme"] = partial(exact_full, tau, capacity)
    outcomes = runner.race(variants)
    best = outcomes["ecjax exact"].value
    notes = {"ecjax exact": f"relaxation {best.upper_bound / best.value - 1:.1e} above the optimum"}
    for name, outcome in outcomes.items():
        yield _row(name, size, outcome.timing, rows=size[0], note=notes.get(name))


def beside_scipy(runner: Runner, size: Size) -> Iterator[Row]:
    """One small cache beside SciPy's integer programme."""
    tau, capacity = _tau(size, runner.seed), size[1]
    variants = {
        "ecjax exact": partial(exact, tau, capacity),
        "SciPy milp (HiGHS)": partial(by_integer_programme, tau, capacity),
    }
    for name, outcome in runner.race(variants).items():
        yield _row(name, size, outcome.timing, rows=size[0])


def batched(runner: Runner, size: Size, caches: int) -> Iterator[Row]:
    """Many caches at once on the device, beside one after the other on a core; and all capacities of one cache."""
    from ecjax.caching.batched import exact_batched  # the other cases do not load JAX
    from ecjax.studies.bench.setups.device_limits import Work, against_limits

    items, most, k = size
    random = np.random.default_rng(runner.seed)
    tau = _tau(size, runner.seed) * random.uniform(0.5, 2, (caches, items, 1))
    capacity = random.integers(most // 2, most + 1, caches)
    capacity[0] = most
    sweep = range(most + 1)

    def one_by_one() -> list[np.ndarray]:
        return [exact(values, room) for values, room in zip(tau, capacity, strict=True)]

    def capacity_by_capacity() -> list[np.ndarray]:
        return [exact(tau[0], room) for room in sweep]

    single = "ecjax exact_batched, single precision"
    variants: dict[str, tuple[int, Callable[[], Any]]] = {
        "ecjax exact_batched": (caches, partial(exact_batched, tau, capacity)),
        single: (caches, partial(exact_batched, tau, capacity, "float32")),
        "exact, one after the other": (caches, one_by_one),
        "ecjax exact_batched, all capacities of a cache": (
            len(sweep),
            partial(exact_batched, tau[:1], [sweep]),
        ),
        "exact, all capacities of a cache": (len(sweep), capacity_by_capacity),
    }
    for name, outcome in runner.race({name: run for name, (_, run) in variants.items()}).items():
        lanes, dtype = variants[name][0], "float32" if name == single else "float64"
        columns = dict(rows=items * lanes, lanes=lanes, compile_s=outcome.first.seconds)
        row = _row(name, size, outcome.timing, dtype, **columns)
        on_device = name in ("ecjax exact_batched", single)
        # for every item and every room of a cache the best of k + 1 sums
        choices = items * k * float(capacity.sum())
        yield against_limits(row, Work(operations=2 * choices)) if on_device else row


def online(runner: Runner, count: int, size: Size) -> Iterator[Row]:
    """Reads of Zipf's law at one edge under every policy: reads per second, decisions, and latency.

    The bound of the latency is that of the best fixed plan for the known popularity, on the same reads, of which the
    second half counts.
    """
    reads, stored, network, popularity = _setting(count, size, runner.seed)
    few = Reads(*(column[:50] for column in reads))
    bound_s = None
    for name in ("optimal_static", *(name for name in POLICIES if name != "optimal_static")):
        policy = _policy(name, size[1], float(reads.time_s[-1]), runner.seed)
        slowest_s: list[float] = []
        run = partial(replay, reads, stored, network, policy, popularity)
        compile_s = clocked(partial(replay, few, stored, network, policy, popularity)).seconds
        outcome = (runner.once() if name in SLOW else runner).time(partial(_decisions, run, slowest_s))
        latency_s = float(outcome.value.latency_s[count // 2 :].mean())
        bound_s = latency_s if bound_s is None else bound_s
        common: dict[str, Any] = {"rows": count, "objective": latency_s, "lower_bound": bound_s}
        hits = outcome.value.hit_chunks.mean() / stored.k
        note = f"{count / outcome.timing.min_s:,.0f} reads/s; {hits:.3f} of the chunks hit"
        yield _row(f"ecjax {name}", size, outcome.timing, compile_s=compile_s, note=note, **common)
        decisions = Timing.of(slowest_s[-outcome.timing.repeats :])
        # the time of one read: not beside those of all reads
        yield _row(f"ecjax {name}, p99.99 of a decision", size, decisions, **common | {"rows": 1})


def learning(runner: Runner, count: int, size: Size, exponent: float) -> Iterator[Row]:
    """The same reads at ``exact`` that learns how fast popularity changes, beside one that is told by a half-life."""
    reads, stored, network, popularity = _setting(count, size, runner.seed, exponent)
    policy = _policy("exact", size[1], float(reads.time_s[-1]), runner.seed)
    variants = {
        "ecjax exact, by a mixture": partial(
            replay, reads, stored, network, policy._replace(half_life_s=None), popularity
        ),
        "ecjax exact, by a half-life": partial(replay, reads, stored, network, policy, popularity),
    }
    for name, outcome in runner.race(variants).items():
        latency_s = float(outcome.value.latency_s[count // 2 :].mean())
        note = f"Zipf exponent {exponent:g}; {outcome.timing.min_s / count * 1e6:.2f} µs per read"
        compile_s = outcome.first.seconds - outcome.timing.median_s
        yield _row(
            name, size, outcome.timing, rows=count, objective=latency_s, compile_s=compile_s, note=note
        )


def _decisions(run: Callable[[], Outcome], slowest_s: list[float]) -> Clocked:
    """A replay, the p99.99 of whose decisions is noted down."""
    outcome, seconds = clocked(run)
    slowest_s.append(float(np.quantile(outcome.decision_s, 0.9999)))
    return Clocked(outcome, seconds)


def by_integer_programme(tau: np.ndarray, capacity: int) -> np.ndarray:
    """Chunks of every item by SciPy: one choice per item, all choices together within the capacity."""
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


def _tau(size: Size, seed: int) -> np.ndarray:
    """Values of items of Zipf's law whose chunks are spread over six nodes, each a little nearer or farther."""
    items, _, k = size
    random = np.random.default_rng(seed)
    stored = placed(items, k, 0, 1, LATENCY_S.shape[1], 1, seed)
    latency_s = LATENCY_S[0][stored.node_of[:, :, 0]] * random.uniform(0.95, 1.05, (items, k))
    return valuation(1 / np.arange(1.0, items + 1), latency_s)


def _setting(
    count: int, size: Size, seed: int, exponent: float = 1.0
) -> tuple[Reads, Stored, Network, np.ndarray]:
    """Reads, chunks on six nodes, their latencies, and the popularity of the items, (1, items)."""
    items, _, k = size
    popularity = Popularity(items=items, exponent=exponent, drift=0.0, period_s=1.0)
    reads = zipf_reads(popularity, count, READS_PER_S, 1, seed)
    none = np.zeros(0)
    network = Network(LATENCY_S[:1], 0.0, 1e-3, 0.03, none.astype(np.int64), none, none)
    stored = placed(items, k, 3, 1, LATENCY_S.shape[1], 1, seed)
    return reads, stored, network, np.arange(1.0, items + 1)[None] ** -exponent


def _policy(name: str, capacity: int, duration_s: float, seed: int) -> Policy:
    return Policy(
        name=name,
        capacity=capacity,
        half_life_s=duration_s,
        memory=0.9,
        samples=5,
        period_s=duration_s / 20,
        replan_reads=0,
        seed=seed,
    )


def _row(variant: str, size: Size, timing: Timing, dtype: str = "float64", **columns: Any) -> Row:
    items, capacity, k = size
    return Row(variant, f"{items:,} items of {k} chunks, {capacity:,} kept", *timing, dtype=dtype, **columns)
