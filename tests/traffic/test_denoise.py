"""Blocks of constant rate: none too many for Poisson arrivals, borders where rates change, counts kept."""

import numpy as np
import pytest
from plain_queues import bursts

from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.traffic import paths
from ecjax.traffic.bins import BinnedReads, bin_arrivals, bin_width
from ecjax.traffic.denoise import Blocks, averaged, blocks_of, counts_of, dispersion_at
from ecjax.traffic.node_work import Arrivals, Placed, node_work


def _blocks(times, length, width, file=None, files=1, tick_s=0.0):
    file = np.zeros(len(times), int) if file is None else file
    reads, _ = bin_arrivals(times, file, files, width, interval_s=(0.0, length), tick_s=tick_s)
    groups = np.zeros((reads.bins, files))
    np.add.at(groups, (reads.bin, reads.file), reads.reads)
    return reads, blocks_of(reads.width_s, counts_of(reads, groups, groups))


def test_poisson_arrivals_are_few_blocks_of_one_rate():
    rng = np.random.default_rng(0)
    reads, blocks = _blocks(np.sort(rng.uniform(0, 5000, 20_000)), 5000.0, 0.1)
    assert len(blocks.begin) < 60 < reads.bins
    assert blocks.width_s.sum() == pytest.approx(5000)
    assert blocks.width_s.max() > 500
    for scale in (0.1, 1.0, 10.0):
        assert dispersion_at(blocks, scale) == pytest.approx(1, abs=0.15)


def test_borders_are_where_the_rate_changes():
    rng = np.random.default_rng(1)
    times = np.sort(np.concatenate([rng.uniform(0, 1000, 2000), rng.uniform(400, 500, 3000)]))
    reads, blocks = _blocks(times, 1000.0, 0.25)
    begin = blocks.begin * blocks.unit_s
    inside = (begin >= 402) & (begin + blocks.width_s <= 498)
    rates = averaged(reads, blocks)
    per_s = np.bincount(rates.bin, rates.reads, rates.bins) / blocks.width_s
    long = blocks.width_s > 8
    np.testing.assert_allclose(per_s[inside & long], 32, rtol=0.3)
    assert rates.reads.sum() == len(times)


def test_groups_that_burst_in_turn_split_blocks_whose_sum_is_steady():
    rng = np.random.default_rng(2)
    times = np.sort(rng.uniform(0, 2000, 8000))
    turn = (times // 500).astype(int) % 2
    _, together = _blocks(times, 2000.0, 0.5)
    _, apart = _blocks(times, 2000.0, 0.5, turn, 2)
    assert together.width_s.max() > 500
    assert apart.width_s.max() <= 512.5
    assert len(apart.begin) > len(together.begin)


def test_short_bursts_within_blocks_show_in_the_dispersion():
    times = bursts(2000.0, 5.0, 0.1, np.random.default_rng(3))
    _, blocks = _blocks(times, 2000.0, 0.2)
    assert dispersion_at(blocks, 0.4) > 1.3
    assert dispersion_at(blocks, 1e-3) == dispersion_at(blocks, 0.2)


@pytest.mark.parametrize("service", [0.0055, 0.0055 / 4])
def test_poisson_reads_on_ticks_shorter_than_bins_are_poisson(service):
    """Bins of 5.5 ticks have 5 and 6 in turn: 200 reads of a pair differ by a tenth, whose square is 2 for 200."""
    times = np.sort(np.random.default_rng(4).integers(0, 20_000, 400_000)) * 0.001
    _, blocks = _blocks(times, 20.0, bin_width(20.0, service, 0.001), tick_s=0.001)
    for scale in (service, 4 * service):
        assert dispersion_at(blocks, scale) == pytest.approx(1, abs=0.2)


def test_one_bin_is_one_block():
    _, blocks = _blocks(np.array([0.5]), 1.0, 1.0)
    assert len(blocks.begin) == 1 and dispersion_at(blocks, 1.0) == 1.0


def test_other_work_of_a_long_empty_bin_is_that_of_its_time():
    """Reads of 10 ms in the first and the last of 100 s, beside other work half of the time; blocks of 2 and 98 s."""
    service = ServiceLaw.of_nodes(UnitLaw.named("deterministic"), offset=0.01, nodes=1)
    placed = Placed(np.ones((1, 1)), np.ones(1), service, np.ones((1, 1)), np.array([[0.5], [0.01], [0.01]]))
    reads = BinnedReads(np.array([1.0, 98.0, 1.0]), np.array([0, 2]), np.zeros(2, int), np.ones(2), 1)
    at = node_work(Arrivals(reads), placed)
    blocks = Blocks(
        np.array([0, 2]), np.array([2.0, 98.0]), np.array([0, 0, 1]), np.zeros(0), np.zeros(0), 1.0
    )
    load = paths._block_loads(reads.width_s, at, blocks)
    np.testing.assert_allclose(load[:, 0], [0.5 + 0.01 / 2, 0.5 + 0.01 / 98], rtol=1e-12)
    # reads, and other work, meet about half a load
    assert paths._scale(at, load, blocks.width_s) == pytest.approx(at.c[0] / 0.5**2, rel=0.01)
