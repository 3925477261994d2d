"""``ecjax show`` and ``ecjax compare``: what folders of results hold, without computing it again."""

import errno
import json
import re
from contextlib import contextmanager

import pandas as pd
import pyarrow as pa
import pytest

import ecjax
from ecjax.cli import main
from ecjax.comparison import Side, compared, moved_chunks, sentence, side_of
from ecjax.errors import UserError
from ecjax.studies.cache.tables import TABLES as CACHE
from ecjax.studies.replay.tables import TABLES as REPLAY
from ecjax.summaries import in_order
from ecjax.tables.recommendation import Recommendation, write_recommendation
from ecjax.tables.store import ResultStore

NODES = {
    "node_id": ["a", "b", "c"],
    "delta_s": [0.01, 0.02, 0.02],
    "delta_s_per_byte": [1e-8, 1e-8, 2e-8],
    "psi_s": [0.01, 0.01, 0.03],
    "psi_s_per_byte": [1e-8, 1e-8, 1e-8],
    "cost_per_chunk_dollars": [3.0, 2.0, 1.0],
}
FILES = {"file_id": [7, 8], "bytes": [2e6, 1e6], "k": [2, 1], "rate_per_s": [1.0, 2.0]}


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """All chunks everywhere (max_ec) for two theta, and a replay of one plan."""
    out = tmp_path_factory.mktemp("plans")
    nodes, files = pa.table(NODES), pa.table(FILES)
    given = {"method": "max_ec", "estimate": False, "memory_bytes": 1.0}
    both = ecjax.optimize(nodes, files, theta=[1, 2], **given, out=out / "plans")
    grouped = pa.table({**FILES, "k": [2, 2], "group": ["g", "g"]})
    ecjax.optimize(nodes, grouped, theta=1, **given, out=out / "grouped")
    for seed in (0, 1):
        plan = {"plan": both, "plan_run": both.run_ids[0]}
        ecjax.replay(**plan, requests=300, replications=2, seed=seed, out=out / "replays")
    return out


def run(capsys, *words):
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, re.sub(r"\s+", " ", captured.out), captured.err


def test_show_prints_what_the_job_printed(capsys, plans):
    code, out, _ = run(capsys, "show", plans / "plans")
    assert code == 0
    assert "ecjax optimize" in out and "2 runs (2 ok)" in out
    assert "datasets: runs, file_plans" in out and "inputs/nodes" in out
    assert f"optimize: 2 runs in {plans / 'plans'}" in out
    assert run(capsys, "show", plans / "replays")[1].count("2 runs (2 ok)") == 1


def test_show_says_what_is_recommended(capsys, plans):
    write_recommendation(plans / "plans", Recommendation("Take theta=2."))
    assert run(capsys, "show", plans / "plans")[1].rstrip().endswith("Take theta=2.")


def test_a_recommendation_that_cannot_be_written_is_one_line(plans, monkeypatch):
    @contextmanager
    def full(path):
        raise OSError(errno.ENOSPC, "x")
        yield

    monkeypatch.setattr("ecjax.tables.recommendation.publishing", full)
    with pytest.raises(UserError, match="plans: cannot be written: No space left on device"):
        write_recommendation(plans / "plans", Recommendation("Take theta=2."))


RUN = {"status": "ok", "version": "1", "params": "{}", "seed": 0}


def committed(out, tables, *rows, **datasets):
    """A folder with runs, a batch each; rows of the datasets are of the first one."""
    with ResultStore(out, tables, {}) as store:
        for place, row in enumerate(rows):
            own = {name: pa.Table.from_pylist(table) for name, table in datasets.items() if not place}
            store.commit([RUN | row], own)


def test_replays_and_plans_of_partitions_in_one_folder_are_both_shown(capsys, tmp_path):
    times = dict.fromkeys(("mean_s", "p50_s", "p90_s", "p99_s"), 0.25)
    point = {"k": 2, "capacity": 6, "copies": 0, "items": 9, "zipf": 1.0, "input_id": "i"}
    plans = [
        {"run_id": "all", "scheme": "optimal", "mean_s": 3.0, "above_optimum": 0.0, "solve_s": 1.0},
        {
            "run_id": "few",
            "scheme": "samplex",
            "samples": 4,
            "mean_s": 4.5,
            "above_optimum": 0.5,
            "solve_s": 0.1,
        },
    ]
    replay = {"run_id": "lru", "policy": "lru"} | times
    committed(tmp_path, CACHE, *(point | row for row in (replay, *plans)))
    code, out, _ = run(capsys, "show", tmp_path)
    assert code == 0 and "3 runs (3 ok)" in out
    assert "cache: 1 run in" in out and "LRU" in out and "250" in out
    assert "cache: 2 runs in" in out and "SampleX" in out and "+50.00%" in out
    for names in (["policies", "sampling"], []):
        pictures, figures = tmp_path / "pictures", [f"figures={','.join(names)}"] if names else []
        assert main(["report", str(tmp_path), f"pictures={pictures}", *figures]) == 0
        assert {"policies.png", "sampling.png"} <= {path.name for path in pictures.iterdir()}


