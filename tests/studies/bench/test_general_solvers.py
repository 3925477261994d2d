"""The relaxation as a linear program: what HiGHS makes of it is what the smoothed dual proves, but for the tangents."""

import pytest
from bench_cases import rows_of

from ecjax.studies.bench.run import Settings


@pytest.mark.parametrize("seed", range(3))
def test_a_general_solver_finds_the_same_optimum(seed):
    rows = rows_of("gpu_general_solvers", Settings(1, True, seed))
    ours = next(row for row in rows if row.variant == "ecjax prices")
    highs = next(row for row in rows if row.variant.startswith("HiGHS"))
    assert ours.objective == pytest.approx(ours.lower_bound, rel=1e-5)
    # tangents lie below the latency
    assert ours.objective * (1 - 5e-4) <= highs.objective <= ours.objective * (1 + 1e-5)
