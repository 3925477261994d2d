"""Options of ``ecjax adapt``, and what they make of runs: ids, parameters, columns."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ecjax.adaptation.capacity import Capacity
from ecjax.adaptation.delays import BUILT_IN
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.adapt import prepare as adapt_prepare
from ecjax.studies.adapt import study as adapt
from ecjax.studies.adapt.figures.kinds import KINDS
from ecjax.studies.adapt.inputs import read_cases
from ecjax.studies.adapt.options import DELAYS, FIGURES, STRATEGIES, AdaptOptions
from ecjax.studies.adapt.strategies import TABLES_OF_CODES
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC, TABLES
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)


def test_words_are_those_of_the_library():
    assert tuple(BUILT_IN) == DELAYS
    assert set(STRATEGIES) == {STATIC, BEST_STATIC, *TABLES_OF_CODES}
    assert tuple(KINDS) == FIGURES


SWEEPS = st.fixed_dictionaries(
    {},
    optional={
        "delays": st.sampled_from([*DELAYS, list(DELAYS)]),
        "classes": st.just([{"bytes": 1e6}, {"bytes": 2e6, "op": "write", "k_max": 2}]),
        "bytes": st.sampled_from([1e6, 2e6]),
        "k_max": st.sampled_from([2, 3]),
        "r_max": st.sampled_from([1.5, 3]),
        "writes": st.sampled_from(["cancel", "background"]),
        "threads": st.sampled_from([1, 4]),
        "load": st.sampled_from([0.5, [0.5, 0.2]]),
        "rate_scale": st.sampled_from([2, [1.0, 3.0]]),
        "requests": st.sampled_from([10, 20]),
        "seeds": st.sampled_from([1, 2]),
        "seed": st.sampled_from([0, 1]),
        "strategy": st.sampled_from([[STATIC, "tofec"], list(STRATEGIES)]),
        "codes": st.sampled_from(["all", [2, 2], [[1, 1], [2, 2]]]),
        "memory": st.sampled_from([0, 0.5]),
        "capacity": st.booleans(),
        "timeline_s": st.sampled_from([1, 2.5]),
        "storage_dollars_per_byte": st.sampled_from([0, 1e-11]),
    },
) | st.fixed_dictionaries(
    {"steps": st.sampled_from([[[0, 3], [10, 0]], ((0, 3), (20.0, 0))])},
    optional={"rate_scale": st.sampled_from([1, 2]), "timeline_s": st.just(3)},
)


@given(SWEEPS)
def test_what_is_checked_is_checked_once(values):
    once = checked(AdaptOptions(**values))
    assert checked(once) == once


@given(st.lists(SWEEPS, min_size=2, max_size=3))
def test_runs_with_different_ids_differ_in_inputs_seed_or_params(sweeps):
    ids: dict[tuple, set[str]] = {}
    for values in sweeps:
        options = checked(AdaptOptions(**values))
        cases = read_cases(options)
        for place in range(len(cases)):
            for name, item in adapt._items(place, cases, options.seed, options).items():
                row = item.run.row()
                assert row["run_id"] == name
                ids.setdefault((row["input_id"], row["seed"], row["params"]), set()).add(name)
    assert all(len(names) == 1 for names in ids.values())


def test_params_hold_what_the_id_is_made_of():
    options = checked(AdaptOptions(strategy="tofec", load=0.5, capacity=False))
    (case,) = cases = read_cases(options)
    (item,) = adapt._items(0, cases, 3, options).values()
    params = json.loads(item.run.row()["params"])
    assert params["capacity"] is False and params["timeline_s"] is None
    assert params["storage_dollars_per_byte"] == 2.3e-11 and params["threads"] == 16
    assert params["memory"] == 0.99 and params["requests"] == 200_000
    assert params["rate_per_s"] == case.point.rate_per_s


def test_every_column_of_runs_is_filled(tmp_path, monkeypatch):
    def fails(proxy, _):
        raise MemoryError("no room")

    monkeypatch.setitem(TABLES_OF_CODES, "calibrated", fails)
    monkeypatch.setattr(adapt_prepare, "capacity", lambda *_: Capacity(60.0, 1.0))
    options = AdaptOptions(
        out=str(tmp_path), strategy=[BEST_STATIC, "calibrated"], k_max=2, load=0.5, requests=3000, figures=[]
    )
    assert adapt.adapt_study(options, QUIET) == 1
    write = [{"op": "write", "bytes": 1e6}]
    assert adapt.adapt_study(replace(options, strategy=["tofec"], classes=write), QUIET) == 0
    runs = read_results(tmp_path, "runs")
    assert list(runs.columns) == [column.name for column in TABLES.datasets["runs"]]
    assert runs.notna().any().all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"classes": 3}, "classes: found 3; allowed: a table, or a list of mappings (name, op, bytes"),
        ({"steps": [[0, 3], [5, 0]], "rate": 3}, "rate: found beside steps; allowed: one of"),
        ({"codes": [[3, 2], [2]]}, "codes: found [[3, 2], [2]]; allowed: [n, k] with n >= k >= 1"),
        ({"codes": [True, 1]}, "codes: found [True, 1]; allowed: "),
        ({"load": None}, "load: found null; allowed: a number above 0, or a list of them"),
        ({"extent_bytes": 4096}, "extent_bytes: found 4096 without a trace; allowed: with trace=LOG"),
        ({"extent_bytes": 0}, "extent_bytes: found 0; allowed: a whole number from 1 to 4611686018427387904"),
        (
            {"delays": [[]]},
            "delays: found [[]]; allowed: shifted_exp, shifted_lognormal, correlated, or the path",
        ),
    ],
)
def test_mistakes_are_met_before_anything_is_read(values, message):
    with pytest.raises(UserError) as error:
        checked(AdaptOptions(**values))
    assert message in str(error.value) and "\n" not in str(error.value)


TRACED = "has no effect beside trace=log.csv"
UNUSED = [
    ({}, []),
    ({"load": [0.5], "requests": 20_000, "bytes": 1e6, "memory": 0.5}, []),
    # a log of delays has no arrivals
    ({"delays": ["log.csv"], "load": [0.5], "requests": 20_000, "bytes": 1e6}, []),
    (
        {"trace": "log.csv", "load": [0.5], "requests": 20_000, "bytes": 1e6, "rate_scale": [2.0]},
        [f"load=[0.5] {TRACED}", f"requests=20000 {TRACED}", f"bytes=1000000.0 {TRACED}"],
    ),
    (
        {"steps": [[0, 3], [10, 0]], "load": [0.5], "requests": 20_000, "bytes": 1e6},
        ["load=[0.5] has no effect beside steps", "requests=20000 has no effect beside steps"],
    ),
    (
        {"rate": [3.0], "load": [0.5], "requests": 20_000},
        ["load=[0.5] has no effect beside rate"],
    ),
    (
        {"trace": "log.csv", "classes": [{"bytes": 1e6}], "bytes": 1e6},
        ["bytes=1000000.0 has no effect beside classes"],
    ),
    (
        {"strategy": [STATIC, "greedy"], "memory": 0.5},
        ["memory=0.5 has no effect beside strategy=static,greedy"],
    ),
]


@pytest.mark.parametrize(("given", "said"), UNUSED)
def test_options_that_nothing_reads_are_said(given, said, monkeypatch, caplog):
    monkeypatch.setattr(adapt, "run_study", lambda *_: 0)
    assert adapt.adapt_study(AdaptOptions(**given), QUIET) == 0
    assert [line for line in caplog.messages if " has no effect beside " in line] == said