def test_replays_of_plans_and_predictions_of_logs_in_one_folder_are_both_shown(capsys, tmp_path):
    times = {"mean_s": 0.25, "ci_s": 0.01, "p50_s": 0.2, "p99_s": 0.5, "requests": 100, "latency_s": 0.5}
    replays = [
        {"run_id": policy, "policy": policy, "service": "exponential", "max_load": 0.5, "input_id": "plan"}
        | times
        for policy in ("probabilistic", "fork_join")
    ]
    logged = {"policy": "as logged", "service": "measured"}
    log = json.dumps({"trace": {"path": "/logs/first.csv", "sha256": "0"}})
    predicted = logged | {"run_id": "log", "prediction": "It is close.", "notices": '["Halves differ."]'}
    predicted |= {"input_id": "first", "input_files": log}
    failed = {"run_id": "none", "status": "failed", "error": "too few reads", "input_id": "second"}
    rows = [
        {"run_id": "log", "group": "all", "source": source, "requests": 50, "mean_s": 0.125}
        for source in ("observed", "replayed")
    ]
    committed(tmp_path, REPLAY, predicted | times, *replays, logged | failed, latencies=rows)
    code, out, _ = run(capsys, "show", tmp_path)
    assert code == 0 and "4 runs (3 ok, 1 failed)" in out
    assert "replay: 2 runs in" in out and "probabilistic" in out and "fork_join" in out and "250" in out
    assert "It is close." in out and "second half of first.csv" in out and "- Halves differ." in out
    assert "too few reads" in out


def test_a_folder_whose_runs_do_not_count_says_so(capsys, tmp_path):
    committed(tmp_path, CACHE, {"run_id": "lru", "policy": "lru"})
    (tmp_path / "runs" / "lru.parquet").rename(tmp_path / "runs" / "copy.parquet")
    code, out, _ = run(capsys, "show", tmp_path)
    assert code == 0 and f"{tmp_path}: ecjax cache, no runs datasets: runs" in out


