"""``ecjax compare PLAN LOG``: whether a plan still fits the traffic."""

import errno
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from scipy.stats import poisson

import ecjax
from ecjax.cli import main
from ecjax.drift import poisson_interval
from ecjax.drift_inputs import _check_rates
from ecjax.errors import UserError
from ecjax.tables.results import read_results

NODES = {
    "node_id": ["a", "b"],
    "service_mean_s": [0.05, 0.05],
    "service_second_s2": [0.005, 0.005],
    "service_third_s3": [0.00075, 0.00075],
    "reference_bytes": [1e6, 1e6],
    "cost_per_chunk_dollars": [1.0, 1.0],
}
FILES = {"file_id": ["x", "y"], "bytes": [1e6, 1e6], "k": [1, 1], "rate_per_s": [2.0, 1.0]}


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """All reads split evenly between two nodes: loads 3 / 2 * 0.05."""
    out = tmp_path_factory.mktemp("drift") / "plan"
    ecjax.optimize(pa.table(NODES), pa.table(FILES), method="max_ec", theta=1, estimate=False, out=out)
    return out


def write_log(path, rates, span_s=1000.0, slower=None, seed=1):
    """A Poisson log; with ``slower`` by nodes a and b, whose services are that times 0.05 s, exponential."""
    rng = np.random.default_rng(seed)
    parts = [
        (np.sort(rng.uniform(0, span_s, rng.poisson(rate * span_s))), name) for name, rate in rates.items()
    ]
    arrival = np.concatenate([[0.0, span_s], *(times for times, _ in parts)])
    first = next(iter(rates))
    file = np.array([first, first, *(name for times, name in parts for _ in times)])
    order = np.argsort(arrival)
    columns = {
        "request_id": np.arange(len(order)),
        "arrival_s": arrival[order],
        "file_id": file[order],
        "op": ["read"] * len(order),
        "bytes": np.full(len(order), 1e6),
    }
    if slower is not None:
        node = rng.integers(0, 2, len(order))
        columns |= {
            "node_id": np.array(["a", "b"])[node],
            "start_s": columns["arrival_s"],
            "finish_s": columns["arrival_s"] + rng.exponential(0.05 * np.asarray(slower)[node]),
        }
    csv.write_csv(pa.table(columns), path)
    return path


