"""Functions of the jobs that learn from a log and plan for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecjax.library.arguments import Numbers, TableLike, Texts, Wholes, of_job
from ecjax.library.calling import call_job

if TYPE_CHECKING:
    from ecjax.library.results import Results


@of_job
def analyze(
    trace: TableLike | Sequence[TableLike] | None = None,
    *,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = 0.1,
    rate: str = "mean",
    window_s: float = 60.0,
    shrink: str = "none",
    out: str | Path | None = None,
    nodes: TableLike | None = None,
    catalog: TableLike | None = None,
    k: int | None = None,
    reference_bytes: float | None = None,
    background: Texts | None = None,
    seed: int = 0,
    figures: bool = False,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    quiet: bool = True,
) -> Results:
    """Learn rates, sizes and service times from an access log: ``ecjax analyze``.

    Returns:
        The tables ``files``, ``nodes``, ``delays``, ... as far as the log tells them.

    Raises:
        UserError: something in the options or tables is wrong; nothing is left behind.
    """
    return call_job("analyze", locals())


@of_job
def optimize(
    nodes: TableLike | Mapping[str, Any] | None = None,
    files: TableLike | None = None,
    *,
    trace: TableLike | Sequence[TableLike] | None = None,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = 0.1,
    rate: str = "mean",
    window_s: float = 60.0,
    shrink: str = "none",
    out: str | Path | None = None,
    queue: Texts = ("fcfs",),
    method: Texts | None = None,
    theta: Numbers | None = None,
    objective: str | Mapping[str, float] = "bound",
    trace_form: str = "wait",
    importance: Sequence[Sequence[float]] | None = None,
    weights: Numbers | None = None,
    exchange: bool = False,
    deadline_s: float | list[float | None] | dict[str, float | None] | None = None,
    deadline_by: str = "bound",
    service: str = "auto",
    estimate: bool = True,
    max_latency_s: float | None = None,
    max_p99_s: float | None = None,
    budget: float | None = None,
    stream: bool = False,
    theta_per: str = "file",
    rate_scale: Numbers = (1.0,),
    class_rate_scale: Sequence[Sequence[float]] | None = None,
    size_scale: Numbers = (1.0,),
    k: Wholes | None = None,
    min_extra_chunks: int | None = None,
    codes: Texts | None = None,
    durability_nines: float | None = None,
    max_any_loss: float | None = None,
    d: Wholes | None = None,
    max_chunks_per_node: int = 1,
    max_chunks_per_site: int | None = None,
    migration_dollars_per_byte: float = 0.0,
    network: TableLike | None = None,
    fixed_groups: bool = False,
    stripe_unit_bytes: float | None = None,
    read_kinds: str = "best",
    size_scaling: str = "proportional",
    scenarios: Texts = (),
    what_if: Texts = (),
    scheduling: str = "nearest",
    robust: str = "none",
    robust_trials: int = 30,
    polish: bool = False,
    start: str | None = None,
    plan: TableLike | None = None,
    plan_run: str | None = None,
    plan_where: str | None = None,
    compare_cold_start: bool = False,
    gap: float = 0.0001,
    loop: str = "merged",
    beta: float = 10.0,
    eps: float = 0.0001,
    max_iterations: int = 1000,
    seed: int = 0,
    dtype: str = "float64",
    device: str = "auto",
    memory_bytes: float | None = None,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts = (),
    domains: int | None = None,
    disks: int | None = None,
    disk_bytes: float = 16e12,
    user_bytes: float = 5e14,
    groups: int = 1024,
    afr: float = 0.015,
    domain_losses_per_year: float = 0.002,
    repair_bytes_per_s: float = 1e8,
    cluster_bytes_per_s: float = 6e9,
    detect_s: float = 600.0,
    scrub_days: float = 14.0,
    latent_errors_per_year: float = 0.05,
    bit_error_rate: float = 1e-15,
    domain: str = "node",
    cluster: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Results:
    """Plan code lengths, placement and scheduling, latency against storage cost: ``ecjax optimize``.

    Returns:
        A plan per run; ``placements``, ``file_plans``, ``node_loads``, ...

    Raises:
        UserError: something in the options or tables is wrong; nothing is left behind.
    """
    return call_job("optimize", locals())
