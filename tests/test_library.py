"""The jobs as functions: options as arguments, tables in memory, results as an object."""

import gc
import inspect
import re
import subprocess
import sys
import time
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import ecjax
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS
from ecjax.library.arguments import of_job, options_of
from ecjax.library.memory_tables import arrow_table
from ecjax.options import checked
from ecjax.studies.optimize import study as optimize_study
from ecjax.tables.recommendation import Recommendation

JOB_NAMES = [name for name in JOBS if name not in ("bench", "reproduce")]
# what acts on a running cluster, or reads what another command left, is the command's alone
COMMAND_ONLY = {"ceph": {"verify", "plan_run", "apply", "apply_wait_s", "collect", "wait_s", "ceph"}}
NODES = {
    "node_id": ["a", "b", "c"],
    "delta_s": [0.01, 0.02, 0.02],
    "delta_s_per_byte": [1e-8, 1e-8, 2e-8],
    "psi_s": [0.01, 0.01, 0.03],
    "psi_s_per_byte": [1e-8, 1e-8, 1e-8],
    "cost_per_chunk_dollars": [3.0, 2.0, 1.0],
}
FILES = {"file_id": [7, 8], "bytes": [2e6, 1e6], "k": [2, 1], "rate_per_s": [1.0, 2.0]}
# a plan that costs little to compute, in one compiled program, however many there are
BASELINE = {"method": "max_ec", "theta": 1, "estimate": False, "memory_bytes": 1.0}


class OtherTable:
    """A table of another library: all that is known of it is the Arrow PyCapsule interface."""

    def __init__(self, columns):
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        texts = [
            field.with_type(pa.large_string()) if field.type == pa.string() else field
            for field in self._table.schema
        ]
        return self._table.cast(pa.schema(texts)).__arrow_c_stream__(requested_schema)


@pytest.fixture(scope="module")
def plan():
    with ecjax.optimize(nodes=pd.DataFrame(NODES), files=pd.DataFrame(FILES), **BASELINE) as results:
        yield results


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", JOB_NAMES)
def test_arguments_are_the_options_of_the_job_with_their_defaults(name):
    parameters = inspect.signature(getattr(ecjax, name)).parameters
    options = JOBS[name].options_class()
    items = [item for item in fields(options) if item.name not in COMMAND_ONLY.get(name, ())]
    assert set(parameters) == {item.name for item in items} | {"quiet"}
    for item in items:
        default = parameters[item.name].default
        if item.name == "out" or (is_dataclass(item.type) and item.name != "engine"):
            assert default is None
        elif item.name == "figures":
            assert not default  # they are drawn by Results.figure
        elif item.name == "engine":
            assert default == options.engine.name
        else:
            assert default == tuples(getattr(options, item.name)), item.name
        assert parameters[item.name].annotation is not inspect.Parameter.empty
        assert f"\n    {item.name}: " in getattr(ecjax, name).__doc__


