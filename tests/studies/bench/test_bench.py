"""The bench job: its rows and exit codes, fresh processes, and that the rivals it times are right."""

import io
import json
import logging
import subprocess
import sys
from importlib import import_module
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from ecjax.cli import main
from ecjax.errors import UserError
from ecjax.planning import project_hypersimplex
from ecjax.studies.bench import __main__ as command
from ecjax.studies.bench import run, study
from ecjax.studies.bench.cases import CASES, PARTS, SUITES
from ecjax.studies.bench.cases.case import Part, Sizes, Target
from ecjax.studies.bench.fresh import ProcessFailed, run_fresh
from ecjax.studies.bench.machine import describe, peak_rss_bytes
from ecjax.studies.bench.options import BenchOptions
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Runner, Settings, clocked
from ecjax.studies.bench.setups import analyze as analyze_case
from ecjax.studies.bench.setups import device_limits, jlcm, projection
from ecjax.studies.bench.setups.device_limits import Work
from ecjax.studies.bench.study import bench_study
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results


@pytest.fixture
def measured(monkeypatch):
    """Cases that take no time: "jlcm" fails, the others give two rows; returns what was asked for."""
    asked = []

    def run(function, arguments):
        asked.append(arguments)
        if arguments["name"] == "jlcm":
            raise ProcessFailed("ValueError: no luck")
        rows = [
            {
                "variant": "ecjax",
                "size": "small",
                "median_s": 0.2,
                "min_s": 0.1,
                "repeats": 3,
                "target_s": 0.15,
            },
            {"variant": "loop", "size": "small", "median_s": 2.0, "min_s": 1.0, "repeats": 3, "rows": 7},
        ]
        return {"rows": rows, "device": "abacus"}

    monkeypatch.setattr(study, "run_fresh", run)
    return asked


def quiet() -> Console:
    return Console(file=io.StringIO(), width=160)


def test_rows_and_what_they_ran_on_are_kept(measured, tmp_path):
    out, console = str(tmp_path / "out"), quiet()
    assert (
        bench_study(BenchOptions(out=out, cases=["projection", "startup"], repeats=3, seed=4), console) == 0
    )
    assert measured[0] == {
        "name": "projection",
        "settings": {"repeats": 3, "quick": False, "seed": 4, "trace": None},
    }
    runs, rows = read_results(out, "runs"), read_results(out, "bench")
    assert sorted(runs["case"]) == ["projection", "startup"]
    assert set(runs["status"]) == {"ok"} and set(runs["device"]) == {"abacus"}
    recorded = json.loads(runs["params"][0])["machine"]
    assert recorded["versions"]["jax"] and recorded["cores"] >= 1
    assert sorted(rows["case"]) == ["projection"] * 2 + ["startup"] * 2
    ours = rows[rows["variant"] == "ecjax"]
    assert set(ours["min_s"]) == {0.1} and set(ours["met"]) == {True}
    assert rows[rows["variant"] == "loop"]["met"].isna().all()
    assert set(rows[rows["variant"] == "loop"]["rows"]) == {7}
    assert len(pd.read_parquet(f"{out}/bench")) == 4
    assert "0.15" in console.file.getvalue()


def test_measuring_again_replaces(measured, tmp_path):
    for _ in range(2):
        bench_study(BenchOptions(out=str(tmp_path), cases="projection"), quiet())
    assert len(measured) == 2
    assert len(read_results(tmp_path, "bench")) == 2


def test_a_case_that_fails_is_a_row_and_an_exit_code(measured, tmp_path):
    console = quiet()
    assert bench_study(BenchOptions(out=str(tmp_path), cases=["jlcm", "projection"]), console) == 1
    runs = read_results(tmp_path, "runs").set_index("case")
    assert runs.loc["jlcm", "status"] == "failed" and runs.loc["jlcm", "error"] == "ValueError: no luck"
    assert runs.loc["projection", "status"] == "ok"
    assert "no luck" in console.file.getvalue()


def test_all_cases_by_default(measured, tmp_path):
    bench_study(BenchOptions(out=str(tmp_path)), quiet())
    assert [asked["name"] for asked in measured] == [name for name in CASES if not name.startswith("gpu_")]


def test_a_suite_is_its_cases(measured, tmp_path):
    bench_study(BenchOptions(out=str(tmp_path), suite="gpu"), quiet())
    assert [asked["name"] for asked in measured] == list(SUITES["gpu"])
    assert {name for name in CASES if name.startswith("gpu_")} == set(SUITES["gpu"])


