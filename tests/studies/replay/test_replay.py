"""``ecjax replay`` from tables to tables: what it writes, against loads, bounds and sums that are known."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.simulation.run import DIRECT_OR_DEGRADED, POLICIES, QUEUES
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay import run as replay_run
from ecjax.studies.replay.assumptions import broken
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)


def options(out, planning=None, **values):
    cluster = ClusterOptions(hardware="tahoe", files=24, load=0.6, nodes_per_site=3)
    # any plan does, which then needs no other one beside it
    usual = {"theta": [10.0], "gap": 0.2, "figures": [], "estimate": False, "cluster": cluster}
    plan = OptimizeOptions(**(usual | (planning or {})))
    given = {"requests": 4000, "replications": 2, "figures": [], "estimate": False}
    given |= {"out": str(out), "planning": plan}
    return ReplayOptions(**(given | values))


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A folder with a plan and its replay."""
    out = tmp_path_factory.mktemp("replay")
    assert replay_study(options(out, requests=30_000, estimate=True), QUIET) == 0
    return out


def replays(out):
    return read_results(out, "runs")


def rows(out, group, source="replayed"):
    table = read_results(out, "latencies")
    return table[(table["group"] == group) & (table["source"] == source)].reset_index(drop=True)


def test_groups_add_up(plan):
    run, whole = replays(plan).iloc[0], rows(plan, "all").iloc[0]
    assert run["status"] == "ok" and run["mean_s"] == whole["mean_s"] and run["p99_s"] == whole["p99_s"]
    for group in ("class", "file"):
        parts = rows(plan, group)
        assert parts["requests"].sum() == whole["requests"]
        assert np.average(parts["mean_s"], weights=parts["requests"]) == pytest.approx(
            whole["mean_s"], rel=1e-9
        )
    assert list(rows(plan, "class")["class"]) == ["1", "2", "3", "4"]
    nodes = rows(plan, "node")
    k = np.array([6, 7, 6, 4])
    reads = rows(plan, "class")["requests"].to_numpy()
    assert nodes["requests"].sum() == k @ reads
    assert np.all(whole[["p50_s", "p90_s", "p99_s", "p999_s"]].diff().dropna().astype(float) > 0)
    bins = read_results(plan, "latency_bins")
    every = bins[bins["group"] == "all"]
    assert every["count"].sum() == whole["requests"]
    middle = (every["lower_s"] + every["upper_s"]) / 2
    assert np.average(middle, weights=every["count"]) == pytest.approx(whole["mean_s"], rel=5e-3)


def test_services_are_those_of_the_nodes_that_chunks_are_read_from(plan):
    """Chunks of 12.5 MB take 13.9 s on average at the first site, 1.3 and 1.6 times as long at the others."""
    services = read_results(plan, "services")
    slowdown = {"near": 1.0, "middle": 1.3, "far": 1.6}
    loads = read_results(plan, "node_loads")
    site = loads["node_id"].str.split("-").str[0].map(slowdown)
    mean = 13.9 * (site * loads["read_share"]).sum()
    every = services[services["group"] == "all"]
    assert (every["probability"].diff().dropna() > 0).all() and (
        every["service_s"].diff().dropna() >= 0
    ).all()
    # quantiles at 1 to 99 % leave out the two ends, which nearly make up for each other
    assert every["service_s"].mean() == pytest.approx(mean, rel=0.02)
    assert services.groupby("class").size().tolist() == [99] * 4


def test_hedging_keeps_to_its_budget(plan, tmp_path):
    """As far as it goes and no further; without one there are more."""
    shares = {}
    for budget in (None, 0.05):
        out = tmp_path / str(budget)
        words = {
            "hedge_delay_s": 1.0,
            "cancel": False,
            "hedge_budget": budget,
            "write": ["runs", "latencies"],
        }
        given = options(out, plan=str(plan / "planning"), policy=["hedged", "probabilistic"], **words)
        assert replay_study(given, QUIET) == 0
        runs = replays(out).set_index("policy")
        shares[budget] = runs.loc["hedged", "hedged_share"]
        assert np.isnan(runs.loc["probabilistic", "hedged_share"])
    assert 0.045 < shares[0.05] <= 0.05 < shares[None]


