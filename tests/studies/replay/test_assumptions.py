"""Bounds are called void beside what they do not assume."""

import json

import pandas as pd
import pytest

from ecjax.studies.replay.assumptions import bound_label, broken

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