def test_importing_and_looking_a_function_up_is_cheap():
    program = (
        "import sys, ecjax; ecjax.optimize; "
        "sys.exit(any(m in sys.modules for m in ('hydra', 'jax', 'pyarrow', 'pandas', 'numba', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_options_from_arguments_are_those_of_the_command():
    values = {"theta": np.array([1.0, 2.0]), "engine": "ray", "cluster": {"files": 20, "k": (2, 3, 2, 3)}}
    options = checked(options_of(JOBS["optimize"], values | {"out": Path("x")}))
    assert (options.theta, options.engine.name, options.out) == ([1.0, 2.0], "ray", "x")
    assert (options.cluster.files, options.cluster.k) == (20, [2, 3, 2, 3])


def test_keys_by_dotted_names_are_those_of_their_groups_wherever_they_stand():
    @of_job
    def optimize(*, cluster=None, engine="serial"):
        return cluster, engine

    assert optimize(**{"engine.actors": 4}, engine="ray") == (None, {"name": "ray", "actors": 4})
    assert optimize(engine="ray", **{"engine.actors": 4})[1] == {"name": "ray", "actors": 4}
    for options in ({"cluster.files": 9, "cluster": {"k": 2}}, {"cluster": {"k": 2}, "cluster.files": 9}):
        assert optimize(**options)[0] == {"k": 2, "files": 9}
    options = options_of(
        JOBS["replay"], {"planning": {"cluster.files": 9, "theta": 3}, "engine": {"name": "ray"}}
    )
    assert (options.planning.cluster.files, options.planning.theta) == (9, 3)
    with pytest.raises(UserError, match=r"planning.cluster.files: found twice; allowed: once"):
        options_of(JOBS["replay"], {"planning": {"cluster.files": 9, "cluster": {"files": 8}}})


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"engine": {"actors": 3}, "engine.actors": 4}, "engine.actors: found twice; allowed: once"),
        ({"engine.name": "ray", "engine": "ray"}, "engine.name: found twice; allowed: once"),
        (
            {"engine.actors": 4, "engine": EngineOptions("ray")},
            "engine.actors: found engine of type EngineOptions, too; allowed: beside a mapping",
        ),
        (
            {"cluster": 3, "cluster.files": 4},
            "cluster.files: found cluster of type int, too; allowed: beside",
        ),
        ({"cluster": {3: 4}}, "found option 'cluster.3'"),
    ],
)
def test_keys_of_a_group_stand_once(arguments, line):
    with pytest.raises(UserError) as error:
        ecjax.optimize(**arguments)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"thetta": 3}, "found option 'thetta' (did you mean theta?); allowed: trace, format"),
        ({"theta": -1}, "theta: found -1; allowed: a number, at least 0, or a list of them"),
        ({"cluster": {"fils": 3}}, "found option 'cluster.fils' (did you mean cluster.files?)"),
        ({"cluster.fils": 3}, "found option 'cluster.fils' (did you mean cluster.files?)"),
        ({"cluster": 3}, "cluster: found 3; allowed: a mapping"),
        ({"out": ""}, "out: found ''; allowed: a text"),
        ({"engine": "rey"}, "engine.name: found 'rey'; allowed: serial, ray"),
        ({"nodes": "nowhere.csv"}, "nodes table (nowhere.csv): no such file or folder"),
        ({"nodes": pd.DataFrame({"node": [1]})}, "nodes table (nodes): missing columns: node_id"),
        ({"files": pa.table({"x": [1]})}, "files table (files): missing columns:"),
        ({"nodes": pd.DataFrame({"node_id": [{1}, "a"]})}, "nodes: the DataFrame has no Arrow form"),
        ({"nodes": pd.DataFrame(NODES)["node_id"]}, "nodes: the Series has no Arrow form"),
        (
            {"nodes": pd.DataFrame(NODES).set_index("node_id")},
            "nodes: missing columns: node_id; found: delta_s, delta_s_per_byte, psi_s, psi_s_per_byte",
        ),
        (
            {"trace": pd.DataFrame({"t": [1], "x": [2]}).set_index("t"), "columns": {"arrival_s": "t"}},
            "trace: missing columns: t; found: x, and an index of this name; allowed: columns",
        ),
    ],
)
def test_mistakes_are_the_errors_of_the_command_and_leave_nothing(arguments, line, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UserError) as error:
        ecjax.optimize(**arguments)
    assert str(error.value).startswith(line)
    assert not list(tmp_path.iterdir())


def test_the_same_tables_are_the_same_run_whichever_way_they_come(plan, tmp_path):
    pa.parquet.write_table(pa.table(NODES), tmp_path / "somewhere.parquet")
    pd.DataFrame(FILES).to_csv(tmp_path / "some.csv", index=False)
    ways = [
        (pa.table(NODES), OtherTable(FILES)),
        (OtherTable(NODES), pa.table(FILES)),
        (tmp_path / "somewhere.parquet", str(tmp_path / "some.csv")),
        (plan, plan),
    ]
    for nodes, files in ways:
        with ecjax.optimize(nodes, files, **BASELINE) as other:
            assert other.run_ids == plan.run_ids


@pytest.mark.parametrize("table", [pd.DataFrame, pa.table])
def test_codes_may_be_a_table_in_memory(table):
    """A code without sparse checks is an MDS code of the same k and n."""
    mine = {"code": ["mine"], "k": [8], "n": [12], "checks": [""]}
    with ecjax.codes(["mine", "8+4"], code_table=table(mine)) as results:
        assert results.codes["nines"].tolist() == pytest.approx(results.codes["nines"].tolist()[::-1])
    with pytest.raises(UserError, match="^code_table: code_table has no column n; allowed"):
        ecjax.codes(["mine"], code_table=table({name: mine[name] for name in ("code", "k", "checks")}))


def test_texts_of_other_libraries_are_texts():
    assert arrow_table(OtherTable(NODES), "nodes").equals(pa.table(NODES))


def test_results_are_data_frames_by_name(plan):
    assert plan.runs["status"].tolist() == ["ok"]
    assert {"runs", "placements", "nodes", "files"} <= set(plan.datasets) <= set(dir(plan))
    assert set(plan.placements["file_id"]) == {7, 8}
    assert plan.nodes["node_id"].tolist() == NODES["node_id"]
    assert "optimize: 1 run" in plan.summary
    assert isinstance(plan.figure("tradeoff"), Figure)
    with pytest.raises(UserError, match="figure: found 'trade'; allowed: tradeoff"):
        plan.figure("trade")
    with pytest.raises(AttributeError, match="has no dataset 'places'"):
        _ = plan.places


