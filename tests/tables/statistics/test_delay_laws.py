import numpy as np
import pytest
from scipy import stats

from ecjax.tables.statistics.delays import SERVICE, SOJOURN, DelayCells
from ecjax.tables.statistics.laws import exponential_distance, fit_cells, group_numbers, pooled_bins


def cells_of(*parts):
    cells = DelayCells()
    for quantity, node, size, delays in parts:
        rows = len(delays)
        cells.add(
            quantity,
            np.full(rows, node),
            np.zeros(rows, bool),
            np.full(rows, float(size)),
            np.asarray(delays),
        )
    return cells.cells()


@pytest.mark.parametrize("law", ["exponential", "shifted", "constant", "bimodal"])
def test_distance_from_an_exponential_is_the_kolmogorov_distance(law):
    random = np.random.default_rng(0)
    delays = {
        "exponential": random.exponential(0.2, 4000),
        "shifted": 0.1 + random.exponential(0.05, 4000),
        "constant": np.full(4000, 0.37),
        "bimodal": np.where(random.random(4000) < 0.3, 0.0, 1 + random.random(4000)),
    }[law]
    cells = cells_of((SERVICE, 0, 1, delays))
    _, bins, counts = pooled_bins(cells, np.zeros(len(cells.bytes), int))
    found = exponential_distance(bins, counts, float(delays.mean()))
    exact = stats.kstest(delays, stats.expon(scale=delays.mean()).cdf).statistic
    assert exact - 0.008 <= found <= exact + 1e-12


def test_distance_needs_a_mean_above_zero():
    assert np.isnan(exponential_distance(np.array([0]), np.array([5.0]), 0.0))


def test_groups_are_quantity_node_and_operation():
    cells = cells_of(
        (SERVICE, 1, 10, [1.0]), (SOJOURN, 1, 10, [2.0]), (SERVICE, 0, 10, [1.0]), (SERVICE, 1, 99, [3.0])
    )
    assert cells.node.tolist() == [0, 1, 1, 1]
    assert group_numbers(cells).tolist() == [0, 1, 1, 2]
    group, _, counts = pooled_bins(cells, group_numbers(cells))
    assert np.bincount(group, counts).tolist() == [1, 2, 1]


def test_each_group_has_its_law():
    random = np.random.default_rng(1)
    parts = []
    for node, slow in enumerate((1.0, 2.0)):
        for size in (1e5, 1e6):
            parts.append(
                (
                    SERVICE,
                    node,
                    size,
                    slow * (0.01 + 1e-8 * size + random.exponential(0.005 + 2e-8 * size, 40_000)),
                )
            )
    fits = fit_cells(cells_of(*parts))
    np.testing.assert_allclose(fits.laws[0], (0.01, 1e-8, 0.005, 2e-8), rtol=0.06)
    np.testing.assert_allclose(fits.laws[1], (0.02, 2e-8, 0.010, 4e-8), rtol=0.06)
    assert fits.group.tolist() == [0, 0, 1, 1]