def test_utilisation_is_the_load_and_bounds_hold(plan):
    runs, plans = read_results(plan, "runs"), read_results(plan / "planning", "runs")
    placed = read_results(plan / "planning", "placements")
    files, nodes = read_results(plan, "inputs/files"), read_results(plan, "inputs/nodes")
    planned = placed.merge(files, on="file_id").merge(nodes, on="node_id")
    work = planned["probability"] * planned["rate_per_s"] * planned["service_mean_s"]
    load = (
        (work * planned["bytes"] / planned["k"] / planned["reference_bytes"])
        .groupby(planned["node_id"])
        .sum()
    )
    found = rows(plan, "node").set_index("node_id")["utilisation"]
    assert found[load.index].to_numpy() == pytest.approx(load.to_numpy(), rel=0.04)
    for each in (runs, plans):
        assert each["max_load"].to_numpy() == pytest.approx(load.max(), rel=1e-9)
    nodes, theory = rows(plan, "node"), rows(plan, "node", "estimated")
    assert theory["utilisation"].to_numpy() == pytest.approx(load[theory["node_id"]].to_numpy(), rel=1e-9)
    assert nodes["mean_s"].to_numpy() == pytest.approx(theory["mean_s"].to_numpy(), rel=0.1)
    for group in ("all", "class", "file"):
        told, bound = rows(plan, group), rows(plan, group, "bound")
        estimated = rows(plan, group, "estimated")
        assert len(told) == len(bound) == len(estimated)
        reach = told["ci_s"].fillna(0.0)  # two replications do not tell it of files
        assert np.all(told["mean_s"] - reach <= bound["mean_s"])
    assert rows(plan, "all", "estimated")["mean_s"][0] == pytest.approx(
        rows(plan, "all")["mean_s"][0], rel=0.04
    )
    # the bound is that of the plan where the law keeps the moments
    assert rows(plan, "all", "bound")["mean_s"][0] == pytest.approx(plans["latency_s"][0], rel=1e-9)


def test_finished_replays_are_not_done_again(plan):
    before = replays(plan)
    assert replay_study(options(plan, requests=30_000, estimate=True), QUIET) == 0
    pd.testing.assert_frame_equal(replays(plan), before)


def test_every_policy_with_every_queue(plan, tmp_path):
    names = [name for name in POLICIES if name != DIRECT_OR_DEGRADED]  # that one is for small reads
    given = options(tmp_path, plan=str(plan / "planning"), policy=names, queue=list(QUEUES), requests=1000)
    assert replay_study(given, QUIET) in (0, 1)
    found = replays(tmp_path)
    assert len(found) == len(names) * len(QUEUES)
    assert set(found["status"]) <= {"ok", "not_stationary", "unstable"}
    told = found.set_index(["policy", "queue"])["mean_s"]
    assert told.notna().sum() >= len(names) * 3
    # the same draws in every replay: whoever waits for an idle node waits less than in a queue chosen blindly
    assert told["late_binding", "fcfs"] < told["probabilistic", "fcfs"]


def test_seeds_and_laws(plan, tmp_path):
    given = options(tmp_path, plan=str(plan / "planning"), service=["deterministic", "exponential"], seed=7)
    assert replay_study(given, QUIET) == 0
    found = replays(tmp_path).set_index("service")
    assert found.loc["deterministic", "mean_s"] < found.loc["exponential", "mean_s"]
    assert found.loc["deterministic", "latency_s"] < found.loc["exponential", "latency_s"]


def test_an_overloaded_plan_is_a_row(plan, tmp_path):
    assert replay_study(options(tmp_path, plan=str(plan / "planning"), rate_scale=[1.0, 3.0]), QUIET) == 1
    found = replays(tmp_path).set_index("rate_scale")
    assert found.loc[1.0, "status"] == "ok"
    assert found.loc[3.0, "status"] == "unstable" and "load rho" in found.loc[3.0, "error"]


