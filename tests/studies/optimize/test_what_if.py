"""What would be otherwise: tables changed by a scenario, and plans for them beside those for the tables as they are."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.options import Wrong, checked
from ecjax.problem.arrays import nodes_arrays
from ecjax.studies.optimize.batches import items_of
from ecjax.studies.optimize.inputs import read_cases
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.optimize.what_if import as_if, each_scenario
from ecjax.studies.optimize.what_if_rows import answer_rows
from ecjax.studies.optimize.what_if_rules import Change, changes
from ecjax.studies.optimize.what_if_words import answers
from ecjax.tables.read import read_input

MEAN, FILES, RATE = 0.01, 24, 10.0  # as many files on every node, however many nodes there are


@pytest.fixture
def tables(tmp_path) -> dict[str, str]:
    """Six nodes alike at three sites with exponential services, and files of one chunk: M/M/1 queues."""
    nodes = {
        "node_id": [f"osd.{j}" for j in range(6)],
        "site": ["east", "east", "north", "north", "west", "west"],
        "service_mean_s": np.full(6, MEAN),
        "service_second_s2": np.full(6, 2 * MEAN**2),
        "service_third_s3": np.full(6, 6 * MEAN**3),
        "reference_bytes": np.full(6, 1e6),
    }
    files = {
        "file_id": np.arange(FILES),
        "bytes": np.full(FILES, 1e6),
        "k": np.full(FILES, 1),
        "rate_per_s": np.full(FILES, RATE),
    }
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    pq.write_table(pa.table(files), tmp_path / "files.parquet")
    return {"nodes": str(tmp_path / "nodes.parquet"), "files": str(tmp_path / "files.parquet")}


def read(tables: dict[str, str]) -> tuple[pa.Table, pa.Table]:
    return read_input(tables["nodes"], "nodes"), read_input(tables["files"], "files")


def test_scenarios_are_read_as_they_are_written():
    assert changes("traffic:2+nodes:2:osd.3") == [Change("traffic", "", 2.0), Change("nodes", "osd.3", 2)]
    assert changes("slow:rack:7+1:5") == [Change("slow", "rack:7+1", 5.0)]
    assert changes("site:us-east-1") == [Change("site", "us-east-1", 0.0)]


@pytest.mark.parametrize(
    "text", ["nodes:0", "nodes:x", "traffic:0", "traffic:nan", "slow:5", "disk:3", "node:", "", "traffic:2+"]
)
def test_what_is_no_scenario_is_refused_in_a_line(text):
    with pytest.raises(Wrong):
        changes(text)
    with pytest.raises(UserError, match=r"what_if: found .*; allowed: nodes:2") as error:
        checked(OptimizeOptions(what_if=["traffic:2", text]))
    assert "\n" not in str(error.value)


def test_nodes_more_are_copies_under_ids_of_their_own(tables):
    nodes, files = read(tables)
    more, same = as_if(nodes, files, "nodes:2:osd.4")
    assert more["node_id"].to_pylist()[6:] == ["new.1", "new.2"] and same.equals(files)
    assert more["site"].to_pylist()[6:] == ["west", "west"]
    again, _ = as_if(more, files, "nodes:7")
    assert len(set(again["node_id"].to_pylist())) == 15


def test_lost_nodes_are_lost_in_the_files_too(tables):
    nodes, files = read(tables)
    files = files.append_column("forbidden_nodes", pa.array([["osd.5"], *[None] * (FILES - 1)]))
    left, changed = as_if(nodes, files, "site:west")
    assert left["node_id"].to_pylist() == ["osd.0", "osd.1", "osd.2", "osd.3"]
    assert changed["forbidden_nodes"].null_count == FILES
    left, changed = as_if(nodes, files, "node:osd.0")
    assert left.num_rows == 5 and changed.equals(files)


def test_traffic_multiplies_rates_and_their_errors(tables):
    nodes, files = read(tables)
    names = ["rate_per_s", "rate_standard_error_per_s", "write_rate_per_s"]
    files = files.append_column(names[1], pa.array(np.full(FILES, 0.5)))
    files = files.append_column(names[2], pa.array(np.full(FILES, 2.0)))
    changed = as_if(nodes, files, "traffic:3")[1]
    assert [changed[name][0].as_py() for name in names] == [3 * RATE, 1.5, 6.0]


def test_prices_of_reads_go_with_the_nodes(tables, tmp_path):
    """Rows of the network table that name lost nodes do not count; nodes more are as dear as those they are like."""
    rows = {"node_id": ["osd.4", "osd.1", None, None], "node_site": [None, None, "west", None]}
    network = str(tmp_path / "network.parquet")
    pq.write_table(pa.table(rows | {"dollars_per_byte": [4e-12, 1e-12, 7e-12, 2e-12]}), network)
    scenarios = ["node:osd.4", "site:west", "nodes:2:osd.4+node:osd.1", "nodes:7"]
    options = checked(OptimizeOptions(**tables, network=network, what_if=scenarios))
    prices = [2.0, 1.0, 2.0, 2.0, 4.0, 7.0]
    expected = {
        None: prices,
        "node:osd.4": [2.0, 1.0, 2.0, 2.0, 7.0],
        "site:west": prices[:4],
        "nodes:2:osd.4+node:osd.1": [2.0, 2.0, 2.0, 4.0, 7.0, 4.0, 4.0],
        "nodes:7": [*prices, *prices, 2.0],
    }
    cases = {case.what_if: case for case in read_cases(options)}
    assert list(cases) == list(expected)
    bytes_per_period = RATE * 1e6 * 30 * 86400
    for name, by_node in expected.items():
        reading = np.asarray(cases[name].problem.reading)
        assert np.allclose(reading, np.array(by_node) * 1e-12 * bytes_per_period, rtol=1e-12)


def test_a_slow_node_takes_so_many_times_as_long(tables):
    nodes, files = read(tables)
    slow = np.asarray(nodes_arrays(as_if(nodes, files, "slow:osd.2:5")[0]).service)
    usual = np.asarray(nodes_arrays(nodes).service)
    factor = np.where(np.arange(6) == 2, 5.0, 1.0)
    for power in (1, 2, 3):
        assert np.allclose(slow[power - 1], usual[power - 1] * factor**power, rtol=1e-14)


def test_every_site_and_every_node_is_lost_in_turn(tables):
    nodes, _ = read(tables)
    listed = each_scenario(nodes, ["site:every", "traffic:2+site:every", "node:every"])
    sites = [f"site:{name}" for name in ("east", "north", "west")]
    assert listed[:6] == [*sites, *(f"traffic:2+{site}" for site in sites)]
    assert listed[6:] == [f"node:osd.{j}" for j in range(6)]
    with pytest.raises(UserError, match="what_if=site:every: found no column site"):
        each_scenario(nodes.drop_columns("site"), ["site:every"])
    with pytest.raises(UserError, match="every once in a scenario"):
        checked(OptimizeOptions(what_if=["site:every+node:every"]))


def test_every_node_is_slow_in_turn(tables):
    nodes, _ = read(tables)
    listed = each_scenario(nodes, ["traffic:2", "slow:every:5+traffic:2", "slow:osd.1:5+traffic:2"])
    assert listed == ["traffic:2", *(f"slow:osd.{j}:5+traffic:2" for j in range(6))]


@pytest.mark.parametrize(
    "scenario",
    ["node:osd.9", "site:south", "slow:osd.9:2", "nodes:2:osd.9", "site:east+site:north+site:west"],
)
def test_what_the_tables_have_not_is_refused(tables, scenario):
    with pytest.raises(UserError, match=rf"what_if={scenario.replace('+', '.')}: .*allowed: "):
        as_if(*read(tables), scenario)


def test_each_scenario_is_planned_and_the_plan_as_it_is_recommended(tables, tmp_path):
    """Files of one chunk on nodes alike are spread evenly: the latency is that of M/M/1, in every scenario."""
    out, text = str(tmp_path / "out"), io.StringIO()
    scenarios = ["nodes:2", "traffic:2", "site:west", "traffic:2+nodes:2", "traffic:10"]
    options = OptimizeOptions(**tables, out=out, what_if=scenarios, estimate=False, figures=[], gap=1e-3)
    assert optimize_study(options, Console(file=text, width=200)) == 1
    runs = pd.read_parquet(f"{out}/runs")
    runs = runs.set_index(runs["what_if"].fillna("as it is"))
    per_node = FILES * RATE / np.array([6, 8, 6, 4, 8]) * np.array([1, 1, 2, 1, 2])
    expected = MEAN / (1 - per_node * MEAN)
    named = ["as it is", "nodes:2", "traffic:2", "site:west", "traffic:2+nodes:2"]
    assert np.allclose(runs.loc[named, "max_load"], per_node * MEAN, rtol=0.02)
    assert np.allclose(runs.loc[named, "latency_s"], expected, rtol=0.02)
    assert (runs.loc[named, "lower_bound"] <= expected * (1 + 1e-9)).all()
    assert runs.loc["traffic:10", "status"] == "unstable"
    swept = runs.loc[["as it is", *scenarios]].reset_index(drop=True)
    rows = answers(swept, runs.loc["as it is", "run_id"])
    assert rows["scenario"].tolist() == ["as it is", *scenarios]
    assert "No plan is stable with traffic:10." in text.getvalue()
    assert "Most is gained by nodes:2" in text.getvalue()
    table = pd.read_parquet(f"{out}/what_if").set_index("scenario")
    assert set(table.index) == {"as it is", *scenarios}
    assert (table["base_run_id"] == runs.loc["as it is", "run_id"]).all()
    assert np.allclose(table.loc[named, "latency_s"], runs.loc[named, "latency_s"])
    assert list(table.loc[named, "node_count"]) == [6, 8, 6, 4, 8]
    assert np.allclose(table.loc[named, "reads_per_s"], FILES * RATE * np.array([1, 1, 2, 1, 2]))
    assert table.loc["traffic:10", "status"] == "unstable" and pd.isna(table.loc["traffic:10", "latency_s"])


def test_small_reads_are_reads_too(tables):
    files = read(tables)[1]
    for name, value in (("small_rate_per_s", 2.0), ("small_bytes", 1e3)):
        files = files.append_column(name, pa.array(np.full(FILES, value)))
    pq.write_table(files, tables["files"])
    options = checked(OptimizeOptions(**tables, what_if=["traffic:2"], rate_scale=[0.5], theta=[0.0]))
    reads = []
    for case in read_cases(options):
        items = {item.run.run_id: item for item in items_of(case, options)}
        reads += answer_rows(case, [{"run_id": name} for name in items], items)["reads_per_s"].to_pylist()
    np.testing.assert_allclose(reads, [0.5 * FILES * (RATE + 2.0), FILES * (RATE + 2.0)], rtol=1e-12)


def test_scenarios_without_placements_are_rows_beside_the_others(tables, tmp_path):
    """Files of three chunks, five nodes needed, at most two chunks at a site: without a site there is room for four."""
    files = pq.read_table(tables["files"])
    place = files.column_names.index("k")
    files = files.set_column(place, "k", pa.array(np.full(FILES, 3)))
    files = files.append_column("min_extra_chunks", pa.array(np.full(FILES, 2)))
    pq.write_table(files, tables["files"])
    out, text = str(tmp_path / "out"), io.StringIO()
    scenarios = ["site:west", "nodes:2", "node:osd.0+node:osd.1", "node:osd.0"]
    options = OptimizeOptions(
        **tables,
        out=out,
        what_if=scenarios,
        max_chunks_per_site=2,
        rate_scale=[0.5],
        estimate=False,
        figures=[],
        gap=1e-2,
    )
    assert optimize_study(options, Console(file=text, width=300)) == 1
    runs = pd.read_parquet(f"{out}/runs")
    runs = runs.set_index(runs["what_if"].fillna("as it is"))
    for scenario in ("site:west", "node:osd.0+node:osd.1"):
        row = runs.loc[scenario]
        assert row["status"] == "infeasible" and pd.isna(row["latency_s"])
        assert "needs 5 nodes; nodes has 4" in row["error"]
        answer = pd.read_parquet(f"{out}/what_if").set_index("scenario").loc[scenario]
        assert (answer["status"], answer["error"]) == ("infeasible", row["error"])
    for scenario in ("as it is", "nodes:2", "node:osd.0"):
        assert runs.loc[scenario, "status"] == "ok"
        assert runs.loc[scenario, "lower_bound"] <= runs.loc[scenario, "objective"] * (1 + 1e-9)
    assert (
        "No placement is allowed with site:west, node:osd.0+node:osd.1 (site:west: files:" in text.getvalue()
    )
    assert "No plan is stable" not in text.getvalue()


def test_sites_without_room_are_rows_too(tables, tmp_path):
    """Three chunks of a file, one at a site: without one of three sites there is room for two."""
    options = {"out": str(tmp_path), "theta": [1.0], "max_chunks_per_site": 1}
    files = pq.read_table(tables["files"])
    place = files.column_names.index("k")
    pq.write_table(files.set_column(place, "k", pa.array(np.full(FILES, 3))), tables["files"])
    checked_options = checked(OptimizeOptions(**tables, **options, what_if=["site:west", "traffic:2"]))
    cases = list(read_cases(checked_options))
    assert [case.error is None for case in cases] == [True, False, True]
    assert "max_chunks_per_site=1 leaves room for 2 chunks" in str(cases[1].error)


def with_columns(tables, **columns) -> None:
    files = pd.read_parquet(tables["files"]).assign(**columns)
    files.to_parquet(tables["files"], index=False)


def test_fixed_nodes_that_are_lost_are_rows_too(tables, tmp_path):
    """Files of 2 + 2 chunks on four of six nodes: without one of these there is room for three."""
    lists = pd.Series([["osd.0", "osd.1", "osd.2", "osd.3"]] * FILES)
    with_columns(tables, k=2, min_extra_chunks=2, nodes=lists)
    out, text = str(tmp_path / "out"), io.StringIO()
    options = OptimizeOptions(
        **tables,
        out=out,
        what_if=["node:every"],
        fixed_groups=True,
        rate_scale=[0.3],
        estimate=False,
        figures=[],
        gap=1e-2,
    )
    assert optimize_study(options, Console(file=text, width=200)) == 1
    runs = pd.read_parquet(f"{out}/runs")
    runs = runs.set_index(runs["what_if"].fillna("as it is"))
    assert len(runs) == 7
    for scenario in (f"node:osd.{j}" for j in range(4)):
        assert runs.loc[scenario, "status"] == "infeasible"
        assert (
            "column nodes, row 0 (file_id=0): found 3 nodes; allowed: at least 4"
            in runs.loc[scenario, "error"]
        )
    for scenario in ("as it is", "node:osd.4", "node:osd.5"):
        assert runs.loc[scenario, "status"] == "ok"


def test_lengths_without_room_are_rows_too(tables, tmp_path):
    """Files of six chunks on six nodes: without one there is room for five. As it is, seven chunks are a mistake."""

    def errors() -> list[str | None]:
        scenarios = ["node:osd.0", "traffic:2"]
        chosen = {"queue": ["priority"], "method": None, "theta": [0.0], "what_if": scenarios}
        options = checked(OptimizeOptions(**tables, **chosen, out=str(tmp_path)))
        return [case.error for case in read_cases(options)]

    with_columns(tables, service_class=np.resize([1, 2], FILES), n=6)
    as_it_is, lost, traffic = errors()
    assert as_it_is is None and traffic is None
    assert "column n, row 0 (file_id=0): found 6; allowed: at most 5" in str(lost)
    with_columns(tables, n=7)
    with pytest.raises(UserError, match="found 7; allowed: at most 6"):
        errors()


def test_codes_without_room_on_fixed_nodes_are_rows_too(tables, tmp_path):
    """Three nodes keep 2 + 1 chunks, not 4 + 2; what is wrong with every code is a mistake."""
    chosen = {"codes": ["2+1", "4+2"], "fixed_groups": True, "theta": [0.0], "out": str(tmp_path)}

    def errors(listed: list[str]) -> list[str | None]:
        with_columns(tables, nodes=pd.Series([listed] * FILES))
        return [case.error for case in read_cases(checked(OptimizeOptions(**tables, **chosen)))]

    short, long = errors(["osd.0", "osd.2", "osd.4"])
    assert short is None
    assert "found 3 nodes; allowed: at least 6" in str(long)
    with pytest.raises(UserError, match="found 'osd.9'; allowed: a node_id of the nodes table"):
        errors(["osd.0", "osd.2", "osd.9"])


def test_answers_where_nothing_is_stable_as_it_is(tables, tmp_path):
    """Load 240 x 0.01 x 2.6 / 6 = 1.04 as it is; two nodes more leave three quarters of it: M/M/1 at 0.78."""
    out, text = str(tmp_path / "out"), io.StringIO()
    options = OptimizeOptions(
        **tables, out=out, what_if=["nodes:2"], rate_scale=[2.6], estimate=False, figures=[], gap=1e-3
    )
    assert optimize_study(options, Console(file=text, width=200)) == 1
    runs = pd.read_parquet(f"{out}/runs").set_index("what_if")
    assert np.isclose(runs.loc["nodes:2", "latency_s"], MEAN / (1 - 0.78), rtol=0.02)
    assert "As it is, no plan is stable. The best with a stable plan is nodes:2 (45" in text.getvalue()


def test_runs_as_the_tables_are_have_the_ids_that_they_had(tables, tmp_path):

    def ids(**more) -> list[str]:
        options = checked(OptimizeOptions(**tables, out=str(tmp_path), theta=[1.0], **more))
        return [item.run.run_id for case in read_cases(options) for item in items_of(case, options)]

    plain = ids()
    both = ids(what_if=["traffic:2", "nodes:2"])
    assert both[: len(plain)] == plain and len(set(both)) == 3 * len(plain)
