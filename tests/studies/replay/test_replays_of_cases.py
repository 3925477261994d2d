"""Options, cases and runs of ``ecjax replay``; loads of nodes; logs that are read as their analysis was."""

import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from plans_by_hand import FIXED, NEED, PLACED, PRICES, RATES, SIZES, VARIABLE, plan_by_hand
from rich.console import Console

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.simulation.law_fit import FAMILIES
from ecjax.simulation.run import POLICIES as LIBRARY_POLICIES
from ecjax.simulation.run import QUEUES as LIBRARY_QUEUES
from ecjax.studies.analyze.tables import TABLES as ANALYSIS
from ecjax.studies.replay.figures.kinds import KINDS
from ecjax.studies.replay.inputs import read_cases
from ecjax.studies.replay.operating_point import operating_point
from ecjax.studies.replay.options import FIGURES, POLICIES, QUEUES, SERVICES, ReplayOptions
from ecjax.studies.replay.plans import PLAN_QUEUES
from ecjax.studies.replay.run import items_of
from ecjax.studies.replay.simulation import simulation
from ecjax.studies.replay.study import replay_study
from ecjax.studies.replay.tables import TABLES
from ecjax.tables.importers import open_trace
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore
from ecjax.validation import theory
from ecjax.validation.service import EMPIRICAL

QUIET = Console(quiet=True)
FEW = {"requests": 500, "replications": 2, "figures": [], "estimate": False}


def log_of(folder, **names):
    """A log of 600 reads by two alike nodes in CSV, its columns named otherwise; returns path and names."""
    random = np.random.default_rng(0)
    arrival, node = np.sort(random.uniform(0, 3000, 600)), random.integers(0, 2, 600)
    start, finish, free = np.empty(600), np.empty(600), np.zeros(2)
    for access, service in enumerate(random.exponential(1.0, 600)):
        start[access] = max(arrival[access], free[node[access]])
        finish[access] = free[node[access]] = start[access] + service
    log = {"request_id": np.arange(600), "arrival_s": arrival, "file_id": 10 + np.arange(600) % 4}
    log |= {"node_id": np.array(["x", "y"])[node], "op": ["read"] * 600, "bytes": [4.0] * 600}
    log |= {"start_s": start, "finish_s": finish}
    path = str(folder / "log.csv")
    pa.csv.write_csv(pa.table({names.get(name, name): values for name, values in log.items()}), path)
    return path, {name: names.get(name, name) for name in log}


def test_words_are_those_of_the_library():
    assert POLICIES == LIBRARY_POLICIES and QUEUES == LIBRARY_QUEUES
    assert set(SERVICES) == {*FAMILIES, EMPIRICAL}
    assert list(FIGURES) == list(KINDS)
    assert set(PLAN_QUEUES.values()) <= set(QUEUES)


@pytest.mark.parametrize(
    ("chosen", "arrivals", "service"),
    [
        ({}, "poisson", "auto"),
        ({"trace": "log"}, "poisson", "empirical"),
        ({"trace": "log", "plan": "folder"}, "trace", "auto"),
        ({"trace": "log", "arrivals": "trace"}, "trace", "auto"),
        ({"trace": "log", "service": []}, "poisson", "empirical"),
        ({"plan": "none", "queue": "shared", "weights": [0.5, 0.5]}, "poisson", "auto"),
    ],
)
def test_options_may_be_checked_again_and_defaults_depend_on_others(chosen, arrivals, service):
    options = checked(ReplayOptions(**chosen))
    assert checked(options) == options
    assert (options.arrivals, options.service) == (arrivals, [service])


