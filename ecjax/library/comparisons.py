"""Function of the job that compares codes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecjax.library.arguments import Numbers, TableLike, Texts, of_job
from ecjax.library.calling import call_job

if TYPE_CHECKING:
    from ecjax.library.results import Results


@of_job
def codes(
    codes: Texts = ("3x", "4+2", "6+3", "8+3", "8+4"),
    *,
    code_table: TableLike | None = None,
    durability_nines: float = 11.0,
    max_any_loss: float | None = None,
    domains: int | None = None,
    chunks_per_domain: int = 1,
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
    outages_per_year: float = 0.0,
    outage_hours: float = 1.0,
    bit_error_rate: float = 1e-15,
    storage_dollars_per_byte: float = 2e-12,
    latency: bool | None = None,
    nodes: TableLike | Mapping[str, Any] | None = None,
    files: TableLike | None = None,
    domain: str = "node",
    classes: Texts = (),
    hot_share: float = 0.8,
    size_bounds: Numbers = (1e6,),
    small_bytes: float = 65536.0,
    stripe_unit_bytes: float | None = None,
    small_reads: float = 0.0,
    slow: float = 5.0,
    repair_io_bytes: float = 4194304.0,
    service: str = "auto",
    gap: float = 0.01,
    max_p99_s: float | None = None,
    cluster: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts = (),
    quiet: bool = True,
) -> Results:
    """Compare codes in one cluster: ``ecjax codes``.

    Returns:
        One run; ``codes``, a row per candidate.

    Raises:
        UserError: something in the options is wrong; nothing is left behind.
    """
    return call_job("codes", locals())