def test_a_partition_that_is_too_small_is_a_row(plan, tmp_path):
    given = options(
        tmp_path, plan=str(plan / "planning"), queue="partitioned", weights=[0.97, 0.01, 0.01, 0.01]
    )
    assert replay_study(given, QUIET) == 1
    assert "asks for" in replays(tmp_path)["error"][0]


def tables(folder, **files):
    """Six alike nodes and four files; returns options for them."""
    nodes = pa.table(
        {
            "node_id": [f"n{i}" for i in range(6)],
            "delta_s": [0.2] * 6,
            "delta_s_per_byte": [0.1] * 6,
            "psi_s": [0.3] * 6,
            "psi_s_per_byte": [0.0] * 6,
            "background_load": [0.1, 0, 0, 0, 0, 0],
            "background_second": [0.2, 0, 0, 0, 0, 0],
            "background_third": [0.6, 0, 0, 0, 0, 0],
            "connect_mean_s": [0.05] * 6,
            "connect_var_s2": [0.0004] * 6,
        }
    )
    columns = {"file_id": [10, 11, 12, 13], "bytes": [4.0, 8.0, 4.0, 8.0], "k": [2, 2, 2, 2]}
    columns |= {"rate_per_s": [0.2, 0.1, 0.2, 0.1], "service_class": ["b", "a", "b", "a"]} | files
    pq.write_table(nodes, folder / "nodes.parquet")
    pq.write_table(pa.table(columns), folder / "files.parquet")
    return {"nodes": str(folder / "nodes.parquet"), "files": str(folder / "files.parquet")}


def test_writes_and_background_work(tmp_path):
    planning = tables(tmp_path, write_rate_per_s=[0.05, 0.0, 0.02, 0.0], nodes=[["n0", "n1", "n2"]] * 4)
    given = options(tmp_path / "out", planning, plan="none", requests=60_000)
    assert replay_study(given, QUIET) == 0
    found = rows(tmp_path / "out", "node").set_index("node_id")["utilisation"]
    assert set(found.index) == {"n0", "n1", "n2"}
    reads = 2 / 3 * (0.4 * (0.5 + 0.2) + 0.2 * (0.5 + 0.4))
    writes = 0.07 * 0.7
    assert found["n0"] == pytest.approx(reads + writes + 0.1, rel=0.03)
    assert found["n1"] == pytest.approx(reads + writes, rel=0.03)
    whole, bound = rows(tmp_path / "out", "all").iloc[0], rows(tmp_path / "out", "all", "bound").iloc[0]
    assert whole["mean_s"] < bound["mean_s"]
    # classes in ascending order
    assert list(rows(tmp_path / "out", "class")["class"]) == ["a", "b"]


def test_writes_bring_whole_chunks_where_reads_take_parts(tmp_path):
    """Reads of 4 chunks of bytes / 4, writes of bytes / 2 to each of the 4 nodes; services of 0.5 s + 0.1 s/B."""
    of_files = {
        "d": [4] * 4,
        "write_rate_per_s": [0.05, 0.0, 0.02, 0.04],
        "nodes": [["n1", "n2", "n3", "n4"]] * 4,
    }
    planning = tables(tmp_path, **of_files)
    assert replay_study(options(tmp_path / "out", planning, plan="none", requests=60_000), QUIET) == 0
    found = rows(tmp_path / "out", "node").set_index("node_id")["utilisation"]
    expected = 0.4 * 0.6 + 0.2 * 0.7 + 0.07 * 0.7 + 0.04 * 0.9
    assert found.to_numpy() == pytest.approx([expected] * 4, rel=0.03)
    [run] = replays(tmp_path / "out").to_dict("records")
    assert run["max_load"] == pytest.approx(expected, rel=1e-9)


