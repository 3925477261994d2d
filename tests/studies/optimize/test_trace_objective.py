"""``ecjax optimize objective=trace``: from a log to a plan, a bound, and a line on whose bursts they are."""

import io

import numpy as np
import pandas as pd
import problems
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.planning.trace.plan import plan_trace
from ecjax.studies.optimize import arrivals, trace_run
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.optimize.trace_words import say_margins
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results

NODES, FILES, MEAN = 6, 6, 0.1
QUIET = Console(quiet=True)


def logged(folder, rate=0.5, burst=12.0, common=False):
    """A log of 120 s in which the first file (or all alike) bursts for 10 s; 6 exponential nodes, 6 files, k = 2."""
    rng = np.random.default_rng(0)
    times, files = [], []
    for file in range(FILES):
        drawn = np.random.default_rng(1) if common else rng
        steady = drawn.uniform(0, 120, drawn.poisson(120 * rate if file or common else 0))
        bursts = drawn.uniform(40, 50, drawn.poisson(10 * burst) if not file or common else 0)
        times.append(np.concatenate([steady, bursts]))
        files.append(np.full(len(times[-1]), file))
    time, file = np.concatenate(times), np.concatenate(files)
    order = np.argsort(time)
    pd.DataFrame(
        {
            "request_id": range(len(order)),
            "arrival_s": time[order],
            "file_id": file[order],
            "op": "read",
            "bytes": 2e6,
        }
    ).to_parquet(folder / "log.parquet")
    moments = {"service_mean_s": MEAN, "service_second_s2": 2 * MEAN**2, "service_third_s3": 6 * MEAN**3}
    nodes = pd.DataFrame({"node_id": range(NODES), "reference_bytes": 1e6, "cost_per_chunk_dollars": 1.0})
    nodes.assign(**moments).to_parquet(folder / "nodes.parquet")
    files = pd.DataFrame({"file_id": range(FILES), "bytes": 2e6, "k": 2, "rate_per_s": 1e-3})
    files.to_parquet(folder / "files.parquet")
    tables = {name: str(folder / f"{name}.parquet") for name in ("nodes", "files")}
    return tables | {"trace": str(folder / "log.parquet"), "out": str(folder / "out")}


def planned(console=QUIET, **options):
    given = {"objective": "trace", "theta": [0.0], "estimate": False, "figures": []} | options
    return optimize_study(OptimizeOptions(**given), console)


def test_a_burst_of_one_file_spreads_it(tmp_path):
    text = io.StringIO()
    names = logged(tmp_path)
    assert planned(Console(file=text, width=500), theta=[0.0, 1e-3, 100.0], **names) == 0
    runs = read_results(names["out"], "runs").set_index("theta").sort_index()
    free, cheap, dear = (runs.loc[theta] for theta in (0.0, 1e-3, 100.0))
    assert free["status"] == "ok"
    assert free["objective"] == pytest.approx(free["trace_wait_s"])
    assert free["lower_bound"] <= free["objective"] and free["gap"] <= 1e-2
    assert free["trace_wait_s"] <= 1.02 * free["spread_wait_s"] < 0.7 * free["blind_wait_s"]
    assert free["bursts"] == "single"
    # the rates are those of the log
    log = pd.read_parquet(names["trace"])
    load = len(log) * 2 * MEAN / NODES / (log["arrival_s"].iloc[-1] - log["arrival_s"].iloc[0])
    assert free["max_load"] == pytest.approx(load, rel=0.1)
    n = read_results(names["out"], "file_plans").set_index(["run_id", "file_id"])["n"]
    assert n[free["run_id"]][0] == NODES
    assert n[cheap["run_id"]][0] > n[cheap["run_id"]][1:].max()
    assert (n[dear["run_id"]] == 2).all()
    assert dear["objective"] == pytest.approx(dear["trace_wait_s"] + 100 * 2)
    said = [line for line in text.getvalue().splitlines() if line.startswith("bursts are of single files")]
    assert len(said) == 1 and "the least possible: spreading pays" in said[0]
    assert "under the log's own arrivals" in text.getvalue()


