"""The fewest chunks that keep a durability, against the numbers of the formulas' document and by trying all."""

import math

import pytest

from ecjax.durability.assessment import MOST_STATES, Failures, assess, loss_states, nines
from ecjax.durability.floors import Target, floor_of, longest, mds
from ecjax.durability.repair_times import RepairCluster

# the document's example cluster
CLUSTER = RepairCluster(12, 10, 1024, 500e12, 100e6, 6e9, 600.0)
FAILURES = Failures(-math.log1p(-0.015), 0.002, 0.05, 14 * 24 / 8766, 1e-15)
ELEVEN_NINES = {2: 2, 4: 2, 6: 3, 8: 3, 10: 4, 12: 5, 16: 5, 17: 6}
ANY_LOSS_BELOW_A_MILLIONTH = {2: 3, 4: 3, 8: 3, 10: 4, 12: 4, 16: 5, 17: 5}


@pytest.mark.parametrize(("k", "extra"), ELEVEN_NINES.items())
def test_floors_of_eleven_nines(k, extra):
    assert floor_of(k, [CLUSTER], FAILURES, Target(11.0, None), 24).code == mds(k, extra)


@pytest.mark.parametrize(("k", "extra"), ANY_LOSS_BELOW_A_MILLIONTH.items())
def test_floors_of_any_loss(k, extra):
    floor = floor_of(k, [CLUSTER], FAILURES, Target(None, 1e-6), 24)
    assert floor.code.parity == extra and floor.kept
    assert floor.fewer is None or floor.fewer.any_loss_probability > 1e-6


def test_of_several_spreads_all_keep_the_target():
    packed = CLUSTER._replace(packed=2)
    assert packed.spread(7) == (2, 2, 2, 1) and CLUSTER.spread(7) == (1,) * 7
    both = floor_of(4, [CLUSTER, packed], FAILURES, Target(11.0, None), 24)
    worth = [assess(both.code, each, FAILURES) for each in (CLUSTER, packed)]
    assert min(nines(each.losses) for each in worth) >= 11
    less = [assess(mds(4, both.code.parity - 1), each, FAILURES) for each in (CLUSTER, packed)]
    assert min(nines(each.losses) for each in less) < 11
    assert both.code.parity > floor_of(4, [CLUSTER], FAILURES, Target(11.0, None), 24).code.parity
    assert both.assessment == max(worth, key=lambda each: each.losses)


@pytest.mark.parametrize("room", [(2, 4, 4), (1, 5, 6), (3, 3, 3), (1,) * 12, (4, 1, 1, 2)])
@pytest.mark.parametrize("packed", [None, 2, 4])
def test_chunks_lie_where_there_is_room(room, packed):
    """One after the other: in the emptiest domain that has some, or one after the other up to ``packed`` in each."""
    cluster = CLUSTER._replace(domains=len(room), room=room, packed=packed)
    limit = [each if packed is None else min(each, packed) for each in room]
    assert cluster.room_for(packed or max(room)) == sum(limit)
    held = [0] * len(room)
    for n in range(1, sum(limit) + 1):
        left = [at for at in range(len(room)) if held[at] < limit[at]]
        if packed is None:
            at = min(left, key=lambda place: (held[place], -limit[place]))
        else:
            at = min(left, key=lambda place: (-limit[place], place))
        held[at] += 1
        assert cluster.spread(n) == tuple(sorted(filter(None, held), reverse=True)), n


def test_domains_with_room_for_all_are_as_without():
    for packed in (None, 3):
        plain = CLUSTER._replace(packed=packed)
        assert all(plain._replace(room=(5,) * 12).spread(n) == plain.spread(n) for n in range(1, 37))


def test_lengths_end_with_what_a_chain_can_be_solved_for():
    """4 chunks in each of 15 domains: more than 4000 states of loss long before there is no room."""
    packed = CLUSTER._replace(domains=15, packed=4)
    last = longest(32, [packed], 60)
    assert 1 < last < 28
    assert loss_states(mds(32, last), packed) <= MOST_STATES < loss_states(mds(32, last + 1), packed)
    assert longest(8, [CLUSTER], 12) == 4 and longest(62, [CLUSTER._replace(domains=100)], 100) == 2


def test_what_cannot_be_kept_is_the_best_there_is():
    best = floor_of(10, [CLUSTER], FAILURES, Target(11.0, None), 12)
    assert best.code == mds(10, 2) and not best.kept
    assert floor_of(12, [CLUSTER], FAILURES, Target(11.0, None), 12) is None


def test_no_nines_are_known_of_repairs_that_queue():
    assert floor_of(4, [CLUSTER._replace(disk_bytes_per_s=1e5)], FAILURES, Target(1.0, None), 12).kept
    queueing = floor_of(4, [CLUSTER._replace(disk_bytes_per_s=4e4)], FAILURES, Target(1.0, None), 12)
    assert not queueing.kept and 0.3 < queueing.assessment.repair_load < 1
    # at load 1 repairs never catch up
    assert floor_of(4, [CLUSTER._replace(disk_bytes_per_s=1e4)], FAILURES, Target(1.0, None), 12) is None