def test_chunks_that_a_node_serves_together_are_as_long_as_they_are(tmp_path):
    """Both chunks of a file, of 2 or 4 B, on one node: each takes 0.2 s + 0.1 s/B and 0.3 s on average."""
    both = tables(tmp_path) | {"max_chunks_per_node": 2, "cluster": ClusterOptions(), "method": ["max_ec"]}
    nodes = pq.read_table(both["nodes"])
    names = [name for name in nodes.column_names if not name.startswith("background")]
    pq.write_table(nodes.select(names), both["nodes"])  # reads alone, hardly any of which wait
    common = {"rate_scale": 0.01, "client_bandwidth_bytes_per_s": 8.0, "decode_s_per_byte": 0.25}
    assert replay_study(options(tmp_path / "out", both, **common), QUIET) == 0
    service = {4.0: 2 * (0.2 + 0.2 + 0.3), 8.0: 2 * (0.2 + 0.4 + 0.3)}
    expected = {size: 0.05 + each + size / 8 + 0.25 * size for size, each in service.items()}
    found = rows(tmp_path / "out", "file").set_index("file_id")
    for name, size in zip([10, 11, 12, 13], [4.0, 8.0, 4.0, 8.0], strict=True):
        row = found.loc[name]
        error = row["std_s"] / np.sqrt(row["requests"])
        assert row["mean_s"] == pytest.approx(expected[size], abs=5 * error + 0.01)


def test_earlier_bounds_know_no_connection_delays(tmp_path):
    """Reads of 2 of 6 alike nodes that hardly ever wait; the bounds are without the 50 ms that a connection takes."""
    planning = tables(tmp_path, bytes=[4.0] * 4)
    nodes = pq.read_table(planning["nodes"])
    common = {"plan": "none", "rate_scale": 1e-3, "earlier_bounds": True, "requests": 2000}
    columns = [name for name in nodes.column_names if not name.startswith("background")]
    for left_out in ((), ("connect_mean_s",), ("connect_var_s2",)):
        pq.write_table(
            nodes.select([name for name in columns if name not in left_out]), tmp_path / "nodes.parquet"
        )
        with pytest.raises(UserError, match="earlier_bounds=true: found .* connection delays"):
            replay_study(options(tmp_path / "refused", planning, **common), QUIET)
    pq.write_table(
        nodes.select([name for name in columns if not name.startswith("connect")]), tmp_path / "nodes.parquet"
    )
    assert replay_study(options(tmp_path / "out", planning, **common), QUIET) == 0
    # the larger of two exponentials of 0.3 s, after 0.2 s and 0.1 s/B
    assert rows(tmp_path / "out", "all", "forks")["mean_s"][0] == pytest.approx(0.4 + 0.3 * 1.5, rel=0.01)


def test_decoding_and_client_links_add_what_they_take(tmp_path):
    planning = tables(tmp_path)
    common = {"plan": "none", "requests": 2000}
    assert replay_study(options(tmp_path / "plain", planning, **common), QUIET) == 0
    assert replay_study(options(tmp_path / "decode", planning, decode_s_per_byte=0.25, **common), QUIET) == 0
    slow = options(tmp_path / "link", planning, client_bandwidth_bytes_per_s=0.01, **common)
    assert replay_study(slow, QUIET) == 0
    plain, decoded, linked = (rows(tmp_path / name, "file")["mean_s"] for name in ("plain", "decode", "link"))
    assert (decoded - plain).to_numpy() == pytest.approx([1.0, 2.0, 1.0, 2.0], rel=1e-9)
    # on a link this slow both chunks pass one after the other: size / bandwidth after the first of them came
    size = np.array([4.0, 8.0, 4.0, 8.0])
    assert np.all(linked > size / 0.01) and np.all(linked < size / 0.01 + plain)


def test_reads_of_d_chunks_and_several_per_node(tmp_path):
    assert replay_study(options(tmp_path / "d", tables(tmp_path, d=[4, 4, 4, 4]), plan="none"), QUIET) == 0
    reads = rows(tmp_path / "d", "all")["requests"][0]
    assert rows(tmp_path / "d", "node")["requests"].sum() == 4 * reads
    both = tables(tmp_path) | {"max_chunks_per_node": 2, "cluster": ClusterOptions(), "method": ["max_ec"]}
    assert replay_study(options(tmp_path / "x", both), QUIET) == 0
    told, bound = rows(tmp_path / "x", "all").iloc[0], rows(tmp_path / "x", "all", "bound").iloc[0]
    assert rows(tmp_path / "x", "node")["requests"].sum() == told["requests"]
    assert told["mean_s"] < bound["mean_s"] * 1.02  # one access per read: the bound is exact


