"""A plan of a problem under the arrivals of a log, or under rates that vary: what ``trace_estimate`` takes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ecjax import planning
from ecjax.predict.queues_left import Queues, fluid_queues
from ecjax.predict.read_samples import Groups
from ecjax.predict.trace_estimates import TraceEstimate, trace_estimate
from ecjax.predict.workload import workload_of
from ecjax.queueing.workload import Workload
from ecjax.simulation.laws import Laws
from ecjax.streams.arrivals import Factors
from ecjax.traffic.bins import MOST_NUMBERS, BinnedReads, bin_arrivals, bin_width
from ecjax.traffic.host_service import host_moments
from ecjax.traffic.node_work import Arrivals, Placed

MOST_FILES = 1000  # that have a figure of their own
MOST_RATES = (
    2**21
)  # of files and times between changes: an estimate, which cuts these times, takes some gigabytes


class Logged(NamedTuple):
    """Requests of a log in order of arrival, N of them."""

    times_s: np.ndarray  # (N,)
    file: np.ndarray  # (N,) int64
    write: np.ndarray | None = (
        None  # (N,) bool; None: all are reads, and writes come at the files' constant rates
    )
    tick_s: float = 0.0  # resolution of the clock, 0: continuous

    def faster(self, factor: float) -> "Logged":
        """The same requests in less time."""
        return self._replace(times_s=self.times_s / factor, tick_s=self.tick_s / factor)


class ServedPlan(NamedTuple):
    """A plan and what serves its reads: R placement rows, m nodes."""

    problem: planning.Problem  # scaled
    laws: Laws  # of the nodes
    probabilities: np.ndarray  # (R, m)
    stored: np.ndarray  # (R, m) bool, chunks that writes load

    def placed(self, writes: bool) -> tuple[Workload, Placed]:
        """What the nodes bear and where files are read.

        Args:
            writes: whether those of the problem come at their constant rates, as background work.
        """
        load = workload_of(self.problem, self.laws, self.stored)
        return load, placed_of(self.problem, load, self.probabilities, self.stored, writes)


def logged_estimate(plan: ServedPlan, logged: Logged, groups: Groups | None = None) -> TraceEstimate:
    """Latencies of reads of a plan under the arrivals of a log, first come, first served.

    Args:
        plan: whose rates of reads do not count.
        logged: requests of the problem's files, at least one read.
        groups: of files; None: all reads only.
    """
    load, placed = plan.placed(writes=logged.write is None)
    if logged.write is not None:
        load = replace(load, common_writes=None)  # those of the log count, not steady ones
    return trace_estimate(_binned(logged, placed), placed, load, groups)


def logged_queues(plan: ServedPlan, logged: Logged) -> Queues:
    """The queues of ``logged_estimate`` alone, where no latencies are asked for."""
    _, placed = plan.placed(writes=logged.write is None)
    return fluid_queues(_binned(logged, placed), placed)


def _binned(logged: Logged, placed: Placed) -> Arrivals:
    """The requests by bins of the width that an estimate takes."""
    files = len(placed.chunk_bytes)
    reads = logged.file if logged.write is None else logged.file[~logged.write]
    count = np.bincount(reads, minlength=files)
    service = host_moments(placed.service, placed.chunk_bytes)[0]
    mean = float(np.sum(count @ (placed.probabilities * service)) / np.sum(count @ placed.probabilities))
    length = float(logged.times_s[-1] - logged.times_s[0])
    width = estimate_width(length, mean, logged.tick_s)
    binned, writes = bins_of(logged, files, placed.probabilities.shape[1], width)
    return Arrivals(binned, writes if len(writes.reads) else None)


def bins_of(logged: Logged, files: int, nodes: int, width_s: float) -> tuple[BinnedReads, BinnedReads]:
    """Reads and writes by bins, by wider ones where numbers of all bins and nodes would fill the memory.

    Args:
        logged: requests.
        files: number of files.
        nodes: number of nodes.
        width_s: of the bins, which is doubled until they are few enough.
    """
    while True:
        reads, writes = bin_arrivals(
            logged.times_s, logged.file, files, width_s, logged.write, tick_s=logged.tick_s
        )
        if reads.bins * nodes <= MOST_NUMBERS:
            return reads, writes
        width_s *= 2


def estimate_width(length_s: float, service_mean_s: float, tick_s: float = 0.0) -> float:
    """Width of the bins of an estimate: a quarter of a service, s, so that short bursts within a service are seen.

    Args:
        length_s: of the log.
        service_mean_s: of a chunk.
        tick_s: resolution of the clock; 0: continuous.
    """
    return bin_width(length_s, service_mean_s / 4, tick_s)


def varying_estimate(
    plan: ServedPlan, factors: Factors, length_s: float, groups: Groups | None = None
) -> TraceEstimate:
    """Latencies of Poisson reads at the problem's rates, multiplied by factors that vary with time.

    Args:
        plan: with the rates.
        factors: of the rates.
        length_s: of the time that counts.
        groups: of files; None: all reads only.
    """
    load, placed = plan.placed(writes=True)
    return trace_estimate(_expected(plan.problem, factors, length_s), placed, load, groups)


def varying_queues(plan: ServedPlan, factors: Factors, length_s: float) -> Queues:
    """The queues of ``varying_estimate`` alone, where no latencies are asked for."""
    _, placed = plan.placed(writes=True)
    return fluid_queues(_expected(plan.problem, factors, length_s), placed)


def _expected(problem: planning.Problem, factors: Factors, length_s: float) -> Arrivals:
    return Arrivals(expected_reads(np.asarray(problem.files.rate), factors, length_s), certain=True)


def placed_of(
    problem: planning.Problem, load: Workload, probabilities: np.ndarray, stored: np.ndarray, writes: bool
) -> Placed:
    """Where files are read; with the writes at their constant rates as background work, or without."""
    background = np.asarray(problem.nodes.background)
    if writes:
        background = np.zeros_like(background) if load.background is None else np.asarray(load.background)
    row = slice(None) if problem.row is None else np.asarray(problem.row)
    return Placed(
        np.asarray(probabilities, float)[row],
        np.asarray(problem.files.chunk_bytes),
        load.work,
        np.asarray(stored, float)[row],
        background,
        np.asarray(problem.files.write_bytes),
    )


def time_of_reads(rate: np.ndarray, factors: Factors, reads: float) -> float:
    """When so many reads are expected to have come, s; infinite where reads end before.

    Args:
        rate: of files, (r,) 1/s.
        factors: of the rates.
        reads: expected, above 0.
    """
    last_change = max(0.0, float(np.max(factors.start, initial=0.0)))
    width, by_interval = interval_reads(rate, factors, last_change + 1)
    # the last interval goes on for ever
    come = np.concatenate([[0.0], np.cumsum(by_interval)])
    at = min(int(np.searchsorted(come, reads)), len(width)) - 1
    begin, speed = width[:at].sum(), by_interval[at] / width[at]
    return float(begin + (reads - come[at]) / speed) if speed > 0 else np.inf


def interval_reads(rate: np.ndarray, factors: Factors, length_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Lengths (s) of the T times between changes of factors, and expected reads of all files in each, (T,) both.

    Args:
        rate: of files, (r,) 1/s.
        factors: of the rates.
        length_s: of the time that counts.
    """
    parts = [(width, float(each.sum()) * width) for width, each in _varying(rate, factors, length_s)]
    width, reads = np.array(parts).T
    return width, reads


