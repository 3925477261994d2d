"""Replays of 12 nodes on one core: plans and policies, queues, and memory that does not grow."""

from typing import Any

from ecjax.replay.run import Policy, Queue
from ecjax.studies.bench.fresh import run_fresh
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import peak_rss_bytes, side_by_side
from ecjax.studies.bench.setups.reference_system import CLASSES, MEAN_S, NEED, NODES, House, house, replayed

LOAD = 0.7
# accesses that come on top of the plan's load stay stable below this
REDUNDANT_LOAD = 0.35
HEDGE_S = 3 * MEAN_S  # a quarter of the reads takes longer
REQUESTS, QUICK_REQUESTS = 1_000_000, 5_000
TARGET_SHIFTED, TARGET_LOGNORMAL, TARGET_QUEUES = 15e6, 10e6, 3e6  # chunk accesses per s
TARGET_AWARE, TARGET_REDUNDANT = 2e6, 1e6  # requests per s
LONG_ACCESSES, SHORT_ACCESSES = 100_000_000, 10_000_000
TARGET_GROWTH = 1.1  # peak memory of the long replay / of the short one


def fcfs(settings: Settings) -> list[Row]:
    """Plans under first come, first served: files on all nodes and on 8 of them, two service laws."""
    return [
        _row(house(law, n, LOAD, settings.seed), f"{law}, n = {n}", settings, target)
        for law, target in (("shifted exponential", TARGET_SHIFTED), ("lognormal", TARGET_LOGNORMAL))
        for n in (NODES, 8)
    ]


def queues(settings: Settings) -> list[Row]:
    """Plans with four classes at the nodes."""
    own = house("shifted exponential", NODES, LOAD, settings.seed)
    weights = (1 / CLASSES,) * CLASSES
    return [
        _row(own, name, settings, TARGET_QUEUES, queue=Queue(name, weights))
        for name in ("priority", "partitioned", "shared")
    ]


def policies(settings: Settings) -> list[Row]:
    """Policies that look at the nodes or send more than they need; requests per s."""
    cases = (
        (Policy("least_loaded"), LOAD, TARGET_AWARE),
        (Policy("power_of_d"), LOAD, TARGET_AWARE),
        (Policy("fork_join"), REDUNDANT_LOAD, TARGET_REDUNDANT),
        (Policy("late_binding"), LOAD, TARGET_REDUNDANT),
        (Policy("hedged", hedge_delay_s=HEDGE_S), REDUNDANT_LOAD, TARGET_REDUNDANT),
    )
    return [
        _row(
            house("shifted exponential", NODES, load, settings.seed),
            policy.name.replace("_", " "),
            settings,
            per_s * NEED,
            policy=policy,
        )
        for policy, load, per_s in cases
    ]


def _row(own: House, what: str, settings: Settings, accesses_per_s: float, **how: Any) -> Row:
    """A row of one way to replay.

    Args:
        own: system and rates.
        what: goes to ``size``.
        settings: repeats, seed, quick.
        accesses_per_s: what is asked for.
        how: policy and queue.
    """
    count = QUICK_REQUESTS if settings.quick else REQUESTS
    accesses = count * NEED
    load: list[float] = []

    def run() -> float:
        outcome, seconds = replayed(own, count, settings.seed, **how)
        load.append(float((outcome.tally.busy.sum(axis=0) / outcome.span).max()))
        return seconds

    times = side_by_side({"ecjax": run}, settings.repeats)["ecjax"]
    return Row(
        variant="ecjax replay",
        size=f"{what}, {count:,} reads, k = {NEED}, {NODES} nodes",
        **times._asdict(),
        rows=count,
        nodes=NODES,
        dtype="float64",
        target_s=None if settings.quick else accesses / accesses_per_s,
        note=f"{accesses / times.min_s / 1e6:.1f} million chunk accesses/s, "
        f"{count / times.min_s / 1e6:.2f} million reads/s on one core; busiest node: utilisation {load[-1]:.2f}",
    )


def memory(settings: Settings) -> list[Row]:
    """A long replay and one of a tenth, each in a fresh process, once: memory must not grow."""
    sizes = (30_000, 300_000) if settings.quick else (SHORT_ACCESSES, LONG_ACCESSES)
    rows: list[Row] = []
    for accesses in sizes:
        found = run_fresh(f"{__name__}:streamed", {"requests": accesses // NEED, "seed": settings.seed})
        short = rows[0].peak_rss_bytes if rows else None
        rows.append(
            Row(
                variant="ecjax replay",
                size=f"{accesses:,} chunk accesses, lognormal, n = 8",
                median_s=found["seconds"],
                min_s=found["seconds"],
                repeats=1,
                rows=accesses // NEED,
                nodes=NODES,
                dtype="float64",
                peak_rss_bytes=found["peak_rss_bytes"],
                target_bytes=None if short is None or settings.quick else int(TARGET_GROWTH * short),
                note=f"{accesses / found['seconds'] / 1e6:.1f} million chunk accesses/s",
            )
        )
    return rows


def streamed(requests: int, seed: int) -> dict[str, float]:
    """Seconds of one replay, compilation apart, and the peak memory of this process."""
    own = house("lognormal", 8, LOAD, seed)
    replayed(own, 100, seed)
    seconds = replayed(own, requests, seed)[1]
    return {"seconds": seconds, "peak_rss_bytes": peak_rss_bytes()}