def test_bursts_of_all_files_are_beyond_placement(tmp_path):
    text = io.StringIO()
    names = logged(tmp_path, burst=4.5, common=True)
    assert planned(Console(file=text, width=500), **names) == 0
    run = read_results(names["out"], "runs").iloc[0]
    assert run["bursts"] == "common"
    assert "placement cannot help, more capacity or a cache can" in text.getvalue()


def test_whose_bursts_they_are_cannot_be_told_of_one_file(tmp_path):
    """Its reads need both nodes of every plan with n = k = 2; over six nodes the same burst is a third of the work."""
    text = io.StringIO()
    names = logged(tmp_path)
    log = pd.read_parquet(names["trace"])
    log[log["file_id"] == 0].to_parquet(names["trace"])
    assert planned(Console(file=text, width=500), **names) == 0
    run = read_results(names["out"], "runs").iloc[0]
    assert run["spread_wait_s"] < 0.5 * run["blind_wait_s"]
    assert pd.isna(run["bursts"])
    said = text.getvalue()
    assert (
        "of one file, or of files placed together: whether bursts are common or of single files cannot"
        in said
    )
    assert "placement cannot help" not in said and "hardly count" not in said


def test_a_day_of_all_files_is_common_where_nodes_cannot_be_loaded_alike(tmp_path):
    """Beyond capacity a node that is loaded more than others waits many times as long, whoever's reads they are."""
    rng = np.random.default_rng(5)
    names, files = logged(tmp_path), 20
    times = np.sort(rng.uniform(0, 2000, 60_000))
    times = times[rng.uniform(0, 1.8, len(times)) < 1 + 0.8 * np.sin(times * 2 * np.pi / 1000)]
    log = pd.DataFrame({"request_id": range(len(times)), "arrival_s": times, "op": "read", "bytes": 2e6})
    weight = np.arange(1, files + 1) ** -0.5
    log["file_id"] = rng.choice(files, len(times), p=weight / weight.sum())
    log.to_parquet(names["trace"])
    nodes = pd.read_parquet(names["nodes"])
    mean = np.array([0.7, 1, 1.3] * 2) * 0.65 * NODES * 2000 / (2 * len(times))
    nodes.assign(service_mean_s=mean, service_second_s2=2 * mean**2, service_third_s3=6 * mean**3).to_parquet(
        names["nodes"]
    )
    pd.DataFrame({"file_id": range(files), "bytes": 2e6, "k": 2, "rate_per_s": 1e-3}).to_parquet(
        names["files"]
    )
    assert planned(**names) == 0
    run = read_results(names["out"], "runs").iloc[0]
    assert run["blind_wait_s"] > 1.08 * run["spread_wait_s"] > 10 * run["steady_wait_s"]
    assert run["bursts"] == "common"


@pytest.mark.slow
def test_a_plan_that_breaks_a_constraint_has_no_gap(tmp_path, monkeypatch):
    """Six chunks on two nodes each, which have room for three: such a plan may be below every bound."""
    names = logged(tmp_path)
    nodes = pd.read_parquet(names["nodes"]).assign(capacity_chunks=3)
    nodes.to_parquet(names["nodes"])
    assert planned(**names) == 0
    stored = np.tile(np.arange(NODES) < 2, (FILES, 1))

    def crowded(*arguments):
        return plan_trace(*arguments)._replace(probabilities=stored.astype(float), stored=stored)

    monkeypatch.setattr(trace_run, "plan_trace", crowded)
    planned(**names | {"out": str(tmp_path / "crowded")})
    kept, broken = (read_results(tmp_path / name, "runs").iloc[0] for name in ("out", "crowded"))
    assert kept["status"] == "ok" and kept["gap"] >= 0
    assert broken["status"] == "infeasible" and np.isnan(broken["gap"]) and broken["lower_bound"] > 0


