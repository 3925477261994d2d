"""What is read, where from, and the problem that it is."""

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.durability.repair_times import RepairCluster
from ecjax.planning import Problem
from ecjax.planning.problem import prepare
from ecjax.planning.read_kinds.sizes import few_sizes, powers_of
from ecjax.problem.arrays import column, files_arrays, placement_rows
from ecjax.problem.service_laws import mean_chunk_bytes, served_nodes
from ecjax.problem.small_reads import chunks_of_reads
from ecjax.studies.codes.layouts import Classes, Layout


class SmallRates(NamedTuple):
    """Reads of a part of each of r files, which begin in any of its data chunks alike.

    Attributes:
        size: (r,) B
        rate: (r,) 1/s
        stripe_unit_bytes: of a file, that lie in one data chunk before the next has its share; None: the whole chunk
    """

    size: np.ndarray
    rate: np.ndarray
    stripe_unit_bytes: float | None


class ChunkRates(NamedTuple):
    """The same in the codes of the files.

    Attributes:
        size: (r,) B, of a chunk of such a read
        sizes: (S,) B, a few that stand for these where waits are estimated
        of: (r,) which of the few
        rate: (r,) 1/s
        width: (r,) data chunks of a read
    """

    size: np.ndarray
    sizes: np.ndarray
    of: np.ndarray
    rate: np.ndarray
    width: np.ndarray


class Traffic(NamedTuple):
    """What is read, and where from.

    Attributes:
        nodes: checked table
        files: checked table, whose k is not used
        site: (m,) failure domain of each node, from 0; None: each node is one
        per_site: most chunks of a file in a domain
        small: reads of parts of the files
        slow: service times of the slow node as a multiple
        repair_io_bytes: of one read or write of a repair
        service: family of the service laws
        gap: of a plan that is good enough
        classes: of the files, where codes are chosen for each
    """

    nodes: pa.Table
    files: pa.Table
    site: np.ndarray | None
    per_site: int
    small: SmallRates
    slow: float
    repair_io_bytes: float
    service: str
    gap: float
    classes: Classes | None = None


def problem_of(layout: Layout, traffic: Traffic) -> Problem:
    """The problem of all files in their codes."""
    table = traffic.files
    files = files_arrays(table.set_column(table.column_names.index("k"), "k", pa.array(layout.k)))
    rows = placement_rows(table)
    nodes = served_nodes(traffic.nodes, mean_chunk_bytes(files), traffic.service)
    problem = prepare(nodes, files, rows.of_file, rows.count)
    if traffic.site is None:
        return problem
    return replace(problem, site=jnp.asarray(traffic.site, jnp.int32), per_site=most_at_site(layout, traffic))


def most_at_site(layout: Layout, traffic: Traffic) -> int | None:
    """Chunks of a file at a site when they are spread as evenly as nodes allow; None where they do not fit."""
    if traffic.site is None:
        return 1 if layout.longest <= len(traffic.nodes) else None
    nodes = np.bincount(traffic.site)
    return next(
        (most for most in range(1, traffic.per_site + 1) if np.minimum(nodes, most).sum() >= layout.longest),
        None,
    )


def repair_work(problem: Problem, layout: Layout, traffic: Traffic, cluster: RepairCluster) -> np.ndarray:
    """Load, A_2, A_3 of every node while a disk is repaired, (3, m): that of each of its disks."""
    disks = cluster.disks * (cluster.domains - 1)
    return moments(
        problem, layout.repair_bytes_per_s(cluster) / disks / traffic.repair_io_bytes, traffic.repair_io_bytes
    )


def moments(problem: Problem, rate: float | np.ndarray, size: float) -> np.ndarray:
    """Rate m_1, rate m_2, rate m_3 of the work that comes to each node, (3, m)."""
    return rate * np.einsum("npm,p->nm", np.asarray(problem.nodes.work), size ** np.arange(4.0))


def work_of_small(problem: Problem, small: ChunkRates, chunks: np.ndarray) -> np.ndarray:
    """``moments`` of chunks of small reads, by the sizes of each file: chunks (r,) or (r, m) 1/s."""
    sums = powers_of(small.size).T @ chunks.reshape(len(chunks), -1)
    return np.sum(np.asarray(problem.nodes.work) * sums[None], axis=1)


def small_reads(layout: Layout, traffic: Traffic) -> ChunkRates:
    """Small reads of the files in their codes."""
    small = traffic.small
    width, size = chunks_of_reads(
        small.size, column(traffic.files, "bytes"), layout.k, small.stripe_unit_bytes
    )
    return ChunkRates(size, *few_sizes(size, small.rate * width), small.rate, width)


def spread_evenly(problem: Problem, small: ChunkRates) -> np.ndarray:
    """Small reads as other work, as many at every node: what a plan for full reads knows of them."""
    return work_of_small(problem, small, small.rate * small.width / problem.nodes.count)


def beside(problem: Problem, work: np.ndarray) -> Problem:
    """The problem with more work beside its reads, (3, m)."""
    return replace(
        problem, nodes=replace(problem.nodes, background=problem.nodes.background + jnp.asarray(work))
    )
