"""``ecjax adapt`` from options to tables: what it writes, against replays by hand, sums and closed forms."""

import itertools
import json
import math
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
from scipy import stats

from ecjax import composing
from ecjax.adaptation import strategies
from ecjax.adaptation.arrivals import constant, poisson
from ecjax.adaptation.delays import BUILT_IN, tasks_of
from ecjax.adaptation.proxy import RequestClass
from ecjax.adaptation.replay import replay
from ecjax.adaptation.static_code import all_codes
from ecjax.adaptation.storage import chunks_stored, storage
from ecjax.errors import UserError
from ecjax.intervals import NAMES, statistics
from ecjax.jobs_index import JOBS, experiments
from ecjax.options import checked
from ecjax.studies.adapt import run as adapt_run
from ecjax.studies.adapt import strategies as adapt_strategies
from ecjax.studies.adapt.best_static import searched
from ecjax.studies.adapt.inputs import read_cases
from ecjax.studies.adapt.options import STRATEGIES, AdaptOptions
from ecjax.studies.adapt.recommend import recommend
from ecjax.studies.adapt.rows import delays, timeline
from ecjax.studies.adapt.study import adapt_study
from ecjax.studies.adapt.summary import show
from ecjax.studies.adapt.words import over_seeds
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
BASIC = 16 / 0.205  # capacity of (1, 1): 11.3 + 28.56 B + 85.7 + 7.44 B ms at 3 MB is 205 ms
READS = RequestClass("read_3MB", "read", 3e6, 1.0, 6, 2.0, False)
REQUESTS = 6000


@pytest.fixture(scope="module", autouse=True)
def not_calibrated():
    """Thresholds of ``tofec`` for ``calibrated``: finding its own takes longer than all of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        quick = lambda classes, models, threads, seed: strategies.tofec(classes, models, threads)  # noqa: E731
        patch.setattr(adapt_strategies, "calibrated", quick)
        yield


def options(out, **values):
    given = {"out": str(out), "load": [0.1, 0.8], "requests": REQUESTS, "capacity": False, "figures": []}
    return AdaptOptions(**(given | values))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Every strategy and every static code, one seed."""
    out = tmp_path_factory.mktemp("adapt")
    assert adapt_study(options(out, codes="all"), QUIET) == 0
    return out


@pytest.fixture(scope="module")
def found(study):
    """Its tables."""
    return {name: read_results(study, name) for name in ("runs", "codes", "latencies", "thresholds")}


def test_proxies_of_many_threads(tmp_path):
    """The first 10,000 requests are admitted at once there; none of the codes waits."""
    given = {"threads": 10_000, "strategy": ["best_static"], "k_max": 1, "load": [0.6, 0.9]}
    assert adapt_study(options(tmp_path, **given), QUIET) == 0
    runs = read_results(tmp_path, "runs").sort_values("load")
    # of two copies the first ends after 11.3 + 28.56 B + (85.7 + 7.44 B) / 2 ms; they take 0.68 of the capacity of one
    assert runs["n"].tolist() == [2, 1]
    assert_allclose(runs["mean_s"], [0.15099, 0.205], rtol=0.03)


def by_hand(strategy, load, seed=0, count=REQUESTS):
    found = poisson(constant(load * BASIC, np.ones(1)), count, seed)
    return replay(*found, tasks_of([READS], [BUILT_IN["shifted_exp"]]), strategy, 16, seed), found.arrival_s