def test_plans_for_mean_rates_say_what_the_log_makes_of_them(tmp_path):
    """The same estimate as a replay of the plan under the log, which in turn is near what is replayed."""
    text = io.StringIO()
    names = logged(tmp_path)
    options = {"objective": "bound", "estimate": True, "theta": [0.0, 100.0]}
    assert planned(Console(file=text, width=500), **options, **names) == 0
    runs = read_results(names["out"], "runs").sort_values("theta")
    # bursts of one file, which mean rates do not see
    assert (runs["trace_estimated_mean_s"] > 1.5 * runs["estimated_mean_s"]).any()
    assert (runs["trace_estimated_mean_low_s"] < runs["trace_estimated_mean_s"]).all()
    assert (runs["trace_estimated_mean_s"] < runs["trace_estimated_mean_high_s"]).all()
    plan, out = runs.iloc[1], str(tmp_path / "replayed")
    replay = ReplayOptions(
        plan=names["out"], trace=names["trace"], plan_run=plan["run_id"], replications=50, out=out, figures=[]
    )
    assert replay_study(replay, QUIET) in (0, 1)
    replayed = read_results(out, "runs").iloc[0]
    for column in ("trace_estimated_mean_s", "trace_estimated_p99_s", "trace_estimated_p99_high_s"):
        assert replayed[column] == pytest.approx(plan[column], rel=1e-9)
    assert replayed["mean_s"] == pytest.approx(plan["trace_estimated_mean_s"], rel=0.15)
    assert "under the log's own arrivals" in text.getvalue() and "if they were Poisson" in text.getvalue()


def test_poisson_reads_of_a_clock_that_ticks_unevenly_are_poisson(tmp_path):
    """64 ticks a second written in milliseconds: four reads at one ms, and none at the next 14 or 15."""
    names = logged(tmp_path)
    rng, mean, length = np.random.default_rng(7), 0.006, 120
    times = np.sort(rng.uniform(0, length, 250 * length))
    log = pd.DataFrame({"request_id": range(len(times)), "arrival_s": np.round(np.floor(times * 64) / 64, 3)})
    log.assign(file_id=rng.integers(0, FILES, len(times)), op="read", bytes=2e6).to_parquet(names["trace"])
    moments = {"service_mean_s": mean, "service_second_s2": 2 * mean**2, "service_third_s3": 6 * mean**3}
    pd.read_parquet(names["nodes"]).assign(**moments).to_parquet(names["nodes"])
    assert planned(objective="bound", estimate=True, **names) == 0
    run = read_results(names["out"], "runs").iloc[0]
    assert run["trace_branch"] == "denoised"
    for figure in ("mean", "p99"):
        assert run[f"trace_estimated_{figure}_s"] == pytest.approx(run[f"estimated_{figure}_s"], rel=0.05)


def test_a_coarse_clock_and_a_single_file_are_told_beside_expected_latencies(tmp_path):
    text = io.StringIO()
    names = logged(tmp_path)
    log = pd.read_parquet(names["trace"])
    log = log[log["file_id"] == 0].assign(arrival_s=lambda rows: np.floor(rows["arrival_s"]))
    log.to_parquet(names["trace"])
    assert planned(Console(file=text, width=2000), objective="bound", estimate=True, **names) == 0
    told = read_results(names["out"], "runs").iloc[0]["trace_remarks"]
    for words in (
        "Times are known to ticks of 1 s, longer than a service (100 ms)",
        "All reads of the log are of one file",
    ):
        assert words in told
    assert told in text.getvalue()


