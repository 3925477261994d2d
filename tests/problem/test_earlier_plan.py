"""A study that starts from the plan of an earlier one."""

import json

import numpy as np
import pandas as pd
import problems
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.problem.earlier_plan import EarlierPlan, read_plan
from ecjax.problem.identity import identity
from ecjax.tables.read import read_input
from ecjax.tables.recommendation import read_recommendation

METHODS = ["published", "max_ec"]


def names_of(case):
    nodes, files = case.tables()
    return identity(read_input(nodes, "nodes"), read_input(files, "files"))


def runs_of(out) -> pd.DataFrame:
    return pd.read_parquet(out / "runs").set_index(["method", "theta"])


def read(out, case, plan_run=None, plan_where=None) -> EarlierPlan:
    return read_plan(str(out), plan_run, plan_where, names_of(case))


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Runs of two methods at two thetas, of files with integer ids."""
    out = tmp_path_factory.mktemp("earlier") / "out"
    problems.study(out, problems.mixed(), theta=[0.0, 50.0], method=METHODS)
    return out


@pytest.fixture(scope="module")
def of_groups(tmp_path_factory):
    """Runs of files in groups."""
    out = tmp_path_factory.mktemp("groups") / "out"
    problems.study(out, problems.grouped(), method="max_ec")
    return out


@pytest.mark.parametrize("where", [None, "method=published, theta=50"])
def test_probabilities_are_those_of_the_run_chosen(earlier, where):
    run = runs_of(earlier).loc[("published", 50.0)]
    chosen = {"plan_where": where} if where else {"plan_run": run.run_id}
    probabilities, stored, found = read(earlier, problems.mixed(), **chosen)
    assert found == run.run_id
    _, expected, _ = problems.written_plan(earlier, run)
    np.testing.assert_array_equal(probabilities, expected)


def test_of_several_runs_the_recommended_one_is_taken(earlier, caplog):
    recommended = read_recommendation(earlier)
    with caplog.at_level("INFO", "ecjax"):
        *_, taken = read(earlier, problems.mixed())
    assert taken == recommended.run_id
    assert (
        f"run {taken} is taken, which was recommended" in caplog.text and "plan_where='method=" in caplog.text
    )


def test_nodes_and_files_may_come_in_another_order_and_number(earlier, caplog):
    """What the earlier run does not know is zero and said."""
    case = problems.mixed()
    nodes = case.nodes.iloc[[5, 1, 2, 0]]
    files = pd.concat([case.files.iloc[[7, 3]], case.files.iloc[[0]].assign(file_id=999)])
    run = runs_of(earlier).loc[("max_ec", 0.0)]
    with caplog.at_level("INFO", logger="ecjax"):
        probabilities, *_ = read(earlier, problems.Case(nodes, files), plan_run=run.run_id)
    np.testing.assert_allclose(probabilities[:2], case.even[[7, 3]][:, :4], rtol=1e-12)
    assert not np.any(probabilities[2])
    assert "1 of 3 rows are not in run" in caplog.text


def test_groups_are_found_by_their_id(of_groups):
    case = problems.grouped()
    problem = case.problem()
    probabilities, *_ = read(of_groups, case, plan_where="method=max_ec")
    assert probabilities.shape == (problem.rows, problems.NODES)
    np.testing.assert_allclose(np.asarray(probabilities).sum(axis=1), np.asarray(problem.k), atol=1e-9)


def test_a_group_and_its_files_are_not_the_same_row(of_groups):
    """Files that were in a group then and are alone now start anew; the others keep their plan."""
    case = problems.grouped()
    alone = problems.Case(case.nodes, case.files.drop(columns="group"))
    probabilities, *_ = read(of_groups, alone, plan_where="method=max_ec")
    known = np.asarray(probabilities).sum(axis=1) > 0
    np.testing.assert_array_equal(known, case.files["group"].isna())


@pytest.mark.parametrize(
    "chosen, words",
    [
        (
            {},
            [
                "4 finished optimize runs found",
                "name one by plan_run=RUN_ID or plan_where",
                "method published, theta 50",
            ],
        ),
        ({"plan_where": "method=published"}, ["2 finished optimize runs fit plan_where='method=published'"]),
        ({"plan_where": "theta=7"}, ["no finished optimize run fits plan_where='theta=7'"]),
        ({"plan_where": "thetta=7"}, ["plan_where: found column 'thetta'; allowed: "]),
        ({"plan_where": "theta"}, ["plan_where: found 'theta'; allowed: column=value"]),
        ({"plan_run": "0123456789abcdef"}, ["no finished optimize run fits plan_run=0123456789abcdef"]),
    ],
)
def test_no_run_or_several_is_a_mistake_that_lists_them(earlier, chosen, words):
    (earlier / "recommended.json").unlink(missing_ok=True)
    with pytest.raises(UserError) as error:
        read(earlier, problems.mixed(), **chosen)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_nothing_in_common_is_a_mistake(earlier):
    case = problems.mixed()
    run = runs_of(earlier).loc[("max_ec", 0.0)].run_id
    others = (
        problems.Case(case.nodes, case.files.assign(file_id=case.files["file_id"] + 1)),
        problems.Case(case.nodes, case.files.assign(file_id=case.files["file_id"].astype(str))),
        problems.Case(case.nodes.assign(node_id=[f"other{j}" for j in range(6)]), case.files),
    )
    for other in others:
        with pytest.raises(UserError, match=f"run {run} shares no file or no node with the inputs"):
            read(earlier, other, plan_run=run)


def test_a_folder_that_is_none_or_kept_no_placements(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such folder"):
        read(tmp_path / "nowhere", problems.mixed())
    problems.study(tmp_path / "bare", problems.mixed(), method=METHODS, write=["runs"])
    with pytest.raises(UserError, match="has no placements of run"):
        read(tmp_path / "bare", problems.mixed(), plan_where="method=max_ec")


def test_a_study_goes_on_from_its_plan_and_remembers_which(earlier, tmp_path):
    """From the plan for theta = 0 nothing better than that plan is found for theta = 0."""
    first = runs_of(earlier).loc[("published", 0.0)]
    where = {"start": "plan", "plan": str(earlier), "method": METHODS}
    out = tmp_path / "out"
    problems.study(out, problems.mixed(), theta=0.0, **where, plan_where="theta=0,method=published")
    again = runs_of(out).loc[("published", 0.0)]
    assert again.objective == pytest.approx(first.objective, rel=1e-6)
    assert again.iterations < first.iterations
    params = json.loads(again.params)
    assert params["plan_run"] == first.run_id and params["inputs"]["plan"] == str(earlier)
    # the same plan named in another way is the same run; another plan is another run
    problems.study(out, problems.mixed(), theta=0.0, **where, plan_run=first.run_id)
    assert len(runs_of(out)) == 2
    problems.study(out, problems.mixed(), theta=0.0, **where, plan_where="theta=50,method=published")
    assert len(runs_of(out)) == 4


def test_identity_names_rows_and_classes():
    nodes, files = problems.grouped().tables()
    names = identity(nodes, files)
    assert names.nodes.to_pylist() == [f"n{j}" for j in range(6)]
    assert names.classes.dictionary.to_pylist() == [2, 3]  # k, where there are no classes
    files = files.append_column("service_class", pa.array(["gold", None] * 6))
    assert identity(nodes, files).classes.dictionary.to_pylist() == ["gold", None]