def test_runs_with_other_ids_differ_in_a_column_or_in_params(tmp_path):
    """Every option that tells runs apart: alone, and beside what is swept."""
    plan = plan_by_hand(tmp_path, "fcfs")
    pq.write_table(pa.table({"start_s": [0.0], "factor": [2.0]}), tmp_path / "rates.parquet")
    pq.write_table(pa.table({"node_id": ["x"], "start_s": [0.0], "end_s": [1.0]}), tmp_path / "down.parquet")
    log, _ = log_of(tmp_path)
    changes: list[dict] = [{"probes": 3}, {"cancel": False}, {"hedge_delay_s": 1.0}, {"hedges": 2}]
    changes += [{"pareto_ratio": 10.0}, {"arrivals": "bursts"}, {"burst_factor": 2.0}, {"burst_share": 0.2}]
    changes += [{"burst_mean_s": 1.0}, {"decode_s_per_byte": 1.0}, {"client_bandwidth_bytes_per_s": 1.0}]
    changes += [{"requests": 700}, {"replications": 3}, {"estimate": True}, {"earlier_bounds": True}]
    changes += [{"seed": 1}, {"queue": "shared", "weights": [0.3, 0.7]}, {"trace": log}]
    changes += [{"rates": str(tmp_path / "rates.parquet")}, {"outages": str(tmp_path / "down.parquet")}]
    plain = {"plan": plan, "policy": ["hedged", "uniform"], "queue": ["fcfs", "shared"], "rate_scale": [1, 2]}
    plain |= {"size_scale": [1, 2], "service": ["auto", "gamma"]}
    rows, names = {}, []
    for change in ({}, *changes):
        options = checked(ReplayOptions(**(FEW | plain | change)))
        for case in read_cases(options):
            for item in items_of(case, options):
                row = item.run.row()
                names.append(row.pop("run_id"))
                rows[names[-1]] = json.dumps(row, sort_keys=True)
    assert len(rows) == 32 * len(changes) + 32 - 16  # one of the changes leaves out a queue
    assert len(set(rows.values())) == len(rows) == len(names)


def test_what_changes_no_result_changes_no_id(tmp_path):
    plan = plan_by_hand(tmp_path, "priority")
    changes = [{}, {"out": "elsewhere"}, {"resume": False}, {"figures": ["cdf"]}, {"write": ["latencies"]}]
    changes += [{"weights": [0.3, 0.7]}]  # of queues that have none
    names = set()
    for change in changes:
        options = checked(ReplayOptions(**(FEW | {"plan": plan} | change)))
        names |= {item.run.run_id for case in read_cases(options) for item in items_of(case, options)}
    assert len(names) == 1


def test_loads_of_nodes(tmp_path):
    given = FEW | {"plan": plan_by_hand(tmp_path, "fcfs"), "policy": ["probabilistic", "least_loaded"]}
    options = ReplayOptions(**(given | {"requests": 20_000, "out": str(tmp_path / "out")}))
    assert replay_study(options, QUIET) == 0
    runs = read_results(tmp_path / "out", "runs").set_index("policy")["run_id"]
    loads = read_results(tmp_path / "out", "node_loads").set_index(["run_id", "node_id"])
    planned, measured = (loads.loc[runs[policy]] for policy in ("probabilistic", "least_loaded"))
    service = FIXED + VARIABLE + 0.1 * (SIZES / NEED)[:, None]
    np.testing.assert_allclose(planned["load"], (RATES[:, None] * PLACED * service).sum(axis=0), rtol=1e-12)
    reads = (RATES[:, None] * PLACED).sum(axis=0)
    np.testing.assert_allclose(planned["read_share"], reads / reads.sum(), rtol=1e-12)
    latencies = read_results(tmp_path / "out", "latencies")
    nodes = latencies[(latencies["group"] == "node") & (latencies["run_id"] == runs["least_loaded"])]
    nodes = nodes.set_index("node_id")
    np.testing.assert_array_equal(measured["load"], nodes["utilisation"])
    np.testing.assert_allclose(measured["read_share"], nodes["requests"] / nodes["requests"].sum())
    for table in (planned, measured):
        assert list(table["chunks"]) == [4, 4]
        np.testing.assert_allclose(table["bytes_stored"], (SIZES / NEED).sum())
        np.testing.assert_allclose(table["cost_dollars_per_period"], 4 * PRICES)


def analysis_of(folder, path, columns):
    """What an analysis leaves behind of a log."""
    reading = json.dumps({"format": "auto", "columns": columns, "extent_bytes": None, "sort": False})
    print_ = open_trace(path, columns=columns).fingerprint
    row = {"run_id": "a", "job": "analyze", "status": "ok", "params": "{}", "input_id": print_}
    with ResultStore(folder, ANALYSIS, {}) as store:
        store.commit([row], {"traces": pa.table({"run_id": ["a"], "path": [path], "reading": [reading]})})
    return folder