def test_a_trace_of_another_file_is_another_run(measured, tmp_path):
    out, trace = tmp_path / "out", tmp_path / "coflows.txt"
    trace.write_text("2 1\n1 0 1 0 1 1:1.0\n")
    for path in (None, str(trace)):
        bench_study(BenchOptions(out=str(out), cases=["projection"], trace=path), quiet())
    runs = read_results(out, "runs")
    assert runs["run_id"].nunique() == 2
    assert sum("trace" in json.loads(text) for text in runs["input_files"]) == 1


def test_a_suite_is_its_cases_in_the_command(measured, tmp_path):
    assert main(["bench", "suite=gpu", f"out={tmp_path}", "repeats=1"]) == 0
    assert [asked["name"] for asked in measured] == list(SUITES["gpu"])
    assert main(["bench", "suite=gpu", "cases=[jlcm]", f"out={tmp_path}"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cases": ["projection", "speed"]}, "cases: found 'speed'; allowed: projection, "),
        ({"suite": "tpu"}, "suite: found 'tpu'; allowed: gpu"),
        (
            {"suite": "gpu", "cases": ["projection"]},
            "suite=gpu: cases are named too; allowed: one of the two",
        ),
        ({"repeats": 0}, "repeats: found 0; allowed: a whole number of at least 1"),
        ({"seed": -1}, "seed: found -1; allowed: a whole number from 0 to 4611686018427387904"),
    ],
)
def test_wrong_options(options, message, tmp_path):
    with pytest.raises(UserError, match=message):
        bench_study(BenchOptions(out=str(tmp_path / "out"), **options), quiet())
    assert not (tmp_path / "out").exists()