def test_files_with_an_empty_list_of_nodes_are_on_all_of_them(tmp_path):
    planning = tables(tmp_path, nodes=[["n0", "n1"], ["n0", "n1"], [], None])
    assert replay_study(options(tmp_path / "out", planning, plan="none", requests=2000), QUIET) == 0
    loads = read_results(tmp_path / "out", "node_loads").set_index("node_id")
    assert (loads["chunks"] > 0).all()


def test_rates_bursts_and_outages(tmp_path):
    planning = tables(tmp_path)
    pq.write_table(
        pa.table({"start_s": [0.0, 3000.0], "factor": [2.0, 0.5], "service_class": ["a", "a"]}),
        tmp_path / "r.parquet",
    )
    pq.write_table(
        pa.table({"node_id": ["n0", "n1"], "start_s": [0.0, 0.0], "end_s": [1e9, 1e9]}),
        tmp_path / "o.parquet",
    )
    common = {"plan": "none", "requests": 3000}
    assert replay_study(options(tmp_path / "out", planning, **common), QUIET) == 0
    assert (
        replay_study(options(tmp_path / "out", planning, rates=str(tmp_path / "r.parquet"), **common), QUIET)
        == 0
    )
    assert replay_study(options(tmp_path / "out", planning, arrivals="bursts", **common), QUIET) == 0
    assert (
        replay_study(
            options(tmp_path / "down", planning, outages=str(tmp_path / "o.parquet"), **common), QUIET
        )
        == 0
    )
    assert len(replays(tmp_path / "out")) == 3
    assert set(broken(replays(tmp_path / "out"))) == {"rates vary", "arrivals come in bursts"}
    assert broken(replays(tmp_path / "down")) == ["nodes fail"]
    used = rows(tmp_path / "down", "node").set_index("node_id")["requests"]
    assert set(used.index) == {"n2", "n3", "n4", "n5"}
    # loads are those of the nodes that are up, as measured
    [run] = replays(tmp_path / "down").to_dict("records")
    loads = read_results(tmp_path / "down", "node_loads").set_index("node_id")
    assert np.isnan(run["max_load"])
    assert loads["load"].max() == run["max_utilisation"] > 0
    assert not loads.loc[["n0", "n1"], "read_share"].any()
    assert loads["read_share"].sum() == pytest.approx(1)


def test_bounds_and_loads_are_of_the_rates_that_are_replayed(tmp_path):
    planning, rates = tables(tmp_path), tmp_path / "rates.csv"
    common = {"plan": "none", "requests": 2000}

    def row_of(name, factors, **words):
        rates.write_text("start_s,factor\n" + factors)
        given = options(tmp_path / name, planning, rates=str(rates) if factors else None, **common, **words)
        replay_study(given, QUIET)
        return replays(tmp_path / name).iloc[0]

    once = row_of("once", "")
    twice, alike = row_of("twice", "", rate_scale=2.0), row_of("alike", "0,2\n")
    for column in ("max_load", "latency_s"):
        assert alike[column] == pytest.approx(twice[column], rel=1e-9) and alike[column] > once[column]
    # half of the reads come in a tenth of the time
    peaked, even = row_of("peaked", f"0,9\n{1000 / 9 / 0.6},1\n"), row_of("even", "", rate_scale=1.8)
    assert peaked["max_load"] == pytest.approx(even["max_load"], rel=1e-6)


