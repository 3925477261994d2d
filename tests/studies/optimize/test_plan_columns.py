"""Columns of ``runs`` that a plan tells."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ecjax.options import checked
from ecjax.planning.jlcm import Solution
from ecjax.planning.problem import EVALUATE
from ecjax.studies.optimize.inputs import read_cases
from ecjax.studies.optimize.objective import eligible
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.rows import mean_by_class, plan_columns


def two_nodes(folder, **options):
    """Two nodes alike with room for two chunks each, and files of one chunk: M/M/1 queues of mean service 10 ms."""
    moments = {"service_mean_s": 0.01, "service_second_s2": 2e-4, "service_third_s3": 6e-6}
    nodes = pd.DataFrame({"node_id": ["p", "q"], "reference_bytes": 1e6, "capacity_chunks": 2, **moments})
    files = pd.DataFrame({"file_id": [0, 1, 2], "k": 1, "bytes": 1e6, "rate_per_s": 10.0})
    files["nodes"] = [["p"], ["p"], None]
    for name, table in (("nodes", nodes), ("files", files)):
        table.to_parquet(folder / f"{name}.parquet", index=False)
    tables = {name: str(folder / f"{name}.parquet") for name in ("nodes", "files")}
    return next(read_cases(checked(OptimizeOptions(**tables, **options))))


@pytest.fixture
def case(tmp_path):
    return two_nodes(tmp_path)


def one_chunk_each(problem, on_p) -> Solution:
    """The first ``on_p`` files on the first node, the others on the second."""
    stored = np.arange(3)[:, None] < on_p
    stored = np.hstack([stored, ~stored])
    evaluation = EVALUATE(problem, stored.astype(float), stored, np.array(0.0))
    return Solution(stored.astype(float), stored, evaluation, np.array(1), np.array(True), np.zeros(1))


@pytest.mark.parametrize("on_p", [2, 3])
def test_a_plan_that_breaks_a_constraint_has_no_gap(case, on_p):
    plan = one_chunk_each(case.problem, on_p)
    columns = plan_columns(plan, case, case.lane(0), lower_bound=0.01, nearby_bound=0.01)
    # M/M/1 of rates 20 and 10, or 30 alone
    mean = 0.01 / 0.7 if on_p == 3 else 0.01 * (2 / 0.8 + 1 / 0.9) / 3
    assert columns["objective"] == pytest.approx(mean, rel=1e-9) and columns["lower_bound"] == 0.01
    if on_p == 3:
        assert columns["status"] == "infeasible" and not {"gap", "gap_nearby"} & set(columns)
    else:
        gap = pytest.approx((mean - 0.01) / 0.01, rel=1e-6)
        assert columns["status"] == "ok" and columns["gap"] == gap and columns["gap_nearby"] == gap


def test_plans_that_break_a_constraint_are_chosen_among_their_like_only(case):
    """Two chunks are on the first node, for which there is room, or three."""
    plans = {on_p: one_chunk_each(case.problem, on_p) for on_p in (2, 3)}
    assert list(eligible(case.problem, [plans[3], plans[2], plans[3]])) == [plans[2]]
    assert list(eligible(case.problem, [plans[3], plans[3]])) == [plans[3], plans[3]]


def test_moving_chunks_costs_by_the_bytes_of_the_run(tmp_path):
    """One of two files leaves the first node with 1 MB times the scale; the third is new, and pays nothing."""
    case = two_nodes(tmp_path, migration_dollars_per_byte=1e-9, theta=[0.0], size_scale=[1.0, 2.5])
    dollars = []
    for number in range(2):
        lane = case.lane(number)
        plan = one_chunk_each(case.problem_of(lane), 1)
        columns = plan_columns(plan, case, lane)
        assert columns["cost_dollars_per_period"] == pytest.approx(columns["moving_dollars"], rel=1e-12)
        dollars.append(columns["moving_dollars"])
    np.testing.assert_allclose(dollars, [1e-3, 2.5e-3], rtol=1e-12)


@pytest.mark.parametrize(
    ("classes", "by_class"),
    [
        (["tin", "gold", None, "tin"], {"gold": 3.0, "tin": 4.5, "None": 7.0}),
        ([10, 2, None, 10], {"2": 3.0, "10": 4.5, "None": 7.0}),
    ],
)
def test_lengths_by_class_are_in_class_order(classes, by_class):
    """As latencies and importances by class are, beside which they are printed; the table has another order."""
    column = pa.array(classes).dictionary_encode("encode")
    assert list(mean_by_class(np.array([4.0, 3.0, 7.0, 5.0]), column).items()) == list(by_class.items())
