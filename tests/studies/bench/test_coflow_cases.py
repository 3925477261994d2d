"""Cases of coflow replays, small."""

import pytest
from bench_cases import rows_of

from ecjax.coflow.replay import SCHEDULERS
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.bench.options import BenchOptions
from ecjax.studies.bench.run import Settings
from ecjax.studies.bench.setups import coflows

QUICK = Settings(repeats=1, quick=True, seed=3)


def test_every_scheduler_has_a_row_and_the_nine_are_added_up():
    together, *each = rows_of("coflows", QUICK)
    assert tuple(row.variant for row in each) == SCHEDULERS
    assert together.min_s == pytest.approx(sum(row.min_s for row in each if row.variant in coflows.NINE))
    assert together.lanes == 2 * len(coflows.NINE) and together.target_s is None


def test_generated_shuffles_are_never_below_their_bound():
    rows = rows_of("coflows_trace", QUICK)
    assert [row.variant for row in rows] == list(coflows.TRACE_SCHEDULERS)
    assert all(row.gap >= -1e-9 and row.objective >= row.lower_bound * (1 - 1e-9) for row in rows)
    assert all(row.target_s is None and row.met is None for row in rows)


def test_a_trace_that_is_missing():
    with pytest.raises(UserError, match=r"trace=/no/such: no such file"):
        checked(BenchOptions(cases="coflows_trace", trace="/no/such"))