def test_factors_may_keep_a_plan_from_overload(plan, tmp_path):
    rates = tmp_path / "rates.csv"
    rates.write_text("start_s,factor\n0,0.5\n")
    of_plan = replays(plan).iloc[0]
    common = {"plan": str(plan / "planning"), "requests": 2000, "rate_scale": 2.0}
    for name, words in (("over", {}), ("kept", {"rates": str(rates)})):
        replay_study(options(tmp_path / name, **common, **words), QUIET)
    over, kept = (replays(tmp_path / name).iloc[0] for name in ("over", "kept"))
    assert over["status"] == "unstable"
    assert kept["requests"] > 0 and kept["max_load"] == pytest.approx(of_plan["max_load"], rel=1e-9)
    assert kept["latency_s"] == pytest.approx(of_plan["latency_s"], rel=1e-9)
    # or bring it there: reads come, and the queue grows
    rates.write_text("start_s,factor\n0,2.5\n")
    full = common | {"rate_scale": 1.0, "rates": str(rates)}
    replay_study(options(tmp_path / "full", **full), QUIET)
    brought = replays(tmp_path / "full").iloc[0]
    assert (
        brought["status"] == "not_stationary" and brought["max_load"] > 1 and np.isnan(brought["latency_s"])
    )
    loads = read_results(tmp_path / "full", "node_loads").set_index("node_id")["load"]
    assert f"(node_id={loads.idxmax()}): load rho = {loads.max():.3g}" in brought["error"]
    assert "bound and estimate of the mean rates are missing" in brought["error"]


def test_rates_of_a_file_and_a_class_are_of_both_and_rows_are_those_of_the_table(tmp_path):
    planning, rates = tables(tmp_path), tmp_path / "r.csv"
    # of class a are 11 and 13: the first row is of no file
    rates.write_text("start_s,factor,file_id,service_class\n0,0,10,a\n0,0,11,a\n")
    given = options(tmp_path / "out", planning, plan="none", requests=2000, rates=str(rates))
    assert replay_study(given, QUIET) == 0
    assert set(rows(tmp_path / "out", "file").query("requests > 0")["file_id"]) == {10, 12, 13}
    rates.write_text("start_s,factor,file_id\n9,1,10\n0,1,99\n")
    with pytest.raises(UserError, match="rates: column file_id, row 1: found 99"):
        replay_study(options(tmp_path / "wrong", planning, plan="none", rates=str(rates)), QUIET)


def test_arrivals_of_a_trace(tmp_path):
    planning = tables(tmp_path)
    times = np.sort(np.random.default_rng(0).uniform(0, 3000, 1500))
    log = pa.table(
        {
            "request_id": np.arange(1500),
            "arrival_s": times,
            "file_id": np.tile([10, 11, 12, 13, 10], 300),
            "op": ["read"] * 1500,
            "bytes": [4.0] * 1500,
        }
    )
    pq.write_table(log, tmp_path / "log.parquet")
    given = {"plan": "none", "trace": str(tmp_path / "log.parquet")}
    assert replay_study(options(tmp_path / "out", planning, **given), QUIET) == 0
    found = replays(tmp_path / "out").iloc[0]
    assert found["arrivals"] == "trace"
    counted = rows(tmp_path / "out", "file").set_index("file_id")["requests"]
    share = counted / counted.sum()
    assert share.to_numpy() == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.01)
    unknown = log.set_column(2, "file_id", pa.array(np.tile([10, 11, 12, 13, 99], 300)))
    pq.write_table(unknown, tmp_path / "log.parquet")
    with pytest.raises(UserError, match="99"):
        replay_study(options(tmp_path / "out", planning, **given), QUIET)


def test_a_replay_that_fails_is_a_row_and_the_rest_finish(plan, tmp_path, monkeypatch):
    def fail_once(*arguments, **more):
        monkeypatch.setattr(replay_run, "summarise", summarise)
        raise MemoryError("no room")

    summarise = replay_run.summarise
    monkeypatch.setattr(replay_run, "summarise", fail_once)
    given = options(tmp_path, plan=str(plan / "planning"), rate_scale=[0.5, 1.0])
    assert replay_study(given, QUIET) == 1
    assert list(replays(tmp_path).set_index("rate_scale").loc[[0.5, 1.0], "status"]) == ["failed", "ok"]
    # what failed is done again
    assert replay_study(given, QUIET) == 0
    assert set(replays(tmp_path)["status"]) == {"ok"}


