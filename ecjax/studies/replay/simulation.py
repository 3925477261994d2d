"""Independent replications of a replay."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ecjax.simulation import tally
from ecjax.simulation.run import Outcome, Policy, replay
from ecjax.streams import arrivals
from ecjax.studies.replay.inputs import Case
from ecjax.studies.replay.operating_point import OperatingPoint, Point
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.predictions import mean_bound
from ecjax.studies.replay.system import Arriving, arriving

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
        case, (system, rates, reads) = self.case, self.arriving
        if case.reads is not None:
            number, times = len(case.reads.times), case.reads.times / self.rate_scale
            blocks = arrivals.of_trace(times, case.reads.files)
            duration = float(times[-1])
        else:
            number = self.requests
            blocks = arrivals.poisson(rates[:reads], number, seed, case.factors, case.bursts)
            duration = number / float(rates[:reads].sum())
        if len(rates) > reads:
            others = arrivals.poisson(rates[reads:], 1 << 62, seed + (1 << 32))
            more = rates[reads:].sum() * duration
            number += int(more + 6 * np.sqrt(more) + 1)
            blocks = arrivals.merged(blocks, ((t, f + reads) for t, f in others), 1 << 62)
        classes = len(self.at.class_names)
        counts = tally.empty(number, classes, system.nodes, reads, reads <= _MOST_FILE_BINS)

        def report(requests: int) -> None:
            advance(requests / number)

        return replay(
            system, blocks, counts, seed, self.policy, self.at.queue, case.outages, report, self.at.channels
        )


def simulation(case: Case, at: OperatingPoint, point: Point, options: ReplayOptions) -> Simulation:
    """What a replay at a point needs."""
    delay = options.hedge_delay_s
    if delay is None:
        delay = mean_bound(at) if at.policy == "hedged" else np.inf
    budget = np.inf if options.hedge_budget is None else options.hedge_budget
    policy = Policy(at.policy, options.probes, options.cancel, delay, options.hedges, budget)
    return Simulation(case, at, arriving(at, options), policy, point.rate_scale, options.requests)
