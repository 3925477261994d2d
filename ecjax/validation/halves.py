"""A log cut into two halves of as many requests: what the first teaches, and what the second is held against."""

import numpy as np
import pyarrow as pa

from ecjax.progress import detail
from ecjax.simulation.laws import Laws
from ecjax.tables.requests import Accesses, TraceRequests
from ecjax.tables.statistics.service import ServiceInference
from ecjax.units import count_text
from ecjax.validation import theory
from ecjax.validation.latencies import Groups, Statistics, observed, replayed
from ecjax.validation.replay import Counter, drawn_finishes
from ecjax.validation.theory import Reads

_CHANGED = 0.1  # relative change of the rate between the halves that is worth a sentence


class Halves:
    """The log cut in two, and the reads of the second half that latencies are reported of.

    n requests, a accesses, m nodes, r files.

    Attributes:
        half: requests of the first half.
        cut: accesses of the first half.
        nodes, files: m and r.
        request: (a,) int64, request of each access.
        of_request: (n,) int64, class of each request.
        reported: (F,) int64, files that latencies are reported of one by one.
        groups: what latencies are reported of.
        late: the accesses of the second half.
        counted: (n - half,) bool, its reads that have all their finish times.
        law: (a,) int64, entry of the laws of each access: m laws of reads, then m of writes.
    """

    def __init__(self, log: TraceRequests, accesses: Accesses, classes: list[str] | None) -> None:
        assert accesses.finish is not None
        self.log, self.accesses = log, accesses
        self.half = log.count // 2
        self.cut = int(accesses.begin[self.half])
        self.nodes, self.files = len(accesses.node_ids), len(log.file_ids)
        self.request = accesses.request
        self.law = accesses.node + self.nodes * log.write[self.request]
        if classes is None:
            chunks = np.diff(accesses.begin)
            labels, of_request = np.unique(chunks, return_inverse=True)
            names = [f"k={chunks}" for chunks in labels]
        else:
            labels, of_request = np.unique(classes, return_inverse=True)
            names, of_request = labels.tolist(), of_request[log.file]
        self.of_request = of_request.astype(np.int64)
        early = log.file[: self.half][~log.write[: self.half]]
        self.reported = np.sort(theory.files_with_shares(early, self.files))
        self.groups = Groups(names, log.file_ids.take(pa.array(self.reported)), accesses.node_ids)
        # the second half
        self.begin = accesses.begin[self.half :] - self.cut
        self.late = slice(self.cut, None)
        finished = np.logical_and.reduceat(~np.isnan(accesses.finish[self.late]), self.begin[:-1])
        reads = ~log.write[self.half :]
        self.unfinished = int(np.count_nonzero(reads & ~finished))
        self.counted = reads & finished

    @property
    def span_s(self) -> tuple[float, float]:
        """Length of each half: from its first arrival to the first after it, of the last to the last arrival."""
        arrival = self.log.arrival
        middle = float(arrival[self.half])
        return middle - float(arrival[0]), float(arrival[-1]) - middle

    def by_group(self, finish: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Latencies of the requests of the second half and sojourn times of their chunks, with the group of each."""
        latency = np.maximum.reduceat(finish, self.begin[:-1]) - self.log.arrival[self.half :]
        sojourn = finish - self.accesses.arrival[self.late]
        of_class, of_file, of_node, _ = self.groups.first
        place = np.full(self.files, -1)
        place[self.reported] = of_file + np.arange(len(self.reported))
        chunk = self.counted[self.request[self.late] - self.half]
        groups = [
            np.where(self.counted, 0, -1),
            np.where(self.counted, of_class + self.of_request[self.half :], -1),
            np.where(self.counted, place[self.log.file[self.half :]], -1),
            np.where(chunk, of_node + self.accesses.node[self.late], -1),
        ]
        return [latency, latency, latency, sojourn], groups

    def observed(self) -> tuple[Statistics, np.ndarray]:
        """Statistics of the second half as the log has it, and histograms (G, BINS)."""
        assert self.accesses.finish is not None
        values, group = self.by_group(self.accesses.finish[self.late])
        _, file, node, count = self.groups.first
        batched = np.ones(count, bool)
        batched[file:node] = False
        counter = Counter(count, 1)
        for times, places in zip(values, group, strict=True):
            counter.add(0, times, places)
        return observed(values, group, count, batched), counter.counted.bins

    def replayed(self, laws: Laws, seed: int, replications: int) -> tuple[Statistics, np.ndarray]:
        """Statistics of replays of the second half, and histograms (G, BINS) of all of them."""
        accesses, late = self.accesses, self.late
        law = self.law[late]
        counter = Counter(self.groups.first[3], replications)
        for replication in range(replications):
            detail(f"replication {replication + 1} of {replications}")
            finish = drawn_finishes(
                laws,
                law,
                accesses.arrival[late],
                accesses.node[late],
                accesses.bytes[late],
                self.free(),
                seed + replication,
            )
            for values, group in zip(*self.by_group(finish), strict=True):
                counter.add(replication, values, group)
        return replayed(counter.counted), counter.counted.bins

    def free(self) -> np.ndarray:
        """When each node has served what arrived in the first half, (m,) s; -inf where nothing did."""
        assert self.accesses.finish is not None
        free = np.full(self.nodes, -np.inf)
        finish = self.accesses.finish[: self.cut]
        finished = ~np.isnan(finish)
        np.maximum.at(free, self.accesses.node[: self.cut][finished], finish[finished])
        return free

    def reads(self) -> Reads:
        """Reads of the first half."""
        mask = ~self.log.write[: self.half]
        number = np.cumsum(mask) - 1
        request = self.request[: self.cut]
        access = mask[request]
        return Reads(
            self.log.file[: self.half][mask],
            self.of_request[: self.half][mask],
            number[request[access]],
            self.accesses.node[: self.cut][access],
            self.accesses.bytes[: self.cut][access],
        )

    def notices(self) -> list[str]:
        """What the halves themselves show."""
        sentences = []
        if self.log.returned:
            sentences.append(
                f"{count_text(self.log.returned, 'request has', 'requests have')} rows that do not follow each other; "
                "the parts count as requests "
                "of their own."
            )
        if self.unfinished:
            sentences.append(
                f"{count_text(self.unfinished, 'read')} of the second half with chunks without a finish time: not "
                "counted."
            )
        change = change_of_rate(self.log.arrival, self.half)
        if abs(change) > _CHANGED:
            sentences.append(
                f"Requests come {100 * abs(change):.0f} % {'more' if change > 0 else 'less'} often in the second half: "
                "estimate and bound are of the first half's rates, the replay is not."
            )
        return sentences


def change_of_rate(arrival: np.ndarray, half: int) -> float:
    """Relative change of the rate from the first requests of a log to the others; 0 where it may be chance.

    Two standard errors of Poisson arrivals count as chance.

    Args:
        arrival: (n,) s, in order.
        half: number of the first request of the second half.
    """
    before, after = float(arrival[half] - arrival[0]), float(arrival[-1] - arrival[half])
    later = len(arrival) - half - 1  # gaps between requests, of which the first half has one for each
    if not (half and later and before > 0 and after > 0):
        return 0.0
    ratio = before * later / (after * half)
    return ratio - 1 if abs(np.log(ratio)) > 2 * np.sqrt(1 / half + 1 / later) else 0.0


def service_times(accesses: Accesses, cut: int) -> np.ndarray | str:
    """Service times of the first ``cut`` accesses (NaN where not known), or why there are none."""
    assert accesses.finish is not None
    finish = accesses.finish[:cut]
    if accesses.start is not None:
        service = finish - accesses.start[:cut]
    else:
        inference = ServiceInference()
        service = inference.add(accesses.node[:cut], accesses.arrival[:cut], finish, len(accesses.node_ids))
        if inference.reason is not None:
            return inference.reason
    if np.isnan(service).all():
        return "no access of the first half has start_s and finish_s"
    return service