@pytest.mark.parametrize(
    "job",
    [
        lambda out: ecjax.adapt(
            strategy="static", codes=[3, 2], requests=500, load=0.5, capacity=False, out=out
        ),
        pytest.param(  # what they compile takes a minute and more
            lambda out: ecjax.schedule(
                generate={"requests": 8}, scheduler=["fair", "fifo"], seeds=1, out=out
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda out: ecjax.cache(policy=["lru", "none"], items=20, reads=500, capacity=10, out=out),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["adapt", "schedule", "cache"],
)
def test_show_knows_every_job(capsys, tmp_path, job):
    results = job(tmp_path)
    code, out, _ = run(capsys, "show", tmp_path)
    assert code == 0 and f"ecjax {results.job}" in out
    assert re.sub(r"\s+", " ", results.summary).split(".")[0].strip()[:40] in out


def test_two_plans_beside_each_other(capsys, plans):
    a, b = f"{plans / 'plans'}:theta=1", f"{plans / 'plans'}:theta=2"
    code, out, _ = run(capsys, "compare", a, b)
    assert code == 0
    for words in (
        "dollars per period",
        "mean latency, bound (ms)",
        "largest load",
        "chunks moved from A to B 0",
    ):
        assert words in out
    assert out.count("B costs the same ($12)") == 1 and "keeps all chunks where A has them" in out


def test_both_speak_json(capsys, plans):
    a, b = (str(plans / "plans") + f":theta={theta}" for theta in (1, 2))
    assert main(["compare", a, b, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["sentence"].startswith("B costs the same") and compared["moved_chunks"] == 0
    assert {"quantity": "dollars per period", "a": 12.0, "b": 12.0} in compared["quantities"]
    assert main(["show", str(plans / "plans"), "--json"]) == 0
    assert [run["theta"] for run in json.loads(capsys.readouterr().out)["runs"]] == [1, 2]


def test_a_run_is_named_by_its_id_by_conditions_or_by_the_recommendation(capsys, plans):
    folder = plans / "plans"
    first, second = ecjax.read_results(folder, "runs").sort_values("theta")["run_id"]
    assert side_of(f"{folder}:{first}", None).run["theta"] == 1
    assert side_of(str(folder), "theta=2").run["run_id"] == second
    write_recommendation(folder, Recommendation("Take theta=2.", second))
    assert side_of(str(folder), None).run["run_id"] == second
    write_recommendation(folder, Recommendation("None fits."))
    code, _, err = run(capsys, "compare", folder, folder)
    assert code == 2 and "2 finished optimize runs found" in err and first in err


def test_plans_without_a_file_in_common_move_no_number_of_chunks(capsys, plans):
    # rows of a group are of other names than those of files
    a, b = f"{plans / 'plans'}:theta=1", str(plans / "grouped")
    assert moved_chunks(side_of(a, None), side_of(b, None)) is None
    code, out, _ = run(capsys, "compare", a, b)
    assert code == 0 and "chunks" not in out
    assert main(["compare", a, b, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["moved_chunks"] is None


def test_chunks_of_a_group_are_those_of_its_files(plans):
    grouped = side_of(str(plans / "grouped"), None)
    assert grouped.chunks().sum() == side_of(f"{plans / 'plans'}:theta=1", None).chunks().sum() == 6


def test_two_replays_beside_each_other(capsys, plans):
    a, b = (f"{plans / 'replays'}:seed={seed}" for seed in (0, 1))
    code, out, _ = run(capsys, "compare", a, b)
    assert code == 0
    for words in ("mean latency, replayed (ms)", "p99 latency, estimate (ms)", "B costs the same ($12)"):
        assert words in out


def test_the_sentence_says_by_how_much_and_whether_chance_explains_it():
    a = Side(
        "a",
        "replay",
        {"plan_run": None, "input_id": 1, "cost_dollars_per_period": 10.0, "mean_s": 1.0, "ci_s": 0.1},
    )
    b = Side("b", "replay", a.run | {"cost_dollars_per_period": 8.0, "mean_s": 1.12})
    assert sentence(a, b) == (
        "B costs 20 % less ($8 instead of $10) and has a replayed mean latency that is 12 % longer "
        "(1.12 s instead of 1 s), within what chance explains."
    )
    c = Side("c", "replay", a.run | {"mean_s": 0.5, "input_id": 2})
    assert sentence(a, c) == (
        "B costs the same ($10) and has a replayed mean latency that is 50 % shorter (0.5 s instead of 1 s); "
        "they are for different nodes or files."
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["show"], "show: found nothing; allowed: one folder of results"),
        (["show", "{}/none"], "show: {}/none holds no results of ecjax"),
        (
            ["show", "{}/plans/runs"],
            "show: {}/plans/runs is one dataset of results; allowed: all of them, {}/plans",
        ),
        (["compare", "{}/plans"], "compare: found {}/plans; allowed: two runs"),
        (["compare", "{}/none", "{}/plans"], "compare: {}/none: no such folder"),
        (
            ["compare", "{}/plans:theta=9", "{}/plans"],
            "compare: {}/plans: no finished optimize run fits where='theta=9'",
        ),
        (
            ["compare", "{}/plans:theta=1", "{}/replays:seed=0"],
            "compare: found {}/plans of ecjax optimize and",
        ),
        (["compare", "{}", "{}/plans"], "compare: {} holds results of no job"),
    ],
)
def test_mistakes_of_commands_are_one_line(capsys, plans, words, line):
    code, _, err = run(capsys, *(word.format(plans) for word in words))
    assert code == 2 and len(err.strip().splitlines()) == 1
    assert line.replace("{}", str(plans)) in err


def test_runs_of_a_point_stay_together():
    """Whatever column comes first in the table: a sweep of loads by two strategies."""
    runs = pd.DataFrame({"strategy": ["a", "a", "b", "b"], "load": [0.1, 0.9, 0.1, 0.9], "seed": 0})
    ordered = in_order("adapt", runs.assign(run_id=list("wxyz")))
    assert ordered["run_id"].tolist() == ["w", "y", "x", "z"]


def test_dollars_paid_once_are_not_those_per_period():
    plain = {"run_id": "a", "plan_run": None, "input_id": "x", "cost_dollars_per_period": 3.0}
    moved = plain | {"cost_dollars_per_period": 3.5, "moving_dollars": 0.5}
    one, other = (Side("nowhere", "optimize", run) for run in (plain, moved))
    assert compared(one, other) == [("dollars per period", 3.0, 3.0)]
    assert sentence(one, other) == "B costs the same ($3), and $0.5 once to move chunks."