def test_runs_are_replays_by_hand(found):
    runs = found["runs"].set_index(["strategy", "load"])
    models = [BUILT_IN["shifted_exp"]]
    tables = {
        "replication": strategies.static([(2, 1)]),
        "greedy": strategies.greedy([READS]),
        "fast_cloud": strategies.fast_cloud([READS], models, 16),
        "tofec": strategies.tofec([READS], models, 16),
    }
    tables["calibrated"] = tables["tofec"]
    for (name, load), row in runs.iterrows():
        if name == "best_static" or (name == "static" and row["n"] + row["k"] not in (2, 5, 18)):
            continue
        strategy = strategies.static([(int(row["n"]), int(row["k"]))]) if name == "static" else tables[name]
        outcome, arrival = by_hand(strategy, load)
        kept = outcome.latency_s[REQUESTS // 20 :]
        assert_allclose(row[list(NAMES)].astype(float), [statistics(kept)[n] for n in NAMES])
        end = (arrival + outcome.latency_s).max()
        assert_allclose(row["utilisation"], outcome.busy_s / 16 / (end - arrival[0]))
        assert_allclose(row["tasks_per_request"], outcome.tasks / REQUESTS)
        assert_allclose(row["mean_k"], strategy.k[0, outcome.level[REQUESTS // 20 :]].mean())
    row = runs.loc["tofec", 0.8]
    assert_allclose(row["rate_per_s"], 0.8 * BASIC)
    assert (row["delays"], row["arrivals"], row["seed"]) == ("shifted_exp", "poisson", 0)
    assert row["requests"] == REQUESTS and row["warm_up_share"] == 0.05
    assert len(runs) == 2 * (27 + 6) and runs["capacity_per_s"].isna().all()


def test_the_best_static_code_is_the_best_of_all(found):
    runs = found["runs"]
    for load, own in runs.groupby("load"):
        static = own[own["strategy"] == "static"]
        best = own[own["strategy"] == "best_static"].iloc[0]
        first = static.sort_values("mean_s").iloc[0]
        assert (best["n"], best["k"], best["mean_s"]) == (first["n"], first["k"], first["mean_s"])
        for name, least in json.loads(best["envelope"]).items():
            first = static.sort_values(name).iloc[0]
            assert least == {"value": first[name], "n": first["n"], "k": first["k"]}
        assert (best["n"], best["k"]) == {0.1: (8, 4), 0.8: (1, 1)}[load]


def test_codes_that_a_search_finds_are_no_settings(found):
    """They are (8, 4) at a load of 0.1 and (1, 1) at 0.8."""
    best = found["runs"][found["runs"]["strategy"] == "best_static"]
    told = over_seeds(best)
    assert told["setting"].tolist() == ["", ""] and set(told["name"]) == {"best static code"}
    # other draws may have other best codes
    told = over_seeds(best.assign(load=0.1, rate_per_s=1.0, seed=[0, 1]))
    assert told["seeds"].tolist() == [2]


def test_codes_add_up(found):
    runs = found["runs"].set_index("run_id")
    codes = found["codes"]
    own = codes.groupby("run_id")
    kept = REQUESTS * 19 // 20
    assert (own["requests"].sum() == kept).all() and set(codes["class"]) == {"read_3MB"}
    assert_allclose(own["share"].sum(), 1.0)
    mean = (codes["mean_s"] * codes["share"]).groupby(codes["run_id"]).sum()
    assert_allclose(mean, runs.loc[mean.index, "mean_s"])
    latencies = found["latencies"].set_index("run_id").loc[runs.index]
    assert (latencies["group"] == "all").all() and (latencies["requests"] == kept).all()
    for name in (*NAMES, "ci_s"):
        assert_allclose(latencies[name], runs[name])


def test_thresholds_choose_as_the_replay_does(found):
    runs = found["runs"].set_index(["strategy", "load"])
    table = found["thresholds"].set_index("run_id").loc[runs.loc[("tofec", 0.1), "run_id"]]
    assert set(table["signal"]) == {"waiting"} and set(table["memory"]) == {0.99}
    assert set(table["weight"]) == {1.0}
    strategy = strategies.tofec([READS], [BUILT_IN["shifted_exp"]], 16)
    for backlog in (0.0, 0.01, 0.3, 2.0, 100.0):
        row = table[(table["backlog_from"] <= backlog) & (backlog < table["backlog_below"])]
        level = np.searchsorted(strategy.edges[0], backlog, side="right")
        assert [*row["n"], *row["k"]] == [strategy.n[0, level], strategy.k[0, level]]


def test_overload_is_told_and_not_a_failure(found):
    runs = found["runs"].set_index(["strategy", "load"])
    # (2, 1) needs 2 Delta + Psi = 302 ms of thread time: 53 requests/s
    assert runs.loc[("replication", 0.8), "status"] == "not_stationary"
    assert runs.loc[("fast_cloud", 0.8), "status"] == "not_stationary"
    assert (runs.loc[["greedy", "tofec", "best_static"], "status"] == "ok").all()


def test_capacities(tmp_path):
    given = {"strategy": ["static", "best_static", "replication", "tofec"], "load": 0.69}
    assert adapt_study(options(tmp_path, **given, capacity=True), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("strategy")
    assert_allclose(runs["capacity_share"][["static", "best_static"]], 1.0, atol=0.02)
    assert_allclose(runs["capacity_share"]["tofec"], 1.0, atol=0.04)
    used = 2 * (11.3 + 28.56 * 3) + 85.7 + 7.44 * 3
    assert_allclose(runs["capacity_share"]["replication"], 205 / used, rtol=0.01)
    assert_allclose(runs["capacity_per_s"], runs["capacity_share"] * BASIC)
    # too short a replay to show it, but the rate is above the capacity
    assert dict(runs["status"])["replication"] == "not_stationary"
    console = Console(file=StringIO(), width=200)
    assert adapt_study(options(tmp_path, **given, capacity=True), console) == 0
    assert "(1, 1) code, 78.05 requests/s: (1, 1) 1.00, best static code 1.00" in console.file.getvalue()


def test_finished_replays_are_not_done_again(study, found, monkeypatch):
    before = found["runs"]
    monkeypatch.setattr(adapt_run, "replay", None)
    assert adapt_study(options(study, codes="all"), QUIET) == 0
    pd.testing.assert_frame_equal(read_results(study, "runs"), before)


def test_seeds_are_paired_and_the_same_seed_gives_the_same_rows(found, tmp_path):
    assert adapt_study(options(tmp_path, strategy=["greedy", "static"], seeds=2), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("run_id")
    theirs = found["runs"].set_index("run_id")
    shared = runs.index[runs["seed"] == 0]
    apart = ["batch_id", "batch_runs", "batch_files", "solve_s"]
    pd.testing.assert_frame_equal(
        runs.loc[shared].drop(columns=apart), theirs.loc[shared].drop(columns=apart)
    )
    outcome, _ = by_hand(strategies.static([(1, 1)]), 0.8, seed=1)
    row = runs[(runs["strategy"] == "static") & (runs["seed"] == 1) & (runs["load"] == 0.8)].iloc[0]
    assert_allclose(row["mean_s"], outcome.latency_s[REQUESTS // 20 :].mean())


def test_a_replay_that_fails_is_a_row_and_the_rest_finish(tmp_path, monkeypatch):
    def fails(arrival, class_of, tasks, strategy, threads, seed):
        if strategy.name == "greedy" and seed == 1:
            raise MemoryError("no room")
        return replay(arrival, class_of, tasks, strategy, threads, seed)

    monkeypatch.setattr(adapt_run, "replay", fails)
    given = options(tmp_path, strategy=["greedy", "tofec"], load=0.1, seeds=2)
    console = Console(file=StringIO(), width=200)
    assert adapt_study(given, console) == 1
    assert "1 run: MemoryError: no room" in console.file.getvalue()
    assert (read_results(tmp_path, "runs")["status"] == "ok").sum() == 3
    monkeypatch.undo()
    assert adapt_study(given, QUIET) == 0
    assert set(read_results(tmp_path, "runs")["status"]) == {"ok"}


def test_several_classes(tmp_path):
    classes = [
        {"name": "small", "bytes": 1e6, "share": 0.7, "k_max": 2},
        {"name": "large", "bytes": 6e6, "share": 0.2},
        {"name": "put", "op": "write", "bytes": 3e6, "share": 0.1},
    ]
    given = {"classes": classes, "writes": "background", "strategy": ["static", "best_static", "tofec"]}
    assert adapt_study(options(tmp_path, **given, load=0.2, codes="all"), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("run_id")
    # all classes can have (n, k) with k <= 2
    static = runs[runs["strategy"] == "static"]
    assert sorted(zip(static["n"], static["k"], strict=True)) == sorted(all_codes(2, 2.0))
    (best,) = runs.index[runs["strategy"] == "best_static"]
    assert runs.loc[best, "mean_s"] <= static["mean_s"].min()
    latencies = read_results(tmp_path, "latencies").set_index("run_id").loc[best].set_index("group")
    whole, parts = latencies.loc["all"], latencies.loc["class"].set_index("class")
    assert_allclose((parts["mean_s"] * parts["requests"]).sum(), whole["mean_s"] * whole["requests"])
    assert list(parts.index) == ["small", "large", "put"]
    told = json.loads(runs.loc[best, "params"])["codes_by_class"]
    codes = read_results(tmp_path, "codes").set_index("run_id").loc[best].set_index("class")
    assert {name: [row["n"], row["k"]] for name, row in codes.iterrows()} == told
    assert runs.loc[best, "chunks_stored"] == told["put"][0] / told["put"][1]


def test_a_search_over_codes_finds_the_least():
    class Proxy:
        threads = 16
        classes = [READS._replace(share=0.5), READS._replace(share=0.5, k_max=3)]
        models = [BUILT_IN["shifted_exp"]] * 2

    target = ((7, 5), (3, 3))

    def mean(codes):
        return sum(abs(n - a) + abs(k - b) for (n, k), (a, b) in zip(codes, target, strict=True))

    found = searched(Proxy, 10.0, mean)
    assert found[0] == target and ((1, 1), (1, 1)) in found and len(found) <= 9


def test_codes_of_classes_are_searched_over_the_whole_time(monkeypatch):
    """The first tenth of these requests comes at a load of 0.1."""
    classes = [{"bytes": 3e6, "name": "large"}, {"bytes": 1e6, "name": "small"}]
    given = {"steps": [[0, 10], [700, 60], [760, 0]], "classes": classes, "strategy": ["best_static"]}
    (case,) = read_cases(checked(AdaptOptions(**given)))
    arrival, class_of = requests = case.point.requests(3)
    means = {}

    def search(proxy, rate, mean):
        means.update({codes: mean(codes) for codes in (((1, 1), (1, 1)), ((6, 3), (4, 2)))})
        return list(means)

    monkeypatch.setattr(adapt_run, "searched", search)
    adapt_run._best(adapt_run.Workload(case, requests, 3))
    laws = tasks_of(case.proxy.classes, [BUILT_IN["shifted_exp"]] * 2)
    for codes, mean in means.items():
        outcome = replay(arrival, class_of, laws, strategies.static(list(codes)), 16, 3)
        assert_allclose(mean, outcome.latency_s.mean())


@pytest.mark.parametrize("count", [1, 50_000, 50_009, 99_999, 2_000_017])
def test_windows_of_a_search(count):
    windows = adapt_run.searched_windows(count, constant=False)
    sizes = [window.stop - window.start for window in windows]
    assert windows[0].start == 0 and windows[-1].stop == count
    assert all(before.stop <= after.start for before, after in itertools.pairwise(windows))
    if count <= 50_000:
        assert sizes == [count]
    else:
        assert sizes == [max(5000, count // 100)] * 10
    assert adapt_run.searched_windows(count, constant=True) == [slice(0, min(max(5000, count // 10), count))]


def test_steps_have_a_timeline(tmp_path):
    steps = [[0, 10], [60, 60], [90, 10], [120, 0]]
    given = options(tmp_path, steps=steps, strategy=["static", "greedy"], codes=[3, 2], figures=["timeline"])
    assert adapt_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("run_id")
    assert (runs["arrivals"] == "steps").all() and (runs["warm_up_share"] == 0).all()
    assert_allclose(runs["rate_per_s"], (60 * 10 + 30 * 60 + 30 * 10) / 120)
    table = read_results(tmp_path, "timeline")
    assert_allclose(np.diff(table["start_s"].unique()), 1.0)
    for name, own in table.groupby("run_id"):
        assert own["requests"].sum() == runs.loc[name, "requests"]
        busy = own[own["requests"] > 0]
        assert_allclose(np.average(busy["mean_s"], weights=busy["requests"]), runs.loc[name, "mean_s"])
    # 60 requests/s are too many for (3, 2), which has a backlog when they end; greedy has none
    late = table[table["start_s"] == 92].set_index(
        table["run_id"][table["start_s"] == 92].map(runs["strategy"])
    )
    assert late.loc["static", "mean_s"] > 5 * late.loc["greedy", "mean_s"]
    assert (tmp_path / "figures" / "timeline.png").exists()


def test_arrivals_of_a_trace(tmp_path):
    trace = str(Path(__file__).parents[3] / "traces" / "requests_objects.parquet")
    given = {"trace": trace, "rate_scale": [1.0, 20.0], "threads": 4, "timeline_s": 300.0}
    classes = [{"bytes": 1e6}, {"op": "write", "bytes": 1e6}]
    assert adapt_study(options(tmp_path, **given, classes=classes, strategy="tofec"), QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index("rate_scale")
    count = len(pq.read_table(trace))
    assert (runs["requests"] == count).all() and set(runs["arrivals"]) == {"trace"}
    assert (runs["warm_up_share"] == 0).all() and runs["chunks_stored"].eq(1).all()  # cancelled
    assert_allclose(runs.loc[20.0, "load"], 20 * runs.loc[1.0, "load"])
    assert runs.loc[20.0, "mean_k"] < runs.loc[1.0, "mean_k"]
    table = read_results(tmp_path, "timeline")
    assert (table.groupby("run_id")["requests"].sum() == count).all()


def test_timeline_by_hand():
    rows = timeline(np.array([2.5, 2.6, 6.0]), np.array([1.0, 3.0, 5.0]), np.array([1, 2, 6]), 2.0)
    assert [row["start_s"] for row in rows] == [2.0, 4.0, 6.0]
    assert rows[0] == {
        "start_s": 2.0,
        "requests": 2,
        "mean_s": 2.0,
        "p90_s": pytest.approx(2.8),
        "mean_k": 1.5,
    }
    assert rows[1] == {"start_s": 4.0, "requests": 0} and rows[2]["mean_k"] == 6


def test_storage_by_hand():
    # k = 1, 2, 3, 6 of a 3 MB file: six strips, 6 MB of them as (12, 6) needs (Fig. 3 of the TOFEC paper)
    strategy = strategies.static([(12, 6)])._replace(n=np.array([[12, 5, 3, 2]]), k=np.array([[6, 3, 2, 1]]))
    found = storage([READS], strategy, 1e-6)
    assert found["strips"] == 6 and found["storage_shared"] == 2.0
    assert_allclose(found["storage_unique"], 2 + 5 / 3 + 3 / 2 + 2)
    assert_allclose(found["storage_shared_dollars"], 6.0)


@pytest.mark.parametrize(("k_max", "strips"), [(42, 219060189739591200), (43, None)])
def test_strips_that_no_column_holds(k_max, strips):
    """lcm(1, ..., 42) x 43 is 9.4e18, more than 2^63."""
    strategy = strategies.greedy([READS._replace(k_max=k_max, r_max=1.0)])
    assert storage([READS], strategy, 0.0)["strips"] == strips
    two = [READS._replace(share=0.75), READS._replace(name="w", op="write", bytes=1e6, share=0.25)]
    mixed = storage(two, strategies.static([(2, 1), (3, 2)]), 1.0)
    assert_allclose(mixed["storage_shared"], (2 * 0.75 * 3 + 1.5 * 0.25) / 2.5)
    assert_allclose(mixed["storage_shared_dollars"], (2 * 0.75 * 3 + 1.5 * 0.25) * 1e6)
    codes = [{"class": "w", "n": 3, "k": 2, "requests": 30}, {"class": "w", "n": 1, "k": 1, "requests": 10}]
    assert chunks_stored(two, codes) == 1.0
    assert chunks_stored([two[1]._replace(background=True)], codes) == (1.5 * 30 + 10) / 40
    assert chunks_stored([READS], [{"class": "read_3MB", "n": 3, "k": 2, "requests": 30}]) is None


def test_delays_by_chunk_size():
    law = BUILT_IN["shifted_lognormal"]
    rows = pd.DataFrame(delays([READS], [law]))
    assert_allclose(rows["chunk_bytes"], 3e6 / np.arange(6, 0, -1))
    shift, scale = 0.049 + 0.0242 * 3, 0.0213 + 0.00439 * 3
    right = stats.lognorm(1.33, loc=shift, scale=scale)
    last = rows.iloc[-1]
    assert_allclose([last["mean_s"], last["std_s"]], [right.mean(), right.std()])
    kept = right.expect(lambda x: x, ub=right.ppf(0.9), conditional=True)
    assert_allclose(last["kept_mean_s"], kept, rtol=1e-3)
    assert_allclose(rows["fit_mean_s"], rows["kept_mean_s"], rtol=1e-6)
    exact = pd.DataFrame(delays([READS], [BUILT_IN["shifted_exp"]]))
    assert_allclose(exact["fit_mean_s"], exact["mean_s"])
    assert_allclose(exact["std_s"], exact["fit_std_s"])


def test_classes_with_equal_chunk_sizes_have_rows_of_their_own():
    """Their laws may differ: reads of one kind are slower than those of the other."""
    fast = BUILT_IN["shifted_exp"]
    slow = fast._replace(shift_s=fast.shift_s + 1.0)
    classes = [READS, READS._replace(name="slow"), READS._replace(name="long", k_max=2)]
    rows = pd.DataFrame(delays(classes, [fast, slow, fast])).set_index(["class", "chunk_bytes"])
    assert list(rows.groupby(level=0, sort=False).size()) == [6, 6, 2]
    both = rows["mean_s"].unstack(level=0)
    assert_allclose(both["slow"] - both[READS.name], 1.0)
    assert_allclose(both["long"].dropna(), both[READS.name].loc[[1.5e6, 3e6]])


def test_replays_too_short_to_be_stationary_are_said(tmp_path):
    """10,000 requests meet 10,000 threads of which none is busy: on average half of what is right is."""
    common = {"threads": 10_000, "load": [0.9], "strategy": ["static"], "capacity": False, "figures": []}

    def said(requests, name):
        text = StringIO()
        given = AdaptOptions(**common, requests=requests, out=str(tmp_path / name))
        assert adapt_study(given, Console(file=text, width=300)) == 0
        return text.getvalue(), read_results(tmp_path / name, "runs").iloc[0]

    words, row = said(10_000, "short")
    assert "1 of 1 run is too short to be stationary" in words and "requests=200000 would do" in words
    assert_allclose(row["relaxation_s"], 10_000 * 0.9 / row["rate_per_s"], rtol=0.03)  # the mean of a task
    assert row["utilisation"] < 0.8
    assert "too short" not in said(150_000, "long")[0]


def test_runs_that_differ_in_more_than_their_seed_are_no_seeds(tmp_path):
    given = {"strategy": ["greedy", "tofec"], "load": 0.1, "write": "runs"}
    for k_max in (1, 6):
        assert adapt_study(options(tmp_path, **given, k_max=k_max, seeds=2), QUIET) == 0
    runs = read_results(tmp_path, "runs")
    told = over_seeds(runs)
    assert told["seeds"].tolist() == [2] * 4 and set(told["setting"]) == {"k_max=1", "k_max=6"}
    tofec = told[told["strategy"] == "tofec"].set_index("setting")["mean_s"]
    # two copies: 11.3 + 28.56 B + (85.7 + 7.44 B) / 2 ms; (12, 6) at 0.5 MB: Delta + Psi (1/7 + ... + 1/12)
    assert_allclose(tofec["k_max=1"], 0.15099, rtol=0.03)
    assert_allclose(tofec["k_max=6"], 0.02558 + 0.08942 * 0.65321, rtol=0.25)
    console = Console(file=StringIO(), width=200)
    show(runs, console, "here")
    words = console.file.getvalue()
    assert words.startswith("adapt: 8 runs, 2 seeds in here") and "k_max=6" in words


def test_memories_of_tofec_are_lines_of_their_own(tmp_path):
    given = {"strategy": ["greedy", "tofec"], "load": 0.1, "write": "runs"}
    for memory in (0.0, 0.9):
        assert adapt_study(options(tmp_path, **given, memory=memory), QUIET) == 0
    told = over_seeds(read_results(tmp_path, "runs"))
    assert sorted(told["name"]) == ["Greedy", "TOFEC, memory=0", "TOFEC, memory=0.9"]
    assert set(told["seeds"]) == {1} and set(told["setting"]) == {""}
    console = Console(file=StringIO(), width=200)
    show(read_results(tmp_path, "runs"), console, "here")
    assert "tofec memory=0.9" in console.file.getvalue() and "seeds" not in console.file.getvalue()


def test_the_best_codes_of_classes_may_serve_more_than_any_shared_one(tmp_path):
    """Two copies spare time of delays with a long tail, and double that of delays that hardly vary."""
    laws = {
        "name": ["x", "x"],
        "op": ["read", "write"],
        "law": ["shifted_lognormal", "shifted_exponential"],
        "shift_s": [0.0, 10.0],
        "scale_s": [1.0, 0.01],
        "sigma": [2.0, None],
    }
    pq.write_table(pa.table(laws), tmp_path / "delays.parquet")
    sigma = 2.0
    one = math.exp(sigma**2 / 2)
    # E[min of two] = 2 exp(sigma^2 / 2) Phi(-sigma / sqrt 2), and two threads are busy so long
    two = 4 * one * stats.norm.cdf(-sigma / math.sqrt(2))
    shared, own = 16 / (0.5 * one + 0.5 * 10.01), 16 / (0.5 * two + 0.5 * 10.01)
    rate = 1.15 * shared
    assert rate < 0.85 * own
    given = {"delays": str(tmp_path / "delays.parquet"), "rate": rate, "load": [0.1], "k_max": 1}
    given |= {"classes": [{"bytes": 1.0, "name": "r"}, {"bytes": 1.0, "op": "write", "name": "w"}]}
    given |= {"strategy": "best_static", "requests": 20_000, "capacity": True}
    assert adapt_study(options(tmp_path / "out", **given), QUIET) == 0
    (run,) = read_results(tmp_path / "out", "runs").to_dict("records")
    assert json.loads(run["params"])["codes_by_class"] == {"r": [2, 1], "w": [1, 1]}
    assert_allclose(run["capacity_per_s"], own, rtol=0.06)
    assert run["status"] == "ok"


def test_the_relaxation_time_of_the_best_static_code_is_its_own(tmp_path):
    given = {"strategy": "best_static", "load": 0.25, "threads": 4, "k_max": 2, "capacity": True}
    assert adapt_study(options(tmp_path, **given, requests=50_000), QUIET) == 0
    (run,) = read_results(tmp_path, "runs").to_dict("records")
    n, k = run["n"], run["k"]
    assert (n, k) != (1, 1)
    delta, psi = 0.0113 + 0.02856 * 3 / k, 0.0857 + 0.00744 * 3 / k
    used = n * delta + k * psi  # thread-seconds of a request
    load = run["rate_per_s"] * used / 4
    relaxation = used / n * max(1.0, 1 / (4 * (1 - math.sqrt(load)) ** 2))
    assert relaxation > 1.3 * used / n
    assert_allclose(run["relaxation_s"], relaxation, rtol=0.15)


def test_without_capacities_nobody_knows_how_long_a_full_proxy_remembers(tmp_path):
    """At the load 1.02 of (1, 1): that of a strategy that adapts may be below 1 or not."""
    given = {"strategy": "tofec", "load": 1.02, "requests": 2000}
    console = Console(file=StringIO(), width=200)
    assert adapt_study(options(tmp_path, **given), console) == 0
    assert read_results(tmp_path, "runs")["relaxation_s"].isna().all()
    assert "would do" not in console.file.getvalue()


def test_halves_add_up_over_seeds():
    point = {"delays": "d", "arrivals": "poisson", "rate_per_s": 1.0, "load": 0.1, "rate_scale": 1.0}
    point |= {"params": "{}", "input_id": "i"}
    row = point | dict.fromkeys(["utilisation", "tasks_per_request", "mean_n", "mean_k"], 1.0)
    row |= {name: 1.0 for name in ("p50_s", "p90_s", "p99_s", "std_s")}
    row |= {name: 0.3 for name in ("p50_ci_s", "p90_ci_s", "p99_ci_s", "std_ci_s")}
    row |= {"capacity_per_s": None, "capacity_share": None}
    best = {"strategy": "best_static", "k": 1}
    rows = [
        row | best | {"n": 1, "mean_s": 1.0, "ci_s": 0.3, "status": "ok"},
        row | best | {"n": 2, "mean_s": 2.0, "ci_s": 0.4, "status": "ok"},
        row | best | {"n": 2, "mean_s": 3.0, "ci_s": 1.2, "status": "not_stationary"},
        row | best | {"n": None, "mean_s": None, "ci_s": None, "status": "failed"},
    ]
    (told,) = over_seeds(pd.DataFrame(rows)).to_dict("records")
    assert (told["seeds"], told["mean_s"], told["n"], told["overloaded"]) == (3, 2.0, 2, True)
    assert_allclose(told["ci_s"], 1.3 / 3)
    assert_allclose(told["p50_ci_s"], 0.3 / math.sqrt(3))
    # seeds of a log have the same arrivals: they tell no more of them than one does
    (told,) = over_seeds(pd.DataFrame(rows).assign(arrivals="trace")).to_dict("records")
    assert_allclose([told["ci_s"], told["p50_ci_s"]], [1.9 / 3, 0.3])


def test_the_printed_table(study):
    console = Console(file=StringIO(), width=200)
    given = options(study, strategy=["static", "replication", "tofec"], codes="all", requests=REQUESTS)
    assert adapt_study(given, console) == 0
    words = console.file.getvalue()
    assert words.startswith("adapt: 58 runs in ") and "delays: shifted_exp" in words
    named = [line.split()[2] for line in words.splitlines() if line.strip()[:5] in ("7.805", "62.44")]
    assert named == ["static", "replication", "tofec", "static", "replication*", "tofec"]
    assert "26 more static codes" in words and "not stationary (*)" in words


def test_what_is_gained_is_told(found):
    runs = found["runs"][found["runs"]["strategy"] != "static"].copy()
    for load, told in ((0.1, [0.9, 1.92]), (0.8, [1.1, 1.8])):
        runs.loc[(runs["strategy"] == "calibrated") & (runs["load"] == load), ["mean_s", "p99_s"]] = told
    runs.loc[runs["strategy"] == "tofec", ["mean_s", "p99_s"]] = [1.0, 2.0]
    console = Console(file=StringIO(), width=200)
    show(runs, console, "here")
    assert "calibrated against tofec: mean -10.0% to +10.0%, p99 -10.0% to -4.0%." in console.file.getvalue()
    console = Console(file=StringIO(), width=200)
    show(runs[runs["load"] == 0.8], console, "here")
    assert "calibrated against tofec: mean +10.0%, p99 -10.0%." in console.file.getvalue()


@pytest.mark.parametrize("ascending", [True, False])
def test_the_highest_load_is_recommended_in_whatever_order_loads_come(found, ascending):
    runs = found["runs"][found["runs"]["strategy"].isin(["calibrated", "tofec"])]
    # tofec is fastest at both loads, by more at the lower one
    slower = np.where(runs["load"] == 0.8, 1.5, 3.0)
    runs = runs.assign(mean_s=np.where(runs["strategy"] == "tofec", 1.0, slower), status="ok")
    runs = runs.sort_values("load", ascending=ascending)
    (busiest,) = runs.loc[(runs["strategy"] == "tofec") & (runs["load"] == 0.8), "run_id"]
    advice = recommend(runs)
    assert advice.run_id == busiest
    assert "fastest at 2 of 2 points; at load=0.8" in advice.sentence


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"strategy": "best"}, "strategy: found 'best'; allowed: static, best_static"),
        ({"strategy": []}, "strategy: found an empty list"),
        ({"codes": [1, 2]}, "codes: found [1, 2]; allowed: [n, k] with n >= k >= 1"),
        ({"codes": []}, "codes: found an empty list"),
        ({"codes": "many"}, "codes: found many; allowed: [n, k]"),
        ({"codes": [[3, 2], 4]}, "codes: found [[3, 2], 4]"),
        ({"codes": [7, 7]}, "codes: found [7, 7]; class read_3MB allows k up to k_max=6"),
        ({"codes": [5, 2]}, "codes: found [5, 2]; class read_3MB allows k up to k_max=6 and n up to r_max=2"),
        ({"codes": "all", "strategy": "tofec"}, "codes: found all without strategy=static"),
        ({"delays": "slow"}, "delays"),
        (
            {"delays": []},
            "delays: found an empty list; allowed: shifted_exp, shifted_lognormal, correlated",
        ),
        ({"rate": [0.0]}, "rate: found [0.0]"),
        ({"load": "high"}, "load: found high"),
        ({"rate_scale": -1}, "rate_scale: found -1"),
        ({"threads": 0}, "threads: found 0; allowed: a whole number from 1"),
        ({"k_max": 1.5}, "k_max: found 1.5"),
        ({"requests": 0}, "requests: found 0"),
        ({"r_max": 0.5}, "r_max: found 0.5; allowed: a number from 1"),
        ({"memory": 1.0}, "memory: found 1.0; allowed: a number from 0 to below 1"),
        ({"bytes": 0}, "bytes: found 0; allowed: a number above 0"),
        ({"timeline_s": 0}, "timeline_s: found 0; allowed: a number above 0"),
        ({"storage_dollars_per_byte": -1}, "storage_dollars_per_byte: found -1"),
        ({"writes": "drop"}, "writes: found 'drop'; allowed: cancel, background"),
        ({"figures": ["pie"]}, "figures: found 'pie'; allowed: tradeoff, delay"),
        ({"write": "code"}, "write: found 'code'; allowed: runs, codes"),
    ],
)
def test_mistakes_name_the_option(tmp_path, given, words):
    with pytest.raises(UserError) as error:
        adapt_study(options(tmp_path / "out", **given), QUIET)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_without_requests_there_is_nothing_to_replay(tmp_path):
    with pytest.raises(
        UserError, match=r"steps: found no request with seed=0, at 1e-06 requests/s; allowed: "
    ):
        adapt_study(options(tmp_path, steps=[[0, 1e-6], [1, 0]], strategy="tofec"), QUIET)


def test_a_single_request_is_replayed(tmp_path):
    assert adapt_study(options(tmp_path, requests=1, load=0.1, strategy=["tofec", "static"]), QUIET) == 0
    runs = read_results(tmp_path, "runs")
    assert (
        runs["ci_s"].isna().all() and (runs["mean_s"] > 0).all() and (runs["mean_s"] == runs["p99_s"]).all()
    )


def composed(*words):
    return composing.options_from(composing.composed(JOBS["adapt"], list(words)), AdaptOptions)


def test_defaults_are_the_paper_s():
    given = checked(composed())
    assert set(given.strategy) == set(STRATEGIES) and given.delays == ["shifted_exp"]
    assert (given.threads, given.k_max, given.r_max, given.bytes, given.codes) == (16, 6, 2.0, 3e6, [(1, 1)])


def test_tasks_of_fig_6_read_half_a_megabyte_to_three(tmp_path):
    """As in the paper, whose measurements the laws were fitted to."""
    words = (f"out={tmp_path}", "requests=1000", "capacity=false", "figures=[]")
    assert adapt_study(composed("experiment=tofec_fig6", *words), QUIET) == 0
    sizes = read_results(tmp_path, "delays")["chunk_bytes"]
    assert (sizes.min(), sizes.max()) == (0.5e6, 3e6)


def small(name):
    long = ("tofec_fig7", "tofec_mixed")  # many replays, many figures
    return pytest.param(name, marks=[pytest.mark.slow] if name in long else [])


@pytest.mark.parametrize("name", [small(name) for name in sorted(experiments("adapt"))])
def test_every_experiment_runs_small(tmp_path, name):
    given = composed(f"experiment={name}", f"out={tmp_path}", "seeds=1", "requests=2000", "capacity=false")
    given = replace(given, load=given.load[2:4] or given.load)
    if given.k_max == 6 and given.codes == "all":
        given = replace(given, k_max=2)
    assert adapt_study(given, QUIET) == 0
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == set(given.figures)
