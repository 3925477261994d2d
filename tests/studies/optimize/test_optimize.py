"""``ecjax optimize`` through its library call: tables that hold what they say, resume, failures, mistakes."""

import json
import shutil

import numpy as np
import pandas as pd
import problems
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.planning import METHODS
from ecjax.problem.overload import overload
from ecjax.status import Status
from ecjax.tables.results import read_results

TIMES = ["solve_s", "compile_s", "batch_id", "batch_runs", "batch_files"]


def runs_of(out) -> pd.DataFrame:
    return pd.read_parquet(out / "runs")


def files_under(out) -> list[str]:
    return sorted(
        str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path.name != ".lock"
    )


def rows(out, dataset, run_id) -> pd.DataFrame:
    table = read_results(out, dataset)
    return table[table["run_id"] == run_id].reset_index(drop=True)


STUDIES = {
    "integer ids, mixed sizes": (problems.mixed, {}),
    "string ids, affine law, stored bytes, total": (problems.affine, {"theta": [0.4], "theta_per": "total"}),
    "background, size_scaling none": (problems.fixed, {}),
    "scaled": (problems.mixed, {"rate_scale": [0.5, 1.2], "size_scale": [0.7], "theta": [0, 20.0]}),
    "k = 1, k = m, files never read": (problems.idle, {}),
    "z at minus infinity": (problems.replicated, {}),
    "groups and writes": (problems.grouped, {"theta": [0.5, 40]}),
}


SLOW = ("groups and writes", "scaled")  # each compiles programs of its own
EACH = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in STUDIES]