def test_a_log_is_read_as_the_analysis_behind_the_plan_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr(theory, "ESTIMATE", lambda *_, **__: (_ for _ in ()).throw(UserError("not here")))
    path, columns = log_of(tmp_path, arrival_s="at", file_id="object", bytes="size")
    folder = analysis_of(tmp_path / "analysis", path, columns)
    inputs = {"files": str(folder / "files"), "nodes": str(folder / "nodes")}
    plan = plan_by_hand(tmp_path, "fcfs", params=json.dumps({"inputs": inputs}))
    options = checked(ReplayOptions(**FEW, plan=plan, trace=path))
    (case,) = read_cases(options)
    assert len(case.reads.times) == 600
    with pytest.raises(UserError, match="cannot tell its format"):
        read_cases(checked(ReplayOptions(**FEW, plan=plan_by_hand(tmp_path / "other", "fcfs"), trace=path)))
    # the analysis itself stands for its log, and how it is read is part of the prediction's name
    assert replay_study(ReplayOptions(**FEW, trace=str(folder), out=str(tmp_path / "folder")), QUIET) == 0
    assert (
        replay_study(ReplayOptions(**FEW, trace=path, columns=columns, out=str(tmp_path / "log")), QUIET) == 0
    )
    one, other = (read_results(tmp_path / name, "runs").iloc[0] for name in ("folder", "log"))
    assert one["run_id"] == other["run_id"] and json.loads(one["params"])["columns"] == columns
    assert one["prediction"] == other["prediction"] and one["prediction"].startswith("predicted mean")
    # loads of the nodes, as far as a log tells: 300 reads of the first half
    table = pa.csv.read_csv(path).to_pandas()
    span = table["at"][300] - table["at"][0]
    early = table[:300]
    work = (early["finish_s"] - early["start_s"]).groupby(early["node_id"]).sum()
    loads = read_results(tmp_path / "log", "node_loads").set_index("node_id").sort_index()
    np.testing.assert_allclose(loads["load"], work / span, rtol=1e-9)
    np.testing.assert_allclose(loads["read_share"], early.groupby("node_id").size() / 300)
    assert loads[["chunks", "bytes_stored", "cost_dollars_per_period"]].isna().all(axis=None)
    # the table that is printed needs no dataset that is not asked for
    alone = ReplayOptions(**FEW, trace=str(folder), out=str(tmp_path / "runs"), write=["runs"])
    assert replay_study(alone, QUIET) == 0
    assert not (tmp_path / "runs" / "latencies").exists()


def test_a_log_that_overloads_a_node_is_predicted_by_a_replay(tmp_path):
    """Of 400 reads of 1 s, two a second, three in four come to x: a load of 1.5, beside 0.5 at y."""
    arrival, node = 0.5 * np.arange(400), np.where(np.arange(400) % 4 == 3, "y", "x")
    start, free = np.empty(400), {"x": 0.0, "y": 0.0}
    for access in range(400):
        start[access] = max(arrival[access], free[node[access]])
        free[node[access]] = start[access] + 1.0
    log = {"request_id": np.arange(400), "arrival_s": arrival, "file_id": np.where(node == "x", "a", "b")}
    log |= {"node_id": node, "op": ["read"] * 400, "bytes": [4.0] * 400, "start_s": start}
    pq.write_table(pa.table(log | {"finish_s": start + 1.0}), tmp_path / "log.parquet")
    out = tmp_path / "out"
    code, text = shown(trace=str(tmp_path / "log.parquet"), out=str(out), replications=3)
    run = read_results(out, "runs").iloc[0]
    assert code == 0 and run["status"] == "ok"
    # services are always as long: the replay is what was observed
    observed = (start + 1.0 - arrival)[200:].mean()
    assert run["mean_s"] == pytest.approx(observed) and run["observed_mean_s"] == pytest.approx(observed)
    assert run["requests"] == 3 * 200
    assert run[["latency_s", "estimated_mean_s", "estimated_p99_s", "trace_estimated_mean_s"]].isna().all()
    assert "1 node is loaded to 1 or more in the first half (x)" in " ".join(text.split())
    latencies = read_results(out, "latencies")
    bound = latencies[latencies["source"] == "bound"]
    assert list(bound["group"]) == ["file"] and list(bound["file_id"]) == ["b"]
    # of M/D/1, half of the time busy
    assert bound["mean_s"].item() == pytest.approx(1 + 0.5 / (2 * (1 - 0.5)), rel=1e-6)
    estimated = latencies[(latencies["source"] == "estimated") & (latencies["group"] == "node")]
    assert list(estimated["node_id"]) == ["y"]


