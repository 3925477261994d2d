"""What a log does not tell of its nodes: prices, sites and the rest, from a nodes table beside it."""

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.tables.read import read_input
from ecjax.tables.verify import verify

TRACES = Path(__file__).parents[3] / "traces"
NODES = str(TRACES / "nodes_racks.csv")


LOG = str(TRACES / "requests_racks.parquet")


def run(out, nodes, log=LOG):
    """What was printed."""
    console = Console(file=io.StringIO(), width=160)
    assert analyze_study(AnalyzeOptions(trace=log, out=str(out), nodes=nodes, figures=False), console) == 0
    return console.file.getvalue()


def test_what_a_log_does_not_tell_of_nodes_comes_from_a_table(tmp_path):
    out = tmp_path / "out"
    text = run(out, NODES)
    learned = read_input(out / "nodes", "nodes").to_pandas().set_index("node_id")
    table = read_input(NODES, "nodes").to_pandas().set_index("node_id").loc[learned.index]
    for name in ("site", "cost_per_byte_dollars", "connect_mean_s", "capacity_chunks"):
        assert learned[name].equals(table[name])
    assert not learned["psi_s"].equals(table["psi_s"])  # the law is that of the log
    mean = [each["delta_s"] + each["psi_s"] + 2**22 * each["delta_s_per_byte"] for each in (learned, table)]
    mean[0] += 2**22 * learned["psi_s_per_byte"]
    np.testing.assert_allclose(mean[0], mean[1], rtol=0.05)
    assert "price" not in text


def test_a_table_that_lacks_a_node_of_the_log_is_refused(tmp_path):
    table = read_input(NODES, "nodes").slice(1)
    pq.write_table(table, tmp_path / "nodes.parquet")
    with pytest.raises(UserError, match="nodes: found no node_id 'rack-1-host-1'; allowed: a row for every"):
        run(tmp_path / "out", str(tmp_path / "nodes.parquet"))
    assert not (tmp_path / "out" / "nodes").exists()


def test_inputs_are_verified_also_the_log_behind_an_analysis(tmp_path):
    nodes = tmp_path / "racks.csv"
    nodes.write_text(Path(NODES).read_text())
    first, second = tmp_path / "first", tmp_path / "second"
    run(first, str(nodes))
    run(
        second, str(first / "nodes"), str(first)
    )  # what it knows of its nodes comes from the first, as does the log

    def states(out):
        return {(source.option, source.path): state for source, state in verify(out).sources.items()}

    assert states(first) == {("trace", LOG): "same", ("nodes", str(nodes)): "same"}
    assert states(second) == {("trace", LOG): "same", ("nodes", str(first / "nodes")): "same"}
    nodes.write_text(nodes.read_text() + "\n")
    next((first / "nodes").iterdir()).unlink()
    assert states(first) == {("trace", LOG): "same", ("nodes", str(nodes)): "changed"}
    assert states(second) == {("trace", LOG): "same", ("nodes", str(first / "nodes")): "changed"}


def test_columns_that_no_plan_uses_are_left_out_and_sites_are_numbers_or_names(tmp_path):
    table = read_input(NODES, "nodes").to_pandas()
    table["owner"], table["site"] = "storage team", table["site"].str.removeprefix("rack-").astype(int)
    table.to_parquet(tmp_path / "nodes.parquet")
    text = " ".join(run(tmp_path / "out", str(tmp_path / "nodes.parquet")).split())
    assert "Left out: 1 column of nodes= that plans do not use (owner)." in text
    learned = read_input(tmp_path / "out" / "nodes", "nodes").to_pandas().set_index("node_id")
    assert "owner" not in learned
    # a host's site is the number of its rack
    assert learned["site"].tolist() == [int(name.split("-")[1]) for name in learned.index]