@pytest.mark.parametrize("name", EACH)
def test_all_figures_of_a_run_follow_from_the_tables_alone(name, tmp_path):
    make, options = STUDIES[name]
    code, _ = problems.study(tmp_path / "out", make(), **options)
    assert code == 0
    out = tmp_path / "out"
    runs = runs_of(out)
    grid = [np.atleast_1d(options.get(key, 1.0)) for key in ("theta", "rate_scale", "size_scale")]
    assert len(runs) == len(METHODS) * np.prod([len(values) for values in grid])
    for run in runs.itertuples():
        case, probabilities, stored = problems.written_plan(out, run)
        np.testing.assert_allclose(probabilities.sum(axis=1), case.k, atol=1e-9)
        assert not np.any(probabilities[stored == 0])
        expected = problems.outcome(case, probabilities, stored)
        assert expected.load.max() < 1
        assert run.max_load == pytest.approx(expected.load.max(), rel=1e-9)
        assert run.latency_s == pytest.approx(expected.latency_s, rel=1e-9)
        assert run.latency_shared_z_s == pytest.approx(expected.latency_shared_z_s, rel=1e-9)
        assert run.cost_dollars_per_period == pytest.approx(expected.cost, rel=1e-9)
        assert run.objective == pytest.approx(expected.objective(run.theta, run.theta_per), rel=1e-9)
        if np.isfinite(expected.z_s):
            assert run.z_s == pytest.approx(expected.z_s, rel=1e-3)
        else:
            assert run.z_s == -np.inf

        plans = rows(out, "file_plans", run.run_id)
        np.testing.assert_array_equal(plans["file_id"], case.files["file_id"])
        np.testing.assert_array_equal(plans["n"], stored.sum(axis=1))
        np.testing.assert_array_equal(plans["k"], case.k)
        np.testing.assert_allclose(plans["latency_s"], expected.file_latency, rtol=1e-9)
        np.testing.assert_allclose(plans["cost_dollars_per_period"], expected.file_cost, rtol=1e-9)
        assert run.mean_n == pytest.approx(stored.sum(axis=1).mean(), rel=1e-12)
        by_k = pd.Series(stored.sum(axis=1)).groupby(case.k.astype(int)).mean()
        assert json.loads(run.mean_n_by_class) == {str(k): n for k, n in by_k.items()}
        assert run.files_without_redundancy == np.sum(stored.sum(axis=1) == case.k)
        assert (run.file_count, run.node_count) == stored.shape
        assert run.status in (Status.OK, Status.NOT_CONVERGED) and pd.isna(run.error)
        loads = rows(out, "node_loads", run.run_id)
        np.testing.assert_array_equal(loads["node_id"], case.nodes["node_id"])
        np.testing.assert_allclose(loads["load"], expected.load, rtol=1e-9)
        reads = case.file("rate_per_s") @ probabilities
        np.testing.assert_allclose(loads["read_share"], reads / reads.sum(), rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(loads["chunks"], stored.sum(axis=0))
        chunk_bytes = case.files.get("stored_bytes", case.files["bytes"]).to_numpy() / case.k
        np.testing.assert_allclose(loads["bytes_stored"], chunk_bytes @ stored, rtol=1e-9)
        per_chunk, per_byte = case.node("cost_per_chunk_dollars"), case.node("cost_per_byte_dollars")
        dollars = per_chunk * stored.sum(axis=0) + per_byte * (chunk_bytes @ stored)
        np.testing.assert_allclose(loads["cost_dollars_per_period"], dollars, rtol=1e-9)

        floor = case.k + case.file("min_extra_chunks")
        if "group" not in case.files:
            assert np.all(stored.sum(axis=1) >= floor)

        history = rows(out, "history", run.run_id)
        assert (len(history) > 0) == (run.method == "published")
        np.testing.assert_array_equal(history["iteration"], np.arange(len(history)))
        assert np.all(np.diff(history["objective"]) <= 1e-12 * history["objective"].iloc[:1].sum())
    best = runs.groupby(["theta", "rate_scale", "size_scale"])["objective"].transform("min")
    certified = runs["method"] == "certified"
    assert np.all(runs["objective"][certified] <= best[certified] * (1 + 1e-9))
    assert np.all(runs["lower_bound"] <= best)
    np.testing.assert_allclose(
        runs["gap"], (runs["objective"] - runs["lower_bound"]) / runs["lower_bound"], rtol=1e-12
    )


@pytest.fixture(scope="module")
def builtin_study(tmp_path_factory):
    """The built-in cluster, small, in its three-lane form."""
    from ecjax.problem.cluster_options import ClusterOptions

    out = tmp_path_factory.mktemp("builtin") / "out"
    cluster = ClusterOptions(hardware="tahoe", files=problems.FILES, nodes_per_site=2, k=[3, 4, 3, 2])
    options = {"cluster": cluster, "theta": [3.0, 30.0, 300.0], "method": "published", "memory_bytes": None}
    code, text = problems.study(out, **options)
    return out, options, code, text


def test_built_in_cluster_prints_a_table_and_trades_latency_for_cost(builtin_study):
    out, options, code, text = builtin_study
    runs = runs_of(out).sort_values("theta")
    assert code == 0
    assert runs["theta"].tolist() == options["theta"]
    assert np.all(np.diff(runs["cost_dollars_per_period"]) < 0) and np.all(np.diff(runs["latency_s"]) > 0)
    assert runs["batch_runs"].tolist() == [3] * 3 and runs["batch_id"].nunique() == 1
    for run in runs.itertuples():
        assert (
            f"{run.latency_s:.4g}" in text and f"{run.cost_dollars_per_period / run.file_count:.4g}" in text
        )
    assert "optimize: 3 runs" in text and "warning" not in text
    assert list(json.loads(runs["mean_n_by_class"].iloc[0])) == ["1", "2", "3", "4"]
    assert pd.read_parquet(out / "placements")["file_id"].dtype == np.int64
    assert np.all(
        rows(out, "file_plans", runs["run_id"].iloc[0])["n"] >= [5] * 3 + [6] * 3 + [5] * 3 + [4] * 3
    )


def test_resume_skips_what_is_finished_and_ends_like_an_undisturbed_run(builtin_study, tmp_path):
    whole, options, *_ = builtin_study
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    runs = runs_of(whole)
    lost = runs["run_id"][runs["theta"] == 30.0].iloc[0]
    (out / "runs" / f"{lost}.parquet").unlink()  # as if killed before this run was committed
    kept = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*.parquet")}
    assert problems.study(out, **options)[0] == 0
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    for dataset in ("runs", "placements", "file_plans", "history"):
        one, other = (
            read_results(folder, dataset).drop(columns=TIMES, errors="ignore").convert_dtypes()
            for folder in (whole, out)
        )
        order = [c for c in ("run_id", "file_id", "node_id", "iteration") if c in one]
        one, other = (table.sort_values(order).reset_index(drop=True) for table in (one, other))
        pd.testing.assert_frame_equal(one, other, rtol=1e-12, atol=1e-15)
    before = files_under(out)
    assert problems.study(out, **options)[0] == 0
    assert files_under(out) == before


def test_more_thetas_later_and_no_resume(tmp_path):
    case, out = problems.mixed(), tmp_path / "out"
    problems.study(out, case, theta=[5.0])
    first = runs_of(out).set_index("run_id")
    files = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*.parquet")}
    _, text = problems.study(out, case, theta=[5, 50.0])
    both = runs_of(out).set_index("run_id")
    assert len(both) == 2 * len(first)
    pd.testing.assert_frame_equal(both.loc[first.index], first)
    assert all(path.stat().st_mtime_ns == time for path, time in files.items())
    assert "10 runs" in text
    problems.study(out, case, theta=[5.0], resume=False)
    assert all(path.stat().st_mtime_ns > time for path, time in files.items())
    again = runs_of(out).set_index("run_id").loc[first.index]
    assert len(runs_of(out)) == 2 * len(first)
    pd.testing.assert_frame_equal(again.drop(columns=TIMES), first.drop(columns=TIMES), rtol=1e-9)


def test_what_changes_a_result_changes_the_run_id(tmp_path):
    case, out = problems.mixed(), tmp_path / "out"
    one = {"method": "published"}
    problems.study(out, case, **one)
    problems.study(out, case, size_scale=0.9, **one)
    problems.study(out, case, theta_per="total", **one)
    problems.study(out, case, rate_scale=0.5, **one)
    problems.study(out, case.scaled(rate=0.5), **one)
    problems.study(out, problems.mixed(1), **one)
    runs = runs_of(out)
    assert runs["run_id"].nunique() == len(runs) == 6
    assert runs["input_id"].nunique() == 3
    problems.study(out, case, memory_bytes=2.0, write=["runs"], figures=["tradeoff"], **one)
    assert len(runs_of(out)) == len(runs)


def test_an_unstable_run_is_a_row_with_a_status_and_exit_code_1(tmp_path):
    out = tmp_path / "out"
    code, text = problems.study(out, problems.mixed(), rate_scale=[1.0, 50.0])
    assert code == 1
    runs = runs_of(out)
    good, failed = (runs[runs["rate_scale"] == scale] for scale in (1.0, 50.0))
    assert len(good) == len(failed) == len(METHODS)
    assert np.all(good["status"] == Status.OK) and np.all(failed["status"] == Status.UNSTABLE)
    assert failed[["objective", "latency_s", "cost_dollars_per_period", "mean_n"]].isna().all(axis=None)
    assert np.all(failed["max_load"] >= 1)
    for run in failed.itertuples():
        assert f"load rho = {run.max_load:.3g} at" in run.error
    assert (
        failed["error"].str.contains("load rho = ").all()
        and failed["error"].str.contains("rate_scale=50").all()
    )
    assert "run without a stable plan: nodes: row" in text and Status.UNSTABLE in text
    assert not set(failed["run_id"]) & set(pd.read_parquet(out / "placements")["run_id"])

    def times(some):
        return [(out / "runs" / f"{run}.parquet").stat().st_mtime_ns for run in some["run_id"]]

    before = times(good), times(failed)
    assert problems.study(out, problems.mixed(), rate_scale=[1.0, 50.0])[0] == 1
    assert times(good) == before[0], "what is finished is not computed again"
    assert np.all(np.array(times(failed)) > before[1]), "what failed is"


def test_the_load_named_for_an_unstable_run_is_that_of_the_oracle(tmp_path):
    case, out = problems.mixed(), tmp_path / "out"
    problems.study(out, case, rate_scale=[1.0, 50.0])
    failed = runs_of(out).set_index(["method", "rate_scale"]).loc[("max_ec", 50.0)]
    loads = problems.outcome(case.scaled(rate=50.0), case.even, np.ones_like(case.even)).load
    worst = int(np.argmax(loads))
    assert f"nodes: row {worst} (node_id=n{worst}): load rho = {loads[worst]:.3g}" in failed["error"]
    assert f"rate_scale={50 * 0.9 / loads[worst]:.2g} gives about 0.9" in failed["error"]


def test_a_study_without_any_stable_plan_is_refused(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError) as error:
        problems.study(out, problems.mixed(), rate_scale=50.0)
    message = str(error.value)
    for words in (
        "nodes: row ",
        "(node_id=n",
        "load rho = ",
        "rate_scale=50",
        "lower the rates (rate_scale=",
        "add nodes",
    ):
        assert words in message
    assert "\n" not in message
    assert files_under(out) == []


def test_advice_scales_what_goes_with_the_rates():
    """Background work does not; where it leaves less than 0.1, the goal is half of what it leaves."""
    nodes = pa.array(["a", "b"])
    message = overload(np.array([0.5, 1.6]), np.array([0.0, 0.4]), 2.0, nodes, "somehow")
    assert "nodes: row 1 (node_id=b): load rho = 1.6 at rate_scale=2 somehow" in message
    assert f"rate_scale={2 * 0.5 / 1.2:.2g} gives about 0.9" in message
    message = overload(np.array([1.2, 0.5]), np.array([0.9, 0.0]), 1.0, nodes, "somehow")
    assert f"rate_scale={0.05 / 0.3:.2g} gives about 0.95" in message


def test_plans_without_redundancy_warn(tmp_path):
    case = problems.mixed()
    case = problems.Case(case.nodes, case.files.drop(columns="min_extra_chunks"))
    _, text = problems.study(tmp_path / "bare", case, theta=500.0)
    bare = runs_of(tmp_path / "bare").set_index("method")["files_without_redundancy"]
    assert bare["published"] > 0 and bare["max_ec"] == 0
    assert "warning: 4 of 5 plans keep some files without redundancy (n = k)" in text
    _, text = problems.study(tmp_path / "floor", case, theta=500.0, min_extra_chunks=1)
    assert runs_of(tmp_path / "floor")["files_without_redundancy"].tolist() == [0] * 5
    assert "warning" not in text
    used = pd.read_parquet(tmp_path / "floor" / "inputs" / "files")
    assert np.all(used["min_extra_chunks"] == 1)


def test_min_extra_chunks_overrides_the_column(tmp_path):
    case = problems.mixed()
    problems.study(tmp_path / "out", case, theta=500.0, min_extra_chunks=2)
    plans = pd.read_parquet(tmp_path / "out" / "file_plans")
    assert np.all(plans["n"] >= plans["k"] + 2)


@pytest.mark.parametrize("k", ["missing", "empty", "other"])
def test_k_overrides_or_stands_in_for_the_column(k, tmp_path):
    case = problems.mixed()
    given = {
        "missing": case.files.drop(columns="k"),
        "empty": case.files.assign(k=None),
        "other": case.files,
    }[k]
    problems.study(tmp_path / "out", problems.Case(case.nodes, given), k=2)
    run = runs_of(tmp_path / "out").iloc[0]
    assert np.all(pd.read_parquet(tmp_path / "out" / "inputs" / "files")["k"] == 2)
    used, probabilities, stored = problems.written_plan(tmp_path / "out", run)
    np.testing.assert_allclose(probabilities.sum(axis=1), 2, atol=1e-9)
    assert run.latency_s == pytest.approx(problems.outcome(used, probabilities, stored).latency_s, rel=1e-9)


def test_storage_is_paid_by_stored_bytes_and_reads_take_bytes(tmp_path):
    case = problems.mixed()
    more = problems.Case(case.nodes, case.files.assign(stored_bytes=3 * case.files["bytes"]))
    problems.study(tmp_path / "one", case)
    problems.study(tmp_path / "more", more)
    one, three = (runs_of(tmp_path / name).set_index("method").loc["max_ec"] for name in ("one", "more"))
    assert one.latency_s == three.latency_s
    by_chunk = len(case.files) * case.nodes["cost_per_chunk_dollars"].sum()
    assert three.cost_dollars_per_period - by_chunk == pytest.approx(
        3 * (one.cost_dollars_per_period - by_chunk), rel=1e-9
    )


def test_only_what_is_asked_for_is_written(tmp_path):
    problems.study(tmp_path / "out", problems.mixed(), write=["runs"])
    assert {name.split("/")[0] for name in files_under(tmp_path / "out")} == {
        "runs",
        "inputs",
        "recommended.json",
    }
    problems.study(tmp_path / "some", problems.mixed(), write="file_plans")
    assert {name.split("/")[0] for name in files_under(tmp_path / "some")} == {
        "runs",
        "inputs",
        "file_plans",
        "recommended.json",
    }


def test_a_run_that_the_limit_ends_is_not_converged_and_finished(tmp_path):
    """On one node, where every plan is the same."""
    files = problems.tiny().files.assign(k=1, min_extra_chunks=0)
    case, out = problems.Case(problems.moment_nodes(3, 1), files).at_load(0.5), tmp_path / "out"
    code, text = problems.study(out, case, max_iterations=3, method="published")
    run = runs_of(out).iloc[0]
    assert code == 0 and run["status"] == Status.NOT_CONVERGED and Status.NOT_CONVERGED in text
    assert len(rows(out, "history", run["run_id"])) == 4
    _, probabilities, stored = problems.written_plan(out, run)
    assert np.all(probabilities == 1) and np.all(stored == 1)
    assert run["latency_s"] == pytest.approx(problems.outcome(case, stored, stored).latency_s, rel=1e-9)


OPTIONS = [
    ({"theta": []}, "theta: found an empty list; allowed: a number, at least 0, or a list of them"),
    ({"theta": [1.0, -1.0]}, "theta: found [1.0, -1.0]"),
    ({"theta": "cheap"}, "theta: found cheap"),
    ({"theta": [float("nan")]}, "theta: found [nan]"),
    ({"theta": True}, "theta: found true"),
    ({"rate_scale": 0}, "rate_scale: found 0; allowed: a number above 0, or a list of them"),
    ({"size_scale": [1.0, float("inf")]}, "size_scale: found [1.0, inf]"),
    (
        {"method": "best"},
        "method: found 'best'; allowed: certified, published, oblivious_lb, random_cp, max_ec",
    ),
    ({"method": ["published", 3]}, "method: found 3; allowed"),
    ({"method": [["published"]]}, "method: found ['published']; allowed"),
    ({"method": []}, "method: found an empty list"),
    ({"figures": ["tradeof"]}, "figures: found 'tradeof'; allowed: tradeoff, convergence"),
    ({"theta_per": "group"}, "theta_per: found 'group'; allowed: file, total"),
    ({"size_scaling": "linear"}, "size_scaling: found 'linear'; allowed: proportional, none"),
    ({"start": "random"}, "start: found 'random'; allowed: uniform, proportional, plan"),
    ({"loop": 1}, "loop: found 1; allowed: merged, nested"),
    ({"dtype": "float16"}, "dtype: found 'float16'; allowed: float64, float32"),
    ({"start": "plan"}, "start=plan: plan=FOLDER is missing"),
    ({"plan": "somewhere"}, "plan=somewhere: no such folder"),
    ({"plan_run": "0123"}, "plan_run and plan_where choose a run of plan=FOLDER"),
    ({"beta": 1.0}, "beta: found 1.0; allowed: a number above 1"),
    ({"beta": "sharp"}, "beta: found sharp"),
    ({"beta": float("inf")}, "beta: found inf"),
    ({"eps": 0.0}, "eps: found 0.0; allowed: a number above 0"),
    ({"eps": None}, "eps: found null"),
    ({"max_iterations": 0}, "max_iterations: found 0; allowed: a whole number from 1 to 1000000"),
    ({"max_iterations": 2.5}, "max_iterations: found 2.5"),
    ({"max_iterations": 10**9}, "max_iterations: found 1000000000"),
    ({"k": 0}, "k: found 0; allowed: a whole number of at least 1"),
    ({"k": 2.5}, "k: found 2.5"),
    ({"k": 7}, "files: row 0 (file_id=0): k=7 + min_extra_chunks=1 needs 8 nodes; nodes has 6"),
    ({"min_extra_chunks": -1}, "min_extra_chunks: found -1; allowed: a whole number from 0"),
    (
        {"min_extra_chunks": 4},
        "files: row 1 (file_id=7): k=3 + min_extra_chunks=4 needs 7 nodes; nodes has 6",
    ),
    ({"seed": -1}, "seed: found -1; allowed: a whole number from 0"),
    ({"seed": None}, "seed: found null"),
    ({"memory_bytes": 0}, "memory_bytes: found 0; allowed: a number above 0"),
    ({"write": ["plans"]}, "write: found 'plans'; allowed: runs"),
    ({"write": 5}, "write: found 5; allowed: runs, placements, read_kinds, node_loads"),
    ({"nodes": "/nowhere/nodes.parquet"}, "nodes table (/nowhere/nodes.parquet): no such file or folder"),
]


@pytest.mark.parametrize("options, words", OPTIONS, ids=[str(options) for options, _ in OPTIONS])
def test_mistakes_in_options_are_one_line_and_write_nothing(options, words, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError) as error:
        problems.study(out, problems.mixed(), **options)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert files_under(out) == []


def at(column, row, value):
    """A table with one cell changed."""

    def change(table):
        changed = table.copy()
        changed[column] = changed[column].astype(object)
        changed.loc[row, column] = value
        return changed.assign(**{column: changed[column].tolist()})

    return change


OVERFULL = {"load": 1.2, "second": 0.1, "third": 0.1}  # background work of a node
TABLES = [
    ("nodes", lambda t: t.drop(columns="node_id"), ["nodes", "missing columns: node_id"]),
    ("nodes", lambda t: t.drop(columns="service_third_s3"), ["nodes", "missing columns: service_third_s3"]),
    ("nodes", lambda t: t.iloc[:0], ["nodes", "found no rows"]),
    ("nodes", at("node_id", 3, "n1"), ["nodes", "column node_id, row 3", "found 'n1' again, first in row 1"]),
    (
        "nodes",
        at("service_mean_s", 2, float("nan")),
        ["nodes", "column service_mean_s, row 2", "node_id 'n2'"],
    ),
    (
        "nodes",
        at("service_mean_s", 2, 0.0),
        ["column service_mean_s, row 2", "found 0.0; allowed: finite numbers > 0"],
    ),
    (
        "nodes",
        at("service_second_s2", 1, 1e-9),
        ["column service_second_s2, row 1", "at least service_mean_s^2"],
    ),
    (
        "nodes",
        at("cost_per_byte_dollars", 4, -1.0),
        ["column cost_per_byte_dollars, row 4", "found -1.0; allowed"],
    ),
    ("nodes", lambda t: t.assign(reference_bytes="big"), ["column reference_bytes, row 0", "found 'big'"]),
    (
        "nodes",
        lambda t: t.assign(channels=[1, 1, 0, 1, 1, 1]),
        ["column channels, row 2", "found 0; allowed: integers >= 1"],
    ),
    (
        "nodes",
        lambda t: t.assign(**{f"background_{n}": [0, 0, x, 0, 0, 0] for n, x in OVERFULL.items()}),
        ["column background_load, row 2 (node_id=n2)", "found 1.2; allowed: below 1"],
    ),
    (
        "nodes",
        lambda t: t.assign(background_load=0.1),
        ["missing columns: background_second, background_third"],
    ),
    ("files", lambda t: t.drop(columns="rate_per_s"), ["files", "missing columns: rate_per_s"]),
    ("files", lambda t: t.drop(columns="k"), ["files", "missing columns: k"]),
    ("files", lambda t: t.iloc[:0], ["files", "found no rows"]),
    ("files", at("file_id", 5, 7), ["column file_id, row 5", "found 7 again, first in row 1"]),
    ("files", at("rate_per_s", 2, -0.5), ["column rate_per_s, row 2 (file_id 14)", "found -0.5; allowed"]),
    ("files", at("rate_per_s", 2, float("nan")), ["column rate_per_s, row 2 (file_id 14)"]),
    ("files", at("rate_per_s", 2, None), ["column rate_per_s, row 2 (file_id 14)"]),
    ("files", lambda t: t.assign(rate_per_s=0.0), ["column rate_per_s", "sum to 0"]),
    (
        "files",
        at("bytes", 1, 0.0),
        ["column bytes, row 1 (file_id 7)", "found 0.0; allowed: finite numbers > 0"],
    ),
    ("files", at("k", 4, 0), ["column k, row 4 (file_id 28)", "found 0; allowed: integers >= 1"]),
    ("files", at("k", 4, 2.5), ["column k, row 4", "found 2.5"]),
    ("files", at("k", 4, 7), ["files: row 4 (file_id=28): k=7 needs 7 nodes; nodes has 6"]),
    ("files", at("min_extra_chunks", 0, 5), ["row 0 (file_id=0): k=2 + min_extra_chunks=5 needs 7 nodes"]),
    ("files", lambda t: t.assign(n=1), ["column n, row 0", "found 1; allowed: at least k = 2"]),
    (
        "files",
        lambda t: t.assign(group="a"),
        ["column k, row 1", "in group 'a'", "one k per group, 2 as in row 0"],
    ),
    (
        "files",
        lambda t: t.assign(write_rate_per_s=-1.0),
        ["column write_rate_per_s, row 0", "found -1.0; allowed"],
    ),
    ("files", lambda t: t.assign(stored_bytes=0.0), ["column stored_bytes, row 0", "found 0.0; allowed"]),
]


@pytest.mark.parametrize("table, change, words", TABLES, ids=[words[0] + words[-1] for *_, words in TABLES])
def test_mistakes_in_tables_name_the_place_and_write_nothing(table, change, words, tmp_path):
    case, out = problems.mixed(), tmp_path / "out"
    changed = problems.Case(
        change(case.nodes) if table == "nodes" else case.nodes,
        change(case.files) if table == "files" else case.files,
    )
    with pytest.raises(UserError) as error:
        problems.study(out, changed)
    message = str(error.value)
    for word in [table, *words]:
        assert word in message
    assert "\n" not in message
    assert files_under(out) == []


@pytest.mark.parametrize("damage", ["truncated", "no table"])
def test_damaged_files_are_named(damage, tmp_path):
    case = problems.mixed()
    path = tmp_path / "files.parquet"
    case.files.to_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"not a table at all")
    with pytest.raises(UserError) as error:
        problems.study(tmp_path / "out", case, files=str(path))
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    assert files_under(tmp_path / "out") == []


def test_ids_of_another_type_need_another_folder(tmp_path):
    case, out = problems.mixed(), tmp_path / "out"
    problems.study(out, case)
    before = files_under(out)
    text = problems.Case(case.nodes, case.files.assign(file_id=[f"f{i}" for i in case.files["file_id"]]))
    with pytest.raises(UserError, match="file_id of type int64, now it is string; choose a new out"):
        problems.study(out, text)
    assert files_under(out) == before


def test_columns_that_are_not_used_are_said(tmp_path, caplog):
    case = problems.mixed()
    files = case.files.assign(n=5, nodes=[["n1", "n2", "n3", "n4", "n5"]] * problems.FILES)
    with caplog.at_level("INFO", logger="ecjax"):
        problems.study(tmp_path / "out", problems.Case(case.nodes, files))
    assert "files: n is given and left aside; queue=fcfs chooses code lengths" in caplog.text
    assert "files: nodes (the current placement) is given and left aside" in caplog.text
