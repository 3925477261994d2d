"""The log as plans see it: blocks of constant rates, found by groups of files too, and steps within them."""

import numpy as np

from ecjax.planning.trace.steady import steady
from ecjax.traffic.bins import BinnedReads, bin_arrivals


def counted(numbers):
    bins, files = np.nonzero(numbers)
    return BinnedReads(
        np.ones(len(numbers)), bins, files, numbers[bins, files].astype(float), numbers.shape[1]
    )


def nothing(reads):
    return reads._replace(bin=reads.bin[:0], file=reads.file[:0], reads=reads.reads[:0])


def test_poisson_reads_are_few_blocks_and_all_reads_stay():
    reads = counted(np.random.default_rng(0).poisson(0.2, (4096, 40)))
    seen = steady(reads, nothing(reads))
    assert seen.reads.bins < 40
    for file in range(40):
        assert seen.reads.reads[seen.reads.file == file].sum() == reads.reads[reads.file == file].sum()
    assert np.all(seen.bins.width > 0)
    ends = np.append(0, np.cumsum(seen.bins.width))[seen.bins.edge]
    np.testing.assert_allclose(ends, np.append(0, np.cumsum(seen.reads.width_s)))


def test_groups_in_turn_are_told_apart_although_all_reads_are_constant():
    rng = np.random.default_rng(1)
    group, turn = np.arange(90) % 3, np.arange(1024) // 64 % 2
    rate = np.where(group[None] == turn[:, None], 0.5, 0.0) + np.where(group[None] == 2, 0.2, 0.0)
    reads = counted(rng.poisson(rate))
    seen = steady(reads, nothing(reads))
    begins = np.append(0, np.cumsum(seen.reads.width_s))
    assert set(range(0, 1025, 64)) <= set(np.round(begins).astype(int).tolist())


def test_a_long_pause_is_taken_in_steps_that_grow():
    times = np.append(np.arange(100) / 1000, 1000.5)
    seen = steady(*bin_arrivals(times, np.zeros(101, np.int64), 1, 1.0))
    pause = int(np.argmax(seen.reads.width_s))
    steps = seen.bins.width[seen.bins.edge[pause] : seen.bins.edge[pause + 1]]
    np.testing.assert_allclose(steps.sum(), seen.reads.width_s[pause])
    begins = np.append(0, np.cumsum(steps))[:-1]
    # the last step takes up a sliver
    assert np.all(steps <= np.maximum(1.0, begins / 16) * 1.5 + 1e-9)
    assert len(steps) < 120