def test_without_hydra(measured, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    monkeypatch.setattr("sys.argv", ["bench", "projection", "--quick", "--out", str(tmp_path)])
    assert command.main() == 0
    assert measured[0]["settings"]["quick"] is True
    monkeypatch.setattr("sys.argv", ["bench", "speed"])
    assert command.main() == 2
    # before it may come that the machine is busy
    assert capsys.readouterr().err.endswith(f"ecjax: cases: found 'speed'; allowed: {', '.join(CASES)}\n")


def test_every_case_exists():
    assert {part.case for part in PARTS} == set(CASES)
    assert {part.case for part in PARTS if part.quick} == set(CASES)
    for part in PARTS:
        module, _, function = part.setup.partition(":")
        setup = getattr(import_module(f"ecjax.studies.bench.setups.{module}"), function)
        for quick in (False, True):
            signature(setup).bind(Runner(), **part.sized(quick))


def test_the_names_of_cases_are_known_before_anything_heavy_loads():
    heavy = ("jax", "numba", "scipy", "numpy", "pyarrow", "ray", "hydra", "matplotlib", "pandas")
    program = "import sys, ecjax.studies.bench.options; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(heavy) & set(loaded.stdout.split())


def test_targets():
    row = Row("ecjax", "", median_s=2.0, min_s=1.0, repeats=2)
    assert row.met is None
    assert Row("ecjax", "", 2.0, 1.0, 2, target_s=1.0).met is True
    assert Row("ecjax", "", 2.0, 1.0, 2, target_s=0.9).met is False
    assert Row("ecjax", "", 2.0, 1.0, 2, target_s=1.0, peak_rss_bytes=5, target_bytes=4).met is False
    assert Row("ecjax", "", 2.0, 1.0, 2, target_bytes=4).met is False  # not measured is not met


def test_variants_take_turns_after_a_first_run_that_does_not_count():
    order, clock = [], iter(range(100))

    def variant(name):
        def run():
            order.append(name)
            return Clocked(name, float(next(clock)))

        return run

    outcomes = Runner(repeats=3).race({"a": variant("a"), "b": variant("b")})
    assert order == ["a", "b"] * 4
    assert outcomes["a"].timing == (4.0, 2.0, 3) and outcomes["b"].timing == (5.0, 3.0, 3)
    assert outcomes["a"].first.seconds == 0.0 and outcomes["b"].value == "b"
    assert clocked(lambda: np.zeros(3)).seconds >= 0


def test_what_is_run_once_counts_at_once():
    clock = iter(range(100))
    outcome = Runner(repeats=3).once().time(lambda: Clocked(None, float(next(clock))))
    assert outcome.timing == (0.0, 0.0, 1) and outcome.first.seconds == 0.0


def test_rows_are_judged_as_the_table_says_and_small_sizes_have_no_targets(monkeypatch):
    runners = []

    def setup(runner, files):
        runners.append(runner)
        yield Row("ecjax fast", "", 2.0, 1.0, 1, rows=files, objective=1.1, lower_bound=1.0)
        yield Row("loop", "", 2.0, 1.0, 1, rows=files, target_bytes=7)

    monkeypatch.setattr(run, "_setup", lambda name: setup)
    targets = {"ecjax *": Target(rows_per_s=100.0, gap=0.2)}
    parts = (
        Part("x", "x:y", dict(files=Sizes(500, 5)), targets),
        Part("x", "x:y", dict(files=7), runs="once", memory=True, quick=False),
    )
    fast, loop, *large = run.rows_of(parts, Settings(repeats=4))
    assert (fast.target_s, fast.target_gap, fast.gap) == (5.0, 0.2, pytest.approx(0.1))
    assert fast.met is True and fast.peak_rss_bytes is None
    assert loop.target_s is None and loop.target_bytes == 7
    assert [row.rows for row in large] == [7, 7] and all(row.peak_rss_bytes > 0 for row in large)
    assert [(runner.repeats, runner.warm_up) for runner in runners] == [(4, True), (1, False)]
    quick = run.rows_of(parts, Settings(repeats=4, quick=True))
    assert [row.rows for row in quick] == [5, 5] and all(row.met is None for row in quick)


def test_a_fresh_process_has_its_own_memory():
    held = np.ones(60_000_000)  # 480 MB
    here = peak_rss_bytes()
    there = run_fresh("ecjax.studies.bench.machine:peak_rss_bytes", {})
    assert here >= held.nbytes
    assert 5_000_000 < there < held.nbytes


def test_a_fresh_process_reports_its_result_and_its_error():
    assert run_fresh("ecjax.studies.bench.machine:describe", {}) == describe()
    with pytest.raises(ProcessFailed, match="KeyError: 'speed'"):
        run_fresh("ecjax.studies.bench.run:run_case", {"name": "speed", "settings": {}})


def test_rivals_of_the_projection_agree():
    rng = np.random.default_rng(0)
    y, k = rng.normal(0.3, 0.7, (50, 12)), rng.integers(0, 12, 50).astype(float)
    expected = project_hypersimplex(y, k)
    np.testing.assert_allclose(projection.bisection(y, k), expected, atol=1e-12)
    np.testing.assert_allclose(projection.newton_loop(y, k), expected, atol=1e-12)


def test_the_objective_for_scipy():
    problem = jlcm._cluster(4, 0)
    shape = (4, problem.nodes.count)
    point = np.full(shape, 1 / shape[1]) * np.asarray(problem.k)[:, None]
    objective = jlcm._objective(problem, shape)
    _, slope = objective(point.ravel())
    direction = np.random.default_rng(1).normal(size=point.size)
    ahead, behind = (objective(point.ravel() + s * 1e-5 * direction)[0] for s in (1, -1))
    np.testing.assert_allclose(slope @ direction, (ahead - behind) / 2e-5, rtol=1e-6)
    sums, loads = jlcm._constraints(problem, shape)
    np.testing.assert_allclose(sums.A @ point.ravel(), problem.k)
    # equal shares: round robin, at the load that the built-in cluster states
    np.testing.assert_allclose(np.max(loads.A @ point.ravel()), 0.6, rtol=1e-9)


@pytest.mark.parametrize("text", [False, True])
def test_the_generated_trace(text, tmp_path):
    path = tmp_path / "trace.parquet"
    analyze_case.write_trace(str(path), count=5000, distinct=300, text=text, seed=1)
    table = read_input(path, "requests")  # checked: sorted, complete
    assert table.num_rows == 5000
    files = table["file_id"].to_pandas()
    assert files.nunique() == 300
    assert isinstance(files[0], str) == text


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_every_case_runs(name):
    rows = run.run_case(name, {"repeats": 1, "quick": True, "seed": 0})["rows"]
    assert all(row.min_s > 0 and row.met is None for row in rows)
    # of what has no alternative beside it, variants are ecjax's own schedulers or codes, or the device's limits
    alone = name in {"adapt_fig7", "coflows", "coflows_trace", "gpu_limits"}
    assert rows and (alone or any(row.variant.startswith("ecjax") for row in rows))
    # whole plans are the host's for the most part
    if name.startswith("gpu_") and name not in {"gpu_certified", "gpu_classes", "gpu_general_solvers"}:
        assert any(row.limit_share is not None and row.limit_share > 0 for row in rows)


@pytest.mark.parametrize("work", [Work(bytes=60.0), Work(operations=30.0)])
def test_the_share_of_a_limit_is_that_of_what_could_be_done_in_the_time(work, monkeypatch):
    # in 2 s 200 bytes could be copied, or 100 operations done
    monkeypatch.setattr(device_limits, "limits_of", lambda device, dtype: (100.0, 50.0))
    row = device_limits.against_limits(Row("v", "s", 3.0, 2.0, 1, dtype="float64"), work)
    assert row.limit_share == pytest.approx(0.3)
    assert (row.bytes_moved, row.operations) == work
    assert Settings(1).quick is False
