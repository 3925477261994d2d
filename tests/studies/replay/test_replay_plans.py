"""Replays follow the plan: its queue, and its shares of the nodes by class."""

from pathlib import Path

import numpy as np
import pytest
from plans_by_hand import FIXED, NEED, OF_FILE, PLACED, RATES, SHARES, SIZES, VARIABLE, WEIGHTS, plan_by_hand
from rich.console import Console

from ecjax.comparison import Side, sentence
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import read_plans
from ecjax.studies.replay.recommend import recommend
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results


def replay(plan, out, **given):
    """Exit code of a replay, and its rows of ``runs``."""
    few = {"requests": 500, "replications": 2, "figures": [], "estimate": False}
    code = replay_study(ReplayOptions(**(few | {"plan": plan, "out": str(out)} | given)), Console(quiet=True))
    return code, read_results(out, "runs")


def test_a_weighted_plan_is_replayed_with_its_own_weights(tmp_path):
    plan = plan_by_hand(tmp_path, "weighted", WEIGHTS)
    code, runs = replay(plan, tmp_path / "out", requests=100_000, replications=3)
    assert code == 0 and list(runs["queue"]) == ["partitioned"]
    latencies = read_results(tmp_path / "out", "latencies")
    told, bound = (latencies[latencies["source"] == source] for source in ("replayed", "bound"))
    for group in ("all", "class", "file"):
        own, most = told[told["group"] == group], bound[bound["group"] == group]
        assert len(own) == len(most) > 0
        assert np.all(own["mean_s"].to_numpy() - own["ci_s"].to_numpy() < most["mean_s"].to_numpy())
    # a read of one chunk takes what Pollaczek and Khinchine say of its class's servers
    first = (FIXED + VARIABLE + 0.1 * (SIZES / NEED)[:, None]) / SHARES[OF_FILE]
    second = first**2 + (VARIABLE / SHARES[OF_FILE]) ** 2
    rate = RATES[:, None] * PLACED
    for number in (0, 1):
        load, square = ((rate * part)[OF_FILE == number].sum(axis=0) for part in (first, second))
        sojourn = first + square / (2 * (1 - load))
        for file in np.flatnonzero((OF_FILE == number) & (NEED == 1)):
            found = told[told["file_id"] == 10 + file].iloc[0]
            assert abs(found["mean_s"] - PLACED[file] @ sojourn[file]) < 2 * found["ci_s"]
            assert found["ci_s"] < 0.03 * found["mean_s"]


@pytest.mark.parametrize(("queue", "expected"), [("priority", "priority"), ("fcfs", "fcfs"), (None, "fcfs")])
def test_the_queue_is_that_of_the_plan(tmp_path, queue, expected):
    _, runs = replay(plan_by_hand(tmp_path, queue), tmp_path / "out")
    assert list(runs["queue"]) == [expected]


def test_what_is_paid_once_is_not_what_a_period_costs(tmp_path):
    """Of 12.5 dollars 2.5 are for chunks that moved: 10 per period."""
    plan = plan_by_hand(tmp_path, "fcfs", cost_dollars_per_period=12.5, moving_dollars=2.5)
    _, runs = replay(plan, tmp_path / "out", requests=20_000)
    assert runs["cost_dollars_per_period"].tolist() == [12.5] and runs["moving_dollars"].tolist() == [2.5]
    advice = recommend(runs, checked(ReplayOptions(plan=plan)))
    assert "; the plan costs $10 per period, and $2.5 once to move chunks." in advice.sentence
    row = runs.iloc[0].to_dict() | {"plan_run": None}
    before = Side("nowhere", "replay", row | {"moving_dollars": None, "cost_dollars_per_period": 10.0})
    assert sentence(before, Side("nowhere", "replay", row)).startswith(
        "B costs the same ($10), and $2.5 once to move chunks"
    )


def test_what_is_asked_for_comes_first_and_names_the_replay(tmp_path):
    plain, weighted = (
        plan_by_hand(tmp_path / "plain", "fcfs"),
        plan_by_hand(tmp_path / "own", "weighted", WEIGHTS),
    )
    out, alike = tmp_path / "out", {"weights": [0.5, 0.5]}
    assert len(replay(plain, out, queue="partitioned")[1]) == 1
    assert len(replay(plain, out, queue="partitioned", **alike)[1]) == 1  # equal parts are the default
    assert len(replay(weighted, out)[1]) == 2
    assert len(replay(weighted, out, queue="partitioned")[1]) == 2
    assert len(replay(weighted, out, **alike)[1]) == 2  # as the first: the same placement
    _, runs = replay(weighted, out, queue=["shared", "priority"])
    assert sorted(runs["queue"]) == ["partitioned", "partitioned", "priority", "shared"]
    assert len(replay(weighted, out, queue=["shared", "priority"], **alike)[1]) == 5  # shares: shared only