def test_every_column_of_runs_is_filled_by_some_run(tmp_path, monkeypatch):
    monkeypatch.setattr(theory, "ESTIMATE", lambda *_, **__: (_ for _ in ()).throw(UserError("not here")))
    swept = {"importance": '{"a": 1, "b": 2}', "class_rate_scale": '{"a": 1, "b": 2}', "theta": 1.0}
    plan = plan_by_hand(tmp_path, "fcfs", cost_dollars_per_period=3.0, moving_dollars=0.5, **swept)
    out = str(tmp_path / "out")
    assert replay_study(ReplayOptions(**FEW, plan=plan, out=out), QUIET) == 0
    assert replay_study(ReplayOptions(**FEW, plan=plan, out=out, rate_scale=9.0), QUIET) == 1
    assert replay_study(ReplayOptions(**FEW, trace=log_of(tmp_path)[0], out=out), QUIET) == 0
    few = FEW | {"requests": 2000, "replications": 3, "hedge_delay_s": 1.0, "slow": {"x": 1.1}}
    assert replay_study(checked(ReplayOptions(**few, plan=plan, policy=["hedged"], out=out)), QUIET) == 0
    runs = read_results(out, "runs")
    empty = {name for name in runs if runs[name].isna().all()}
    # the estimate, which takes long to compile, fills the others, and plans with small reads
    under_trace = {name for name in empty if name.startswith("trace_")}
    assert empty - under_trace == {
        "estimated_mean_s",
        "estimated_p99_s",
        "promised_p99_s",
        "small_degraded_share",
    }
    assert len(under_trace) == 8  # see test_replays_under_arrivals
    assert set(runs) == {column.name for column in TABLES.datasets["runs"]}
    notices = json.loads(runs["notices"].dropna().iloc[0])
    assert any("There is no estimate" in notice for notice in notices) and math.isfinite(runs["mean_s"].max())


def shown(**values):
    """What a replay prints."""
    console = Console(width=200, file=io.StringIO())
    code = replay_study(ReplayOptions(**FEW | values), console)
    return code, console.file.getvalue()


def test_too_few_reads_for_an_interval_have_none(tmp_path):
    out = str(tmp_path / "out")
    code, text = shown(plan=plan_by_hand(tmp_path, "fcfs"), out=out, requests=300, replications=1)
    run = read_results(out, "runs").iloc[0]
    assert code == 0 and run["status"] == "ok" and run["mean_s"] > 0
    table = pq.read_table(tmp_path / "out" / "runs")
    assert table["ci_s"].to_pylist() == [None]
    assert "± -" in text and "nan" not in text
    # of three replications what they differ by tells
    assert shown(plan=plan_by_hand(tmp_path, "fcfs"), out=out, requests=300, replications=3)[0] == 0
    runs = read_results(out, "runs").set_index("replications")
    assert runs.loc[3, "ci_s"] > 0


def test_rates_that_end_before_the_reads_are_refused(tmp_path):
    path = str(tmp_path / "rates.parquet")
    for scale in (1.0, 2.0):  # of the plan
        plan = plan_by_hand(tmp_path / f"plan{scale:g}", "fcfs", rate_scale=scale)
        for start, factor, come in (([0.0], [0.0], 0), ([0.0, 4.0], [1.0, 0.0], 4 * scale * sum(RATES))):
            pq.write_table(pa.table({"start_s": start, "factor": factor}), path)
            with pytest.raises(UserError, match="found a factor of 0 for all files that are read") as caught:
                shown(plan=plan, out=str(tmp_path / "out"), rates=path)
            assert f"when {come:.4g} of 500 reads" in str(caught.value) and not (tmp_path / "out").exists()