def answer(capsys, *words):
    assert main(["compare", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_intervals_are_those_that_a_poisson_law_does_not_reject():
    counts = np.array([0, 1, 7, 500])
    low, high = poisson_interval(counts)
    assert low[0] == 0
    np.testing.assert_allclose(poisson.sf(counts[1:] - 1, low[1:]), 0.025, rtol=1e-9)
    np.testing.assert_allclose(poisson.cdf(counts, high), 0.025, rtol=1e-9)


def test_the_same_traffic_is_not_worth_a_new_plan(capsys, plan, tmp_path):
    log = write_log(tmp_path / "same.csv", {"x": 2.0, "y": 1.0}, 20000.0)
    result = answer(capsys, plan, log, f"write={tmp_path / 'drift.parquet'}")
    assert result["worth_replanning"] is False and result["sentence"].startswith("Not worth replanning")
    table = pq.read_table(tmp_path / "drift.parquet").to_pandas()
    assert not table["changed"].any()
    loads = table[table["quantity"] == "load"]
    np.testing.assert_allclose(loads["planned"], 0.075)
    assert ((loads["low"] < 0.075) & (loads["high"] > 0.075)).all()


def test_a_full_disk_is_one_line(capsys, plan, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "x")

    log = write_log(tmp_path / "same.csv", {"x": 2.0, "y": 1.0})
    monkeypatch.setattr("ecjax.drift_report.pq.write_table", full)
    assert main(["compare", str(plan), str(log), f"write={tmp_path / 'drift.parquet'}"]) == 2
    line = f"ecjax: write={tmp_path / 'drift.parquet'}: cannot be written: No space left on device\n"
    assert capsys.readouterr().err.endswith(line)


def test_more_reads_of_a_file_are_and_it_is_named(capsys, plan, tmp_path):
    result = answer(capsys, plan, write_log(tmp_path / "more.csv", {"x": 2.0, "y": 4.0}))
    assert result["worth_replanning"] is True
    assert "most changed: reads of a file y" in result["sentence"]
    load = next(row for row in result["rows"] if row["quantity"] == "load")
    assert load["low"] < 6 * 0.025 < load["high"]


def test_files_without_a_plan_are(capsys, plan, tmp_path):
    result = answer(capsys, plan, write_log(tmp_path / "new.csv", {"x": 2.0, "y": 1.0, "z": 1.0}))
    assert result["worth_replanning"] is True and "without a plan" in result["sentence"]


def test_slower_nodes_are(capsys, plan, tmp_path):
    log = write_log(tmp_path / "slow.csv", {"x": 2.0, "y": 1.0}, slower=[3.0, 1.0])
    result = answer(capsys, plan, log, "format=table")
    assert result["worth_replanning"] is True and "mean service time of node a" in result["sentence"]
    load = next(row for row in result["rows"] if row["quantity"] == "load" and row["of"] == "a")
    assert load["low"] < 3 * 0.075 < load["high"]


def test_a_few_reads_do_not_tell(capsys, plan, tmp_path):
    result = answer(capsys, plan, write_log(tmp_path / "few.csv", {"x": 2.0, "y": 1.0}, 6.0))
    assert result["worth_replanning"] is None


def test_mistakes_are_one_line(capsys, plan, tmp_path):
    other = write_log(tmp_path / "other.csv", {"q": 5.0})
    other.write_text(other.read_text().replace('"x"', '"q"'))
    for words, line in (
        (("compare", plan, other), "names no file of the plan"),
        (("compare", plan, plan, "format=s3"), "found format=s3 with two runs"),
    ):
        assert main([str(word) for word in words]) == 2
        error = capsys.readouterr().err.strip()
        assert len(error.splitlines()) == 1 and line in error


def loads_of(result):
    return {row["of"]: row for row in result["rows"] if row["quantity"] == "load"}


def planned(out, nodes=NODES, files=FILES, **options):
    ecjax.optimize(
        pa.table(nodes), pa.table(files), method="max_ec", theta=1, estimate=False, out=out, **options
    )
    return out


def test_nodes_with_channels_serve_as_long_as_the_log_says(capsys, tmp_path):
    plan = planned(tmp_path / "plan", NODES | {"channels": [4, 4]})
    log = write_log(tmp_path / "same.csv", {"x": 2.0, "y": 1.0}, 5000.0, slower=[1.0, 1.0])
    result = answer(capsys, plan, log, "format=table")
    assert result["worth_replanning"] is False
    service = [row for row in result["rows"] if row["quantity"].startswith("mean service")]
    assert [row["planned"] for row in service] == pytest.approx([0.05, 0.05])
    for row in loads_of(result).values():  # of four channels, a quarter of 1.5 x 0.05
        assert row["planned"] == pytest.approx(0.01875) and row["low"] < 0.01875 < row["high"]


def test_rates_by_class_count_once(capsys, tmp_path):
    files = FILES | {"service_class": ["one", "two"]}
    plan = planned(tmp_path / "plan", files=files, class_rate_scale=[[2.0, 1.0]])
    result = answer(capsys, plan, write_log(tmp_path / "twice.csv", {"x": 4.0, "y": 1.0}, 5000.0))
    rates = {
        row["of"]: row["planned"] for row in result["rows"] if row["quantity"].startswith("reads of a file")
    }
    assert rates == pytest.approx({"x": 4.0, "y": 1.0})
    assert result["worth_replanning"] is False


@pytest.mark.parametrize(("ids", "group"), [("xyz", "g"), ("xyz", 7), ((1, 2, 2**60 + 1), "g")])
def test_files_beside_those_in_groups_have_loads(capsys, tmp_path, ids, group):
    files = {
        "file_id": list(ids),
        "bytes": [1e6] * 3,
        "k": [1] * 3,
        "rate_per_s": [1.0, 1.0, 1.0],
        "group": [group, None, group],
    }
    plan = planned(tmp_path / "plan", files=files)
    rates = dict(zip(ids, [1.0, 5.0, 1.0], strict=True))
    result = answer(capsys, plan, write_log(tmp_path / "more.csv", rates, 5000.0))
    assert result["worth_replanning"] is True
    for row in loads_of(result).values():
        assert row["planned"] == pytest.approx(0.075)
        assert row["low"] < 7 * 0.025 < row["high"]


def test_chunks_that_a_node_keeps_together_are_all_served(capsys, tmp_path):
    files = FILES | {"k": [4, 4]}  # chunks of 250,000 bytes, two at each node
    plan = planned(tmp_path / "plan", files=files, max_chunks_per_node=2)
    result = answer(capsys, plan, write_log(tmp_path / "twice.csv", {"x": 4.0, "y": 2.0}, 5000.0))
    for row in loads_of(result).values():
        assert row["planned"] == pytest.approx(3 * 0.05 * 2 / 4)
        assert row["low"] < 2 * row["planned"] < row["high"]


def write_busy_minute(path):
    """A log of which a minute has ten times the reads of the others: its mean rates are not those of the peak."""
    rng = np.random.default_rng(3)
    arrival = np.sort(np.concatenate([rng.uniform(0, 2000, 2000), rng.uniform(900, 960, 540)]))
    columns = {
        "request_id": np.arange(len(arrival)),
        "arrival_s": arrival,
        "file_id": np.array(["x", "y"])[rng.integers(0, 2, len(arrival))],
        "op": ["read"] * len(arrival),
        "bytes": np.full(len(arrival), 1e6),
    }
    csv.write_csv(pa.table(columns), path)
    return path


def learn(log, out, rate):
    ecjax.analyze(str(log), out=out, k=1, rate=rate, keep_ids=True, figures=False)


def plan_for(files, out):
    ecjax.optimize(pa.table(NODES), str(files), method="max_ec", theta=1, estimate=False, out=out)
    return out


def test_plans_for_rates_of_a_peak_are_refused(capsys, tmp_path):
    log = write_busy_minute(tmp_path / "log.csv")
    made = {}
    for rate in ("mean", "peak"):
        learned = tmp_path / f"learned-{rate}"
        learn(log, learned, rate)
        made[rate] = plan_for(learned / "files", tmp_path / rate)
    assert answer(capsys, made["mean"], log)["worth_replanning"] is False
    # the log of a plan tells its rates, whatever the files' table has
    again, at_peak = tmp_path / "again", tmp_path / "at-peak"
    for out, learned, rate in ((again, "peak", "mean"), (at_peak, "mean", "peak")):
        words = {"trace": str(log), "rate": rate, "keep_ids": True, "method": "max_ec", "theta": 1}
        files = str(tmp_path / f"learned-{learned}" / "files")
        ecjax.optimize(pa.table(NODES), files, estimate=False, out=out, **words)
    assert answer(capsys, again, log)["worth_replanning"] is False
    for plan in (made["peak"], at_peak):
        assert main(["compare", str(plan), str(log)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert (
            f"compare: {plan}: found rates of a peak (rate=peak)" in said
            and "allowed: a plan for mean" in said
        )


def test_a_plan_for_one_file_of_an_analysis_at_its_peak_is_refused(capsys, tmp_path):
    """The file tells which analysis of a folder with several it is of."""
    log, learned = write_busy_minute(tmp_path / "log.csv"), tmp_path / "learned"
    learn(log, learned, "peak")
    (file,) = (learned / "files").glob("*.parquet")
    alone = plan_for(file, tmp_path / "alone")
    assert main(["compare", str(alone), str(log)]) == 2
    assert f"compare: {alone}: found rates of a peak" in " ".join(capsys.readouterr().err.split())
    learn(log, learned, "mean")
    runs = read_results(learned, "traces").merge(read_results(learned, "runs")[["run_id", "batch_id"]])
    plans = {
        rate: plan_for(learned / "files" / f"{batch}.parquet", tmp_path / rate)
        for rate, batch in zip(runs["rate"], runs["batch_id"], strict=True)
    }
    assert sorted(plans) == ["mean", "peak"]
    assert main(["compare", str(plans["mean"]), str(learned)]) == 2
    assert f"compare: {learned}: found 2 analyses; allowed: a log" in " ".join(
        capsys.readouterr().err.split()
    )
    assert answer(capsys, plans["mean"], log)["worth_replanning"] is False
    for plan in (alone, plans["peak"]):
        assert main(["compare", str(plan), str(log)]) == 2
        assert f"compare: {plan}: found rates of a peak" in " ".join(capsys.readouterr().err.split())


def test_what_became_of_the_analysis_does_not_end_a_comparison(capsys, caplog, tmp_path):
    """By now the folder has an analysis of another kind, too, or cannot be read."""
    log, learned = write_busy_minute(tmp_path / "log.csv"), tmp_path / "learned"
    learn(log, learned, "mean")
    plan = plan_for(learned / "files", tmp_path / "plan")
    learn(log, learned, "peak")
    assert answer(capsys, plan, log)["worth_replanning"] is False
    assert "analyses at the mean (rate=mean) and at a peak (rate=peak)" in caplog.text
    for file in (learned / "runs").glob("*.parquet"):
        file.write_bytes(b"no table")
    assert answer(capsys, plan, log)["worth_replanning"] is False


def test_plans_for_small_reads_are_refused():
    files = pa.table(FILES)
    _check_rates("plan", {}, files.append_column("small_rate_per_s", pa.array([0.0, None])))
    with pytest.raises(UserError, match=r"compare: plan: found files with small reads \(small_rate_per_s\)"):
        _check_rates("plan", {}, files.append_column("small_rate_per_s", pa.array([0.0, 1.0])))
