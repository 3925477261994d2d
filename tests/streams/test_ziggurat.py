"""Ziggurat draws against the laws they promise, far into the tails."""

import numpy as np
import pytest
from scipy import stats

from ecjax.machine_code import njit
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws

COUNT = 1_000_000


@njit()
def drawn(start, requests, places):
    exponential, normal = np.empty(requests * places), np.empty(requests * places)
    for i in range(requests):
        for j in range(places):
            state = draws.task_state(streams.stream(start, i), j)
            exponential[i * places + j] = draws.exponential(state)
            normal[i * places + j] = draws.normal(state)
    return exponential, normal


@pytest.fixture(scope="module")
def numbers():
    return drawn(np.uint64(streams.key(5, 11)), COUNT // 10, 10)


@pytest.mark.parametrize("which, law", [(0, stats.expon), (1, stats.norm)])
def test_equally_likely_cells_are_equally_full(numbers, which, law):
    # 4096 cells: the layers (256) and their wedges would show
    cells = np.floor(4096 * law.cdf(numbers[which])).astype(int)
    assert stats.chisquare(np.bincount(cells, minlength=4096)).pvalue > 1e-4
    assert stats.kstest(numbers[which], law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("which, law, begin", [(0, stats.expon, 7.69711747), (1, stats.norm, 3.65415289)])
def test_tails(numbers, which, law, begin):
    values = np.abs(numbers[which])
    beyond = values[values > begin]
    chance = law.sf(begin) * (1 if law is stats.expon else 2)
    assert stats.binomtest(len(beyond), COUNT, chance).pvalue > 1e-4
    assert stats.kstest(law.sf(beyond) / law.sf(begin), "uniform").pvalue > 1e-4


def test_signs_and_tasks_are_independent(numbers):
    normal = numbers[1].reshape(-1, 10)
    assert stats.binomtest(int((normal > 0).sum()), normal.size).pvalue > 1e-4
    # of tasks of a request, of their sizes too, and of the same task of neighbouring requests
    for values in (normal, np.abs(normal), numbers[0].reshape(-1, 10)):
        between = np.corrcoef(values.T)[np.triu_indices(10, 1)]
        assert np.abs(between).max() < 5 / np.sqrt(len(values))
        assert abs(np.corrcoef(values[1:].ravel(), values[:-1].ravel())[0, 1]) < 5 / np.sqrt(values.size)
