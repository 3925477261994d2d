"""Which plan is recommended, and in which words."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from ecjax.studies.optimize.moment_words import say_misfit
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.recommend import recommend


def runs(costs, means, **columns):
    """Rows of ``runs`` of plans with these costs and expected means; others as they come."""
    count = len(costs)
    common = {
        "run_id": [f"run{i}" for i in range(count)],
        "status": "ok",
        "method": "certified",
        "queue": "fcfs",
        "importance": None,
        "code": None,
        "k": None,
        "d": None,
        "theta": [10.0 * (i + 1) for i in range(count)],
        "rate_scale": 1.0,
        "size_scale": 1.0,
        "class_rate_scale": None,
        "cost_dollars_per_period": costs,
        "estimated_mean_s": means,
        "estimated_p99_s": [3 * mean for mean in means],
        "latency_s": [1.5 * mean for mean in means],
        "max_load": 0.6,
        "mean_n": 6.0,
        "files_without_redundancy": 0,
    }
    return pd.DataFrame(common | columns)


PLANS = runs([100.0, 130.0, 200.0, 150.0], [0.9, 0.5, 0.45, 0.6])


@pytest.mark.parametrize(
    ("options", "run", "words"),
    [
        # 90, 65 and 90; the last is beaten by the second
        ({}, "run1", "the knee of 4 plans"),
        ({"max_latency_s": 0.48}, "run2", "the cheapest that keeps max_latency_s=0.48"),
        ({"max_latency_s": 0.7}, "run1", "the cheapest that keeps max_latency_s=0.7"),
        ({"max_p99_s": 1.4}, "run2", "the cheapest that keeps max_p99_s=1.4"),
        ({"budget": 120.0}, "run0", "the fastest that keeps budget=120"),
        ({"budget": 1000.0}, "run2", "the fastest that keeps budget=1000"),
        ({"budget": 150.0, "max_latency_s": 0.7}, "run1", "max_latency_s=0.7 and budget=150"),
    ],
)
def test_the_plan_that_is_asked_for(options, run, words):
    recommended = recommend(PLANS, OptimizeOptions(**options))
    assert recommended.run_id == run and words in recommended.sentence


def test_nothing_is_proven_by_laws_that_miss_what_was_measured():
    runs = PLANS.assign(service_second_ratio=[np.nan, 4.83, 1.1, 1.0])
    sentence = recommend(runs, OptimizeOptions()).sentence
    assert "(mean at most 750 ms by laws that miss the services measured), Poisson arrivals" in sentence
    text = io.StringIO()
    say_misfit(runs, Console(file=text, width=400))
    assert "is 4.8 times that of the law" in text.getvalue()
    nearly = recommend(PLANS.assign(service_second_ratio=1.2), OptimizeOptions()).sentence
    assert "(proven: mean at most 750 ms)" in nearly


def test_none_keeps_what_is_asked_for():
    recommended = recommend(PLANS, OptimizeOptions(max_latency_s=0.1))
    assert recommended.run_id is None
    assert recommended.sentence.startswith(
        "No plan of 4 keeps max_latency_s=0.1: the fastest has expected mean 450 ms"
    )


BY_THETA = runs([200.0, 130.0, 100.0], [0.45, 0.5, 0.9])  # theta of 10, 20, 30: cheaper and slower


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"max_latency_s": 0.1},
            "the fastest has expected mean 450 ms | a smaller theta than 10, more or faster nodes, or a lower rate.",
        ),
        # 1.35, 1.5 and 2.7 s
        (
            {"max_p99_s": 1.0},
            "the fastest has expected mean 450 ms | a smaller theta than 10, more or faster",
        ),
        # within the budget, which faster plans of the same nodes may be, too
        (
            {"max_latency_s": 0.1, "budget": 300.0},
            "the fastest has expected mean 450 ms | a smaller theta than 10,",
        ),
        # the fastest is beyond the budget, and a smaller theta only further beyond
        (
            {"max_latency_s": 0.1, "budget": 150.0},
            "the fastest has expected mean 450 ms | more or faster nodes, or a",
        ),
        (
            {"budget": 90.0},
            "the cheapest has expected mean 900 ms | a larger theta than 30, a larger budget, or cheaper nodes.",
        ),
        # the second is the cheapest of those that are fast enough; of a larger theta is the third, which is not
        (
            {"max_latency_s": 0.6, "budget": 120.0},
            "the cheapest that keeps max_latency_s=0.6 has expected mean 500 ms | a larger budget, or cheaper nodes.",
        ),
        (
            {"max_latency_s": 1.0, "max_p99_s": 3.0, "budget": 90.0},
            "the cheapest that keeps max_latency_s=1 and max_p99_s=3 has expected mean 900 ms | a larger theta than 30",
        ),
    ],
)
def test_what_would_help_where_none_keeps_what_is_asked_for(options, words):
    recommended = recommend(BY_THETA, OptimizeOptions(**options))
    nearest, helps = words.split(" | ")
    assert recommended.run_id is None
    assert nearest in recommended.sentence and f" Next: {helps}" in recommended.sentence


def test_a_theta_of_nothing_or_of_no_prices_is_not_to_be_smaller():
    nothing = runs([200.0], [0.45], theta=0.0)
    assert " Next: more or faster" in recommend(nothing, OptimizeOptions(max_latency_s=0.1)).sentence
    free = runs([0.0, 0.0], [0.5, 0.4])
    assert " Next: more or faster" in recommend(free, OptimizeOptions(max_latency_s=0.1)).sentence


def test_chunks_are_where_they_were_written():
    for stream, dataset in ((False, "placements"), (True, "placement_masks")):
        for write in (None, ["runs", dataset]):
            sentence = recommend(PLANS, OptimizeOptions(stream=stream, write=write)).sentence
            assert f" Where every chunk goes: results/optimize/{dataset}." in sentence
        sentence = recommend(PLANS, OptimizeOptions(stream=stream, write=["runs", "node_loads"])).sentence
        assert "Where every chunk goes" not in sentence and "Next" not in sentence


def test_the_cheapest_and_the_fastest_stand_beside_the_knee():
    sentence = recommend(PLANS, OptimizeOptions()).sentence
    assert (
        "$130 per period" in sentence
        and "expected mean 500 ms, p99 1.5 s (proven: mean at most 750 ms), Poisson arrivals" in sentence
    )
    assert "The cheapest is 80 % slower and 23 % cheaper" in sentence
    assert "the fastest is 10 % faster and 54 % dearer" in sentence
    assert sentence.endswith("placements. Next: ecjax replay plan=results/optimize")


def test_without_prices_the_fastest():
    recommended = recommend(runs([0.0, 0.0], [0.5, 0.4]), OptimizeOptions())
    assert recommended.run_id == "run1"
    assert "$0 per period (nothing that it uses has a price), 6 chunks per file" in recommended.sentence


def test_without_an_expected_p99_none_is_known_to_be_missed():
    plans = runs([100.0, 130.0], [0.9, 0.5], estimated_p99_s=float("nan"))
    recommended = recommend(plans, OptimizeOptions(max_p99_s=5.0, budget=120.0))
    assert recommended.run_id is None
    assert recommended.sentence == (
        "No plan of 2 has an expected p99, so that none is known to keep max_p99_s=5 and budget=120."
    )


def test_equal_plans_are_one():
    sentence = recommend(runs([100.0, 100.0], [0.5, 0.5]), OptimizeOptions()).sentence
    assert "plans" not in sentence


def test_without_estimates_the_bound_counts():
    plans = runs([100.0, 130.0], [0.9, 0.5], estimated_mean_s=float("nan"), estimated_p99_s=float("nan"))
    recommended = recommend(plans, OptimizeOptions(max_latency_s=0.8))
    assert recommended.run_id == "run1"
    assert "mean at most 750 ms, Poisson arrivals" in recommended.sentence


def test_plans_for_one_demand_are_compared():
    plans = runs([100.0, 130.0, 90.0], [0.9, 0.5, 0.3], rate_scale=[1.0, 1.0, 0.1])
    recommended = recommend(plans, OptimizeOptions())
    assert recommended.run_id == "run1" and "Recommended at rate_scale=1:" in recommended.sentence


def test_a_busy_node_is_remarked():
    assert "load 0.95" in recommend(runs([100.0], [0.9], max_load=0.95), OptimizeOptions()).sentence
    assert "load" not in recommend(PLANS, OptimizeOptions()).sentence


def test_no_finished_plan():
    assert recommend(runs([100.0], [0.9], status="unstable"), OptimizeOptions()) is None
