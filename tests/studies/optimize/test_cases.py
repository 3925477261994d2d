"""Cases, lanes and runs of ``ecjax optimize``; what is said before planning."""

import json
from itertools import combinations

import numpy as np
import problems
import pytest
from engines import PickledEngine

from ecjax import planning
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.planning.classes.model import QUEUES as CLASS_QUEUES
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.simulation.law_fit import FAMILIES
from ecjax.studies.optimize import run as optimize_run
from ecjax.studies.optimize.batches import batches, items_of, lanes_of, width_by_class
from ecjax.studies.optimize.class_rules import QUEUES, STARTS
from ecjax.studies.optimize.figures.kinds import KINDS
from ecjax.studies.optimize.inputs import read_cases
from ecjax.studies.optimize.options import FIGURES, METHODS, OptimizeOptions
from ecjax.studies.optimize.scenario_rows import KINDS as SCENARIOS
from ecjax.studies.spine.laws import LAWS
from ecjax.tables.results import read_results

CLUSTER = ClusterOptions(files=4, k=[2, 2], rates=[1.0, 2.0], load=0.3, nodes_per_site=2)


def options(**chosen) -> OptimizeOptions:
    return checked(OptimizeOptions(**({"cluster": CLUSTER} | chosen)))


def test_words_are_those_of_the_library():
    assert METHODS == planning.METHODS
    assert set(LAWS) == set(FAMILIES)
    assert QUEUES == ("fcfs", *CLASS_QUEUES)
    assert set(STARTS) == {*planning.STARTS, "certified", "plan", "search"}
    assert list(FIGURES) == list(KINDS)
    assert SCENARIOS == ("node", "site")


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"queue": ["fcfs", "weighted"], "importance": [[1, 2], [2, 1]], "class_rate_scale": [1, 2]},
        {"queue": "priority", "deadline_s": {"1": 20}, "method": "jlop"},
        {"plan": "somewhere", "objective": {"mean": 0.5, "p99": 0.1}},
    ],
)
def test_options_may_be_checked_again(chosen):
    once = options(**chosen)
    assert checked(once) == once


def test_runs_with_other_ids_differ_in_a_column_or_in_params():
    """Every option that tells runs apart: alone, and beside what is swept."""
    plain = {"theta": [1.0, 2.0], "rate_scale": [1.0, 0.5], "method": ["certified", "published"], "k": [1, 2]}
    changes: list[dict] = [{"theta_per": "total"}, {"size_scaling": "none"}, {"start": "proportional"}]
    changes += [{"loop": "nested"}, {"beta": 5.0}, {"eps": 0.1}, {"max_iterations": 7}, {"gap": 0.1}]
    changes += [
        {"max_chunks_per_site": 2},
        {"scenarios": ["node"]},
        {"scheduling": "optimal"},
        {"polish": True},
    ]
    changes += [{"scenarios": ["node"], "robust": "mean"}, {"robust_trials": 3}, {"compare_cold_start": True}]
    changes += [{"objective": "p99"}, {"objective": "mean", "service": "gamma"}, {"seed": 3}]
    changes += [{"dtype": "float32"}, {"d": 3}, {"size_scale": 0.5}, {"min_extra_chunks": 1}]
    changes += [{"class_rate_scale": [1, 2]}, {"queue": ["fcfs", "priority"], "importance": [[1, 2], [2, 1]]}]
    changes += [{"queue": "weighted", "weights": [0.5, 0.5], "method": None}]
    changes += [{"queue": "priority", "deadline_s": [30, 40], "method": None, "theta": 0.0}]
    rows, names = {}, []
    for change in ({}, *changes):
        chosen = options(**(plain | change))
        for case in read_cases(chosen):
            for item in items_of(case, chosen):
                row = item.run.row()
                names.append(row.pop("run_id"))
                rows[names[-1]] = json.dumps(row, sort_keys=True)
    assert len(rows) > 16 * len(changes) / 2
    assert len(set(rows.values())) == len(rows)


def test_a_lane_has_a_number_and_a_theta_per_mean_cost_of_a_file():
    swept = {"theta": [1.0, 3.0], "rate_scale": [1.0, 0.5], "method": ["published", "max_ec"]}
    for per, count in (("file", 1), ("total", 4)):
        chosen = options(**swept, theta_per=per)
        (case,) = read_cases(chosen)
        items = items_of(case, chosen)
        assert lanes_of(items) == [0, 1, 2, 3] == list(range(case.lanes.count))
        for item in items:
            row, lane = item.run.row(), case.lane(item.lane)
            assert lane == (row["theta"] * count, row["rate_scale"], row["size_scale"])
        # what is finished is left out, and lanes are divided anew
        finished = {item.run.run_id for item in items if item.lane == 0}
        (first, second) = batches([(case, items)], lambda _: 2, False, finished)
        assert [{item.lane for item in batch.items.values()} for batch in (first, second)] == [{1, 2}, {3}]


CLASS_SWEEP = {
    "queue": ["priority", "weighted"],
    "importance": [[1.0, 1.0], [1.0, 0.5], [1.0, 0.1]],
    "rate_scale": [1.0, 0.5],
    "method": None,
    "theta": 0.0,
}


