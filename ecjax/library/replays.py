"""Functions of the jobs that replay reads of files and transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecjax.library.arguments import Numbers, TableLike, Texts, Wholes, of_job
from ecjax.library.calling import call_job

if TYPE_CHECKING:
    from ecjax.library.results import Results


@of_job
def replay(
    plan: TableLike | None = None,
    *,
    trace: TableLike | Sequence[TableLike] | None = None,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = 0.1,
    plan_run: str | None = None,
    plan_where: str | None = None,
    out: str | Path | None = None,
    policy: Texts = ("probabilistic",),
    probes: int = 2,
    cancel: bool = True,
    hedge_delay_s: float | None = None,
    hedges: int = 1,
    hedge_budget: float | None = None,
    queue: Texts | None = None,
    weights: Numbers | None = None,
    service: Texts | None = None,
    pareto_ratio: float = 1000.0,
    arrivals: str | None = None,
    rates: TableLike | None = None,
    burst_factor: float = 5.0,
    burst_share: float = 0.1,
    burst_mean_s: float = 60.0,
    rate_scale: Numbers = (1.0,),
    size_scale: Numbers = (1.0,),
    outages: TableLike | None = None,
    slow: str | Mapping[str, float] | None = None,
    decode_s_per_byte: float = 0.0,
    client_bandwidth_bytes_per_s: float | None = None,
    requests: int = 200000,
    replications: int = 4,
    device: str = "auto",
    estimate: bool = True,
    earlier_bounds: bool = False,
    seed: int = 0,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts = (),
    planning: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Results:
    """Replay plans and dispatch policies, request by request, beside estimate and bound: ``ecjax replay``.

    Returns:
        A replay per run; ``latencies``, ``node_loads``, ...

    Raises:
        UserError: something in the options or tables is wrong; nothing is left behind.
    """
    return call_job("replay", locals())


@of_job
def schedule(
    trace: TableLike | Sequence[TableLike] | None = None,
    *,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = 0.1,
    plan: TableLike | None = None,
    plan_run: str | None = None,
    plan_where: str | None = None,
    files: TableLike | None = None,
    clients: int = 60,
    port_bytes_per_s: float | None = None,
    client_bytes_per_s: float | None = None,
    ports: TableLike | None = None,
    out: str | Path | None = None,
    scheduler: Texts = (
        "dtarget",
        "varys",
        "sincronia",
        "aalo",
        "baraat",
        "pfabric",
        "fair",
        "fifo",
        "equal_share",
        "local_search",
    ),
    sources: Texts = ("random", "smallest_load", "least_work_ahead"),
    seeds: int = 20,
    seed: int = 0,
    n: Wholes = (8,),
    k: Wholes = (4,),
    share_at_zero: Numbers = (0.0,),
    rate_scale: Numbers = (1.0,),
    size_scale: Numbers = (1.0,),
    widths: Wholes = (1, 2, 6, 10, 14, 21),
    lower_bound: bool = True,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts = (),
    generate: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Results:
    """Replay transfers on a fabric, coflow schedulers and source selection: ``ecjax schedule``.

    Returns:
        A replay per run; ``coflows``, ``coflow_widths``, ...

    Raises:
        UserError: something in the options or tables is wrong; nothing is left behind.
    """
    return call_job("schedule", locals())
