"""Groups that are lost in one event, where some domains hold more of their chunks than others."""

import itertools
import math

import pytest

from ecjax.durability.assessment import Failures, assess
from ecjax.durability.clusters import lost_share
from ecjax.durability.codes import code_of
from ecjax.durability.repair_times import RepairCluster


@pytest.mark.parametrize(
    ("spread", "domains", "disks", "lost_domains", "fatal"),
    [
        ((2, 2, 1), 4, 3, 2, 4),
        ((2, 2, 1, 1), 4, 3, 2, 5),
        ((2, 1, 1, 1), 5, 3, 1, 4),
        ((2, 2, 1, 1), 5, 3, 3, 5),
        ((3, 2, 2), 4, 4, 1, 5),
        ((2, 2, 2), 5, 3, 0, 3),
        ((1, 1, 1), 5, 2, 1, 3),
    ],
)
def test_lost_share_is_that_of_all_placements(spread, domains, disks, lost_domains, fatal):
    """Every placement of a group: domains 0, 1, ... are lost, and disk 0 of as many others as the fullest leave."""
    others = max(0, fatal - sum(sorted(spread)[::-1][:lost_domains]))
    shares = []
    for held in itertools.permutations([*spread, *[0] * (domains - len(spread))]):
        gone = sum(held[:lost_domains])
        on_disks = [
            list(itertools.combinations(range(disks), chunks))
            for chunks in held[lost_domains : lost_domains + others]
        ]
        placed = list(itertools.product(*on_disks))
        shares.append(sum(gone + sum(0 in each for each in disk) >= fatal for disk in placed) / len(placed))
    expected = math.fsum(shares) / len(shares)
    assert lost_share(spread, domains, disks, lost_domains, fatal) == pytest.approx(expected, rel=1e-12)


def test_domains_that_hold_two_chunks_are_others_for_every_group():
    """3+3 on four domains as 2, 2, 1, 1: two lost domains end a sixth of the groups, and of many groups always some."""
    cluster = RepairCluster(4, 10, 1000, 1e12, 1e8, 6e9, 600.0)
    code = code_of("3+3")
    assert code is not None
    assessed = assess(code, cluster, Failures(1e-9, 1e-4, 0.0, 14 / 365.25, 0.0))
    assert assessed is not None
    assert assessed.any_losses == pytest.approx(6 * assessed.losses, rel=1e-3, abs=0)