def test_plans_are_chosen(plan, tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        replay_study(options(tmp_path, plan=str(tmp_path / "nowhere")), QUIET)
    with pytest.raises(UserError, match="no finished optimize run fits"):
        replay_study(options(tmp_path, plan=str(plan / "planning"), plan_where="theta=99"), QUIET)
    assert replay_study(options(tmp_path, plan=str(plan / "planning"), plan_run="all"), QUIET) == 0
    assert replays(tmp_path)["plan_run"][0] == replays(plan)["plan_run"][0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "best"}, "policy: found 'best'; allowed: probabilistic"),
        ({"policy": []}, "policy: found an empty list"),
        ({"queue": "lifo"}, "queue: found 'lifo'; allowed: fcfs"),
        ({"queue": []}, "queue: found an empty list"),
        ({"service": "normal"}, "service: found 'normal'; allowed: auto"),
        ({"service": "empirical"}, "service=empirical: trace=PATH is missing"),
        ({"arrivals": "trace"}, "arrivals=trace: trace=PATH is missing"),
        ({"arrivals": "daily"}, "arrivals: found 'daily'"),
        ({"requests": 10}, "requests: found 10; allowed: a whole number from 100"),
        ({"replications": 0}, "replications: found 0"),
        ({"rate_scale": 0.0}, "rate_scale: found 0.0"),
        ({"weights": [0.5, 0.6]}, "weights: found [0.5, 0.6]; allowed: a positive number per service class"),
        (
            {"queue": "shared", "weights": [0.5, 0.5]},
            "weights: found 2 numbers; allowed: one per service class",
        ),
        ({"policy": "hedged", "hedges": 0}, "hedges: found 0"),
        (
            {"policy": "hedged", "hedge_budget": -0.1},
            "hedge_budget: found -0.1; allowed: a number, at least 0",
        ),
        ({"burst_share": 1.5}, "burst_share: found 1.5"),
        ({"burst_factor": 1.0}, "burst_factor: found 1.0; allowed: a number above 1"),
        ({"hedge_delay_s": -1.0}, "hedge_delay_s: found -1.0"),
        ({"decode_s_per_byte": -1.0}, "decode_s_per_byte: found -1.0"),
        ({"figures": ["pie"]}, "figures: found 'pie'"),
        ({"plan_run": "abc"}, "plan_run and plan_where choose a run of plan=FOLDER"),
        ({"slow": {"near-1": 0}}, "slow: found near-1: 0; allowed: {node: factor above 0"),
        ({"slow": {"x": 2.0}}, "slow: found x, an unknown node; allowed: every"),
        ({"seed": -1}, "seed: found -1"),
    ],
)
def test_mistakes_name_the_option(tmp_path, plan, given, words):
    values = given if "plan_run" in given else {"plan": str(plan / "planning")} | given
    with pytest.raises(UserError) as error:
        replay_study(options(tmp_path, **values), QUIET)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("table", "rows_", "words"),
    [
        (
            "outages",
            {"node_id": ["x"], "start_s": [0.0], "end_s": [1.0]},
            "outages: column node_id, row 0: found 'x'",
        ),
        ("outages", {"node_id": ["near-1"], "start_s": [5.0], "end_s": [1.0]}, "allowed: above start_s = 5"),
        (
            "rates",
            {"start_s": [0.0], "factor": [1.0], "file_id": [77]},
            "rates: column file_id, row 0: found 77",
        ),
        ("rates", {"start_s": [0.0], "factor": [-1.0]}, "factor"),
    ],
)
def test_mistakes_in_tables_name_the_row(tmp_path, plan, table, rows_, words):
    path = tmp_path / f"{table}.parquet"
    pq.write_table(pa.table(rows_), path)
    with pytest.raises(UserError) as error:
        replay_study(options(tmp_path / "out", plan=str(plan / "planning"), **{table: str(path)}), QUIET)
    assert words in str(error.value)
