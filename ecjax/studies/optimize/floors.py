"""Floors of code lengths that follow from a durability: files with such floors, and rows of ``floors``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.durability.assessment import MOST_STATES, Failures, nines
from ecjax.durability.codes import MOST_CHUNKS
from ecjax.durability.floors import Floor, Target, floor_of, longest, mds
from ecjax.durability.repair_times import RepairCluster
from ecjax.errors import UserError
from ecjax.problem.arrays import code_k, column
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.durability import failures_of, repair_cluster, sensitivity, sites_of, unfit
from ecjax.tables.checks import check


class Judged(NamedTuple):
    """A floor of files with one k, and where it holds."""

    floor: Floor
    cluster: RepairCluster
    failures: Failures


def with_floors(options: OptimizeOptions, nodes: pa.Table, files: pa.Table) -> tuple[pa.Table, list[Judged]]:
    """Files whose ``min_extra_chunks`` keep the durability that options ask for, and the floor of each k.

    A larger number that the files have stays.

    Args:
        options: checked, with a durability.
        nodes: checked nodes table.
        files: checked files table, overrides applied.

    Raises:
        UserError: no code length keeps it, or the options do not describe the nodes.
    """
    site = sites_of(options, nodes)
    cluster, failures = repair_cluster(options, nodes.num_rows, site), failures_of(options)
    domains = nodes.num_rows if site is None else int(site.max()) + 1
    if cluster.domains != domains:
        raise UserError(
            f"domains: found {cluster.domains}; allowed: {domains}, the {options.domain}s of the nodes table, over "
            "which plans spread chunks"
        )
    limit = "max_chunks_per_node" if site is None else "max_chunks_per_site"
    together = getattr(options, limit) or 1
    if cluster.room is not None:
        cluster = cluster._replace(room=tuple(options.max_chunks_per_node * each for each in cluster.room))
    most = cluster.room_for(together)
    target = Target(options.durability_nines, options.max_any_loss)
    # as even as can be, and on as few domains as plans may use: neither always loses more
    spreads = [cluster] if together == 1 else [cluster, cluster._replace(packed=together)]
    k = code_k(files).astype(int)
    least = column(files, "min_extra_chunks").astype(int)
    judged: list[Judged] = []
    for each in np.unique(k).tolist():
        floor = floor_of(each, spreads, failures, target, most)
        fewest = mds(each, 1) if floor is None else floor.code
        reason = None
        if fewest.n <= MOST_CHUNKS:
            reason = unfit(fewest, cluster, failures, options, (limit, together))
        if floor is None or not floor.kept or reason is not None:
            reason = reason or _nearest(floor, each, spreads, most)
            raise UserError(f"{_wanted(options)}: found k={each}, {reason}")
        least[k == each] = np.maximum(least[k == each], floor.code.parity)
        judged.append(Judged(floor, cluster, failures))
    place = files.column_names.index("min_extra_chunks")
    return check(files.set_column(place, "min_extra_chunks", pa.array(least)), "files"), judged


def _wanted(options: OptimizeOptions) -> str:
    values = {name: getattr(options, name) for name in ("durability_nines", "max_any_loss")}
    return ", ".join(f"{name}={value:g}" for name, value in values.items() if value is not None)


def _nearest(floor: Floor | None, k: int, spreads: Sequence[RepairCluster], most: int) -> str:
    """Why no code length keeps what is asked for."""
    last = k + longest(k, spreads, most)
    if last >= MOST_CHUNKS:
        end, more = f"codes have at most {MOST_CHUNKS} chunks", ""
    elif last == most:
        end, more = f"there is room for {most} chunks", ", more nodes"
    else:
        end, more = f"groups of more than {last} chunks have more than {MOST_STATES} states of loss", ""
    if floor is None:
        why = (
            ""
            if last <= k
            else ": its repairs never catch up, or a domain holds more chunks than it survives"
        )
        return f"of which no code can be judged, where {end}{why}; allowed: a smaller k{more}"
    worth = floor.assessment
    return (
        f"which has {nines(worth.losses):.1f} nines and any loss {worth.any_loss_probability:.1e} a year at most, with "
        f"{floor.code.name}, where {end} and repairs run {worth.repair_share:.2g} of the time; allowed: a smaller k"
        f"{more}, fewer nines"
    )


def least_nines(judged: Sequence[Judged]) -> float | None:
    """Nines of the least durable floor; None where there is none."""
    return min((nines(each.floor.assessment.losses) for each in judged), default=None)


def floor_rows(run_id: str, judged: Sequence[Judged]) -> pa.Table:
    """Rows of the dataset ``floors``: one per k."""
    return pa.Table.from_pylist([{"run_id": run_id} | _row(each) for each in judged])


def _row(judged: Judged) -> dict[str, Any]:
    floor, worth = judged.floor, judged.floor.assessment
    fewer = None if floor.fewer is None else nines(floor.fewer.losses)
    return {
        "k": floor.code.k,
        "min_extra_chunks": floor.code.parity,
        "nines": nines(worth.losses),
        "nines_with_one_less": fewer,
        "any_loss_probability": worth.any_loss_probability,
        "domain_loss_share": worth.domain_share,
        "chunks_per_domain": worth.most_per_domain,
        "repair_s": worth.repair_s,
        "repair_load": worth.repair_load,
        "domain_repair_load": worth.domain_repair_load,
        "domain_count": judged.cluster.domains,
        "disk_count": judged.cluster.domains * judged.cluster.disks,
    } | sensitivity(floor.code, judged.cluster, judged.failures)
