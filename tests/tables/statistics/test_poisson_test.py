import numpy as np
import pytest
from scipy import stats

from ecjax.tables.statistics.poisson import kolmogorov_survival, poisson_test


@pytest.mark.parametrize("size", [15, 40, 127])
def test_survival_is_the_exact_law(size):
    distances = np.concatenate([[0.5 / size], np.random.default_rng(0).uniform(0.5 / size, 0.999, 600)])
    exact = stats.kstwo.sf(np.minimum(distances, 1 - 0.5 / size), size)
    np.testing.assert_allclose(kolmogorov_survival(distances, size), exact, rtol=1e-5, atol=1e-300)


def test_blocks_are_combined_by_fishers_method():
    random = np.random.default_rng(1)
    sizes = np.array([127] * 30 + [50])
    distances = random.uniform(0.03, 0.15, 31)
    p = np.array([stats.kstwo.sf(d, n) for d, n in zip(distances, sizes, strict=True)])
    found = poisson_test(distances, sizes)
    assert found.blocks == 31
    assert found.p_value == pytest.approx(stats.combine_pvalues(p, "fisher").pvalue, rel=1e-4)
    assert found.rejected_share == np.mean(p < 0.05)
