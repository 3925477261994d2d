"""Function of the job that plans a real Ceph cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecjax.library.arguments import Texts, of_job
from ecjax.library.calling import call_job

if TYPE_CHECKING:
    from ecjax.library.results import Results


@of_job
def ceph(
    dumps: str | Path | None = None,
    *,
    rates: str = "measured",
    pools: Texts | None = None,
    roles_only: bool = True,
    within: float | tuple[float, ...] = (0.01,),
    load: str = "reads",
    objective: str = "load",
    speeds: Mapping[str, float] | None = None,
    primary_work: float = 0.0,
    count_tolerance: int = 1,
    service_s: float | None = None,
    service_cv: float = 1.0,
    max_misplaced: float = 0.05,
    max_bytes: float | None = None,
    what_if: Texts = (),
    out: str | Path | None = None,
    engine: str | Mapping[str, Any] = "serial",
    resume: bool = True,
    write: Texts | None = None,
    figures: Texts = (),
    quiet: bool = True,
) -> Results:
    """Plan which shards of a Ceph cluster are read: ``ecjax ceph``.

    Returns:
        One run for every ``within``; ``plan`` (group, position, osd, before), ``commands``, ``batches``, ``osds``.
        Plans only: dumps are collected, and plans applied and verified, by the command.

    Raises:
        UserError: something in the options or dumps is wrong; nothing is left behind.
    """
    return call_job("ceph", locals())
