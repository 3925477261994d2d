"""Work that is left at the end of a log: against a plain queue, and which of it is worth a sentence."""

import numpy as np
import pytest

from ecjax.predict.queues_left import Queues, fluid_queues, undrained
from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.traffic.bins import bin_arrivals
from ecjax.traffic.node_work import Arrivals, Placed


def test_work_left_is_that_of_a_plain_queue():
    """Reads of 0.25 s at one node: one a second, then 200 in 10 s; the other node has nothing to do."""
    service = 0.25
    times = np.concatenate([np.arange(500.0), 500 + 0.05 * np.arange(200)])
    free = 0.0
    for now in times:
        free = max(free, now) + service
    law = ServiceLaw.of_nodes(UnitLaw.named("deterministic"), offset=service, nodes=2)
    plan = np.array([[1.0, 0.0]])
    placed = Placed(plan, np.ones(1), law, plan, np.zeros((3, 2)))
    end = 510.0
    reads, _ = bin_arrivals(times, np.zeros(700, int), 1, service / 4, None, (0.0, end))
    found = fluid_queues(Arrivals(reads), placed)
    assert found.end_s == pytest.approx([free - end, 0.0], abs=service)
    assert found.load == pytest.approx([700 * service / end, 0.0], rel=1e-3)
    assert found.work_s == pytest.approx(service)


def test_the_mean_service_is_that_of_reads_whatever_else_loads_the_nodes():
    """30 reads of 0.1 s, twice as many of 0.25 s at the other node; larger writes, and other work half of the time."""
    size = np.array([1.0, 2.5])
    law = ServiceLaw.of_nodes(UnitLaw.named("deterministic"), offset_per_byte=0.1, nodes=2)
    plan = np.eye(2)
    other_work = np.outer([0.5, 0.1, 0.1], np.ones(2))
    placed = Placed(plan, size, law, plan, other_work, 10 * size)
    times = np.arange(0.0, 100.0)
    reads, writes = bin_arrivals(times, np.minimum(np.arange(100) % 3, 1), 2, 0.05, times >= 90)
    found = fluid_queues(Arrivals(reads, writes), placed)
    assert found.load.sum() > 1.2
    assert found.work_s == pytest.approx((0.1 + 2 * 0.25) / 3)


@pytest.mark.parametrize(
    ("load", "left_s", "length_s", "said"),
    [
        # up to ten services, whatever the load
        (0.1, 0.9, 10.0, False),
        (0.1, 1.1, 10.0, True),
        # M/M/1 has 9 services left on average, and five times as much now and then
        (0.9, 4.4, 10.0, False),
        (0.9, 4.6, 10.0, True),
        # more than three times what reads wait on average, or than 1 % of the log
        (0.5, 2.9, 1000.0, False),
        (0.5, 3.1, 1000.0, True),
        (0.5, 2.9, 200.0, True),
        # mean loads above 1 have no ordinary queue
        (1.2, 1.1, 10.0, True),
    ],
)
def test_queues_that_are_no_ordinary_ones_are_said(load, left_s, length_s, said):
    queues = Queues(1.0, 0.1, np.array([0.2, load]), np.array([0.5, left_s]))
    words = undrained(queues, length_s, ["a", "b"], "the replay")
    assert [text.split(":")[0] for text in words] == [
        f"Node b has work for {left_s:g} s left when the replay ends"
    ] * said
