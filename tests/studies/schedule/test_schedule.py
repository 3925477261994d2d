"""``ecjax schedule`` from options to tables: what it writes, against replays by hand, sums and closed forms."""

import itertools
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from ecjax import composing
from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.replay import SCHEDULERS, SOURCES, replay
from ecjax.coflow.workload import Fabric
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS, experiments
from ecjax.options import checked
from ecjax.studies.schedule import options as words
from ecjax.studies.schedule import run as schedule_run
from ecjax.studies.schedule.figures.kinds import KINDS
from ecjax.studies.schedule.options import GenerateOptions, ScheduleOptions
from ecjax.studies.schedule.recommend import recommend
from ecjax.studies.schedule.rows import coflow_widths, statistics, width_classes
from ecjax.studies.schedule.study import schedule_study
from ecjax.studies.schedule.summary import against_dtarget, over_seeds, show
from ecjax.studies.schedule.tables import TABLES
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
TRANSFERS = str(Path(__file__).parents[3] / "traces" / "transfers.csv")
TRACES = Path(__file__).parents[3] / "traces"
POINTS = ("n", "k", "share_at_zero", "rate_scale", "size_scale")


def options(out, **values):
    reads = GenerateOptions(requests=30, servers=10, clients=5, duration_s=10.0, min_bytes=1e8, max_bytes=1e9)
    given = {"out": str(out), "generate": reads, "n": 5, "k": 3, "seeds": 2, "figures": []}
    given["sources"] = ["random", "smallest_load"]
    return ScheduleOptions(**(given | values))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Every scheduler, both rules, two seeds."""
    out = tmp_path_factory.mktemp("schedule")
    assert schedule_study(options(out), QUIET) == 0
    return out


def test_runs_are_replays_by_hand(study):
    runs = read_results(study, "runs").set_index(["scheduler", "sources", "seed"])
    assert len(runs) == len(ScheduleOptions().scheduler) * 2 * 2 and set(runs["status"]) == {"ok"}
    settings = ReadSettings(30, 10, 5, None, 1e8, 1e9, 10.0, 5, 3)
    fabric = Fabric(np.full(10, 1e9), np.full(5, 1e9))
    for seed, sources in itertools.product((0, 1), ("random", "smallest_load")):
        workload = generate(settings, seed)
        fair = replay(workload, fabric, "fair", sources, seed).completion_s
        for scheduler in ("dtarget", "pfabric", "fair"):
            outcome, row = (
                replay(workload, fabric, scheduler, sources, seed),
                runs.loc[scheduler, sources, seed],
            )
            times = outcome.completion_s
            assert_allclose(row["mean_s"], times.mean())
            assert_allclose(
                row[["p50_s", "p95_s", "p99_s"]].astype(float), np.quantile(times, [0.5, 0.95, 0.99])
            )
            assert_allclose(row["improvement"], fair.mean() / times.mean())
            assert_allclose(row["makespan_s"], outcome.finish_s.max() - workload.arrival_s[0])
            assert (row["coflow_count"], row["events"], row["moved_chunks"]) == (
                30,
                outcome.events,
                outcome.moved,
            )
            # no port is busier than the one that receives most, or sends most
            sent = pd.Series(workload.bytes).groupby(outcome.source).sum().max()
            received = pd.Series(workload.bytes).groupby(workload.destination).sum().max()
            assert_allclose(row["max_utilisation"], max(sent, received) / 1e9 / row["makespan_s"])
    assert runs["max_utilisation"].between(0, 1).all()
    told = json.loads(runs["params"].iloc[0])
    assert (
        told["generate"]["servers"] == 10
        and told["widths"] == ScheduleOptions().widths
        and told["lower_bound"]
    )
    assert (runs["improvement"].xs("fair") == 1).all()


def test_coflows_add_up_to_their_runs(study):
    runs = read_results(study, "runs").set_index("run_id")
    coflows = read_results(study, "coflows")
    own = coflows.groupby("run_id")
    assert (own.size() == 30).all() and own["coflow_id"].nunique().eq(30).all()
    told = runs.loc[own["completion_s"].mean().index]
    assert_allclose(own["completion_s"].mean(), told["mean_s"])
    assert_allclose(
        (coflows["completion_s"] / coflows["isolation_s"]).groupby(coflows["run_id"]).mean(), told["slowdown"]
    )
    assert (coflows["completion_s"] >= coflows["isolation_s"] * (1 - 1e-9)).all()
    # with ports alike and n >= k the client's port is the bottleneck of a read alone
    assert_allclose(coflows["isolation_s"], coflows["bytes"] / 1e9)
    assert (coflows["width"] == 3).all()
    assert (coflows["scheduler"].to_numpy() == runs.loc[coflows["run_id"], "scheduler"].to_numpy()).all()
    assert (runs["lower_bound"] <= runs["mean_s"] * (1 + 1e-9)).all()
    assert (runs["lower_bound"] >= own["isolation_s"].mean().loc[runs.index] * (1 - 1e-9)).all()
    assert_allclose(runs["gap"], runs["mean_s"] / runs["lower_bound"] - 1)
    widths = read_results(study, "coflow_widths").set_index("run_id").loc[runs.index]
    assert list(widths["width_class"].unique()) == ["[2,6)"] and (widths["coflow_count"] == 30).all()
    for name in ("mean_s", "p50_s", "p95_s", "p99_s", "improvement", "slowdown"):
        assert_allclose(widths[name], runs[name])


def test_every_column_is_filled(study):
    for dataset, columns in TABLES.datasets.items():
        rows = read_results(study, dataset)
        assert list(rows.columns) == [column.name for column in columns]
        # too few coflows for intervals of one replay
        half_widths = {name for name in rows.columns if name.endswith(("_ci", "_ci_s")) or name == "ci_s"}
        assert set(rows.columns[rows.isna().all()]) <= {"error", *half_widths}


def test_words_are_those_of_the_libraries():
    assert set(words.SCHEDULERS) == set(SCHEDULERS) and set(words.SOURCES) == set(SOURCES)
    assert words.FIGURES == tuple(KINDS)


def test_runs_that_differ_have_rows_that_differ(tmp_path):
    small = {"seeds": 1, "scheduler": "fifo", "sources": "random", "lower_bound": False, "write": "runs"}
    reads = options(tmp_path).generate
    sweeps = {"n": [4], "k": [2], "share_at_zero": [0.5], "rate_scale": [2.0], "size_scale": [2.0], "seed": 7}
    sweeps |= {"scheduler": "varys", "sources": "smallest_load", "widths": [1, 3], "lower_bound": True}
    sweeps |= {"port_bytes_per_s": 1e8, "client_bytes_per_s": 1e8, "generate": replace(reads, requests=20)}
    same = {"write": None, "figures": ["cdf"]}
    for name, value in ({"n": [5]} | sweeps | same).items():
        assert schedule_study(options(tmp_path, **(small | {name: value})), QUIET) == 0
    runs = read_results(tmp_path, "runs")
    assert len(runs) == 1 + len(sweeps)
    assert not runs.duplicated(["input_id", "seed", "params"]).any()
    given = checked(options(tmp_path, **small))
    assert checked(given) == given


def test_finished_replays_are_not_done_again(study, monkeypatch):
    before = read_results(study, "runs")
    monkeypatch.setattr(schedule_run, "replay", None)
    assert schedule_study(options(study), QUIET) == 0
    pd.testing.assert_frame_equal(read_results(study, "runs"), before)
    monkeypatch.undo()
    # further seeds, and nothing else
    assert schedule_study(options(study, seeds=3, scheduler="fifo"), QUIET) == 0
    after = read_results(study, "runs").set_index("run_id")
    new = after.drop(before["run_id"])
    assert list(zip(new["scheduler"], new["seed"], strict=True)) == [("fifo", 2)] * 2
    pd.testing.assert_frame_equal(after.loc[before["run_id"]], before.set_index("run_id"))
    # fair was replayed, though it is no run
    assert new["improvement"].notna().all()


def test_the_shuffles_of_the_sample_under_every_scheduler(tmp_path):
    """What holds for any trace: none is below isolation or the bound, and bytes decide how busy ports are."""
    wanted = ScheduleOptions(out=str(tmp_path), trace=str(TRACES / "coflows.txt"), figures=[])
    assert schedule_study(wanted, QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("scheduler")
    assert set(runs.index) == set(wanted.scheduler) and set(runs["status"]) == {"ok"}
    assert (runs["coflow_count"] == 100).all() and (runs["gap"] >= -1e-9).all()
    assert_allclose(
        runs["max_utilisation"] * runs["makespan_s"],
        runs["max_utilisation"].iloc[0] * runs["makespan_s"].iloc[0],
    )
    coflows = read_results(tmp_path, "coflows")
    assert (coflows["completion_s"] >= coflows["isolation_s"] * (1 - 1e-9)).all()
    assert runs.loc["varys", "mean_s"] < runs.loc["pfabric", "mean_s"] < runs.loc["fair", "mean_s"]


def test_the_same_seed_gives_the_same_tables(study, tmp_path):
    assert schedule_study(options(tmp_path, seed=1, seeds=1, scheduler=["aalo", "dtarget"]), QUIET) == 0
    mine = read_results(tmp_path, "runs").set_index("run_id")
    theirs = read_results(study, "runs").set_index("run_id").loc[mine.index]
    apart = ["batch_id", "batch_runs", "batch_files", "solve_s"]
    pd.testing.assert_frame_equal(mine.drop(columns=apart), theirs.drop(columns=apart))


def test_sweeps(tmp_path):
    given = {"n": [4, 5], "k": 3, "share_at_zero": [0.0, 1.0], "rate_scale": [1.0, 2.0], "size_scale": 3.0}
    given |= {"scheduler": "varys", "sources": "random", "seeds": 1, "lower_bound": False}
    assert schedule_study(options(tmp_path, **given), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index(list(POINTS))
    assert len(runs) == 8 and runs["lower_bound"].isna().all() and runs["gap"].isna().all()
    coflows = read_results(tmp_path, "coflows").set_index("run_id")

    def arrivals(*point):
        return coflows.loc[runs.loc[point, "run_id"], "arrival_s"].to_numpy()

    assert (arrivals(5, 3, 1.0, 1.0, 3.0) == 0).all()
    assert_allclose(arrivals(5, 3, 0.0, 1.0, 3.0), 2 * arrivals(5, 3, 0.0, 2.0, 3.0))
    assert_allclose(arrivals(5, 3, 0.0, 1.0, 3.0), arrivals(4, 3, 0.0, 1.0, 3.0))


def test_clients_with_ports_of_their_own(tmp_path):
    given = {"scheduler": "varys", "sources": "random", "seeds": 1}
    assert schedule_study(options(tmp_path, **given, client_bytes_per_s=2e9), QUIET) == 0
    assert schedule_study(options(tmp_path, **given), QUIET) == 0
    assert read_results(tmp_path, "runs")["input_id"].nunique() == 2
    wide, narrow = (own for _, own in read_results(tmp_path, "coflows").groupby("run_id", sort=False))
    if wide["isolation_s"].mean() > narrow["isolation_s"].mean():
        wide, narrow = narrow, wide
    # three chunks: one of 1/3 at a server's port takes less than all at the client's, even at twice its speed
    assert_allclose(wide["isolation_s"], wide["bytes"] / 2e9)
    assert_allclose(narrow["isolation_s"], narrow["bytes"] / 1e9)


def test_a_trace_with_given_sources_needs_one_seed(tmp_path):
    # two coflows over one port of 10 B/s each way: 40 and 20 bytes
    rows = {
        "coflow_id": ["a", "b"],
        "arrival_s": [0.0, 0.0],
        "src": [1, 1],
        "dst": [2, 2],
        "bytes": [40.0, 20.0],
    }
    pyarrow.csv.write_csv(pa.table(rows), tmp_path / "t.csv")
    given = {
        "trace": str(tmp_path / "t.csv"),
        "port_bytes_per_s": 10.0,
        "scheduler": ["varys", "fifo", "fair"],
    }
    out = tmp_path / "out"
    assert schedule_study(ScheduleOptions(out=str(out), figures=["improvement", "cdf"], **given), QUIET) == 0
    runs = read_results(out, "runs").set_index("scheduler")
    assert len(runs) == 3 and set(runs["sources"]) == {"given"} and runs["seed"].isna().all()
    assert runs[["n", "k", "share_at_zero"]].isna().all(axis=None)
    # smallest first: 2 and 6; in order: 4 and 6; shared: 4 and 6
    assert_allclose(runs.loc[["varys", "fifo", "fair"], "mean_s"], [4, 5, 5])
    assert_allclose(runs["improvement"], 5 / runs["mean_s"])
    assert_allclose(runs["slowdown"].loc["varys"], (1 + 6 / 4) / 2)
    assert_allclose(runs["max_utilisation"], 1.0)
    assert runs.loc["varys", "gap"] == pytest.approx(0.0, abs=1e-9)  # smallest first is best on one port
    coflows = read_results(out, "coflows").set_index(["scheduler", "coflow_id"])["completion_s"]
    assert_allclose(coflows[[("varys", "a"), ("varys", "b"), ("fair", "a"), ("fair", "b")]], [6, 2, 6, 4])
    assert {path.name for path in (out / "figures").iterdir()} == {"improvement.png", "cdf.png"}


def test_a_replay_that_fails_is_a_row_and_the_rest_finish(tmp_path, monkeypatch):
    def fails(workload, fabric, scheduler, sources, seed, **watching):
        if scheduler == "fifo" and seed == 1:
            raise MemoryError("no room")
        return replay(workload, fabric, scheduler, sources, seed, **watching)

    given = options(tmp_path, scheduler=["fifo", "varys"], sources="random")
    monkeypatch.setattr(schedule_run, "replay", fails)
    console = Console(file=StringIO(), width=200)
    assert schedule_study(given, console) == 1
    assert "1 run: MemoryError: no room" in console.file.getvalue()
    runs = read_results(tmp_path, "runs").set_index(["scheduler", "seed"])
    assert runs.loc[("fifo", 1), "status"] == "failed" and (runs["status"] == "ok").sum() == 3
    assert len(read_results(tmp_path, "coflows")) == 3 * 30
    # what failed is done again
    monkeypatch.undo()
    assert schedule_study(given, QUIET) == 0
    assert set(read_results(tmp_path, "runs")["status"]) == {"ok"}


def test_without_the_baseline_there_is_no_improvement(tmp_path, monkeypatch):
    def fails(workload, fabric, scheduler, sources, seed, **watching):
        if scheduler == "fair":
            raise MemoryError("no room")
        return replay(workload, fabric, scheduler, sources, seed, **watching)

    monkeypatch.setattr(schedule_run, "replay", fails)
    assert schedule_study(options(tmp_path, scheduler="fifo", sources="random", seeds=1), QUIET) == 0
    assert read_results(tmp_path, "runs")["improvement"].isna().all()


def test_classes_of_widths():
    assert width_classes([1, 2, 6]) == ["[1,2)", "[2,6)", "[6,inf)"]
    settings = ReadSettings(40, 30, 5, k_range=(2, 20))
    workload = generate(settings, 0)
    isolation = workload.coflow_bytes / 1e9
    completion, fair = 2 * isolation, 3 * isolation
    found = coflow_widths({"run_id": "r"}, [2, 6, 14], workload, completion, isolation, fair).to_pandas()
    assert list(found["width_class"]) == ["[2,6)", "[6,14)", "[14,inf)"]
    own = (workload.width >= 6) & (workload.width < 14)
    middle = found.iloc[1]
    assert middle["coflow_count"] == own.sum() and found["coflow_count"].sum() == 40
    assert_allclose(middle["mean_s"], completion[own].mean())
    assert_allclose(found["improvement"], 1.5)
    assert_allclose(found["slowdown"], 2.0)
    # narrower than the first edge: in no class
    assert coflow_widths({"run_id": "r"}, [30], workload, completion, isolation, fair).num_rows == 0


def test_statistics_without_a_baseline():
    found = statistics(np.array([1.0, 3.0]), np.array([1.0, 1.0]), None)
    assert found["mean_s"] == 2.0 and found["p50_s"] == 2.0 and found["improvement"] is None


def test_one_replay_has_intervals_where_its_coflows_are_many():
    """Independent exponential times: half widths as of a sample, for times and for slowdowns."""
    completion = np.random.default_rng(0).exponential(2.0, 40_000)
    found = statistics(completion, np.full(40_000, 0.5), None)
    assert found["ci_s"] == pytest.approx(1.96 * 2.0 / 200, rel=0.6)
    for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        half = 1.96 * 2.0 * np.sqrt(level / (1 - level)) / 200
        assert found[f"{name}_ci_s"] == pytest.approx(half, rel=0.7)
        assert found[f"slowdown_{name}"] == pytest.approx(found[f"{name}_s"] / 0.5)
        assert found[f"slowdown_{name}_ci"] == pytest.approx(found[f"{name}_ci_s"] / 0.5)
    few = statistics(completion[:1999], np.full(1999, 0.5), None)
    assert few["ci_s"] is None and few["slowdown_p99_ci"] is None


def test_intervals_over_seeds():
    numbers = ("p50_s", "p95_s", "slowdown", "slowdown_p50", "slowdown_p95", "slowdown_p99")
    rows = [
        {"scheduler": method, "sources": "random", "seed": seed, "status": "ok", "mean_s": mean * value}
        | dict.fromkeys(POINTS)
        | {"params": "{}", "input_id": "i", "share_at_zero": 0.0}
        | {"improvement": value, "gap": None, **dict.fromkeys(numbers, 1.0), "p99_s": 3 * value}
        for method, mean in (("slow", 2.0), ("fast", 1.0))
        for seed, value in enumerate((1.0, 2.0, 3.0))
    ]
    failed = rows[0] | {"seed": 3, "status": "failed", "mean_s": None}
    told = over_seeds(pd.DataFrame([*rows, failed])).set_index("scheduler")
    assert list(told.index) == ["fast", "slow"]
    # t of 95 % with two degrees of freedom: 4.30265; the standard error of 1, 2, 3 is 1 / sqrt(3)
    assert_allclose(told["ci_s"], np.array([1, 2]) * 4.302652729911275 / np.sqrt(3))
    assert_allclose(told["p99_ci_s"], 3 * 4.302652729911275 / np.sqrt(3))
    assert_allclose(told[["p50_ci_s", "slowdown_p95_ci"]], 0)
    assert_allclose(told["mean_s"], [2.0, 4.0])
    assert_allclose(told["improvement_most"], 3.0)
    assert list(told["seeds"]) == [3, 3]


def test_seeds_of_a_log_have_the_same_reads():
    """They tell how random choices shift a mean, and not how other reads would."""
    row = dict.fromkeys(POINTS) | {"params": "{}", "input_id": "i", "status": "ok", "gap": None}
    row |= {"improvement": 1.0} | dict.fromkeys(("p50_s", "p95_s", "p99_s"), 1.0)
    row |= {"p50_ci_s": 0.1, "p95_ci_s": None, "p99_ci_s": None}
    row |= {name: 1.0 for name in ("slowdown", "slowdown_p50", "slowdown_p95", "slowdown_p99")}
    ways = {
        # t of 95 % with two degrees of freedom: 4.30265; the standard error of 1, 2, 3 is 1 / sqrt(3)
        ("dtarget", "random"): ((1.0, 2.0, 3.0), (0.2, 0.4, 0.6), 4.302652729911275 / np.sqrt(3)),
        ("dtarget", "smallest_load"): ((2.5, 2.5, 2.5), (0.2, 0.2, 0.2), 0.2),
        ("fair", "smallest_load"): ((9.0, 9.0, 9.0), (None, None, None), np.nan),
    }
    rows = [
        row
        | {"scheduler": scheduler, "sources": sources, "seed": seed, "mean_s": mean, "ci_s": half}
        | {"run_id": f"{scheduler} {sources} {seed}"}
        for (scheduler, sources), (means, halves, _) in ways.items()
        for seed, (mean, half) in enumerate(zip(means, halves, strict=True))
    ]
    runs = pd.DataFrame(rows)
    told = over_seeds(runs).set_index(["scheduler", "sources"])
    for way, (_, _, expected) in ways.items():
        assert_allclose(told.loc[way, "ci_s"], expected)
    assert_allclose(told["p50_ci_s"], 0.1)
    assert told["p99_ci_s"].isna().all()
    assert against_dtarget(runs)["ci"].isna().all()
    sentence = recommend(runs).sentence
    assert "In these transfers dtarget with smallest_load cannot be told from it" in sentence
    # nothing ended, and nothing is known
    assert over_seeds(runs.assign(status="failed"))["ci_s"].isna().all()


def test_the_printed_table(study):
    console = Console(file=StringIO(), width=200)
    assert schedule_study(options(study, scheduler=["fifo", "dtarget"]), console) == 0
    lines = console.file.getvalue().splitlines()
    assert lines[0].startswith("schedule: 8 runs, 2 seeds in ")
    told = over_seeds(read_results(study, "runs").query("scheduler in ['fifo', 'dtarget'] and seed < 2"))
    table = itertools.takewhile(lambda line: not line.startswith("Means over"), lines)
    named = [line.split()[:3] for line in table if line.strip().startswith(("random", "smallest_load"))]
    best = [[row.sources, row.scheduler, f"{row.mean_s:.4g}"] for row in told.itertuples()]
    assert named == best


def test_dtarget_is_not_set_against_itself(study):
    console = Console(file=StringIO(), width=200)
    only = options(study, scheduler=["dtarget"], sources=["smallest_load"])
    assert schedule_study(only, console) == 0
    assert "against dtarget" not in console.file.getvalue()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scheduler": "best"}, "scheduler: found 'best'; allowed: "),
        ({"scheduler": []}, "scheduler: found an empty list; allowed: "),
        ({"sources": "given"}, "sources: found 'given'; allowed: random, smallest_load"),
        ({"sources": []}, "sources: found an empty list"),
        ({"seeds": 0}, "seeds: found 0; allowed: a whole number from 1"),
        ({"seed": -1}, "seed: found -1; allowed: a whole number from 0"),
        ({"clients": 0.5}, "clients: found 0.5"),
        ({"rate_scale": [1.0, 0.0]}, "rate_scale: found [1.0, 0.0]"),
        ({"size_scale": "big"}, "size_scale: found big"),
        ({"share_at_zero": 1.5}, "share_at_zero: found 1.5; allowed: a number from 0 to 1"),
        ({"share_at_zero": -0.5}, "share_at_zero: found -0.5"),
        ({"n": 2.5}, "n: found 2.5; allowed: a whole number of at least 1"),
        ({"k": 0}, "k: found 0; allowed: a whole number of at least 1"),
        ({"n": 2}, "n=2"),
        ({"n": 11}, "servers=10"),
        ({"port_bytes_per_s": 0.0}, "port_bytes_per_s: found 0.0; allowed: a number above 0"),
        ({"client_bytes_per_s": "fast"}, "client_bytes_per_s: found fast; allowed: a number above 0"),
        ({"client_bytes_per_s": 2e9, "ports": "p.csv"}, "client_bytes_per_s: found 2e+09 beside ports=p.csv"),
        ({"client_bytes_per_s": 1.0, "trace": TRANSFERS}, "client_bytes_per_s: found 1 with transfers"),
        ({"widths": [6, 2]}, "widths: found [6, 2]; allowed: ascending whole numbers"),
        ({"widths": []}, "widths: found an empty list"),
        ({"figures": ["pie"]}, "figures: found 'pie'; allowed: improvement, sources, cdf"),
        ({"plan_run": "abc"}, "plan_run and plan_where choose a run of plan=FOLDER"),
        ({"format": "coflow_benchmark"}, "format=coflow_benchmark: trace=PATH is missing"),
        ({"write": "coflow"}, "write: found 'coflow'; allowed: "),
        ({"trace": "nowhere.txt"}, "nowhere.txt"),
    ],
)
def test_mistakes_name_the_option(tmp_path, given, words):
    with pytest.raises(UserError) as error:
        schedule_study(options(tmp_path / "out", **given), QUIET)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_change_against_dtarget_is_paired_by_seed():
    point = {"n": 8, "k": 4, "share_at_zero": 0.0, "rate_scale": 1.0, "size_scale": 1.0, "status": "ok"}
    point |= {"params": "{}", "input_id": "i"}
    means = {
        ("dtarget", "smallest_load"): (1.0, 2.0, 4.0),
        ("dtarget", "random"): (2.0, 2.0, 2.0),
        ("varys", "random"): (0.9, 1.9, 3.6),
    }
    rows = [
        point | {"scheduler": method, "sources": sources, "seed": seed, "mean_s": mean}
        for (method, sources), own in means.items()
        for seed, mean in enumerate(own)
    ]
    found = against_dtarget(pd.DataFrame(rows)).set_index(["scheduler", "sources"])
    assert list(found.index) == [("varys", "random"), ("dtarget", "smallest_load"), ("dtarget", "random")]
    assert_allclose(found["change"], [-0.25 / 3, 0.0, (1 + 0 - 0.5) / 3], atol=1e-15)
    # Student's 97.5 % quantile with two degrees of freedom is 4.3027
    expected = 4.302652729911275 * np.std([-0.1, -0.05, -0.1], ddof=1) / np.sqrt(3)
    assert_allclose(found["ci"].iloc[0], expected, rtol=1e-9)
    assert against_dtarget(pd.DataFrame(rows[3:])).empty


def test_fabrics_of_one_folder_are_compared_with_themselves():
    point = {"n": 8, "k": 4, "share_at_zero": 0.0, "rate_scale": 1.0, "size_scale": 1.0, "status": "ok"}
    rows = [
        point
        | {"scheduler": scheduler, "sources": "smallest_load", "seed": seed, "mean_s": slow * mean}
        | {"params": json.dumps({"client_bytes_per_s": speed}), "input_id": f"of {speed}"}
        for slow, speed in ((10.0, 1e9), (1.0, 1e10))
        for scheduler, means in (("dtarget", (1.0, 2.0)), ("fair", (1.5, 3.0)))
        for seed, mean in enumerate(means)
    ]
    found = against_dtarget(pd.DataFrame(rows)).set_index(["setting", "scheduler"])["change"]
    assert len(found) == 4
    for speed in (1e9, 1e10):
        # half as long again with both, not 5 or 15 times what it takes on the other fabric
        assert found[f"client_bytes_per_s={speed:g}", "fair"] == pytest.approx(0.5)
        assert found[f"client_bytes_per_s={speed:g}", "dtarget"] == 0.0


def test_runs_that_differ_in_more_than_their_seed_are_no_seeds(tmp_path):
    given = {"scheduler": "fifo", "sources": "random", "lower_bound": False, "write": "runs"}
    for speed in (1e9, 1e10):
        assert schedule_study(options(tmp_path, **given, client_bytes_per_s=speed), QUIET) == 0
    runs = read_results(tmp_path, "runs")
    told = over_seeds(runs)
    assert told["seeds"].tolist() == [2, 2]
    by_input = runs.groupby("input_id")["mean_s"].mean()
    assert_allclose(sorted(told["mean_s"]), sorted(by_input))
    console = Console(file=StringIO(), width=200)
    show(runs, console, "here")
    words = console.file.getvalue()
    assert words.startswith("schedule: 4 runs, 2 seeds in here")
    assert "client_bytes_per_s=1e+09" in words and "client_bytes_per_s=1e+10" in words


def composed(*words):
    return composing.options_from(composing.composed(JOBS["schedule"], list(words)), ScheduleOptions)


def test_default_is_table_one():
    given = checked(composed())
    assert set(given.scheduler) <= set(SCHEDULERS) and len(given.scheduler) == 10
    assert (given.n, given.k, given.generate.requests, given.seeds) == ([8], [4], 512, 20)


def small(name):
    alike = ("coflow_fig4b", "coflow_fig4c")  # sweeps of other numbers than that of coflow_fig4a
    return pytest.param(name, marks=[pytest.mark.slow] if name in alike else [])


@pytest.mark.parametrize("name", [small(name) for name in sorted(experiments("schedule"))])
def test_every_experiment_runs_small(tmp_path, name):
    words = [f"out={tmp_path}", "seeds=1", "generate.requests=12"]
    words += ["scheduler=[dtarget,varys,fair]"] if name == "transfer_order" else []
    if name == "coflow_facebook":
        (tmp_path / "t.txt").write_text("4 2\n0 0 1 1 2 2:3.0 3:1.0\n1 5 2 1 2 1 3:4.0\n")
        words.append(f"trace={tmp_path / 't.txt'}")
    composition = composed(f"experiment={name}", *words)
    assert schedule_study(composition, QUIET) == 0
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == set(composition.figures)
