"""Paths that end a folder too early, or lead to what another job wrote: the message lists what is meant."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.studies.analyze.tables import TABLES as ANALYSES
from ecjax.studies.optimize.tables import TABLES as PLANS
from ecjax.studies.replay.tables import TABLES as REPLAYS
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.logs import log_reading
from ecjax.tables.read import read_input
from ecjax.tables.results import find_run, find_runs
from ecjax.tables.results_below import results_below
from ecjax.tables.store import ResultStore

IDS = {"file_id": pa.int64(), "node_id": pa.int64()}
NODES = {"node_id": [0], "delta_s": [1.0], "delta_s_per_byte": [0.0], "psi_s": [0.0], "psi_s_per_byte": [0.0]}


def commit(out, tables, job, **datasets):
    with ResultStore(out, tables, IDS) as results:
        results.commit([{"run_id": "a", "job": job, "status": "ok"}], datasets)


@pytest.fixture
def results(tmp_path):
    """An analysis, a plan, and a replay with the plan that it made."""
    commit(tmp_path / "learned", ANALYSES, "analyze", nodes=pa.table({"run_id": ["a"], **NODES}))
    commit(tmp_path / "deep" / "planned", PLANS, "optimize")
    commit(tmp_path / "replayed", REPLAYS, "replay")
    commit(tmp_path / "replayed" / "planning", PLANS, "optimize")
    return tmp_path


def test_all_are_listed_and_what_is_in_them_is_not(results):
    names = [(str(each.folder.relative_to(results)), each.job) for each in results_below(results)]
    assert names == [
        ("deep/planned", "optimize"),
        ("learned", "analyze"),
        ("replayed", "replay"),
        ("replayed/planning", "optimize"),
    ]


def refused(function, *arguments):
    with pytest.raises(UserError) as error:
        function(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("find", [find_run, find_runs])
def test_a_plan_is_looked_for_where_plans_are(results, find):
    plans = f"as {results / 'deep' / 'planned'}, {results / 'replayed' / 'planning'}"
    assert refused(find, results) == (
        f"plan={results}: has no dataset 'runs', holds no results; allowed: results of ecjax optimize, {plans}"
    )
    learned, replayed = results / "learned", results / "replayed"
    assert refused(find, learned) == (
        f"plan={learned}: no finished optimize run found; runs there: none, but results of ecjax analyze; allowed: "
        "those of ecjax optimize"
    )
    assert refused(find, replayed) == (
        f"plan={replayed}: no finished optimize run found; runs there: none, but results of ecjax replay; allowed: "
        f"those of ecjax optimize, as {replayed / 'planning'}"
    )


def test_a_table_is_not_read_from_the_folder_above(results):
    nodes = results / "learned" / "nodes"
    for folder in (results / "learned", results):
        words = f"{folder}: a folder of results; allowed: the folder of one nodes table, as {nodes}"
        assert refused(read_input, folder, "nodes") == words
        with pytest.raises(UserError, match="the folder of one files table$"):
            read_input(folder, "files")
    assert read_input(nodes, "nodes")["node_id"].to_pylist() == [0]


def test_nested_folders_of_parquet_stay_a_table(tmp_path):
    (tmp_path / "new" / "nodes").mkdir(parents=True)
    pq.write_table(pa.table(NODES), tmp_path / "new" / "nodes" / "part.parquet")
    assert len(read_input(tmp_path, "nodes")) == 1


def test_a_log_is_not_read_from_the_folder_above(results):
    assert refused(log_reading, LogOptions(trace=str(results))) == (
        f"trace={results}: a folder above results; allowed: a log, or the folder of an ecjax analyze, as "
        f"{results / 'learned'}"
    )