def file_reads(rate: np.ndarray, factors: Factors, length_s: float) -> np.ndarray:
    """Expected reads of each file, (r,) 1/s, over a time (s) in which factors change."""
    total = np.zeros(len(rate))
    for width, each in _varying(rate, factors, length_s):
        total += each * width
    return total


def expected_reads(rate: np.ndarray, factors: Factors, length_s: float) -> BinnedReads:
    """Expected reads of files, (r,) 1/s, between the times when factors change."""
    widths, files, reads = [], [], []
    for width, each in _varying(rate, factors, length_s):
        read = np.flatnonzero(each)
        widths.append(width)
        files.append(read)
        reads.append(each[read] * width)
    place = np.repeat(np.arange(len(widths)), [len(each) for each in files])
    return BinnedReads(np.array(widths), place, np.concatenate(files), np.concatenate(reads), len(rate))


def changes(factors: Factors, length_s: float) -> np.ndarray:
    """Begins and ends (s) of the times between changes, (T + 1,)."""
    inside = factors.start < length_s
    return np.unique(np.concatenate([[0.0], np.maximum(factors.start[inside], 0.0), [length_s]]))


def _varying(rate: np.ndarray, factors: Factors, length_s: float) -> Iterator[tuple[float, np.ndarray]]:
    """Length (s) of each time between changes, and the rates of files in it, (r,) 1/s."""
    edges = changes(factors, length_s)
    now, order, begun = np.ones(len(rate)), np.argsort(factors.start, kind="stable"), 0
    for begin, width in zip(edges[:-1], np.diff(edges), strict=True):
        while begun < len(order) and factors.start[order[begun]] <= begin:
            files = factors.files[order[begun]]
            now[slice(None) if files is None else files] = factors.factor[order[begun]]
            begun += 1
        yield float(width), rate * now


def most_read(count: np.ndarray) -> np.ndarray:
    """Files that have figures of their own: the most read, at most 1000."""
    order = np.argsort(-count, kind="stable")[:MOST_FILES]
    return np.sort(order[count[order] > 0])