def test_a_mean_load_above_one_names_the_node(tmp_path):
    names = logged(tmp_path, rate=6.0)
    with pytest.raises(UserError, match=r"node_id=0.*load rho"):
        planned(**names)
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "objective=trace: trace=PATH is missing"),
        (
            {"trace": "log", "objective": "bound", "what_if": ["nodes:2"]},
            "what_if: found nodes:2 with trace=log",
        ),
        (
            {"trace": "log", "objective": "bound", "queue": ["priority"]},
            "queue: found priority with trace=log; allowed with it: fcfs",
        ),
        ({"trace": "log", "class_rate_scale": [{"a": 2.0}]}, "class_rate_scale"),
        ({"trace": "log", "objective": "bound", "stream": True}, "trace: found log with stream=true"),
        ({"trace": "log", "method": ["published"]}, "method: found published with objective=trace"),
        ({"trace": "log", "queue": ["priority"]}, "objective: found trace with queue=priority"),
        ({"trace": "log", "max_chunks_per_node": 2}, "max_chunks_per_node"),
        (
            {"trace": "log", "robust": "worst", "scenarios": ["node"]},
            "robust: found worst with objective=trace",
        ),
    ],
)
def test_options_that_do_not_go_with_a_log(options, words):
    with pytest.raises(UserError, match=words) as wrong:
        checked(OptimizeOptions(**({"objective": "trace"} | options)))
    assert "\n" not in str(wrong.value)


def test_the_gap_is_another_where_it_is_not_set():
    assert checked(OptimizeOptions(objective="trace", trace="log")).gap == 1e-2
    assert checked(OptimizeOptions(objective="trace", trace="log", gap=1e-3)).gap == 1e-3
    assert checked(OptimizeOptions()).gap == 1e-4


def test_writes_alone_cannot_be_planned_for(tmp_path):
    names = logged(tmp_path)
    pd.read_parquet(names["trace"]).assign(op="write").to_parquet(names["trace"])
    with pytest.raises(UserError, match="found no reads"):
        planned(**names)


def test_writes_are_no_reads_that_an_estimate_rests_on(tmp_path):
    names = logged(tmp_path)
    log = pd.read_parquet(names["trace"])
    write = np.arange(len(log)) % 3 == 0
    log.assign(op=np.where(write, "write", "read")).to_parquet(names["trace"])
    assert planned(objective="bound", estimate=True, **names) == 0
    run = read_results(names["out"], "runs").iloc[0]
    assert f"The log has {np.count_nonzero(~write)} reads:" in run["trace_remarks"]


def test_a_log_is_looked_through_once_for_all_plans(tmp_path, monkeypatch):
    times, seen_of = [], arrivals.seen_of
    monkeypatch.setattr(arrivals, "seen_of", lambda log: times.append(1) or seen_of(log))
    names = logged(tmp_path)
    lanes = {"theta": [0.0, 100.0], "rate_scale": [0.5, 1.0]}
    assert planned(objective="bound", estimate=True, **lanes, **names) == 0
    told = read_results(names["out"], "runs")["trace_remarks"]
    reads = len(pd.read_parquet(names["trace"]))
    assert len(told) == 4 and told.str.contains(f"The log has {reads} reads:").all() and len(times) == 1


