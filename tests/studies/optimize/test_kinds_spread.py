"""Data chunks move to where small reads wait little, in turn with the spread of reads; several sizes have bounds."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.studies.optimize import kinds_spread
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, str]:
    """Twelve files of 2 + 2 on six nodes that differ, with full reads and small reads of two sizes."""
    folder, random = tmp_path_factory.mktemp("kinds"), np.random.default_rng(3)
    mean = random.uniform(0.003, 0.012, 6)
    nodes = {"node_id": [f"n{j}" for j in range(6)], "delta_s": mean / 2, "psi_s": mean / 2}
    nodes |= {"delta_s_per_byte": [1e-9] * 6, "psi_s_per_byte": [0.0] * 6}
    files = {"file_id": list(range(12)), "bytes": [2e6] * 12, "k": [2] * 12, "min_extra_chunks": [2] * 12}
    files |= {"rate_per_s": random.uniform(2, 6, 12), "small_rate_per_s": random.uniform(5, 25, 12)}
    files |= {"small_bytes": [4e3, 64e3] * 6}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    pq.write_table(pa.table(files), folder / "files.parquet")
    return {"nodes": str(folder / "nodes.parquet"), "files": str(folder / "files.parquet")}


def planned(tables, out) -> dict:
    options = OptimizeOptions(**tables, out=str(out), theta=[0.0], gap=0.2, estimate=False, figures=[])
    assert optimize_study(options, QUIET) == 0
    [run] = read_results(str(out), "runs").to_dict("records")
    return run


def test_moved_data_chunks_have_less_latency_and_stay_on_the_placement(tables, tmp_path, monkeypatch):
    run = planned(tables, tmp_path / "turns")
    monkeypatch.setattr(kinds_spread, "_MOST_TURNS", 0)
    once = planned(tables, tmp_path / "once")
    assert run["latency_s"] <= 0.98 * once["latency_s"]
    # small reads of two sizes
    assert 0 <= run["scheduling_gap"] <= 0.25
    placed = read_results(str(tmp_path / "turns"), "placements")
    nodes = placed.groupby("file_id")["node_id"].agg(set)
    kinds = read_results(str(tmp_path / "turns"), "read_kinds")
    direct = kinds[kinds["kind"] == "direct"]
    for file, chunks in direct.groupby("file_id"):
        assert chunks["node_id"].nunique() == chunks["data_chunk"].nunique() == 2
        assert set(chunks["node_id"]) <= nodes[file]


def far_apart(folder, rate, **columns) -> dict[str, str]:
    """Eight files with reads of about 1 kB on nodes of 1 ms for that, one with reads of 1 MB on nodes of 15 s.

    Services are exponential, their means proportional to the bytes.
    """
    law = {"delta_s": [0.0] * 6, "delta_s_per_byte": [0.0] * 6, "psi_s": [0.0] * 6}
    nodes = {"node_id": [f"n{j}" for j in range(1, 7)]} | law | {"psi_s_per_byte": [1e-6] * 3 + [15e-6] * 3}
    files = {"file_id": [f"f{i}" for i in range(1, 10)], "bytes": [2e6] * 9, "k": [2] * 9}
    files |= {"min_extra_chunks": [1] * 9, "rate_per_s": [0.0] * 9}
    files |= {"nodes": [["n1", "n2", "n3"]] * 8 + [["n4", "n5", "n6"]]}
    files |= {"small_bytes": [*np.arange(1000.0, 1008.0), 1e6], "small_rate_per_s": [60.0] * 8 + [rate]}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    pq.write_table(pa.table(files | columns), folder / "files.parquet")
    return {"nodes": str(folder / "nodes.parquet"), "files": str(folder / "files.parquet")}


def fixed(folder, tables) -> dict:
    options = OptimizeOptions(
        **tables, out=str(folder / "out"), theta=[0.0], fixed_groups=True, estimate=False, figures=[]
    )
    assert optimize_study(options, QUIET) == 0
    [run] = read_results(str(folder / "out"), "runs").to_dict("records")
    return run


def test_a_few_long_reads_among_many_short_ones_overload_nodes(tmp_path):
    """0.07 reads of 15 s a second at either node: a load of 1.05. Decoded ones need one of the two as well."""
    with pytest.raises(UserError, match=r"node_id=n[45]\): load rho = 1\.05 at rate_scale=1"):
        fixed(tmp_path, far_apart(tmp_path, 0.14, small_rate_per_s=[125.0] * 8 + [0.14]))


def test_a_few_long_reads_among_many_short_ones_are_decoded(tmp_path):
    """0.1 reads of 15 s a second of one node's chunk: a load of 1.5, but where some are decoded from the two others."""
    run = fixed(tmp_path, far_apart(tmp_path, 0.1, small_chunk=[0] * 9))
    assert run["status"] == "ok"
    kinds = read_results(str(tmp_path / "out"), "read_kinds")
    long = kinds[kinds["file_id"] == "f9"]
    direct, decoded = (long[long["kind"] == kind] for kind in ("direct", "degraded"))
    [share] = direct["share"]
    assert list(decoded["node_id"]) == ["n5", "n6"]
    np.testing.assert_allclose(decoded["share"], 1 - share)
    assert 1 / 3 < share < 2 / 3
    assert run["max_load"] == pytest.approx(1.5 * max(share, 1 - share), rel=1e-9)
    # M/M/1
    assert direct["latency_s"].tolist() == pytest.approx([15 / (1 - 1.5 * share)], rel=1e-9)
    alike = 15 / (1 - 1.5 * (1 - share))
    # two nodes alike of exponential sojourns: E + sqrt((k - 1) V)
    np.testing.assert_allclose(decoded["latency_s"], 2 * alike, rtol=1e-6)
    short = kinds[kinds["file_id"] != "f9"]
    of_file = short["rate_per_s"] * short["share"] * short["latency_s"]
    once = short[~short.duplicated(["file_id", "kind"])].index
    mean = float(of_file[once].sum()) + 0.1 * (share * 15 / (1 - 1.5 * share) + (1 - share) * 2 * alike)
    assert run["latency_s"] == pytest.approx(mean / (8 * 60 + 0.1), rel=1e-6)
    # of one z for the joined reads of all files, by the sizes that they have
    assert run["latency_s"] <= run["latency_shared_z_s"] <= 1.5 * run["latency_s"]


