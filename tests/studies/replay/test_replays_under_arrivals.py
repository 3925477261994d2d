"""Replays of logs and of varying rates beside their estimate under those arrivals, which needs no replay."""

import io
import re
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from plans_by_hand import FIXED, NEED, PLACED, RATES, SIZES, VARIABLE, plan_by_hand
from rich.console import Console

from ecjax.planning import Problem
from ecjax.predict import logged
from ecjax.predict.logged import varying_estimate
from ecjax.programs import keep_traces
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay import run, trace_predictions
from ecjax.studies.replay.logged_reads import logged_reads
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.importers import open_trace
from ecjax.tables.requests import requests
from ecjax.tables.results import read_results


@pytest.fixture(autouse=True)
def no_poisson(monkeypatch):
    """Estimates of mean rates take long to compile, and are tested elsewhere."""
    monkeypatch.setattr(run, "predictions", lambda *_: {})
    keep_traces(True)  # it is a part of no program


def _log(folder, files, busy_s=2.0, count=400):
    """Bursts of reads of two files, a second after the other."""
    rng = np.random.default_rng(0)
    burst = rng.integers(0, 10, count) * 40.0
    arrival = np.sort(burst + rng.uniform(0, busy_s, count))
    log = {"request_id": np.arange(count), "arrival_s": arrival, "file_id": rng.choice(files, count)}
    log |= {"op": ["read"] * count, "bytes": [4.0] * count}
    path = str(folder / "log.csv")
    pa.csv.write_csv(pa.table(log), path)
    columns = {name: name for name in log}
    return path, columns


def _replayed(tmp_path, **options):
    out, text = str(tmp_path / "out"), io.StringIO()
    options = ReplayOptions(out=out, figures=[], replications=6, **options)
    code = replay_study(options, Console(file=text, width=200))
    return out, code, read_results(out, "runs").iloc[0], text.getvalue()


@pytest.mark.parametrize("write_rate, counted", [(10.0, True), (None, False)])
def test_writes_of_a_log_come_as_often_as_it_has_them(tmp_path, write_rate, counted):
    """Not at the rates of the plan's files, which may be those of a peak; where these have none, they do not count."""
    path, columns = _log(tmp_path, range(10, 14))
    table = pa.csv.read_csv(path)
    write = np.arange(len(table)) % 4 == 0
    operations = pa.array(np.where(write, "write", "read"))
    pa.csv.write_csv(table.set_column(table.column_names.index("op"), "op", operations), path)
    written, read = (
        np.bincount(table["file_id"].to_numpy()[part] - 10, minlength=4) for part in (write, ~write)
    )
    times = table["arrival_s"].to_numpy()[slice(None) if counted else ~write]
    plan = plan_by_hand(tmp_path, "fcfs", write_rate=write_rate)
    out, _, _, _ = _replayed(tmp_path, plan=plan, trace=path, columns=columns, rate_scale=0.2)
    loads = read_results(out, "node_loads").set_index("node_id")["load"]
    chunk_s = FIXED + VARIABLE + 0.1 * (SIZES / NEED)[:, None]
    work = read @ (PLACED * chunk_s) + (written @ chunk_s if counted else 0.0)
    assert loads.to_numpy() == pytest.approx(0.2 * work / (times[-1] - times[0]), rel=1e-6)


