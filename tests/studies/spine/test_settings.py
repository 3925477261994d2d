"""Runs of one folder that differ in what has no column are told apart."""

import json

import pandas as pd

from ecjax.studies.spine.settings import differing_parameters, differing_settings


def told(*rows, apart=()):
    """Settings of runs, each of a strategy with parameters and an input."""
    runs = pd.DataFrame(
        [{"strategy": name, "params": json.dumps(params), "input_id": id_} for name, params, id_ in rows]
    )
    return differing_settings(runs, ["strategy"], apart).tolist()


def test_runs_of_one_setting_have_no_words():
    assert told(("a", {"threads": 8}, "i"), ("a", {"threads": 8}, "i")) == ["", ""]


def test_what_differs_in_one_kind_is_named_in_all():
    rows = [("a", {"threads": 8}, "i"), ("a", {"threads": 16}, "i"), ("b", {"threads": 16}, "i")]
    assert told(*rows) == ["threads=8", "threads=16", "threads=16"]


def test_what_differs_between_kinds_only_is_no_setting():
    assert told(("a", {"memory": None}, "i"), ("b", {"memory": 0.9}, "i")) == ["", ""]
    assert told(("a", {"codes": [1, 1]}, "i"), ("a", {"codes": [2, 1]}, "i"), apart={"codes"}) == ["", ""]


def test_what_one_run_has_and_the_other_lacks_differs():
    assert told(("a", {}, "i"), ("a", {"rates": "f00d"}, "i")) == ["", "rates=f00d"]
    assert told(("a", {"timeline_s": None}, "i"), ("a", {"timeline_s": 2.0}, "i")) == ["", "timeline_s=2"]


def test_sections_and_a_single_class_are_named_by_their_parts():
    sections = [("a", {"generate": {"requests": count, "racks": None}}, "i") for count in (5, 6)]
    assert told(*sections) == ["generate.requests=5", "generate.requests=6"]
    classes = [("a", {"classes": [{"bytes": 1e6, "k_max": k}]}, f"input{k}") for k in (1, 6)]
    # what tells the inputs apart is said already
    assert told(*classes) == ["k_max=1", "k_max=6"]


def test_inputs_are_named_where_nothing_else_tells_them_apart():
    several = [{"k_max": 1}, {"k_max": 2}]
    rows = [
        ("a", {"classes": several, "threads": count}, id_)
        for count in (1, 2)
        for id_ in ("0123456789", "fed")
    ]
    assert told(*rows[:2]) == ["input 012345", "input fed"]
    assert told(*rows)[:2] == ["threads=1, input 012345", "threads=1, input fed"]
    assert told(("a", {}, "0123456789"), ("b", {}, "fed")) == ["", ""]


def test_columns_of_inputs_are_named_instead_of_these():
    runs = pd.DataFrame({"strategy": "a", "params": "{}", "input_id": ["i1", "i2"], "rate_scale": [1.0, 2.5]})
    assert differing_settings(runs, ["strategy"], (), ["rate_scale"]).tolist() == [
        "rate_scale=1",
        "rate_scale=2.5",
    ]
    same = runs.assign(rate_scale=[1.0, None], strategy=["a", "b"])
    assert differing_settings(same, ["strategy"], (), ["rate_scale"]).tolist() == ["", ""]


def test_parameters_of_some_kinds_only():
    runs = pd.DataFrame({"policy": ["a", "a", "b"], "input_id": ["1", "2", "3"]}).assign(
        params=[json.dumps({"period_s": period, "k": k}) for period, k in ((30.0, 1), (60.0, 2), (None, 3))]
    )
    assert differing_parameters(runs, ["policy"], ["period_s"]) == ["period_s=30", "period_s=60", ""]