def test_an_empty_list_of_nodes_says_as_little_as_none(tmp_path):
    listed, found = [["n4", "n5", "n6"]] * 8, []
    for last in ([], None):
        place = tmp_path / str(last)
        place.mkdir()
        found.append(
            fixed(place, far_apart(place, 0.01, nodes=[*listed, last], small_rate_per_s=[6.0] * 8 + [0.01]))
        )
    assert [run["status"] for run in found] == ["ok", "ok"]
    columns = ["objective", "latency_s", "lower_bound", "gap"]
    np.testing.assert_array_equal(*([run[name] for name in columns] for run in found))


def test_lists_that_a_loss_leaves_in_another_order_are_an_answer_of_their_own(tmp_path):
    """Without n2 the data chunks of the group's files would be n1 and n3, or n1 and n4: that answer alone has none."""
    given = far_apart(
        tmp_path, 0.01, nodes=[["n1", "n2", "n3", "n4"]] * 8 + [["n1", "n2", "n4", "n3"]], group=["g"] * 9
    )
    out = str(tmp_path / "out")
    options = OptimizeOptions(
        **given,
        out=out,
        theta=[0.0],
        gap=0.2,
        fixed_groups=True,
        what_if=["node:n2", "node:n5"],
        estimate=False,
        figures=[],
    )
    assert optimize_study(options, QUIET) == 1
    runs = read_results(out, "runs").set_index("what_if")
    assert runs.loc["node:n2", "status"] == "infeasible" and runs.loc["node:n5", "status"] == "ok"
    assert runs["error"]["node:n2"].startswith("files: column nodes, row 8")


