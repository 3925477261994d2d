"""Bounds are called void beside what they do not assume."""

import json

import pandas as pd
import pytest

from ecjax.studies.replay.assumptions import beside_arrivals, bound_label, broken
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.recommend import recommend

PLAIN = {"arrivals": "poisson", "decode_s_per_byte": 0.0, "client_bandwidth_bytes_per_s": None}


def runs(*parameters):
    rows = [PLAIN | each for each in parameters]
    return pd.DataFrame(
        {"arrivals": [row["arrivals"] for row in rows], "params": [json.dumps(row) for row in rows]}
    )


def test_nothing_is_broken_by_poisson_arrivals():
    table = runs({}, {"inputs": {"trace": "of service times"}})
    assert broken(table) == [] and bound_label(table) == "bound (Poisson arrivals)"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"arrivals": "trace"}, "arrivals are those of the log"),
        ({"arrivals": "bursts"}, "arrivals come in bursts"),
        ({"inputs": {"rates": "x"}}, "rates vary"),
        ({"inputs": {"outages": "x"}}, "nodes fail"),
        ({"decode_s_per_byte": 1e-9}, "decoding takes time"),
        ({"client_bandwidth_bytes_per_s": 1e9}, "clients' links take time"),
    ],
)
def test_the_assumption_that_fails_is_named(parameters, words):
    table = runs({}, parameters, parameters)
    assert broken(table) == [words]
    assert bound_label(table, "bound on the mean") == f"bound on the mean, void: {words}"


def test_estimates_of_arrivals_as_they_come_assume_the_rest():
    table = runs({"arrivals": "trace", "inputs": {"rates": "x"}}, {"decode_s_per_byte": 1e-9})
    assert beside_arrivals(table) == ["decoding takes time"]
    assert beside_arrivals(runs({"arrivals": "trace"})) == []


@pytest.mark.parametrize(
    ("estimated_s", "parameters", "words"),
    [
        (None, {"decode_s_per_byte": 1e-9}, " Bound and estimate are void: {0}, decoding takes time."),
        (1.0, {}, " Bound and estimate of the mean rates are void: {0}."),
        (
            1.0,
            {"decode_s_per_byte": 1e-9},
            " Bound and estimate of the mean rates are void: {0}, decoding takes time. The other estimate is without "
            "this, too: decoding takes time.",
        ),
    ],
)
def test_what_is_recommended_says_which_figures_are_void(estimated_s, parameters, words):
    row = {"run_id": "a", "status": "ok", "policy": "probabilistic", "mean_s": 1.0, "ci_s": 0.1, "p99_s": 3.0}
    row |= {"cost_dollars_per_period": None, "latency_s": 2.0, "trace_estimated_mean_s": estimated_s}
    table = runs({"arrivals": "trace"} | parameters).assign(**row)
    sentence = recommend(table, ReplayOptions(plan="folder")).sentence
    assert sentence.endswith(words.format("arrivals are those of the log"))