def test_a_class_that_outgrows_its_weight_is_named(tmp_path):
    """At twice the rates class b asks 2 (0.2 * 0.7 * 0.6 + 0.05 * 0.7) = 0.238 of node y."""
    weights = [("a", "x", 0.6), ("a", "y", 0.8), ("b", "x", 0.4), ("b", "y", 0.2)]
    plan = plan_by_hand(tmp_path, "weighted", weights)
    code, runs = replay(plan, tmp_path / "out", rate_scale=2.0)
    assert code == 1 and list(runs["status"]) == ["unstable"]
    words = "class b asks for 0.238 of node y, its part is 0.2; allowed: weights above"
    assert words in runs["error"][0]


def test_sharing_serves_a_class_that_outgrows_its_weight_without_a_bound(tmp_path):
    """Class b asks for 0.238 of node y, of which it has 0.2, and has there what class a leaves of it."""
    weights = [("a", "x", 0.6), ("a", "y", 0.8), ("b", "x", 0.4), ("b", "y", 0.2)]
    plan = plan_by_hand(tmp_path, "weighted", weights)
    code, runs = replay(plan, tmp_path / "out", rate_scale=2.0, queue="shared", requests=20_000)
    assert code == 0 and list(runs["status"]) == ["ok"]
    assert runs["latency_s"].isna().all() and runs["mean_s"].notna().all()
    latencies = read_results(tmp_path / "out", "latencies")
    told, bound = (latencies[latencies["source"] == source] for source in ("replayed", "bound"))
    assert set(told["file_id"].dropna()) == {10, 11, 12, 13}
    # all files of class b are read from y; of class a those of one chunk wait in a queue M/G/1 of their own
    assert set(bound["group"]) == {"class", "file"} and set(bound["class"].dropna()) == {"a"}
    rate, share = 2 * RATES[:2, None] * PLACED[:2], np.array([0.6, 0.8])
    first = (FIXED + VARIABLE + 0.1 * SIZES[:2, None]) / share
    second = first**2 + (VARIABLE / share) ** 2
    sojourn = first + (rate * second).sum(axis=0) / (2 * (1 - (rate * first).sum(axis=0)))
    means = bound.dropna(subset=["file_id"]).set_index("file_id")["mean_s"]
    expected = (PLACED[:2] * sojourn).sum(axis=1)
    assert dict(means) == pytest.approx(dict(zip([10, 11], expected, strict=True)), rel=1e-6)


@pytest.mark.parametrize(
    ("queue", "weights", "words"),
    [
        ("weighted", None, "was made for queue=weighted and has no class_weights"),
        ("weighted", WEIGHTS[:3], "found 0 rows of class b at node x; allowed: one"),
        ("weighted", [*WEIGHTS, WEIGHTS[1]], "found 2 rows of class a at node x; allowed: one"),
        (
            "weighted",
            [("c", "y", 0.5), *WEIGHTS],
            "service_class, row 0: found 'c'; allowed: the classes of its",
        ),
        (
            "weighted",
            [*WEIGHTS, ("b", "z", 0.5)],
            "node_id, row 4: found 'z'; allowed: the nodes of its inputs",
        ),
        ("weighted", [*WEIGHTS[:3], ("b", "x", 0.0)], "weight, row 3: found 0.0; allowed: a positive number"),
        ("weighted", [*WEIGHTS[:3], ("b", "x", None)], "weight, row 3: found None"),
        ("weighted", [*WEIGHTS[:3], ("b", "x", 0.5)], "the weights of node x sum to 1.1; allowed"),
        ("lifo", None, "column queue: found 'lifo'; allowed: fcfs, priority, weighted"),
    ],
)
def test_mistakes_in_a_plan_are_named(tmp_path, queue, weights, words):
    plan = plan_by_hand(tmp_path, queue, weights)
    with pytest.raises(UserError) as error:
        replay(plan, tmp_path / "out")
    assert words in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_streamed_plan_has_no_files_to_replay(tmp_path):
    plan = Path(plan_by_hand(tmp_path, "fcfs"))
    for file in (plan / "inputs" / "files").iterdir():
        file.unlink()
    with pytest.raises(UserError, match="found a plan of stream=true, which keeps no table of files"):
        read_plans(checked(ReplayOptions(plan=str(plan))))
