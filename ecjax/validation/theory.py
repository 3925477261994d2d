"""Bound and estimate of latencies from what the first part of a log shows: rates, dispatch shares, service moments."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ecjax.predict.workload import ESTIMATE, TAIL_BOUND, node_laws
from ecjax.programs import program
from ecjax.queueing import Delay, latency_bound, waiting
from ecjax.queueing.estimate import Estimate
from ecjax.queueing.tail import TailBound
from ecjax.queueing.workload import Workload
from ecjax.simulation import law_fit
from ecjax.simulation.laws import Laws
from ecjax.validation.relations import size_classes

LEAST_READS = 30  # of a file, for dispatch shares of its own
_MOST_FILES = 1000
_BOUND = program(latency_bound)


@dataclass(frozen=True)
class Reads:
    """Requests that read, n of them, and their accesses, a of them.

    Attributes:
        file: (n,) int64, below r.
        group: (n,) int64, class, below C.
        request: (a,) int64, request of each access.
        node: (a,) int64, below m.
        bytes: (a,) B.
    """

    file: np.ndarray
    group: np.ndarray
    request: np.ndarray
    node: np.ndarray
    bytes: np.ndarray


@dataclass(frozen=True)
class Dispatch:
    """How files are read, R rows: each of one number and size of chunks; files read rarely share rows by class.

    Attributes:
        probabilities: (R, m) share of the reads that use each node.
        rates: (R,) 1/s.
        need: (R,) int64, chunks that a read takes.
        powers: (R, 4) mean of B^p over the chunks read, p = 0, ..., 3.
        file: (R,) int64, file of the row; -1 for a row of a class.
        group: (R,) int64, class.
        of_read: (n,) int64, row of each read.
    """

    probabilities: np.ndarray
    rates: np.ndarray
    need: np.ndarray
    powers: np.ndarray
    file: np.ndarray
    group: np.ndarray
    of_read: np.ndarray


def files_with_shares(file: np.ndarray, count: int) -> np.ndarray:
    """Files that are read often enough for shares of their own, most read first; at most 1000."""
    reads = np.bincount(file, minlength=count)
    order = np.argsort(-reads, kind="stable")[:_MOST_FILES]
    return order[reads[order] >= LEAST_READS]


def dispatch(reads: Reads, span_s: float, nodes: int, files: int) -> Dispatch | None:
    """Rates and shares as counted; None where a request reads a node twice, which shares cannot say.

    Args:
        reads: requests of the first part.
        span_s: s, its length, above 0.
        nodes: m.
        files: r.
    """
    keys = np.sort(reads.request * nodes + reads.node)
    if np.any(keys[1:] == keys[:-1]):
        return None
    need = np.bincount(reads.request, minlength=len(reads.file))
    row_of = np.full(files, -1)  # the file itself where it has shares of its own
    own_files = files_with_shares(reads.file, files)
    row_of[own_files] = own_files
    base = np.where(row_of[reads.file] >= 0, reads.file, files + reads.group)
    # shares are of a file, or a class, and a number of chunks; rows of a chunk size, too
    _, drawn = np.unique(base * (need.max() + 1) + need, return_inverse=True)
    size = _rounded(np.bincount(reads.request, reads.bytes) / need)
    of_size = size_classes(size)
    _, first, row = np.unique(drawn * (of_size.max() + 1) + of_size, return_index=True, return_inverse=True)
    sets, rows, of_access = int(drawn.max()) + 1, len(first), row[reads.request]
    counts = np.bincount(drawn[reads.request] * nodes + reads.node, minlength=sets * nodes)
    shares = counts.reshape(sets, nodes) / np.bincount(drawn)[:, None]
    chunks = np.bincount(of_access)
    powers = np.stack([np.bincount(of_access, reads.bytes**p, rows) / chunks for p in range(4)], axis=1)
    return Dispatch(
        probabilities=shares[drawn[first]],
        rates=np.bincount(row) / span_s,
        need=need[first],
        powers=powers,
        file=row_of[reads.file[first]],
        group=reads.group[first],
        of_read=row,
    )


def _rounded(sizes: np.ndarray) -> np.ndarray:
    """To 12 digits, so that means of equal sizes are equal."""
    unit = 10.0 ** (np.floor(np.log10(np.maximum(sizes, 1e-300))) - 11)
    return np.rint(sizes / unit) * unit


def work_sums(laws: Laws, law: np.ndarray, sizes: np.ndarray, span_s: float, nodes: int) -> np.ndarray:
    """Sums of lambda m_n over accesses (a,), n = 1, 2, 3, at each node: (3, m); entry l of the laws is at l mod m."""
    count = len(laws.table)
    moments = law_fit.polynomials(laws, count)  # (3, 4, l)
    powers = np.stack([np.bincount(law, sizes**p, count) for p in range(4)])
    by_law = (moments * powers).sum(axis=1) / span_s
    return by_law.reshape(3, -1, nodes).sum(axis=1)


def node_delays(laws: Laws, powers: np.ndarray, sums: np.ndarray) -> Delay:
    """Sojourn times at the nodes of chunks of mixed sizes.

    Args:
        laws: entry j is node j's.
        powers: (R, 4) means of B^p, p = 0, ..., 3.
        sums: (3, m) of lambda m_n of all work.

    Returns:
        Delay (R, m); infinite where the load is 1 or more.
    """
    moments = law_fit.polynomials(laws, sums.shape[1])
    first, second = (np.einsum("rp,pm->rm", powers, moments[n]) for n in (0, 1))
    wait = waiting(*sums)
    service = Delay(jnp.asarray(first), jnp.asarray(np.maximum(second - first**2, 0.0)))
    return service.plus(wait.mean[None, :], wait.variance[None, :])


def bounds(rows: Dispatch, laws: Laws, sums: np.ndarray) -> np.ndarray:
    """Bound on the mean latency of each row, s, (R,)."""
    return np.asarray(_BOUND(jnp.asarray(rows.probabilities), node_delays(laws, rows.powers, sums)))


def workload(rows: Dispatch, laws: Laws, others: np.ndarray) -> Workload:
    """What estimates are made of.

    Args:
        rows: reads.
        laws: entry j is node j's.
        others: (3, m) sums of lambda m_n of other work than reads.

    Raises:
        UserError: a chunk takes no time at all.
    """
    return Workload.of(
        rows.rates,
        _rounded(rows.powers[:, 1]),
        rows.need,
        node_laws(laws, others.shape[1]),
        background=others,
    )


def estimates(rows: Dispatch, load: Workload, classes: int) -> tuple[Estimate, TailBound]:
    """Estimated latency of each row (file), of each class (group) and of all reads, and bounds on its quantiles.

    Args:
        rows: reads.
        load: of these rows.
        classes: number of classes C.

    Raises:
        UserError: there is no estimate.
    """
    shares, group = jnp.asarray(rows.probabilities), jnp.asarray(rows.group)
    grouped: dict[str, Any] = {"groups": group, "group_count": classes}
    return ESTIMATE(shares, load, **grouped), TAIL_BOUND(shares, load, **grouped)