def test_writes_come_for_as_long_as_reads_whose_rates_vary(tmp_path):
    """Reads at a tenth of their rates take ten times as long, and so long come writes, all of which are counted on."""
    path, count, write_rate = str(tmp_path / "rates.parquet"), 2000, 0.1
    pq.write_table(pa.table({"start_s": [0.0], "factor": [0.1]}), path)
    plan = plan_by_hand(tmp_path, "fcfs", write_rate=write_rate)
    options = checked(ReplayOptions(**(FEW | {"plan": plan, "rates": path, "requests": count})))
    [case] = read_cases(options)
    [item] = items_of(case, options)
    at = operating_point(case, item.point, options)
    done: list[float] = []
    outcome = simulation(case, at, item.point, options).replication(0, done.append)
    expected = count + count / (0.1 * sum(RATES)) * len(RATES) * write_rate
    assert outcome.requests == pytest.approx(expected, rel=0.08)
    assert 0.9 < sum(done) <= 1


def test_factors_of_rates_are_refused_beside_the_arrivals_of_a_log():
    words = "rates=r.csv: found with arrivals=trace, which has the rates of the log; allowed with it: none"
    with pytest.raises(UserError, match=words):
        checked(ReplayOptions(rates="r.csv", trace="log.csv", plan="folder"))
    checked(ReplayOptions(rates="r.csv", trace="log.csv", plan="folder", arrivals="poisson"))


def test_reads_while_a_node_is_down_count(tmp_path):
    plan, path = plan_by_hand(tmp_path, "fcfs"), str(tmp_path / "down.parquet")
    # the first half of what 4000 reads take, and after all of them
    half = 2000 / sum(RATES)
    runs = {}
    for name, start, end in (("early", 0.1 * half, half), ("later", 100 * half, 101 * half)):
        pq.write_table(pa.table({"node_id": ["x"], "start_s": [start], "end_s": [end]}), path)
        shown(plan=plan, out=str(tmp_path / name), outages=path, requests=4000)
        runs[name] = read_results(tmp_path / name, "runs").iloc[0]
    # only the segment that begins with idle nodes is left out
    assert runs["early"]["warm_up_share"] < 0.02 and runs["early"]["requests"] > 0.98 * 2 * 4000
    assert runs["early"]["mean_s"] > 3 * runs["later"]["mean_s"]


def test_hedging_waits_as_long_where_a_node_is_slow(tmp_path):
    plan = plan_by_hand(tmp_path, "fcfs")
    delays = []
    for name, slow in (("as_planned", None), ("slow", {"x": 1.5})):
        shown(plan=plan, out=str(tmp_path / name), policy="hedged", slow=slow)
        run = read_results(tmp_path / name, "runs").iloc[0]
        delays.append(run["hedge_delay_s"])
    assert delays[0] == pytest.approx(delays[1]) and delays[0] > 0
    assert run["latency_s"] != pytest.approx(delays[0])  # the bound with the slow node


def test_hedging_waits_by_the_rates_that_are_replayed(tmp_path):
    """Four times the rates of the plan overload its nodes; a quarter of that is what comes."""
    plan, rates = plan_by_hand(tmp_path, "fcfs"), str(tmp_path / "rates.parquet")
    pq.write_table(pa.table({"start_s": [0.0], "factor": [0.25]}), rates)
    delays = []
    for name, given in (("plain", {}), ("varying", {"rate_scale": 4.0, "rates": rates})):
        code, _ = shown(plan=plan, out=str(tmp_path / name), policy="hedged", **given)
        run = read_results(tmp_path / name, "runs").iloc[0]
        assert code == 0 and run["status"] == "ok"
        delays.append(run["hedge_delay_s"])
    assert delays[1] == pytest.approx(delays[0], rel=1e-6)


def test_hedging_that_has_no_delay_asks_for_one(tmp_path):
    """At nine times the rates the plan overloads its nodes (loads of 0.249 and 0.261), and its bound is infinite."""
    given = {"plan": plan_by_hand(tmp_path, "fcfs"), "out": str(tmp_path / "out"), "policy": "hedged"}
    code, text = shown(**given, rate_scale=[1.0, 9.0])
    runs = read_results(tmp_path / "out", "runs").set_index("rate_scale")
    assert code == 1 and runs.loc[1.0, "status"] == "ok" and runs.loc[9.0, "status"] == "unstable"
    assert runs.loc[9.0, "error"].startswith(
        "hedge_delay_s: its default, the bound on the mean latency of the plan"
    )
    assert "hedge_delay_s: its default" in text


