"""The fewest chunks that keep a durability, against the numbers of the formulas' document and by trying all."""

import math

import pytest

from ecjax.durability.assessment import Failures, assess, nines
from ecjax.durability.floors import Target, floor_of, mds
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
