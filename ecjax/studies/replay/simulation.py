"""Independent replications of a replay."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ecjax.cores import available_cores
from ecjax.engine.memory import usable_bytes
from ecjax.predict.logged import time_of_reads
from ecjax.simulation import tally
from ecjax.simulation.run import Outcome, Policy, first_come_first_served, replay
from ecjax.streams import arrivals
from ecjax.streams.arrivals import Block
from ecjax.studies.replay.inputs import Case
from ecjax.studies.replay.operating_point import OperatingPoint, Point, at_mean_rates, operating_point
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.predictions import mean_bound
from ecjax.studies.replay.system import Arriving, arriving

# chunk accesses per second of a core; requests x nodes per second of a GPU, and what it takes to compile for it
_HOST_PER_S, _DEVICE_PER_S, _COMPILING_S = 1.4e7, 5e8, 5.0
_FASTER = 2.0  # times: less is not worth another place to compute
_REQUEST_BYTES = 100  # of a lane, for each request: times, files, latencies, and copies of these
_MOST_FILE_BINS = 5_000  # files whose quantiles are kept: 20 kB each and replication


@dataclass(frozen=True)
class Simulation:
    """What all replications of a replay have in common.

    Attributes:
        case: arrivals and outages.
        at: queues and classes.
        arriving: what arrives where.
        policy: how the nodes of a read are chosen.
        rate_scale: divides the times of a log's reads.
        requests: reads per replication where they are drawn.
    """

    case: Case
    at: OperatingPoint
    arriving: Arriving
    policy: Policy
    rate_scale: float
    requests: int

    def replication(self, seed: int, advance: Callable[[float], None]) -> Outcome:
        """One replication; ``advance`` is called with the parts of it that are done."""
        blocks, number = self._arrivals(seed)

        def report(requests: int) -> None:
            advance(requests / number)

        counts = tally.empty(number, self._classes, self.arriving.system.nodes, *self._of_files)
        return replay(
            *(self.arriving.system, blocks, counts, seed, self.policy, self.at.queue, self.case.outages),
            *(report, self.at.channels),
        )

    def replications_on_device(self, seeds: Sequence[int], pool: Executor) -> list[Outcome]:
        """Replications by JAX, all of them together; arrivals are drawn by a pool of threads."""
        from ecjax.simulation.scan import tallies_fcfs  # JAX's programs

        arrivals_of = list(pool.map(self._drawn, seeds))
        if not all(len(times) for times, _ in arrivals_of):
            return [self.replication(seed, lambda _: None) for seed in seeds]  # rates of 0: nothing arrives
        width = max(self._arrivals(seeds[0])[1], *(len(times) for times, _ in arrivals_of))
        times, files = (
            np.stack([np.pad(each[part], (0, width - len(each[part])), mode="edge") for each in arrivals_of])
            for part in (0, 1)
        )
        of_files, file_bins = self._of_files
        counts = [len(each) for each, _ in arrivals_of]
        tallies = tallies_fcfs(
            *(self.arriving.system, times, files, seeds, self._classes, None),
            *(counts, of_files, file_bins),
        )
        spans = [float(each[-1]) for each, _ in arrivals_of]
        return [
            Outcome(*each, complete=True, hedged_share=0.0)
            for each in zip(tallies, spans, counts, strict=True)
        ]

    def lanes_on_device(self, device: str, replications: int) -> int:
        """How many replications JAX's device takes at once; 0 where processors replay them.

        Args:
            device: auto, host or jax; what it cannot replay it does not.
            replications: that are wanted.
        """
        if device == "host" or not first_come_first_served(
            self.policy, self.at.queue, self.case.outages, self.at.channels
        ):
            return 0
        import jax

        system, (_, number) = self.arriving.system, self._arrivals(0)
        first = jax.devices()[0]
        bins = len(tally.SEGMENTS) * (self._classes + system.nodes) * tally.BINS * 4
        lanes = min(replications, int(usable_bytes() // (_REQUEST_BYTES * number + 2 * bins)))
        if device == "auto":
            if first.platform == "cpu":
                return 0
            accesses = number * float(np.average(system.need, weights=self.arriving.rates))
            host_s = accesses * replications / (_HOST_PER_S * min(available_cores(), replications))
            device_s = _COMPILING_S + number * system.nodes * replications / _DEVICE_PER_S
            return lanes if host_s > _FASTER * device_s else 0
        return lanes

    @property
    def _classes(self) -> int:
        return len(self.at.class_names)

    @property
    def _of_files(self) -> tuple[int, bool]:
        """Files that are counted one by one, and whether they have histograms."""
        return self.arriving.reads, self.arriving.reads <= _MOST_FILE_BINS

    @cached_property
    def _length_s(self) -> float:
        """When the reads of a replication are expected to have come, s; where they end before, the last change."""
        rates, factors = self.arriving.rates[: self.arriving.reads], self.case.factors
        if factors is None:
            return self.requests / float(rates.sum()) if rates.any() else 0.0
        length = time_of_reads(rates, factors, self.requests)
        return length if np.isfinite(length) else float(factors.start.max())

    def _drawn(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        blocks = list(self._arrivals(seed)[0])
        times, files = ([block[part] for block in blocks] for part in (0, 1))
        return np.concatenate([np.empty(0), *times]), np.concatenate([np.empty(0, np.int64), *files])

    def _arrivals(self, seed: int) -> tuple[Iterator[Block], int]:
        """Arrivals of a replication, and how many they are, about."""
        case, (_, rates, reads) = self.case, self.arriving
        others = rates[reads:]
        if case.reads is not None:
            times, files = case.reads.times, case.reads.files
            if case.reads.writes is not None:
                # up to the last of them, be it a write: nodes and reads that still wait have those to do, too
                written = case.reads.writes
                times = np.concatenate([times, written.times])
                order = np.argsort(times, kind="stable")
                times, files = times[order], np.concatenate([files, written.files + reads])[order]
                # files that are written are the first of the others
                others = np.where(np.arange(len(others)) < self.at.problem.files.count, 0.0, others)
            number, times = len(times), times / self.rate_scale
            blocks = arrivals.of_trace(times, files)
        else:
            number = self.requests
            blocks = arrivals.poisson(rates[:reads], number, seed, case.factors, case.bursts)
        if others.any():
            length = self._length_s if case.reads is None else float(times[-1])
            more = others.sum() * length
            number += int(more + 6 * np.sqrt(more) + 1)
            beside = arrivals.poisson(others, 1 << 62, seed + (1 << 32))
            blocks = arrivals.merged(blocks, ((t, f + reads) for t, f in beside), 1 << 62)
        return blocks, number


def simulation(case: Case, at: OperatingPoint, point: Point, options: ReplayOptions) -> Simulation:
    """What a replay at a point needs; its delay of hedging is infinite where the bound that it is by default is."""
    delay = options.hedge_delay_s
    if at.policy != "hedged":
        delay = np.inf
    elif delay is None:
        # of the plan with nodes as they are: whoever hedges does not know which of them is slow
        planned = at if point.slow is None else operating_point(case, replace(point, slow=None), options)
        delay = mean_bound(at_mean_rates(case, planned, options))
    budget = np.inf if options.hedge_budget is None else options.hedge_budget
    policy = Policy(at.policy, options.probes, options.cancel, delay, options.hedges, budget)
    return Simulation(case, at, arriving(at, options), policy, point.rate_scale, options.requests)
