"""Functions of the jobs that replay what stands before the storage: a proxy, caches at edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecjax.library.arguments import Numbers, TableLike, Texts, Wholes, of_job
from ecjax.library.calling import call_job

if TYPE_CHECKING:
    from ecjax.library.results import Results


@of_job
def adapt(
    trace: TableLike | Sequence[TableLike] | None = None,
    *,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = 0.1,
    delays: TableLike | Sequence[TableLike] = ("shifted_exp",),
    classes: TableLike | Sequence[Mapping[str, Any]] | None = None,
    bytes: float = 3000000.0,
    k_max: int = 6,
    r_max: float = 2.0,
    writes: str = "cancel",
    threads: int = 16,
    rate: Numbers | None = None,
    load: Numbers = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    steps: Sequence[Sequence[float]] | None = None,
    rates: TableLike | None = None,
    rate_scale: Numbers = (1.0,),
    requests: int = 200000,
    seeds: int = 1,
    seed: int = 0,
    strategy: Texts = ("static", "best_static", "replication", "greedy", "fast_cloud", "tofec", "calibrated"),
    codes: str | Sequence[Sequence[int]] = ((1, 1),),
    memory: float = 0.99,
    capacity: bool = True,
    timeline_s: float | None = None,
    storage_dollars_per_byte: float = 2.3e-11,
    out: str | Path | None = None,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts = (),
    quiet: bool = True,
) -> Results:
    """Replay a proxy that adapts its codes to its load: ``ecjax adapt``.

    Returns:
        A replay per run; ``codes``, ``timeline``, ...

    Raises:
        UserError: something in the options or tables is wrong; nothing is left behind.
    """
    return call_job("adapt", locals())


@of_job
def cache(
    trace: TableLike | Sequence[TableLike] | None = None,
    *,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = 0.1,
    policy: Texts = (
        "optimal_static",
        "samplex_static",
        "belady",
        "exact",
        "near_optimal_dp",
        "samplex",
        "agar",
        "arc",
        "s3_fifo",
        "sieve",
        "w_tinylfu",
        "gdsf",
        "decayed_lfu",
        "lfu",
        "lru",
        "none",
    ),
    capacity: Wholes = (100,),
    k: Wholes = (6,),
    parity: int = 3,
    copies: Wholes = (0,),
    items: Wholes | None = None,
    zipf: Numbers = (1.0,),
    popularity: Sequence[Sequence[float]] | None = None,
    reads: int = 200000,
    rate_per_s: float = 100.0,
    rate_scale: float = 1.0,
    drift: float = 0.0,
    drift_s: float = 600.0,
    edges: int | None = None,
    nodes: TableLike | Mapping[str, Numbers] | None = None,
    buckets: int = 15,
    jitter: float = 0.0,
    edge_s: float = 0.001,
    decode_s: float = 0.03,
    outages: TableLike | None = None,
    fail: str | Sequence[str | None] | None = (None,),
    half_life_s: Numbers | None = None,
    memory: float = 0.9,
    samples: Wholes = (5,),
    period_s: float = 60.0,
    replan_reads: int = 20000,
    neighbours: Numbers | Sequence[Sequence[float]] | None = None,
    warm_up: float = 0.25,
    partitions: Wholes | None = None,
    rounds: int = 100,
    device: str = "auto",
    seeds: int = 1,
    seed: int = 0,
    out: str | Path | None = None,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts | None = (),
    quiet: bool = True,
) -> Results:
    """Plan and replay chunk caches at edges: ``ecjax cache``.

    Returns:
        A replay per run; ``latencies``, ...

    Raises:
        UserError: something in the options or tables is wrong; nothing is left behind.
    """
    return call_job("cache", locals())