def _one_server(tmp_path, times, write, service, nodes=("x",)):
    """Options for a log of one file on one node, or some, whose services take always the same."""
    log = {"request_id": np.arange(len(times)), "arrival_s": times, "file_id": ["a"] * len(times)}
    log |= {"op": np.where(write, "write", "read"), "bytes": [4.0] * len(times)}
    count = len(nodes)
    table = {"node_id": list(nodes), "delta_s": [service] * count, "psi_s": [0.0] * count}
    table |= {"cost_per_chunk_dollars": [1.0] * count}
    table |= {"delta_s_per_byte": [0.0] * count, "psi_s_per_byte": [0.0] * count}
    files = {"file_id": ["a"], "bytes": [4.0], "k": [1], "rate_per_s": [0.5], "write_rate_per_s": [0.1]}
    files |= {"nodes": [list(nodes)]}
    for name, columns in (("log", log), ("nodes", table), ("files", files)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    tables = {name: str(tmp_path / f"{name}.parquet") for name in ("nodes", "files")}
    options = {"trace": str(tmp_path / "log.parquet"), "service": ["deterministic"], "plan": "none"}
    return options | {"planning": OptimizeOptions(**tables)}


def test_writes_of_a_log_come_when_it_has_them(tmp_path):
    """Reads wait behind a burst of writes, in the replay and in the estimate beside it (one server, in order)."""
    service, burst = 0.25, 400.0
    reads = np.arange(500) * 2.0 + 1.0
    writes = burst + 0.53 + np.arange(600) * 0.1
    times, write = np.concatenate([reads, writes]), np.repeat([False, True], [len(reads), len(writes)])
    order = np.argsort(times)
    times, write = times[order], write[order]
    free, sojourn = 0.0, np.zeros(len(times))
    for number, now in enumerate(times):
        free = max(free, now) + service
        sojourn[number] = free - now
    options = _one_server(tmp_path, times, write, service)
    _, code, row, _ = _replayed(tmp_path, **options)
    assert code == 0
    assert row["mean_s"] == pytest.approx(np.mean(sojourn[~write]), rel=1e-6)
    assert row["trace_estimated_mean_s"] == pytest.approx(np.mean(sojourn[~write]), rel=0.05)


def test_writes_after_the_last_read_are_work_of_the_nodes(tmp_path):
    """400 reads in 1000 s, then as long 1600 writes: a node is busy 0.25 s for each."""
    times = np.concatenate([np.arange(400) * 2.5, 1000 + np.arange(1600) * 0.625])
    options = _one_server(tmp_path, times, times >= 1000, 0.25)
    _, code, row, _ = _replayed(tmp_path, **options)
    assert code == 0
    assert row["max_utilisation"] == pytest.approx(2000 * 0.25 / times[-1], rel=1e-3)
    assert row["max_load"] == pytest.approx(row["max_utilisation"], rel=1e-3)
    assert row["requests"] == 6 * 400 and row["mean_s"] == pytest.approx(0.25, rel=1e-9)


def test_ends_of_a_coarse_clock_less_durations_are_spread(tmp_path):
    """Of Poisson arrivals as many are close together as there were, though a log has whole seconds of their ends."""
    rng = np.random.default_rng(4)
    rate, count, close = 4.0, 8000, 0.01
    begin = 1.8e9 + np.cumsum(rng.exponential(1 / rate, count))
    duration = np.round(rng.exponential(0.2, count), 3)
    end = np.sort(begin + duration)
    lines = []
    for second, took in zip(np.floor(end).astype("datetime64[s]").tolist(), duration, strict=True):
        day = second.strftime("%d/%b/%Y:%H:%M:%S +0000")
        lines.append(f'1.1.1.1 - - [{day}] "GET /b/o HTTP/1.1" 200 4 "-" "-" {took:.3f}\n')
    (tmp_path / "access.log").write_text("".join(lines))
    problem = cast(Problem, None)  # of which reads alone need nothing
    reads = logged_reads(requests(open_trace(tmp_path / "access.log")), "access.log", problem)
    expected = 1 - np.exp(-rate * close)
    deviation = np.sqrt(expected * (1 - expected) / count)
    assert np.mean(np.diff(reads.times) < close) == pytest.approx(expected, abs=4 * deviation)


def test_the_estimate_under_a_log_is_beside_its_replay(tmp_path):
    plan = plan_by_hand(tmp_path, "fcfs")
    path, columns = _log(tmp_path, range(10, 14))
    out, code, row, text = _replayed(tmp_path, plan=plan, trace=path, columns=columns, rate_scale=0.2)
    assert code == 0 and row["warm_up_share"] == 0
    assert row["trace_branch"] == "raw"
    assert row["trace_estimated_mean_s"] == pytest.approx(row["mean_s"], rel=0.08)
    assert row["trace_estimated_p99_s"] == pytest.approx(row["p99_s"], rel=0.15)
    assert (
        row["trace_estimated_mean_low_s"] < row["trace_estimated_mean_s"] < row["trace_estimated_mean_high_s"]
    )
    assert "another log of this kind" in text.lower()
    assert "400 reads" in row["trace_remarks"] and "400 reads" in " ".join(text.split())
    means = read_results(out, "latencies").pivot_table(
        index=["group", "class", "file_id"], columns="source", values="mean_s", dropna=False
    )
    means = means[["replayed", "trace_estimated"]].dropna()
    assert set(means.index.get_level_values("group")) >= {"class", "file"} or len(means) > 2
    np.testing.assert_allclose(means["trace_estimated"], means["replayed"], rtol=0.2)
    # its interval is not one of half widths, and has columns of its own
    latencies = read_results(out, "latencies").set_index("source")["ci_s"]
    assert latencies.loc[["trace_estimated"]].isna().all() and latencies.loc[["replayed"]].notna().any()
    assert "queue has not drained" not in text


def test_a_log_is_no_faster_than_it_is_replayed(tmp_path):
    """A plan for twice the rates of its table changes nothing about those of the log."""
    plan = plan_by_hand(tmp_path, "fcfs", rate_scale=2.0)
    path, columns = _log(tmp_path, range(10, 14))
    _, code, row, _ = _replayed(tmp_path, plan=plan, trace=path, columns=columns, rate_scale=0.2)
    assert code == 0
    assert row["rate_scale"] == 0.2


def test_a_mean_load_above_1_names_the_node(tmp_path):
    plan = plan_by_hand(tmp_path, "fcfs")
    path, columns = _log(tmp_path, range(10, 14))
    _, code, row, text = _replayed(tmp_path, plan=plan, trace=path, columns=columns, rate_scale=100.0)
    assert code == 1 and row["status"] == "unstable" and "node" in row["error"]


def test_reads_of_a_coarse_clock_are_spread_over_its_ticks(tmp_path):
    """Poisson reads stamped by the minute, of copies on exponential nodes: each node is a queue of its own."""
    mean, nodes, load = 0.1, 4, 0.4
    rng = np.random.default_rng(1)
    count = 24_000
    arrival = np.cumsum(rng.exponential(mean / load / nodes, count)) // 60 * 60
    log = {"request_id": np.arange(count), "arrival_s": arrival, "file_id": rng.integers(0, 40, count)}
    log |= {"op": ["read"] * count, "bytes": [1.0] * count}
    tables = {
        "log": log,
        "nodes": {"node_id": range(nodes), "delta_s": [0.0] * nodes, "delta_s_per_byte": [0.0] * nodes}
        | {"psi_s": [mean] * nodes, "psi_s_per_byte": [0.0] * nodes},
        "files": {"file_id": range(40), "bytes": [1.0] * 40, "k": [1] * 40, "rate_per_s": [1.0] * 40}
        | {"nodes": [list(range(nodes))] * 40},
    }
    paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    for name, table in tables.items():
        pq.write_table(pa.table({key: list(values) for key, values in table.items()}), paths[name])
    planning = OptimizeOptions(nodes=paths["nodes"], files=paths["files"])
    columns = {name: name for name in log}
    given = {
        "plan": "none",
        "planning": planning,
        "trace": paths["log"],
        "columns": columns,
        "service": ["exponential"],
    }
    _, code, row, text = _replayed(tmp_path, **given)
    assert code == 0
    expected = mean / (1 - load)
    assert row["mean_s"] == pytest.approx(expected, rel=0.05)
    assert row["trace_estimated_mean_s"] == pytest.approx(expected, rel=0.05)
    assert row["trace_estimated_p99_s"] == pytest.approx(expected * np.log(100), rel=0.08)


def test_the_estimate_under_varying_rates_is_of_the_time_that_is_replayed(tmp_path):
    """Twice the rate after 2000 s: the reads that would end at 4000 s do so at 3000 s."""
    plan = plan_by_hand(tmp_path, "fcfs")
    rates = str(tmp_path / "rates.csv")
    pa.csv.write_csv(pa.table({"start_s": [0.0, 2000.0], "factor": [1.0, 2.0]}), rates)
    seen = []

    def estimated(*given):
        seen.append(given[2])
        return varying_estimate(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_predictions, "varying_estimate", estimated)
        keep_traces(True)  # it is a part of no program
        _, code, _, _ = _replayed(tmp_path, plan=plan, rates=rates, requests=600, rate_scale=0.2)
    assert code == 0
    assert 600 / (0.2 * RATES.sum()) == pytest.approx(4000.0)
    assert seen == [pytest.approx(3000.0)]


@pytest.mark.parametrize("estimated", [True, False])
def test_rates_of_too_many_files_and_times_have_no_estimate(tmp_path, monkeypatch, estimated):
    monkeypatch.setattr(trace_predictions, "MOST_RATES", 7)
    plan = plan_by_hand(tmp_path, "fcfs")
    rates = str(tmp_path / "rates.csv")
    pa.csv.write_csv(pa.table({"start_s": [0.0, 2000.0], "factor": [1.0, 2.0]}), rates)
    _, code, row, text = _replayed(
        tmp_path, plan=plan, rates=rates, requests=600, rate_scale=0.2, estimate=estimated
    )
    assert code == 0 and row["mean_s"] > 0 and pd.isna(row["trace_estimated_mean_s"])
    said = "queues that do not drain are not told: 4 files and 2 times between changes are more than 7 rates."
    assert said in row["trace_remarks"] and said in " ".join(text.split())


def _left_s(row):
    """What a run says that its node has left, s."""
    return float(re.match(r"Node x has work for (\S+) s left when", row["trace_remarks"])[1])


@pytest.mark.parametrize("estimated", [True, False])
def test_a_queue_that_has_not_drained_is_said(tmp_path, estimated):
    """The last 10 s of 10,000 bring 50 s of work: less than 1 % of the log, and much more than reads wait."""
    service = 0.25
    times = np.concatenate([np.arange(2500) * 4.0, 9990 + 0.05 * np.arange(1, 200)])
    times = np.sort(times)
    free = 0.0
    for now in times:
        free = max(free, now) + service
    options = _one_server(tmp_path, times, np.zeros(len(times), bool), service)
    _, code, row, text = _replayed(tmp_path, **options, estimate=estimated)
    assert code == 0
    assert _left_s(row) == pytest.approx(free - times[-1], rel=0.05)
    assert "left when the log ends: its queue has not drained" in " ".join(text.split())


@pytest.mark.parametrize("estimated", [True, False])
def test_a_queue_that_rates_leave_is_said(tmp_path, estimated):
    """The last 100 of 600 reads of 0.25 s come in 10 s; writes, one in 10 s, too."""
    options = _one_server(tmp_path, np.arange(10.0), np.zeros(10, bool), 0.25) | {"trace": None}
    rates = str(tmp_path / "rates.csv")
    pa.csv.write_csv(pa.table({"start_s": [0.0, 1000.0], "factor": [1.0, 20.0]}), rates)
    _, code, row, text = _replayed(tmp_path, **options, rates=rates, requests=600, estimate=estimated)
    assert code == 0
    assert _left_s(row) == pytest.approx(100 * 0.25 + 10 * 0.1 * 0.25 - 10, rel=0.05)
    assert "latencies depend on where the replay ends" in " ".join(text.split())


def test_reads_within_a_bin_have_no_interval(tmp_path):
    """Two reads within a fifth of a service, which 16 nodes are not too busy with."""
    nodes = [f"x{number}" for number in range(16)]
    options = _one_server(tmp_path, np.array([0.0, 0.05]), np.zeros(2, bool), 0.25, nodes)
    _, code, row, text = _replayed(tmp_path, **options)
    text = " ".join(text.split())
    assert code == 0 and row["trace_estimated_mean_s"] > 0
    assert pd.isna(row["trace_estimated_mean_low_s"]) and pd.isna(row["trace_estimated_p99_high_s"])
    assert "Expected is under the log's own arrivals. " in text and "rates as they vary" not in text
    assert "come in one tenth of their time" in text and "nan" not in text


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"decode_s_per_byte": 0.25}, "decoding takes time"),
        ({"client_bandwidth_bytes_per_s": 1.0}, "clients' links take time"),
        ({"outages": "down.parquet"}, "nodes fail"),
    ],
)
def test_what_an_estimate_under_a_log_is_without_is_said(tmp_path, option, words):
    plan = plan_by_hand(tmp_path, "fcfs")
    path, columns = _log(tmp_path, range(10, 14))
    if "outages" in option:
        option = {"outages": str(tmp_path / "down.parquet")}
        pq.write_table(pa.table({"node_id": ["x"], "start_s": [10.0], "end_s": [20.0]}), option["outages"])
    given = {"plan": plan, "trace": path, "columns": columns, "rate_scale": 0.2}
    _, _, row, text = _replayed(tmp_path, **given, **option)
    assert row["trace_estimated_mean_s"] > 0
    assert f"Expected takes no account of this: {words}." in " ".join(text.split())


def test_files_without_an_estimate_of_their_own_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(logged, "MOST_FILES", 2)
    plan = plan_by_hand(tmp_path, "fcfs")
    path, columns = _log(tmp_path, range(10, 14))
    out, _, row, _ = _replayed(tmp_path, plan=plan, trace=path, columns=columns, rate_scale=0.2)
    assert "Of 4 files the 2 most read have estimates of their own" in row["trace_remarks"]
    latencies = read_results(out, "latencies")
    files = latencies[(latencies["group"] == "file") & (latencies["source"] == "trace_estimated")]
    counts = pa.csv.read_csv(path)["file_id"].to_pandas().value_counts(sort=False)
    most = counts.sort_index().sort_values(ascending=False, kind="stable").index[:2]
    assert set(files["file_id"]) == set(most)