def test_latency_of_a_group_is_of_all_its_reads(tables, tmp_path):
    """One file with full reads alone beside one with many small ones: weights are their rates, as the column says."""
    files = pq.read_table(tables["files"]).to_pydict()
    files["rate_per_s"][:2], files["small_rate_per_s"][:2] = [3.0, 0.5], [0.0, 20.0]
    files["group"] = ["g", "g"] + [None] * 10
    pq.write_table(pa.table(files), tmp_path / "files.parquet")
    planned(tables | {"files": str(tmp_path / "files.parquet")}, tmp_path / "out")
    [group] = read_results(str(tmp_path / "out"), "group_plans").to_dict("records")
    latency = read_results(str(tmp_path / "out"), "file_plans").set_index("file_id")["latency_s"]
    assert group["latency_s"] == pytest.approx((3.0 * latency[0] + 20.5 * latency[1]) / 23.5, rel=1e-9)


def test_every_size_is_planned_for_the_work_of_its_own_small_reads(tmp_path):
    """M/G/1 at both nodes: 40 small reads a second and a full one, each of 8 ms + Exp(2 ms) and 10 ns for a byte.

    With ten times the bytes the small ones take 10 ms and 100 ns, the full one 110 ms instead of 20.
    """
    law = {
        "delta_s": [0.008] * 2,
        "delta_s_per_byte": [1e-8] * 2,
        "psi_s": [0.002] * 2,
        "psi_s_per_byte": [0.0] * 2,
    }
    pq.write_table(pa.table({"node_id": ["n1", "n2"]} | law), tmp_path / "nodes.parquet")
    file = {"file_id": ["f"], "bytes": [2e6], "k": [2], "rate_per_s": [1.0]}
    file |= {"small_rate_per_s": [80.0], "small_bytes": [1.0]}
    pq.write_table(pa.table(file), tmp_path / "files.parquet")
    tables = {name: str(tmp_path / f"{name}.parquet") for name in ("nodes", "files")}
    # there is one placement: its bound need not be close
    options = OptimizeOptions(
        **tables,
        out=str(tmp_path / "out"),
        theta=[0.0],
        gap=0.2,
        size_scale=[1.0, 10.0],
        estimate=False,
        figures=[],
    )
    assert optimize_study(options, QUIET) == 0
    runs = read_results(str(tmp_path / "out"), "runs").sort_values("size_scale")
    assert runs["status"].tolist() == ["ok", "ok"]
    size = runs["size_scale"].to_numpy()
    small, full = 0.01 + 1e-8 * size, 0.01 + 1e-8 * 1e6 * size
    load = 40 * small + full
    np.testing.assert_allclose(load, [0.4200004, 0.510004])
    np.testing.assert_allclose(runs["max_load"], load, rtol=1e-9)
    # the variance of the exponential part, 4e-6 s^2, and the mean squared
    second = 40 * (small**2 + 4e-6) + full**2 + 4e-6
    wait = second / (2 * (1 - load))
    np.testing.assert_allclose(runs["small_latency_s"], small + wait, rtol=1e-9)


def test_files_of_a_group_say_in_one_order_which_nodes_have_data(tmp_path):
    """Whose order counts would depend on the order of the rows."""
    lists = [["n1", "n2", "n3"]] * 7 + [["n2", "n1", "n3"], ["n4", "n5", "n6"]]
    tables = far_apart(tmp_path, 0.1, group=["g"] * 8 + [None], nodes=lists)
    with pytest.raises(
        UserError, match=r"row 7 \(file_id=f8\): found n2, n1 first; allowed: n1, n2 as in row 0"
    ):
        fixed(tmp_path, tables)