@pytest.mark.parametrize("scaling", ["proportional", "none"])
def test_services_of_a_log_of_one_size_go_with_the_size_as_those_of_the_plan(tmp_path, caplog, scaling):
    """Chunks of 4 B in the log, of 1 and 2 B in the plan, twice as large once: loads are their work."""
    path, columns = log_of(tmp_path)
    table = pa.csv.read_csv(path).to_pandas()
    services = (table["finish_s"] - table["start_s"]).groupby(table["node_id"]).mean()[["x", "y"]].to_numpy()
    plan = plan_by_hand(tmp_path, "fcfs", params=json.dumps({"size_scaling": scaling}))
    given = {"plan": plan, "trace": path, "columns": columns, "arrivals": "poisson", "service": "empirical"}
    with caplog.at_level("WARNING", "ecjax"):
        code, _ = shown(**given, out=str(tmp_path / "out"), size_scale=[1.0, 2.0], rate_scale=0.5)
    assert code == 0
    runs = read_results(tmp_path / "out", "runs").set_index("size_scale")
    for scale in (1.0, 2.0):
        times = scale * (SIZES / NEED)[:, None] / 4 if scaling == "proportional" else 1.0
        load = (0.5 * RATES[:, None] * PLACED * times).sum(axis=0) * services
        assert runs.loc[scale, "max_load"] == pytest.approx(load.max(), rel=1e-6)
    said = "all chunks of the log are of 4 B: services of others are taken to be proportional to the size"
    assert (said in caplog.text) == (scaling == "proportional")


def test_rates_that_end_before_the_reads_of_a_plan_are_refused(tmp_path):
    """600 reads come at the rates of the table, half or twice as many at those of the plan."""
    path = str(tmp_path / "rates.parquet")
    pq.write_table(pa.table({"start_s": [0.0, 600 / sum(RATES)], "factor": [1.0, 0.0]}), path)
    slow = plan_by_hand(tmp_path / "slow", "fcfs", rate_scale=0.5)
    with pytest.raises(UserError, match="when 300 of 500 reads"):
        read_cases(checked(ReplayOptions(**FEW, plan=slow, rates=path)))
    fast = plan_by_hand(tmp_path / "fast", "fcfs", rate_scale=2.0)
    more = FEW | {"requests": 1000}
    assert len(read_cases(checked(ReplayOptions(**more, plan=fast, rates=path)))) == 1


def test_the_end_of_a_table_of_rates_is_said(tmp_path, caplog):
    """2200 s at the mean rates are in the 1400 s of a table: as many reads as that come in it."""
    path, plan = str(tmp_path / "rates.parquet"), plan_by_hand(tmp_path, "fcfs")
    table = {"start_s": [0.0, 1000.0], "factor": [2.0, 0.5], "duration_s": [1000.0, 400.0]}
    pq.write_table(pa.table(table), path)
    come = round(2200 * sum(RATES))

    def said(**options):
        caplog.clear()
        read_cases(checked(ReplayOptions(**(FEW | {"plan": plan, "rates": path} | options))))
        return caplog.text

    with caplog.at_level("WARNING", "ecjax"):
        assert "its last interval ends at 23.3 min" in said(requests=2000)
        assert f"when {come:,} of 2,000 reads are expected" in said(requests=2000)
        assert f"requests={come} ends with it" in said(requests=2000)
        assert said(requests=come) == ""
        assert f"requests={round(come / 2)} ends" in said(requests=come, rate_scale=[0.5, 1.0])
        # too few for a replay; and a table that does not say how long its last factor holds
        assert "requests=" not in said(requests=2000, rate_scale=[0.01])
        pq.write_table(pa.table(table | {"duration_s": [1000.0, np.inf]}), path)
        assert said(requests=2000) == ""
        # an interval that is open
        for durations in ([1000.0, None], [1000.0, np.nan], [1000, None]):
            pq.write_table(pa.table(table | {"duration_s": durations}), path)
            assert said(requests=2000) == ""
        pq.write_table(pa.table(table).drop_columns(["duration_s"]), path)
        assert said(requests=2000) == ""