def test_a_temporary_folder_goes_with_its_results(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    results = ecjax.optimize(nodes=pa.table(NODES), files=pa.table(FILES), **BASELINE)
    assert Path(results.out).is_relative_to(tmp_path)
    del results
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_named_folder_stays_and_holds_the_runs_of_other_calls(tmp_path):
    tables, out = (pa.table(NODES), pa.table(FILES)), tmp_path / "out"
    first = ecjax.optimize(*tables, **BASELINE | {"theta": [1, 2]}, out=out)
    second = ecjax.optimize(*tables, **BASELINE | {"theta": [2, 3]}, out=out)
    assert second.runs["theta"].tolist() == [2, 3]
    assert set(second.placements["run_id"]) == set(second.run_ids)
    assert len(ecjax.read_results(tmp_path / "out", "runs")) == 3
    first.close()
    assert set(first.placements["run_id"]) == set(first.run_ids)


def test_what_is_recommended_is_a_row_and_a_sentence(monkeypatch):
    run_study = optimize_study.run_study

    def recommending(tables, options, prepare, present, *others):
        def presented(runs):
            present(runs)
            return Recommendation("Take the last.", runs["run_id"].iloc[-1], "the last")

        return run_study(tables, options, prepare, presented, *others)

    monkeypatch.setattr(optimize_study, "run_study", recommending)
    results = ecjax.optimize(pa.table(NODES), pa.table(FILES), **BASELINE | {"theta": [1, 2]})
    assert results.sentence == "Take the last." in repr(results)
    assert results.recommended["theta"] == 2
    # it is the one that is replayed
    replayed = ecjax.replay(results, requests=200, replications=2, estimate=False)
    assert replayed.runs["plan_run"].tolist() == [results.recommended_run]


def test_quiet_unless_told_otherwise(capfd):
    arguments = {"strategy": "static", "codes": [[3, 2]], "requests": 500, "load": 0.5, "capacity": False}
    ecjax.adapt(**arguments)
    assert capfd.readouterr() == ("", "")
    ecjax.adapt(**arguments, quiet=False)
    out, err = capfd.readouterr()
    assert "adapt" in out or "(3,2)" in out
    assert "replaying" in err or "took" in err
    ecjax.adapt(**arguments)
    assert capfd.readouterr() == ("", "")


def test_the_seconds_that_are_told_are_those_of_the_call(capfd):
    began = time.perf_counter()
    ecjax.adapt(strategy="static", codes=[3, 2], requests=500, load=0.5, capacity=False, quiet=False)
    seconds = time.perf_counter() - began
    told = re.search(r"took\s+([\d.]+)\s+s", capfd.readouterr().err)
    assert float(told[1]) <= seconds + 0.05  # it is rounded to 0.1 s


def test_several_files_are_one_log_as_in_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(
        {
            "request_id": range(8),
            "arrival_s": np.arange(8.0),
            "file_id": [7, 8] * 4,
            "op": "read",
            "bytes": 5.0,
        }
    )
    parts = [rows[:3], rows[3:]]
    for name, part in zip(("a[1].parquet", "b.parquet"), parts, strict=True):
        part.to_parquet(name)
    ways = [[Path("a[1].parquet"), "b.parquet"], ("b.parquet", str(tmp_path / "a[1].parquet")), parts, [rows]]
    for trace in ways:
        with ecjax.analyze(trace, k=1) as results:
            assert results.files["rate_per_s"].tolist() == pytest.approx([4 / 7, 4 / 7])
    for trace in ([], [3]):
        with pytest.raises(UserError, match=r"trace: found \[3?\]; allowed: a text"):
            ecjax.analyze(trace, k=1)


def test_many_tables_in_memory_are_read_in_their_order():
    """One request each second, of two files in turns: 6 reads of each in the 11 s of 12 parts."""
    parts = [
        pd.DataFrame(
            {
                "request_id": [number],
                "arrival_s": [float(number)],
                "file_id": [7 + number % 2],
                "op": ["read"],
                "bytes": [5.0],
            }
        )
        for number in range(12)
    ]
    with ecjax.analyze(parts, k=1) as results:
        assert results.files["rate_per_s"].tolist() == pytest.approx([6 / 11, 6 / 11])


def test_a_log_in_memory_becomes_the_tables_of_a_plan():
    generator = np.random.default_rng(3)
    count = 400
    log = pd.DataFrame(
        {
            "request_id": np.arange(count),
            "arrival_s": np.sort(generator.uniform(0, 100, count)),
            "file_id": generator.integers(0, 2, count),
            "op": "read",
            "bytes": 1e6,
        }
    )
    analysis = ecjax.analyze(log, k=2)
    assert analysis.files["rate_per_s"].sum() == pytest.approx(count / 100, rel=0.05)
    assert isinstance(analysis.figure("popularity"), Figure)
    with ecjax.optimize(pa.table(NODES), analysis, **BASELINE) as planned:
        assert planned.runs["file_count"].tolist() == [2]
    again = ecjax.analyze(arrow_table(log, "trace"), k=2)
    assert again.run_ids == analysis.run_ids