@pytest.mark.parametrize("exchange", [False, True])
def test_runs_by_class_go_side_by_side_as_wide_as_those_of_the_whole_sweep(exchange):
    """Six of each queue: in fours, or those that exchange plans all at once, again all of them where one is missing."""
    chosen = options(**CLASS_SWEEP, exchange=exchange)
    (case,) = read_cases(chosen)
    items = items_of(case, chosen)
    by_queue = {
        queue: [item.run.run_id for item in items if item.way.queue == queue] for queue in CLASS_QUEUES
    }
    asked = []

    def width(_, runs: int) -> int:
        asked.append(runs)
        return 4

    def batched(finished: set[str]) -> list[list[str]]:
        found = batches([(case, items)], lambda _: 1, exchange, finished, width)
        assert all(item.width == 4 for batch in found for item in batch.items.values())
        return sorted(list(batch.items) for batch in found)

    def expected(ids: list[str], whole: bool) -> list[list[str]]:
        return [ids] if whole else [ids[:4], ids[4:]]

    assert batched(set()) == sorted(
        part for queue, ids in by_queue.items() for part in expected(ids, exchange and queue == "weighted")
    )
    first = {queue: ids[1:] for queue, ids in by_queue.items()}
    first["weighted"] = by_queue["weighted"] if exchange else first["weighted"]
    assert batched({ids[0] for ids in by_queue.values()}) == sorted(
        part for queue, ids in first.items() for part in expected(ids, exchange and queue == "weighted")
    )
    assert batched({name for ids in by_queue.values() for name in ids}) == []
    assert set(asked) == {6}


@pytest.mark.parametrize(
    ("chosen", "runs", "width"),
    [
        ({}, 6, 1),  # on a processor
        ({"device": "host"}, 6, 1),
        ({"device": "jax"}, 6, 8),
        ({"device": "jax"}, 1, 1),
        ({"device": "jax", "memory_bytes": 1.0}, 6, 1),
        ({"device": "jax", "deadline_s": [100.0, 100.0], "importance": None}, 6, 1),
    ],
)
def test_whether_runs_by_class_go_side_by_side(chosen, runs, width):
    asked = options(**(CLASS_SWEEP | chosen))
    (case,) = read_cases(asked)
    engine = PickledEngine()
    engine.workers, engine.memory_bytes = 1, 1e12
    assert width_by_class(case, runs, asked, engine) == width
    if width > 1:
        engine.workers = 2  # a batch for each, and one more
        assert width_by_class(case, runs, asked, engine) == 2


def test_inputs_are_told_where_they_came_from_and_change_no_id(tmp_path, monkeypatch):
    case = problems.mixed()
    problems.study(tmp_path / "one", case, method="certified", theta=1.0)
    folder = tmp_path / "one-inputs"
    monkeypatch.chdir(tmp_path)
    relative = {name: f"one-inputs/{name}.parquet" for name in ("nodes", "files")}
    problems.study(tmp_path / "two", None, **relative, method="certified", theta=1.0)
    one, two = (read_results(tmp_path / name, "runs").iloc[0] for name in ("one", "two"))
    assert one.run_id == two.run_id
    expected = {name: str(folder / f"{name}.parquet") for name in ("nodes", "files")}
    assert json.loads(one.params)["inputs"] == json.loads(two.params)["inputs"] == expected


def nothing_is_planned(*_):
    raise AssertionError("planned")


@pytest.mark.parametrize("queue", ["fcfs", "priority", "weighted"])
def test_overload_is_said_before_anything_is_planned(queue, tmp_path, monkeypatch):
    monkeypatch.setattr(optimize_run, "solve", nothing_is_planned)
    monkeypatch.setattr("ecjax.studies.optimize.study.solve", nothing_is_planned)
    case = problems.mixed()
    case = problems.Case(case.nodes, case.files.assign(service_class=np.resize([1, 2], problems.FILES)))
    with pytest.raises(
        UserError, match="load rho = .* at rate_scale=40 with reads spread as evenly as they go"
    ):
        problems.study(
            tmp_path / "out", case, method=None, theta=0.0, queue=queue, rate_scale=[50.0, 40.0, 60.0]
        )
    assert not (tmp_path / "out" / "runs").exists()


def test_overload_at_some_points_is_said_at_once(tmp_path, caplog):
    with caplog.at_level("WARNING", logger="ecjax"):
        code, _ = problems.study(
            tmp_path / "out", problems.mixed(), method="max_ec", rate_scale=[50.0, 1.0, 1.1]
        )
    assert code == 1
    assert len(caplog.records) == 1
    assert "rate_scale=50 with reads" in caplog.text


def test_the_engine_is_no_part_of_a_run():
    one, other = (
        [item.run.run_id for case in read_cases(chosen) for item in items_of(case, chosen)]
        for chosen in (
            options(),
            options(engine=EngineOptions(name="ray"), out="elsewhere", memory_bytes=1e6),
        )
    )
    assert one == other and all(first != second for first, second in combinations(one, 2))
