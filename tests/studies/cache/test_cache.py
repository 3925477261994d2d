"""``ecjax cache`` from options to tables: what it writes, against replays by hand, sums and closed forms."""

import importlib
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from ecjax import composing
from ecjax.caching.replay import POLICIES, replay
from ecjax.caching.system import Network, Policy
from ecjax.caching.workload import EDGES, LATENCY_S, NODES, Popularity, placed, zipf_reads
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS, experiments
from ecjax.studies.cache import options as cache_options
from ecjax.studies.cache import run as cache_run
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.cache.study import cache_study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
TRACES = Path(__file__).parents[3] / "traces"
READS, ITEMS = 3000, 60


def options(out, **values):
    given = {
        "out": str(out),
        "reads": READS,
        "items": ITEMS,
        "capacity": 30,
        "figures": [],
        "replan_reads": 500,
    }
    return CacheOptions(**(given | values))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Every policy, two capacities, one bucket down in turn with all up."""
    out = tmp_path_factory.mktemp("cache")
    given = options(out, policy=list(POLICIES), capacity=[30, 90], fail=[None, "oregon/3"])
    assert cache_study(given, QUIET) == 0
    return out


@pytest.fixture(scope="module")
def found(study):
    """Its tables."""
    return {name: read_results(study, name) for name in ("runs", "latencies", "cached")}


def by_hand(policy, capacity, failed, jitter=0.0, seed=0):
    """A replay without the study."""
    reads = zipf_reads(Popularity(ITEMS, 1.0, 0.0, 600.0), READS, 100.0, 3, seed)
    down = np.array([4 * 15 + 3] if failed else [], np.int64)
    network = Network(
        np.repeat(LATENCY_S, 15, axis=1),
        jitter,
        0.001,
        0.03,
        down,
        np.zeros(len(down)),
        np.full(len(down), np.inf),
    )
    own = Policy(policy, capacity, None if policy == "exact" else 1800.0, 0.9, 5, 60.0, 500, seed)
    known = np.tile(1 / np.arange(1, ITEMS + 1), (3, 1))
    return replay(reads, placed(ITEMS, 6, 3, 1, 6, 15, seed), network, own, known), reads


@pytest.mark.parametrize("policy", ["exact", "samplex", "lru", "optimal_static"])
def test_runs_are_replays_by_hand(found, policy):
    runs = found["runs"].set_index(["policy", "capacity", "failed"])
    for capacity, failed in ((30, None), (90, "oregon/3")):
        key = (policy, capacity, failed if failed else np.nan)
        row = runs.loc[[key]].iloc[0]
        outcome, reads = by_hand(policy, capacity, failed)
        first = READS // 4
        latency, hits = outcome.latency_s[first:], outcome.hit_chunks[first:]
        assert_allclose(row["mean_s"], latency.mean())
        assert_allclose(
            row[["p50_s", "p90_s", "p99_s", "p999_s"]].astype(float),
            np.quantile(latency, [0.5, 0.9, 0.99, 0.999]),
        )
        assert_allclose(row["chunk_hit_ratio"], hits.mean() / 6)
        assert_allclose(row["full_hit_ratio"], (hits == 6).mean())
        assert row["filled_chunks"] == outcome.filled and row["failed_reads"] == 0
        assert row["requests"] == READS - first and row["warm_up_share"] == 0.25
        edges = found["latencies"].set_index("run_id").loc[row["run_id"]].set_index("edge")
        for number, name in enumerate(EDGES):
            assert_allclose(edges.loc[name, "mean_s"], latency[reads.edge[first:] == number].mean())


def test_every_policy_has_its_rows(found):
    runs, latencies, cached = found["runs"], found["latencies"], found["cached"]
    assert sorted(runs["policy"]) == sorted(list(POLICIES) * 4) and (runs["status"] == "ok").all()
    assert (runs["samples"].notna() == runs["policy"].str.startswith("samplex")).all()
    assert set(runs["k"]) == {6} and set(runs["items"]) == {ITEMS} and set(runs["copies"]) == {0}
    for name in ("decision_mean_s", "decision_p99_s", "decision_p9999_s", "requests_per_s"):
        assert (runs[name] > 0).all()
    groups = latencies.groupby("run_id")["group"].apply(list)
    assert (
        groups.map(sorted) == pd.Series([["all", "edge", "edge", "edge"]] * len(runs), groups.index)
    ).all()
    kept = cached.groupby(["run_id", "edge"])["chunks"].sum()
    capacity = runs.set_index("run_id")["capacity"]
    assert (kept.to_numpy() <= capacity.loc[kept.index.get_level_values(0)].to_numpy()).all()
    assert cached["chunks"].between(1, 6).all() and cached["file_id"].between(0, ITEMS - 1).all()
    assert not set(cached["run_id"]) & set(runs.loc[runs["policy"] == "none", "run_id"])


def test_the_static_optimum_is_what_others_are_above(found):
    runs = found["runs"]
    for _, own in runs.groupby(["capacity", "failed"], dropna=False):
        means = own.set_index("policy")["mean_s"]
        assert_allclose(
            own.set_index("policy")["above_optimum"], means / means["optimal_static"] - 1, atol=1e-12
        )
        assert means["optimal_static"] <= means["lru"] <= means["none"]


def test_without_a_cache_a_read_takes_its_slowest_chunk(found):
    runs = found["runs"].set_index("policy")
    row = runs[(runs["capacity"] == 30) & runs["failed"].isna()].loc["none"]
    reads = zipf_reads(Popularity(ITEMS, 1.0, 0.0, 600.0), READS, 100.0, 3, 0)
    node = placed(ITEMS, 6, 3, 1, 6, 15, 0).node_of[:, :6, 0] // 15
    latency = LATENCY_S[:, node].max(axis=2)[reads.edge, reads.item]
    assert_allclose(row["mean_s"], latency[READS // 4 :].mean())
    assert row["chunk_hit_ratio"] == 0 and row["filled_chunks"] == 0


def test_finished_replays_are_not_done_again(study, found, monkeypatch):
    monkeypatch.setattr(cache_run, "replay", None)
    given = options(study, policy=list(POLICIES), capacity=[30, 90], fail=[None, "oregon/3"])
    assert cache_study(given, QUIET) == 0
    pd.testing.assert_frame_equal(read_results(study, "runs"), found["runs"])


@pytest.mark.parametrize("policy", ["exact", "exact_periodic", "agar", "cooperative"])
def test_what_is_compiled_beforehand_has_a_plan(tmp_path, monkeypatch, policy):
    """Reads that are over before any plan is due: whatever plans is the replay that only compiles."""
    module = "cooperative_replay" if policy == "cooperative" else "replay"
    name = "cooperative_plan" if policy == "cooperative" else "plan_edge"
    original, plans = getattr(importlib.import_module(f"ecjax.caching.{module}"), name), []

    def counted(*arguments):
        plans.append(name)
        return original(*arguments)

    monkeypatch.setattr(f"ecjax.caching.{module}.{name}", counted)
    together = {"policy": ["lru"], "neighbours": [0.1]} if policy == "cooperative" else {"policy": [policy]}
    given = options(tmp_path, reads=100, replan_reads=20_000, period_s=60.0, **together)
    assert cache_study(given, QUIET) == 0
    # the static optimum, with which others are compared, plans each of the 3 edges at each of its two replays
    assert len(plans) > (0 if policy == "cooperative" else 6)


def test_a_replay_that_fails_is_a_row_and_the_rest_finish(tmp_path, monkeypatch):
    def fails(reads, stored, network, policy, known, advance, planner):
        if policy.name == "lfu" and policy.seed == 1:
            raise MemoryError("no room")
        return replay(reads, stored, network, policy, known, advance, planner)

    monkeypatch.setattr(cache_run, "replay", fails)
    given = options(tmp_path, policy=["lfu", "lru"], seeds=2)
    console = Console(file=StringIO(), width=200)
    assert cache_study(given, console) == 1
    assert "1 run: MemoryError: no room" in console.file.getvalue()
    assert (read_results(tmp_path, "runs")["status"] == "ok").sum() == 3
    monkeypatch.undo()
    assert cache_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs")
    assert set(runs["status"]) == {"ok"} and runs["above_optimum"].notna().all()


def test_seeds_draw_reads_and_jitter(tmp_path):
    assert cache_study(options(tmp_path, policy="exact", seeds=2, jitter=0.3), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("seed")
    for seed in (0, 1):
        outcome, _ = by_hand("exact", 30, None, 0.3, seed)
        assert_allclose(runs.loc[seed, "mean_s"], outcome.latency_s[READS // 4 :].mean())


def test_numbers_of_partitions_are_runs_of_samplex_only(tmp_path):
    given = options(tmp_path, policy=["samplex", "lru"], samples=[1, 4], write=["latencies"])
    assert cache_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs")
    assert sorted(runs["samples"].dropna()) == [1, 4] and len(runs) == 3
    assert not (tmp_path / "cached").exists()


def test_neighbours_are_replayed_beside_the_policies(tmp_path):
    given = options(
        tmp_path, policy="exact_periodic", neighbours=[0.0, 0.3, 100.0], period_s=10.0, capacity=20
    )
    assert cache_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("neighbour_s")
    near, middle, far = (runs.loc[seconds] for seconds in (0.0, 0.3, 100.0))
    assert near["mean_s"] < middle["mean_s"] < far["mean_s"] and near["neighbour_hit_ratio"] > 0
    # so far that nobody asks: each edge plans for itself, as exact_periodic does
    alone = runs[runs["policy"] == "exact_periodic"].iloc[0]
    assert far["neighbour_hit_ratio"] == 0
    assert_allclose(far["mean_s"], alone["mean_s"], rtol=0.02)
    rows = options(tmp_path, policy="lru", neighbours=[[0, 1, 2], [1, 0, 1], [2, 1, 0]], write=[])
    assert cache_study(rows, QUIET) == 0


def test_reads_fail_where_too_few_chunks_are_up(tmp_path):
    given = options(tmp_path, parity=0, policy="none", fail="sao_paulo", buckets=1)
    console = Console(file=StringIO(), width=200)
    assert cache_study(given, console) == 0
    row = read_results(tmp_path, "runs").iloc[0]
    # six chunks go round six nodes: every item has one in Sao Paulo
    assert row["failed_reads"] == row["requests"] and np.isnan(row["mean_s"])
    assert "In 1 of 1 run reads failed, all of them, as too few" in console.file.getvalue()
    assert "none has latencies" in console.file.getvalue()
    # one bucket of three: items that have no chunk there are read, and what is recommended says what it leaves out
    given = options(tmp_path / "some", parity=0, policy="none", fail="sao_paulo/1", buckets=3)
    assert cache_study(given, console) == 0
    row = read_results(tmp_path / "some", "runs").iloc[0]
    assert 0 < row["failed_reads"] < row["requests"]
    (said,) = json.loads((tmp_path / "some" / "recommended.json").read_text())["remarks"]
    assert said.startswith("In 1 of 1 run reads failed, as too few") and said in console.file.getvalue()
    assert said.endswith("latencies are those of the others.")
    assert cache_study(options(tmp_path, parity=2, policy="none", fail="sao_paulo", buckets=1), QUIET) == 0
    row = read_results(tmp_path, "runs").dropna(subset="mean_s").iloc[0]
    # of eight no node has more than two, and each of the two with parity
    assert row["failed_reads"] == 0


def test_reads_of_a_log(tmp_path):
    trace, nodes = TRACES / "requests_objects.parquet", TRACES / "edges.parquet"
    given = {"trace": str(trace), "nodes": str(nodes), "items": [5, 1000, 2000], "k": 3, "policy": "exact"}
    assert cache_study(options(tmp_path, **given, warm_up=0.0), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("items")
    log = pq.read_table(trace).to_pandas()
    log = log[log["op"] == "read"]
    counts = log["file_id"].value_counts()
    assert set(runs.index) == {5, len(counts)} and (runs["arrivals"] == "trace").all()
    assert runs.loc[5, "requests"] == counts.iloc[:5].sum() and runs.loc[len(counts), "requests"] == len(log)
    latencies = read_results(tmp_path, "latencies")
    own = latencies[latencies["run_id"] == runs.loc[len(counts), "run_id"]].set_index("edge")
    assert_allclose(
        own.loc[["quito", "lagos", "paris"], "requests"],
        [sum(log["edge"] == e) for e in ("quito", "lagos", "paris")],
    )
    cached = read_results(tmp_path, "cached")
    assert set(cached["file_id"]) <= set(log["file_id"])


def test_all_items_of_a_log_are_replayed_where_none_are_said(tmp_path, monkeypatch):
    """Five items read 200 times each, between 1500 that are read once: three fifths of the reads."""
    often, once = np.repeat(np.arange(5), 200), 5 + np.arange(1500)
    item = np.random.default_rng(0).permutation(np.concatenate([often, once]))
    log = {"request_id": np.arange(2500), "arrival_s": np.arange(2500) * 0.1, "file_id": item}
    log |= {"op": ["read"] * 2500, "bytes": np.full(2500, 1e6)}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    given = {"trace": str(tmp_path / "log.parquet"), "nodes": {"a": 0.1, "b": 0.5}, "policy": "lru", "k": 2}

    def replayed(name, **values):
        console = Console(file=StringIO(), width=1000)
        assert cache_study(options(tmp_path / name, **given, warm_up=0.0, **values), console) == 0
        (row,) = read_results(tmp_path / name, "runs").to_dict("records")
        remarks = json.loads((tmp_path / name / "recommended.json").read_text())["remarks"]
        return row, remarks, console.file.getvalue()

    row, remarks, _ = replayed("all", items=None)
    assert (row["items"], row["requests"], row["left_out_share"], remarks) == (1505, 2500, 0.0, [])
    row, (said,), text = replayed("few", items=[5])
    assert (row["items"], row["requests"]) == (5, 1000) and row["left_out_share"] == pytest.approx(0.6)
    assert (
        said.startswith("60 % of the log's reads are left out: those of all but the 5 items") and said in text
    )
    monkeypatch.setattr(cache_options, "MOST_ITEMS", 105)
    row, (said,), _ = replayed("most", items=None)
    assert row["items"] == 105 and said.startswith("56 % of the log's reads are left out")


def test_options_that_nothing_reads_are_said(tmp_path, caplog):
    trace = str(TRACES / "requests_objects.parquet")
    given = {"trace": trace, "zipf": 2.0, "reads": 7, "policy": "none", "k": 2}
    assert cache_study(options(tmp_path, **given), QUIET) == 0
    assert f"zipf=[2.0] has no effect beside trace={trace}" in caplog.text
    assert f"reads=7 has no effect beside trace={trace}" in caplog.text


def test_steps_of_popularity_stand_in_for_items_and_zipf(tmp_path, caplog):
    steps = [[10, 0.6], [30, 0.4]]
    given = {"popularity": steps, "policy": "none", "k": 2, "reads": 100}
    for out, items in (("unsaid", None), ("same", 40)):
        assert cache_study(options(tmp_path / out, items=items, **given), QUIET) == 0
        assert read_results(tmp_path / out, "runs")["items"].tolist() == [40]
    assert "has no effect" not in caplog.text
    assert cache_study(options(tmp_path / "other", items=500, zipf=[0.8, 1.2], **given), QUIET) == 0
    assert read_results(tmp_path / "other", "runs")["items"].tolist() == [40]
    for name in ("items=[500]", "zipf=[0.8, 1.2]"):
        assert f"{name} has no effect beside popularity=" in caplog.text


@pytest.mark.parametrize(("drift", "told"), [(0.02, True), (0.05, False)])
def test_a_drift_of_less_than_two_items_is_none_and_said(tmp_path, caplog, drift, told):
    given = {"policy": "lru", "drift_s": 1.0}
    still, moving = (options(tmp_path / str(each), drift=each, **given) for each in (0.0, drift))
    assert cache_study(still, QUIET) == 0 and cache_study(moving, QUIET) == 0
    assert (f"drift={drift} of 60 items is less than two, and no ranks are exchanged" in caplog.text) == told
    above = [read_results(each.out, "runs")["above_optimum"].item() for each in (still, moving)]
    # where ranks stay, both are compared with the plan for the law of the reads
    assert (above[0] == above[1]) == told


@pytest.mark.parametrize("nodes", [None, {"a": 0.5}])
def test_nodes_that_no_log_tells_are_called_built_in(tmp_path, caplog, nodes):
    caplog.set_level("INFO", logger="ecjax")
    trace = str(TRACES / "requests_objects.parquet")
    assert cache_study(options(tmp_path, trace=trace, nodes=nodes, policy="none", k=1, parity=0), QUIET) == 0
    assert ("6 nodes of 15 buckets (built in: how far your nodes are, nodes= says)" in caplog.text) == (
        nodes is None
    )


@pytest.mark.parametrize(("edge_s", "mean_s", "told"), [(0.001, 0.001, True), (0.0004, 0.0005, False)])
def test_nodes_nearer_than_the_edge_are_told(tmp_path, caplog, edge_s, mean_s, told):
    given = {"policy": ["none"], "nodes": {"a": 0.0005}, "k": 1, "parity": 0, "edge_s": edge_s}
    assert cache_study(options(tmp_path, reads=100, **given), QUIET) == 0
    assert_allclose(read_results(tmp_path, "runs")["mean_s"], mean_s)
    assert ("edge_s: no read takes less than 1 ms, and node a is nearer" in caplog.text) == told


def test_edges_that_nodes_does_not_tell_apart(tmp_path):
    given = {"trace": str(TRACES / "requests_objects.parquet"), "policy": "lru", "k": 2, "buckets": 1}
    assert cache_study(options(tmp_path / "a", **given, nodes={"a": 0.1, "b": 0.5}), QUIET) == 0
    edges = read_results(tmp_path / "a", "latencies")["edge"].dropna()
    assert sorted(edges) == ["lagos", "paris", "quito"]
    # of chunk accesses, which have no edges, reads go round
    given["trace"] = str(TRACES / "requests_chunks.parquet")
    table = pa.table({"node_id": ["a", "b"], "latency_s": [0.1, 0.5]})
    pq.write_table(table, tmp_path / "nodes.parquet")
    nodes = str(tmp_path / "nodes.parquet")
    assert cache_study(options(tmp_path / "b", **given, nodes=nodes, edges=2, warm_up=0), QUIET) == 0
    own = read_results(tmp_path / "b", "latencies").set_index("group")
    assert abs(np.diff(own.loc["edge", "requests"])) <= 1


def test_outages_of_a_table(tmp_path):
    table = pa.table({"node_id": ["tokyo", "ohio/2"], "start_s": [5.0, 0.0], "end_s": [10.0, 20.0]})
    pq.write_table(table, tmp_path / "outages.parquet")
    given = {"outages": str(tmp_path / "outages.parquet"), "policy": "none", "warm_up": 0.0, "buckets": 3}
    assert cache_study(options(tmp_path / "out", **given), QUIET) == 0
    assert cache_study(options(tmp_path / "up", **(given | {"outages": None})), QUIET) == 0
    down, up = (read_results(tmp_path / name, "runs").iloc[0] for name in ("out", "up"))
    assert down["mean_s"] > up["mean_s"] and down["input_id"] != up["input_id"]


@pytest.mark.parametrize("begin_s", [0.0, 1_726_560_000.0])
def test_outages_by_the_clock_of_a_log_are_told(tmp_path, caplog, begin_s):
    # times of outages are those of the replay, from 0, also where the log's are seconds since 1970
    reads = pa.table({"arrival_s": begin_s + np.arange(60.0), "file_id": [0, 1] * 30, "bytes": [1.0] * 60})
    reads = reads.append_column("request_id", pa.array(range(60))).append_column(
        "op", pa.array(["read"] * 60)
    )
    pq.write_table(reads, tmp_path / "log.parquet")
    outage = pa.table({"node_id": ["a"], "start_s": [begin_s + 10], "end_s": [begin_s + 20]})
    pq.write_table(outage, tmp_path / "outages.parquet")
    paths = {"trace": str(tmp_path / "log.parquet"), "outages": str(tmp_path / "outages.parquet")}
    given = paths | {"policy": "none", "nodes": {"a": 1.0}, "k": 1, "parity": 0, "warm_up": 0.0}
    assert cache_study(options(tmp_path / "out", **given), QUIET) == 0
    effective = read_results(tmp_path / "out", "runs")["failed_reads"].item() == 10
    told = f"outages={paths['outages']}: none is while reads come, from 0 s to 59 s after" in caplog.text
    assert (effective, told) == ((True, False) if begin_s == 0 else (False, True))


@pytest.mark.parametrize(("begin_s", "end_s", "lost"), [(35, 45, 10), (10, 30, 0), (10, 31, 1)])
def test_outages_are_from_the_first_arrival_of_a_log_on(tmp_path, caplog, begin_s, end_s, lost):
    # a minute of requests, one per second, of which the first thirty write
    operations = ["write"] * 30 + ["read"] * 30
    log = {"arrival_s": 100.0 + np.arange(60.0), "file_id": [0, 1] * 30, "bytes": [1.0] * 60}
    pq.write_table(pa.table(log | {"request_id": range(60), "op": operations}), tmp_path / "log.parquet")
    outage = pa.table({"node_id": ["a"], "start_s": [float(begin_s)], "end_s": [float(end_s)]})
    pq.write_table(outage, tmp_path / "outages.parquet")
    given = {"trace": str(tmp_path / "log.parquet"), "outages": str(tmp_path / "outages.parquet")}
    given |= {"policy": "none", "nodes": {"a": 1.0}, "k": 1, "parity": 0, "warm_up": 0.0}
    assert cache_study(options(tmp_path / "out", **given), QUIET) == 0
    assert read_results(tmp_path / "out", "runs")["failed_reads"].item() == lost
    assert ("none is while reads come, from 30 s to 59 s after" in caplog.text) == (lost == 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "fifo"}, "policy: found 'fifo'; allowed: none, lru"),
        ({"policy": []}, "policy: found an empty list; allowed: none"),
        ({"capacity": -1}, "capacity: found -1; allowed: a whole number from 0 to"),
        ({"k": [6, 61]}, "k: found [6, 61]; allowed: a whole number from 1 to 60"),
        ({"policy": "near_optimal", "k": 21}, "k: found 21 with policy=near_optimal; allowed: at most 20"),
        ({"copies": 0.5}, "copies: found 0.5; allowed: a whole number"),
        ({"edges": 4}, "edges: found 4; allowed: at most the 3 that nodes has latencies of"),
        ({"edges": 0}, "edges: found 0; allowed: a whole number from 1"),
        ({"memory": 1.0}, "memory: found 1.0; allowed: a number from 0 to below 1"),
        ({"drift": 1.5}, "drift: found 1.5; allowed: a number from 0 to 1"),
        (
            {"popularity": [[3, 0.3], [1, 0.11], [6, 0.59]]},
            "popularity: found [[3, 0.3], [1, 0.11], [6, 0.59]]; allowed: items of a step that are read no more often",
        ),
        ({"half_life_s": 0}, "half_life_s: found 0; allowed: a number above 0, or a list of them"),
        ({"jitter": -0.1}, "jitter: found -0.1; allowed: a number, at least 0"),
        ({"seeds": True}, "seeds: found true; allowed: a whole number"),
        ({"fail": "oregon/15"}, "fail: found 'oregon/15'; allowed: tokyo, ohio, "),
        ({"fail": 3}, "fail: found 3; allowed: null, a name, or a list"),
        ({"nodes": {"a": 0}}, "nodes: found 0 of a; allowed: {node: latency}"),
        ({"nodes": {"a": [1, 2], "b": [1]}}, "nodes: found [1] of b; allowed: {node: latency}"),
        ({"nodes": []}, "nodes: found []; allowed: {node: latency}"),
        ({"neighbours": -1}, "neighbours: found -1; allowed: numbers of at least 0"),
        ({"neighbours": [[0, 1], [1]]}, "neighbours: found [[0, 1], [1]]; allowed: a row per edge"),
        ({"neighbours": [[0, 1], [1, 0]]}, "neighbours: found 2 rows; allowed: 3"),
        ({"neighbours": 0.1, "edges": 1}, "neighbours: found one edge; allowed: with two or more"),
        (
            {"neighbours": 0.1, "edges": 7, "nodes": {"a": 0.2, "b": 0.5}},
            "neighbours: found 7 edges that help each other; allowed: at most 6 that are not alike",
        ),
        (
            {"neighbours": 0.001, "nodes": {"a": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], "b": 0.5}},
            "neighbours: found 7 edges that help each other; allowed: at most 6 that are not alike",
        ),
        (
            {"drift": 0.1, "drift_s": 2.9e-5},
            "drift_s: found 2.9e-05; allowed: from 3e-05 on, 1,000,000 exchanges of ranks while 3000 reads come at ",
        ),
        ({"drift": 0.1, "drift_s": 1e-17, "partitions": 1}, "drift_s: found 1e-17; allowed: from 3e-05 on"),
        ({"figures": "pie"}, "figures: found 'pie'; allowed: policies, sweep"),
        ({"figures": "sampling"}, "figures: found 'sampling'; allowed: policies"),
        ({"partitions": [5], "figures": "sweep"}, "figures: found 'sweep'; allowed: sequence"),
        ({"partitions": 0}, "partitions: found 0; allowed: a whole number from 1"),
        ({"write": "cache"}, "write: found 'cache'; allowed: "),
        ({"trace": "nowhere.parquet"}, "nowhere.parquet"),
        ({"partitions": 1, "k": 10, "capacity": 100}, "6210647 partitions of 100; allowed: up to"),
    ],
)
def test_mistakes_name_the_option(tmp_path, given, words):
    with pytest.raises(UserError) as error:
        cache_study(options(tmp_path / "out", **given), QUIET)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert not list(tmp_path.glob("out/runs/*"))


def test_edges_that_come_to_help_each_other_are_refused_by_the_option(tmp_path):
    # by the means no node is farther than a neighbour; estimates move until some are
    given = {"neighbours": 0.5, "edges": 7, "nodes": {"a": 0.2, "b": 0.5}, "period_s": 2.0, "policy": "none"}
    assert cache_study(options(tmp_path / "still", **given), QUIET) == 0
    with pytest.raises(UserError, match=r"neighbours: found 7 edges that help each other"):
        cache_study(options(tmp_path / "moving", jitter=0.5, **given), QUIET)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"node_id": ["a", "a"], "latency_s": [1.0, 2.0]}, "row 1: found an edge and a node twice"),
        (
            {"node_id": ["a", "b", "a"], "edge": [1, 1, 2], "latency_s": [1.0, 2.0, 1.0]},
            "found no latency of node 'b' at edge '2'",
        ),
        ({"node_id": ["a"], "latency_s": [0.0]}, "latency_s, row 0"),
    ],
)
def test_mistakes_in_an_edges_table(tmp_path, table, words):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(UserError) as error:
        cache_study(options(tmp_path / "out", nodes=str(path)), QUIET)
    assert words in str(error.value) and "edges" in str(error.value)


def test_unknown_edges_and_nodes_of_tables(tmp_path):
    table = pa.table({"node_id": ["mars"], "start_s": [0.0], "end_s": [1.0]})
    pq.write_table(table, tmp_path / "outages.parquet")
    with pytest.raises(
        UserError, match=r"outages table .*, column node_id, row 0: found 'mars'; allowed: tokyo"
    ):
        cache_study(options(tmp_path / "out", outages=str(tmp_path / "outages.parquet")), QUIET)
    table = pa.table({"node_id": ["a"] * 2, "edge": ["paris", "rome"], "latency_s": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "edges.parquet")
    given = {"trace": str(TRACES / "requests_objects.parquet"), "nodes": str(tmp_path / "edges.parquet")}
    with pytest.raises(
        UserError, match=r"column edge: found '(quito|lagos)' and 2 others; allowed: paris, rome"
    ):
        cache_study(options(tmp_path / "out", **given), QUIET)


def composed(*words):
    return composing.options_from(composing.composed(JOBS["cache"], list(words)), CacheOptions)


def test_defaults_are_the_paper_s():
    given = composed()
    assert set(given.policy) <= set(POLICIES) and given.fail == [None]
    assert (given.capacity, given.k, given.parity, given.items, given.samples) == ([100], [6], 3, [1000], [5])
    assert (given.buckets, given.copies, given.edges) == (15, [0], None) and len(NODES) == 6
    assert given.figures == ["policies", "sweep", "decisions"]


def small(name):
    quick = ("samplex_fig5", "samplex_fig11")  # the others are like them
    return pytest.param(name, marks=[] if name in quick else [pytest.mark.slow])


@pytest.mark.parametrize("name", [small(name) for name in sorted(experiments("cache"))])
def test_every_experiment_runs_small(tmp_path, name):
    whole = composed(f"experiment={name}")
    sizes = {
        "capacity": [20 * (place + 1) for place in range(len(whole.capacity))],
        "items": [30 + place for place in range(len(whole.items))],
        "k": whole.k[:2],
        "fail": [None, "each_node"] if whole.fail != [None] else [None],
    }
    if whole.partitions is not None:
        sizes |= {"partitions": [1, 3], "k": [3]}
    few = {"samples": whole.samples[:2], "policy": whole.policy[:4], "reads": 300, "rounds": 3}
    assert cache_study(replace(whole, out=str(tmp_path), **sizes, **few), QUIET) == 0
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == set(whole.figures)


@pytest.mark.parametrize("items", [1, 7])
def test_partitions_of_a_cache_that_keeps_everything(tmp_path, items):
    given = options(tmp_path, partitions=[1, 3], capacity=6 * items, items=items, rounds=2)
    assert cache_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs")
    # there is one partition, and it leaves nothing to wait for
    assert (runs["mean_s"] == 0).all() and (runs["above_optimum"] == 0).all()


def test_partitions_of_a_small_cache(tmp_path):
    given = options(tmp_path, partitions=[1, 8], capacity=12, k=3, items=20, rounds=4)
    console = Console(file=StringIO(), width=200)
    assert cache_study(given, console) == 0
    assert "all partitions" in console.file.getvalue()
    runs = read_results(tmp_path, "runs").set_index(["scheme", "samples"])
    best = runs.loc["optimal"].iloc[0]
    assert_allclose(runs.loc["exact"].iloc[0]["mean_s"], best["mean_s"])
    every = read_results(tmp_path, "partitions")
    assert len(every) == 19 and every["mean_s"].min() == best["mean_s"]  # 12 into parts of 1 to 3
    assert_allclose(every["place"], np.linspace(0, 1, 19))
    assert_allclose(runs["above_optimum"], runs["mean_s"] / best["mean_s"] - 1)
    # SampleX with one partition takes the last; systematic sampling too
    last = every["mean_s"].iloc[-1]
    assert_allclose(runs.loc[[("samplex", 1), ("syss", 1)], "mean_s"], last)
    assert (runs["mean_s"] >= best["mean_s"] - 1e-12).all()
    # Student's quantile with three degrees of freedom, of four rounds
    assert_allclose(runs["ci_s"], 3.182446 * runs["std_s"] / 2, rtol=1e-6, atol=1e-12)
    about = json.loads(best["params"])
    assert about["parity"] == 3
    assert cache_study(given, QUIET) == 0  # all of it is finished


def test_partitions_that_an_earlier_command_did_not_write(tmp_path):
    small = {"capacity": 12, "k": 3, "items": 20, "rounds": 2}
    assert cache_study(options(tmp_path, partitions=[1], write=[], **small), QUIET) == 0
    console = Console(file=StringIO(), width=200)
    assert cache_study(options(tmp_path, partitions=[1, 5], figures=None, **small), console) == 0
    for name in ("sequence", "distribution"):
        text = f"figure {name}: needs the dataset partitions, which was not written"
        assert text in console.file.getvalue()
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["sampling.png"]
    assert "Recommended: " in (tmp_path / "recommended.json").read_text()


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_options_that_the_study_of_sampling_does_not_read_are_said(tmp_path, caplog, drift):
    small = {"capacity": 12, "k": 3, "items": 20, "rounds": 2, "drift": drift, "partitions": [1]}
    unread = {
        "policy": "lru",
        "jitter": 0.5,
        "fail": "oregon",
        "neighbours": 0.1,
        "warm_up": 0.0,
        "buckets": 2,
    }
    assert cache_study(options(tmp_path / "some", **small, **unread), QUIET) == 0
    said = [line for line in caplog.messages if line.endswith(" has no effect beside partitions=[1]")]
    expected = {*unread, "replan_reads"} | ({"reads"} if drift == 0 else set())
    assert {line.split("=")[0] for line in said} == expected
    assert cache_study(options(tmp_path / "none", **small), QUIET) == 0
    some, none = (read_results(tmp_path / name, "runs") for name in ("some", "none"))
    assert_allclose(sorted(some["mean_s"]), sorted(none["mean_s"]), rtol=1e-12)


@pytest.mark.parametrize(
    "change", [{"parity": 4}, {"copies": 1}, {"seed": 1}, {"popularity": [[5, 0.9], [15, 0.1]]}]
)
def test_options_that_the_study_of_sampling_reads(tmp_path, change):
    small = {"capacity": 12, "k": 3, "items": 20, "rounds": 2, "partitions": [1]}
    assert cache_study(options(tmp_path, **small), QUIET) == 0
    assert cache_study(options(tmp_path, **(small | change)), QUIET) == 0
    runs = read_results(tmp_path, "runs")
    first, second = runs.loc[runs["scheme"] == "optimal", "mean_s"]
    assert first != second
