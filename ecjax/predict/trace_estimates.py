"""Latencies of a plan under the arrivals of a log, without simulation: mean and quantiles of groups of reads.

Workloads come from the two-moment recursion (``ecjax.traffic``). Where queues are as under a constant load, latencies
have the exact laws of the nodes and the copula of ``ecjax.queueing.estimate``, so that a Poisson log has the estimate
of Poisson arrivals; elsewhere reads are sampled in time, and nodes are independent given the path of the workload.

Against replays of the same log: exponential services, loads of 0.05 to 0.8, four of 4 to 12 nodes, the mean is within
5 % and the 99 % point within 8 % on a block trace, bursts of 10 and 600 s, a diurnal curve and Poisson arrivals;
bursts of 0.1 s are within 8 and 12 %.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ecjax.predict.jackknife import BLOCKS, UNTOLD, chance, log_margins, without_each
from ecjax.predict.mixtures import LEVELS, Cells, group_laws, joined, law_means, statistics
from ecjax.predict.queues_left import Queues
from ecjax.predict.read_samples import FileKinds, Groups, Sample, alike, all_reads, file_kinds, sampled
from ecjax.predict.steady_laws import steady_laws
from ecjax.queueing.workload import Workload
from ecjax.traffic.bins import BinnedReads, regrouped
from ecjax.traffic.host_laws import HostReaders, host_laws, host_readers
from ecjax.traffic.host_service import host_longest, host_medians, host_moments
from ecjax.traffic.latency_laws import Seen, grid
from ecjax.traffic.node_work import Arrivals, Placed
from ecjax.traffic.paths import Paths, Pieces, paths

_OF_MARGINS = 2000  # reads in the sample that intervals come from
_MANY = 2**20  # pairs of bin and file, from which on files that count alike are one
_DEVIATIONS = 14.0  # of a connection delay above its mean: an exponential one exceeds them once in a million
_TWO_LOGS = 2**0.5  # noise of the difference of two logs, in that of one
_SECOND_LOG = 1.96 * _TWO_LOGS  # standard errors within which a figure of a second log is in 95 %


class TraceEstimate(NamedTuple):
    """Latencies in s of all reads, then classes, then files: G groups; nan where nothing is read."""

    mean: np.ndarray  # (G,)
    quantiles: np.ndarray  # (G, 4) of ``LEVELS``
    log_margins: np.ndarray  # (5,) of all reads, see ``interval``
    least: np.ndarray  # (5,) mean and quantiles if nobody waited, at the lower end of 95 % by chance
    wait_s: float  # mean of chunks
    service_s: float  # mean of the chunks read
    work_s: float  # mean of the same: of nodes with several channels a part of the service
    load: np.ndarray  # (m,) of the whole log
    end_s: np.ndarray  # (m,) workload that is left after the last bin
    branch: str  # raw or denoised
    dispersion: float  # I within blocks of constant rate
    bin_s: float = 0.0  # width of the bins that have arrivals

    def interval(self, place: int) -> tuple[float, float]:
        """Where another log of this kind and length has the mean (0) or a quantile (1 to 4) of all reads, s.

        A 95 % interval, whose logarithm reaches ``log_margins`` to either side; nan where rates are known, without an
        upper end where all reads come in one tenth of their time, or it would be above 100 times the value: a log with
        one burst that counts tells nothing of others.

        Args:
            place: of the figure.
        """
        value = self.mean[0] if place == 0 else self.quantiles[0, place - 1]
        margin = self.log_margins[place]
        factor = np.inf if margin > np.log(UNTOLD) else np.exp(margin)
        return float(np.maximum(value / factor, min(self.least[place], value))), float(value * factor)

    @property
    def queues(self) -> Queues:
        """The queues of the nodes."""
        return Queues(self.wait_s, self.work_s, self.load, self.end_s)


class _Laws(NamedTuple):
    """What laws of sampled reads are taken from."""

    points: np.ndarray
    of: HostReaders
    kinds: FileKinds

    def cells(self, pieces: Pieces, sample: Sample, groups: int) -> Cells:
        """Laws of what a sample meets, and the reads of so many groups that they stand for."""
        reads, kinds = pieces.reads, len(self.kinds.first)
        key = reads.bin[sample.entry] * kinds + self.kinds.of_file[reads.file[sample.entry]]
        used, place = np.unique(key, return_inverse=True)
        bins = used // kinds
        seen = Seen(pieces.mean[bins], pieces.variance[bins], pieces.busy[bins])
        laws = host_laws(self.points, seen, used % kinds, self.of)
        weights = csr_matrix((sample.weight, (sample.group, place)), shape=(groups, len(used)))
        return Cells(laws, law_means(self.points, laws), weights)

    def least(self, reads: BinnedReads) -> np.ndarray:
        """Mean and quantiles of all reads if none met any work, at the lower end of what chance makes of them, (5,)."""
        kinds = np.arange(len(self.kinds.first))
        nothing: Any = np.zeros((len(kinds), self.of.mean.shape[1]))
        laws = host_laws(self.points, Seen(nothing, nothing, nothing), kinds, self.of)
        weights = np.bincount(self.kinds.of_file[reads.file], reads.reads, len(kinds))
        cells = Cells(laws, law_means(self.points, laws), csr_matrix(weights[None]))
        mean, quantiles = statistics(self.points, cells)
        variance = chance(self.points, group_laws(cells)[0], np.asarray(LEVELS), reads.reads.sum())
        return np.append(mean, quantiles[0]) * np.exp(-_SECOND_LOG * np.sqrt(variance))


def trace_estimate(
    arrivals: Arrivals,
    placed: Placed,
    workload: Workload,
    groups: Groups | None = None,
    services_of_log: bool = False,
) -> TraceEstimate:
    """Estimate the latencies of reads of r files.

    Args:
        arrivals: of the files, by bins.
        placed: where their chunks are; nodes serve first come, first served.
        workload: chunk sizes, service and connection delays; its rates and its background do not count.
        groups: of files; None: all reads only.
        services_of_log: whether the services are those of the same log, known as well as its reads tell them.

    Raises:
        ValueError: nothing is read.
    """
    if not len(arrivals.reads.reads):
        raise ValueError("no reads, so there is no latency")
    groups = groups or all_reads()
    kinds = file_kinds(placed.probabilities, placed.chunk_bytes)
    arrivals = _of_few_files(arrivals, placed, kinds, groups)
    way = paths(arrivals, placed)
    pieces = way.chosen
    marginals, size = placed.probabilities[kinds.first], placed.chunk_bytes[kinds.first]
    service = host_moments(workload.service, size)[0]
    times_read = np.bincount(kinds.of_file[arrivals.reads.file], arrivals.reads.reads, len(size))
    chunks = times_read[:, None] * marginals
    longest = max(float(np.max(each.mean)) for each in (pieces, way.raw)) + float(service.max())
    used = marginals > 0
    rarest = host_longest(workload.service, size)[used].max()
    points = grid(
        float(service[used].min()),
        longest,
        float(rarest) + _longest_connection(workload),
        _shortest_median(workload, size, used),
    )
    sizes = np.asarray(workload.sizes)
    channels = None if workload.channels is None else np.asarray(workload.channels)
    of = host_readers(points, marginals, size, sizes, workload.service, workload.connect, channels)
    laws = _Laws(points, of, kinds)
    sample = sampled(pieces.reads, ~pieces.steady[pieces.reads.bin], groups)
    cells = [laws.cells(pieces, sample, groups.total)]
    if pieces.steady[pieces.reads.bin].any():
        cells.append(steady_laws(pieces, placed, workload, kinds, groups, points))
    every = joined(cells)
    mean, quantiles = statistics(points, every)
    return TraceEstimate(
        mean,
        quantiles,
        np.full(1 + len(LEVELS), np.nan)
        if arrivals.certain
        else _margins(way, _tenths(arrivals.reads), laws, group_laws(every)[0], services_of_log),
        laws.least(pieces.reads),
        pieces.wait_s,
        float(np.sum(chunks * service) / np.sum(chunks)),
        way.at.work_s,
        way.at.load,
        pieces.end,
        way.branch,
        way.dispersion,
        float(arrivals.reads.width_s.min()),
    )


def _of_few_files(arrivals: Arrivals, placed: Placed, kinds: FileKinds, groups: Groups) -> Arrivals:
    """The same; many reads and writes with those of files that count alike as of one file, so that pairs are fewer."""
    reads, writes = arrivals.reads, arrivals.writes
    if len(reads.reads) + (0 if writes is None else len(writes.reads)) <= _MANY:
        return arrivals
    reads = regrouped(reads, reads.bin, alike(kinds, groups)[reads.file], reads.width_s)
    if writes is not None:
        by_writes = file_kinds(placed.stored, placed.written[0])
        writes = regrouped(
            writes, writes.bin, by_writes.first[by_writes.of_file[writes.file]], writes.width_s
        )
    return arrivals._replace(reads=reads, writes=writes)


def _shortest_median(workload: Workload, chunk_bytes: np.ndarray, used: np.ndarray) -> float:
    """Least of the medians of services without stalls that are above 0, s; infinite where there is none.

    Args:
        workload: services.
        chunk_bytes: of the kinds, (K,).
        used: nodes that each of them reads, (K, m) bool.
    """
    medians = host_medians(workload.service, chunk_bytes)[used]
    return float(medians[medians > 0].min(initial=np.inf))


def _longest_connection(workload: Workload) -> float:
    """A time that hardly any connection delay exceeds, s."""
    if workload.connect is None:
        return 0.0
    mean, variance = np.asarray(workload.connect.mean), np.asarray(workload.connect.variance)
    return float(np.max(mean + _DEVIATIONS * np.sqrt(variance)))


def _margins(
    way: Paths, tenths: np.ndarray, laws: _Laws, law: np.ndarray, services_of_log: bool
) -> np.ndarray:
    """Of mean and quantiles of all reads, by leaving out tenths of the time of reads; from the counts as they are.

    Arrivals of two logs differ by the noise of both. Services add the chance of another log's, and that of this one
    where they were learned from it: what a read meets tells as much as its node does in a relaxation time. Infinite
    where the reads of one tenth are all there are.
    """
    raw = way.raw
    sample = sampled(raw.reads, np.ones(len(raw.reads.bin), bool), all_reads(), _OF_MARGINS)
    # pieces of a bin were not seen apart
    tenth = np.repeat(tenths, raw.reads.bins // len(tenths))[raw.reads.bin[sample.entry]]
    if np.all(tenth == tenth[0]):
        return np.full(1 + len(LEVELS), np.inf)
    cells = laws.cells(raw, sample._replace(group=tenth), BLOCKS)
    # tenths without reads leave nothing out
    rest = cells._replace(weights=csr_matrix(without_each(cells.weights.toarray())))
    mean, quantiles = statistics(laws.points, rest)
    begin, end = _time_of(raw.reads)
    chunks = way.at.chunks
    alike = 1 + 2 * float(np.average(chunks / (end - begin) * way.at.relaxation_s, weights=chunks))
    of_services = chance(laws.points, law, np.asarray(LEVELS), raw.reads.reads.sum() / alike)
    return _TWO_LOGS * log_margins(
        np.column_stack([mean, quantiles]), of_services if services_of_log else of_services / 2
    )


def _tenths(reads: BinnedReads) -> np.ndarray:
    """Of the time from the first bin with reads to the last one: the tenth that each bin is in, (B,)."""
    first, last = _time_of(reads)
    middle = np.cumsum(reads.width_s) - reads.width_s / 2
    place = (middle - first) / (last - first) * BLOCKS
    return np.clip(place.astype(np.int64), 0, BLOCKS - 1)


def _time_of(reads: BinnedReads) -> tuple[float, float]:
    """Begin of the first bin with reads and end of the last one, s."""
    end = np.cumsum(reads.width_s)
    first, last = reads.bin[0], reads.bin[-1]
    return float(end[first] - reads.width_s[first]), float(end[last])