def test_a_log_without_a_table_of_its_files_is_sent_to_analyze(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("request_id,arrival_s,file_id,op,bytes\n0,0.0,a,read,10\n1,1.0,b,read,10\n")
    with pytest.raises(UserError, match=r"files=TABLE is missing.*ecjax analyze .*log.csv out=OUT"):
        problems.study(tmp_path / "out", objective="trace", method=["certified"], trace=str(log))


def test_plans_for_the_rates_of_the_busiest_window(tmp_path):
    names = logged(tmp_path)
    assert planned(objective="bound", rate="peak", window_s=10.0, **names) == 0
    times = pd.read_parquet(names["trace"])["arrival_s"].to_numpy()
    most = max(np.count_nonzero((times >= begin) & (times < begin + 10)) for begin in times)
    load = read_results(names["out"], "node_loads")["load"].sum()
    assert load == pytest.approx(most / 10 * 2 * MEAN, rel=1e-5)
    with pytest.raises(UserError, match="rate: found peak with objective=trace"):
        planned(rate="peak", **names)
    with pytest.raises(UserError, match="rate=peak: trace=PATH is missing"):
        checked(OptimizeOptions(rate="peak"))


def test_a_window_without_the_peak_has_no_effect(monkeypatch, caplog):
    monkeypatch.setattr("ecjax.studies.optimize.study.run_study", lambda *_: 0)
    assert optimize_study(OptimizeOptions(window_s=10.0), QUIET) == 0
    assert caplog.messages == ["window_s=10.0 has no effect beside rate=mean"]
    caplog.clear()
    assert optimize_study(OptimizeOptions(window_s=10.0, rate="peak", trace="log.csv"), QUIET) == 0
    assert caplog.messages == []


def test_plans_for_shrunk_rates(tmp_path, caplog):
    names = logged(tmp_path)
    caplog.set_level("INFO")
    text = io.StringIO()
    assert planned(Console(file=text, width=500), objective="bound", shrink="gamma", **names) == 0
    assert "trace: Rates are those that all files together make likely: a gamma law" in caplog.text
    times = pd.read_parquet(names["trace"])["arrival_s"].to_numpy()
    load = read_results(names["out"], "node_loads")["load"].sum()
    assert load == pytest.approx(len(times) / (times[-1] - times[0]) * 2 * MEAN, rel=1e-5)
    files = read_results(names["out"], "inputs/files")
    assert (files["rate_standard_error_per_s"] > 0).all()
    run = read_results(names["out"], "runs").iloc[0]
    # all files are alike to the bound, and 415 reads make the load
    assert 0 < run["latency_rate_error_s"] < run["latency_s"] / 10 and run["cost_rate_error_dollars"] == 0
    assert "Rates are counts: the bound is from " in text.getvalue()
    with pytest.raises(UserError, match="shrink=gamma: trace=PATH is missing"):
        checked(OptimizeOptions(shrink="gamma"))


def test_order_statistic_forms_of_a_log(tmp_path):
    text = io.StringIO()
    names = logged(tmp_path)
    # of the fine bins that plans see a bound for k = 2 is above the mean wait and a service
    assert planned(Console(file=text, width=500), trace_form="order_statistics", **names) == 0
    run = read_results(names["out"], "runs").iloc[0]
    assert run["objective"] == pytest.approx(run["trace_bound_s"])
    assert run["trace_bound_s"] > run["trace_wait_s"] + MEAN
    assert run["lower_bound"] <= run["objective"] and run["gap"] <= 2e-2
    assert run["bursts"] == "single"
    with pytest.raises(UserError, match="trace_form=excess: found objective=bound; allowed with it: trace"):
        checked(OptimizeOptions(objective="bound", theta=[0.0], trace_form="excess", **names))
    sizes = pd.read_parquet(names["files"]).assign(bytes=[2e6] * 5 + [4e6])
    sizes.to_parquet(names["files"])
    with pytest.raises(
        UserError, match=r"found chunks of 2 sizes, from 1e\+06 to 2e\+06 B; allowed: one size"
    ):
        planned(trace_form="order_statistics", **(names | {"out": str(tmp_path / "other")}))


def test_an_interval_that_is_not_told_is_not_said():
    column, text = "trace_estimated", io.StringIO()
    row = {
        "theta": 0.0,
        f"{column}_mean_s": 0.01,
        f"{column}_mean_low_s": 0.005,
        f"{column}_mean_high_s": 0.02,
    }
    row |= {f"{column}_p99_low_s": np.nan, f"{column}_p99_high_s": np.nan, "trace_remarks": None}
    say_margins(pd.DataFrame([row]), Console(file=text, width=500))
    assert "another log of this kind would have its mean within 5 ms to 20 ms (95 %)." in text.getvalue()
