"""Options of ``ecjax cache`` and the identity of its runs."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ecjax.caching.replay import POLICIES
from ecjax.engine.serial import Serial
from ecjax.options import checked
from ecjax.studies.analyze.tables import TABLES as ANALYSIS
from ecjax.studies.cache import options as words
from ecjax.studies.cache.figures import kinds, sampling
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.cache.sampling import sampling_work
from ecjax.studies.cache.study import _work, cache_study
from ecjax.studies.cache.tables import REFERENCE, TABLES
from ecjax.tables.importers import open_trace
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

QUIET = Console(quiet=True)
TRACES = Path(__file__).parents[3] / "traces"


def test_words_are_those_of_the_library():
    assert words.POLICIES == POLICIES and REFERENCE in POLICIES
    assert words.FIGURES == tuple(kinds.KINDS) and words.SAMPLING_FIGURES == tuple(sampling.KINDS)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"neighbours": 1, "fail": "each_node", "capacity": (10, 20), "write": [], "figures": "edges"},
        {"neighbours": [[0, 1], [1, 0]], "nodes": {1: 2, "b": [1, 2]}, "half_life_s": 60, "memory": 0},
        {"neighbours": [0.5, 2], "nodes": "edges.parquet", "fail": [None, "a/1", None], "columns": {1: "x"}},
        {"partitions": 5, "k": [6, 6, 8]},
    ],
)
def test_checked_twice_is_the_same(values):
    once = checked(CacheOptions(**values))
    assert checked(once) == once and checked(CacheOptions(**values)) == once


def test_values_get_the_types_of_their_options():
    options = checked(CacheOptions(nodes={1: 2, "b": [1, 2]}, neighbours=[[0, 1], [1, 0]], fail="b", k=3))
    assert options.nodes == {"1": 2.0, "b": [1.0, 2.0]} and options.neighbours == [[0.0, 1.0], [1.0, 0.0]]
    assert (options.fail, options.k, checked(CacheOptions()).fail) == (["b"], [3], [None])
    assert checked(CacheOptions(neighbours=[1, 2, 1])).neighbours == [1.0, 2.0]


def test_steps_of_items_that_are_read_alike():
    # 0.1 of the reads each; in floats 0.3 / 3 and 0.6 / 6 are less
    steps = [(3, 0.3), (1, 0.1), (6, 0.6)]
    assert 0.3 / 3 < 0.1 and checked(CacheOptions(popularity=steps)).popularity == steps


def runs_of(options):
    """The runs of a study, none of which is done."""
    prepare = _work if options.partitions is None else sampling_work
    work = prepare(checked(options), Serial())
    runs = [item.run for batch in work.batches(set()) for item in batch.items.values()]
    assert [run.run_id for run in runs] == work.run_ids
    return runs


CHANGES = {
    "policy": ["lru", ["exact", "agar"]],
    "capacity": [20],
    "k": [3],
    "parity": [2],
    "copies": [1],
    "items": [50],
    "zipf": [0.8],
    "popularity": [[(10, 0.6), (30, 0.4)], [(10, 0.7), (30, 0.3)]],
    "reads": [200],
    "rate_per_s": [50.0],
    "rate_scale": [2.0],
    "drift": [0.1],
    "drift_s": [60.0],
    "edges": [2],
    "nodes": [{"a": [0.1, 0.2], "b": 0.3}],
    "buckets": [4],
    "jitter": [0.2],
    "edge_s": [0.0],
    "decode_s": [0.0],
    "half_life_s": [60.0],
    "memory": [0.5],
    "samples": [1],
    "period_s": [5.0],
    "replan_reads": [100],
    "neighbours": [0.1, [0.1, 0.2], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 2.0], [2.0, 0.0]]],
    "warm_up": [0.0],
    "rounds": [7],
    "seed": [3],
    "partitions": [[1, 4]],
}


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from([(name, value) for name, values in CHANGES.items() for value in values]), max_size=4
    )
)
def test_rows_differ_as_ids_do(changes):
    base = CacheOptions(reads=100, items=40, capacity=10, edges=2, policy=["samplex", "agar", "exact", "lru"])
    options = [base, replace(base, partitions=[1, 2]), replace(base, **dict(changes))]
    for each in dict(changes).items():
        options.append(replace(base, **dict([each])))
    rows = {}
    for run in (run for study in options for run in runs_of(study)):
        row = run.row()
        assert rows.setdefault(row.pop("run_id"), row) == row
    texts = {json.dumps(row, sort_keys=True) for row in rows.values()}
    assert len(texts) == len(rows)


def test_ids_are_those_of_the_first_release():
    options = CacheOptions(reads=20_000, policy=["exact", "samplex", "lru"], half_life_s=[1800.0])
    names = {run.run_id for run in runs_of(options)}
    assert names == {"4b49e7a05326d6a7", "c521e09e95490bf3", "f0e02549214ff375"}
    # where no half-life is said exact has none, and the others are as they were
    unsaid = {run.columns["policy"]: run for run in runs_of(replace(options, half_life_s=None))}
    assert {unsaid[name].run_id for name in ("samplex", "lru")} < names
    assert unsaid["exact"].run_id not in names and unsaid["exact"].columns["half_life_s"] is None


def test_every_column_is_filled(tmp_path):
    small = CacheOptions(out=str(tmp_path / "replays"), reads=3000, items=40, capacity=20, figures=[])
    replays = replace(small, policy=["samplex"], neighbours=0.1, fail="oregon/3", period_s=10.0)
    assert cache_study(replays, QUIET) == 0
    logged = {"trace": str(TRACES / "requests_objects.parquet"), "nodes": str(TRACES / "edges.parquet")}
    assert cache_study(replace(small, **logged, policy="lru", out=str(tmp_path / "log")), QUIET) == 0
    plans = replace(small, partitions=2, capacity=12, k=3, rounds=3, out=str(tmp_path / "plans"))
    assert cache_study(plans, QUIET) == 0
    for dataset, columns in TABLES.datasets.items():
        filled = set()
        for study in ("replays", "log", "plans"):
            if (tmp_path / study / dataset).exists():
                table = read_results(tmp_path / study, dataset)
                filled |= {name for name in table if table[name].notna().any()}
        # an error is that of a run that fails; reads are too few to say how sure a far quantile is
        assert filled | {"error", "p999_ci_s"} >= {column.name for column in columns}, dataset


def test_a_log_is_read_as_its_analysis_read_it(tmp_path):
    table = pa.table(
        {"ts": [0, 1000, 2000, 3000], "key": ["a", "b", "a", "a"], "t2": [0, 10, 20, 30], "b": [1] * 4}
    )
    path = tmp_path / "log.csv"
    pyarrow.csv.write_csv(table, path)
    mappings = [
        {"arrival_s": name, "file_id": "key", "bytes": "b", "arrival_s_scale": scale}
        for name, scale in (("ts", 0.001), ("t2", 1.0))
    ]
    runs = []
    for number, columns in enumerate(mappings):
        folder = tmp_path / f"analysis{number}"
        reading = {"format": "auto", "columns": columns, "extent_bytes": None, "sort": False}
        with ResultStore(folder, ANALYSIS, {}) as store:
            fingerprint = open_trace(path, columns=columns).fingerprint
            row = {"run_id": "one", "job": "analyze", "status": "ok", "input_id": fingerprint}
            traces = {"run_id": ["one"], "path": [str(path)], "reading": [json.dumps(reading)]}
            store.commit([row], {"traces": pa.table(traces)})
        small = {"policy": "lru", "k": 2, "items": 5, "nodes": {"x": 0.1, "y": 0.2}, "warm_up": 0.0}
        analysed, direct = (
            runs_of(CacheOptions(**small, **log))
            for log in ({"trace": str(folder)}, {"trace": str(path), "columns": columns})
        )
        assert [run.run_id for run in analysed] == [run.run_id for run in direct]
        runs += analysed
    assert len({run.run_id for run in runs}) == 2


def test_numbers_of_items_where_none_are_said():
    counts = {"generated": CacheOptions(), "log": CacheOptions(trace="log.csv")}
    counts["log, sampling"] = CacheOptions(trace="log.csv", partitions=[1])
    counts["steps"] = CacheOptions(popularity=[(10, 0.6), (30, 0.4)])
    told = {name: checked(options).items for name, options in counts.items()}
    assert told.pop("steps") == [40]
    assert told == {"generated": [1000], "log": [20_000], "log, sampling": [1000]}
    (item,) = (item for item in fields(CacheOptions) if item.name == "items")
    assert item.metadata["help"].endswith(
        "default: 1,000, of a trace all, or the 20,000 most popular (1,000 with partitions)"
    )
