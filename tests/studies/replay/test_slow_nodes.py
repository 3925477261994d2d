"""Replays with slow nodes against M/G/1 theory: Pollaczek and Khinchine's mean at each node."""

import io
import json

import numpy as np
import pytest
from plans_by_hand import FIXED, NEED, PLACED, RATES, SIZES, VARIABLE, plan_by_hand
from rich.console import Console

from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results

FACTOR = 1.5


def sojourns(factor):
    """Mean sojourns (2,) of chunk reads, s: a fixed time, and an exponential one, for chunks of several sizes."""
    means = []
    for node, times in enumerate(factor):
        rate, size = RATES * PLACED[:, node], SIZES / NEED
        fixed, spread = times * (FIXED[node] + 0.1 * size), times * VARIABLE[node]
        first, second = fixed + spread, (fixed + spread) ** 2 + spread**2
        load = rate @ first
        means.append(rate @ second / (2 * (1 - load)) + rate @ first / rate.sum())
    return np.array(means)


def test_each_node_is_slow_in_turn(tmp_path):
    given = {"requests": 100_000, "replications": 2, "figures": [], "estimate": False}
    plan = plan_by_hand(tmp_path / "tables", "fcfs")
    out = str(tmp_path / "out")
    assert (
        replay_study(ReplayOptions(plan=plan, out=out, slow={"every": FACTOR}, **given), Console(quiet=True))
        == 0
    )
    runs, table = read_results(out, "runs"), read_results(out, "latencies")
    assert [json.loads(each) for each in runs["slow"]] == [{"x": FACTOR}, {"y": FACTOR}]
    for run, factor in zip(runs["run_id"], ([FACTOR, 1.0], [1.0, FACTOR]), strict=True):
        rows = table[(table["run_id"] == run) & (table["group"] == "node")]
        for source, tolerance in (("estimated", 1e-9), ("replayed", 0.03)):
            means = rows[rows["source"] == source].sort_values("node_id")["mean_s"]
            assert means.to_numpy() == pytest.approx(sojourns(factor), rel=tolerance)


def test_other_work_of_slow_nodes_is_slow_too_where_chunks_are_served_together(tmp_path):
    """Two chunks of a read one after the other, beside jobs of 0.2 s: at x both take longer, as M/G/1 has it."""
    jobs, job_s = 0.5, 0.2
    sums = {"load": jobs * job_s, "second": jobs * job_s**2, "third": jobs * job_s**3}
    background = {f"background_{name}": [total] * 2 for name, total in sums.items()}
    plan = plan_by_hand(tmp_path / "tables", "fcfs", per_node=2, background=background)
    options = ReplayOptions(
        plan=plan, out=str(tmp_path / "out"), slow={"x": FACTOR}, requests=100_000, replications=2, figures=[]
    )
    assert replay_study(options, Console(quiet=True)) == 0
    rate, size = RATES * PLACED[:, 0], SIZES / (2 * NEED)
    chunk = FIXED[0] + 0.1 * size + VARIABLE[0]
    first, second = 2 * FACTOR * chunk, FACTOR**2 * ((2 * chunk) ** 2 + 2 * VARIABLE[0] ** 2)
    load = rate @ first + FACTOR * sums["load"]
    wait = (rate @ second + FACTOR**2 * sums["second"]) / (2 * (1 - load))
    [run] = read_results(options.out, "runs").to_dict("records")
    assert run["max_load"] == pytest.approx(load, rel=1e-9)
    rows = read_results(options.out, "latencies")
    rows = rows[(rows["group"] == "node") & (rows["node_id"] == "x") & (rows["source"] == "replayed")]
    assert rows["mean_s"].item() == pytest.approx(wait + rate @ first / rate.sum(), rel=0.05)
    assert rows["utilisation"].item() == pytest.approx(load, rel=0.02)


def test_other_work_that_overloads_a_slow_node_alone_is_said(tmp_path):
    """0.3 of a node's time, five times as slow, are 1.5: no rate of reads helps."""
    jobs, job_s = 1.5, 0.2
    sums = {"load": jobs * job_s, "second": jobs * job_s**2, "third": jobs * job_s**3}
    background = {f"background_{name}": [total] * 2 for name, total in sums.items()}
    plan = plan_by_hand(tmp_path / "tables", "fcfs", background=background)
    options = ReplayOptions(
        plan=plan, out=str(tmp_path / "out"), slow={"x": 5.0}, requests=500, replications=2, figures=[]
    )
    assert replay_study(options, Console(quiet=True)) == 1
    [run] = read_results(options.out, "runs").to_dict("records")
    assert run["status"] == "unstable" and "rate_scale" not in run["error"]
    assert (
        "node_id=x" in run["error"] and "1.5 of it other work of the node (background_load)" in run["error"]
    )


def test_reads_that_end_without_an_overloaded_node_are_not_called_stationary(tmp_path):
    """Hedged reads end elsewhere, and leave work at a node that is slow: more than it can do."""
    plan = plan_by_hand(tmp_path / "tables", "fcfs")
    given = {"requests": 50_000, "replications": 2, "figures": [], "estimate": False}
    options = ReplayOptions(
        plan=plan,
        out=str(tmp_path / "out"),
        policy=["hedged"],
        hedges=1,
        cancel=False,
        hedge_delay_s=1e-6,
        slow={"x": 4.0},
        **given,
    )
    console = Console(record=True, width=200, file=io.StringIO())
    replay_study(options, console)
    [run] = read_results(options.out, "runs").to_dict("records")
    assert run["max_utilisation"] > 1
    assert run["status"] == "not_stationary"
    assert "overload a node" in console.export_text()
