"""``ecjax optimize`` with queues by class: tables that hold what they say; mistakes in one line."""

import json

import numpy as np
import pandas as pd
import problems
import pytest
from engines import open_pickled, same_tables
from planning.classes.plain_classes import Plain, charges, delays, latencies, plain_classes, work
from problems import FILES, Case, least_bound

from ecjax import cli
from ecjax.planning.classes.alternate import plan_classes
from ecjax.planning.classes.together import run_together
from ecjax.status import Status
from ecjax.studies.optimize import class_run
from ecjax.studies.optimize.class_rules import QUEUES
from ecjax.studies.spine import study as spine
from ecjax.tables.results import read_results

TWO = np.resize([1, 2], FILES)
PARTITION = {"priority": "priority", "weighted": "weighted"}


def with_classes(case: Case, classes=TWO) -> Case:
    return Case(case.nodes, case.files.assign(service_class=classes), case.size_scaling)


def study(out, case: Case | None = None, **options):
    """Random placements unless asked otherwise: what starts a plan is tested elsewhere, and takes long to compile."""
    chosen = {"method": None, "theta": 0.0, "eps": 0.01, "start": "uniform", "queue": "priority"}
    return problems.study(out, case, **(chosen | options))


def files_under(out) -> list[str]:
    return sorted(str(path) for path in out.rglob("*") if path.is_file() and path.name != ".lock")


def rows(out, dataset, run_id) -> pd.DataFrame:
    table = read_results(out, dataset)
    return table[table["run_id"] == run_id].reset_index(drop=True)


def names_of(files: pd.DataFrame) -> list:
    return sorted(files["service_class"].unique())


def recomputed(out, run) -> tuple[Plain, list[str], np.ndarray, np.ndarray, np.ndarray | None]:
    """The numbers of a run, names of classes, probabilities, chunks and weights, from the tables alone."""
    case, probabilities, stored = problems.written_plan(out, run)
    classes = names_of(case.files)
    order = {name: number for number, name in enumerate(classes)}
    of_class = [order[name] for name in case.files["service_class"]]
    plain = plain_classes(case, np.array(of_class), PARTITION[run.queue])
    names, weights = [str(name) for name in classes], None
    if run.queue == "weighted":
        table = rows(out, "class_weights", run.run_id)
        assert len(table) == len(names) * len(case.nodes)
        table = table.pivot(index="service_class", columns="node_id", values="weight")
        weights = table.loc[names, case.nodes["node_id"].tolist()].to_numpy()
        np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-12)
    return plain, names, probabilities, stored, weights


def follows_from_the_tables(out, run) -> None:
    plain, names, probabilities, stored, weights = recomputed(out, run)
    np.testing.assert_allclose(probabilities.sum(axis=1), plain.k, atol=1e-9)
    assert not np.any(probabilities[stored == 0])
    shared, _ = latencies(plain, probabilities, stored, weights)
    mean, variance = delays(plain, probabilities, stored, weights)
    of_file = np.array(
        [least_bound(p, e, v)[0] for p, e, v in zip(probabilities, mean, variance, strict=True)]
    )
    share, parts = plain.share, plain.class_share
    by_class = np.array(
        [share[own] @ of_file[own] for own in plain.of_class == np.arange(len(names))[:, None]]
    )
    cost = plain.price * stored
    importance = json.loads(run.importance)
    assert sorted(importance) == sorted(names)
    told = [importance[name] for name in names] @ (parts * shared)
    per = len(plain.k) if run.theta_per == "file" else 1
    told += charges(plain, probabilities, stored, run.theta) * len(plain.k) / per
    assert run.objective == pytest.approx(told, rel=1e-8)
    assert run.latency_s == pytest.approx(by_class.sum(), rel=1e-9)
    assert run.latency_shared_z_s == pytest.approx(parts @ shared, rel=1e-8)
    assert run.cost_dollars_per_period == pytest.approx(cost.sum(), rel=1e-9)
    assert run.status == Status.OK and pd.isna(run.error)

    plans = rows(out, "class_plans", run.run_id).set_index("service_class").loc[names]
    np.testing.assert_allclose(plans["latency_s"], by_class / parts, rtol=1e-9)
    np.testing.assert_allclose(plans["latency_shared_z_s"], shared, rtol=1e-8)
    assert np.all(plans["latency_s"] <= plans["latency_shared_z_s"] * (1 + 1e-12))
    assert json.loads(run.class_latency_s) == plans["latency_s"].to_dict()
    np.testing.assert_allclose(plans["importance"], [importance[name] for name in names])
    np.testing.assert_allclose(plans["rate_per_s"], parts * plain.rate.sum(), rtol=1e-12)
    np.testing.assert_array_equal(plans["file_count"], np.bincount(plain.of_class))
    np.testing.assert_allclose(
        plans["cost_dollars_per_period"], np.bincount(plain.of_class, cost.sum(axis=1)), rtol=1e-9
    )
    length = stored.sum(axis=1)
    np.testing.assert_allclose(
        plans["mean_n"], np.bincount(plain.of_class, length) / np.bincount(plain.of_class)
    )
    load = work(plain, probabilities, stored)[0]
    np.testing.assert_allclose(
        plans["max_load"], (load if weights is None else load / weights).max(axis=1), rtol=1e-9
    )
    assert run.max_load == pytest.approx(load.sum(axis=0).max(), rel=1e-9)

    files = rows(out, "file_plans", run.run_id)
    np.testing.assert_allclose(files["latency_s"], of_file, rtol=1e-9)
    np.testing.assert_array_equal(files["n"], length)
    np.testing.assert_array_equal(files["service_class"], np.array(names)[plain.of_class])
    history = rows(out, "history", run.run_id)
    last = json.loads(history["class_latency_s"].iloc[-1])
    np.testing.assert_allclose([last[name] for name in names], shared, rtol=1e-8)
    assert history["iteration"].is_monotonic_increasing and history["iteration"].iloc[-1] == run.iterations


GROUPS = ["gold", "tin", "gold", "tin", "zinc", "tin", "gold", "zinc", "gold", "tin", "gold", "zinc"]
STUDIES = {
    "sizes": (lambda: with_classes(problems.mixed(load=0.5)), {"theta": [0.0, 0.5]}),
    "affine law, stored bytes, total": (
        lambda: with_classes(problems.affine().at_load(0.5), np.resize(["b", "a"], FILES)),
        {"theta": [0.02], "theta_per": "total"},
    ),
    "background, sizes do not count, scaled": (
        lambda: with_classes(problems.fixed().at_load(0.5), np.resize([10, 2], FILES)),  # 2 goes first
        {"rate_scale": [0.5, 1.1], "size_scale": [0.7]},
    ),
    "one chunk, all nodes, files never read": (lambda: with_classes(problems.idle().at_load(0.5)), {}),
    "groups and writes, three classes": (
        lambda: with_classes(problems.grouped().at_load(0.45), GROUPS),
        {"theta": [0.3]},
    ),
}


# each compiles programs of its own, for half a minute
SLOW = (
    "sizes",
    "affine law, stored bytes, total",
    "background, sizes do not count, scaled",
    "groups and writes, three classes",
    "one chunk, all nodes, files never read",
)
EACH = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in STUDIES]


@pytest.mark.parametrize("name", EACH)
def test_all_figures_of_a_run_follow_from_the_tables_alone(name, tmp_path):
    make, options = STUDIES[name]
    case, out = make(), tmp_path / "out"
    classes = len(names_of(case.files))
    importance = [1.0, 0.4, 0.2][:classes]
    code, text = study(out, case, queue=["priority", "weighted"], importance=importance, **options)
    assert code == 0, text
    runs = read_results(out, "runs")
    grid = [np.size(options.get(key, 1.0)) for key in ("theta", "rate_scale", "size_scale")]
    assert len(runs) == 2 * np.prod(grid)
    assert dict(zip(runs["queue"], runs["method"], strict=True)) == {"priority": "jlop", "weighted": "jlwo"}
    for run in runs.itertuples():
        follows_from_the_tables(out, run)
    assert runs["z_s"].isna().all()


def test_importance_and_queues_are_swept_and_resumed(tmp_path):
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    options = {"queue": ["priority", "weighted"], "importance": [[1, 1], [1, 0.1]]}
    assert study(out, case, **options)[0] == 0
    runs = read_results(out, "runs")
    assert len(runs) == 4 and runs["run_id"].nunique() == 4
    found = [tuple(json.loads(each).values()) for each in runs["importance"]]
    assert set(zip(runs["queue"], found, strict=True)) == {
        (queue, given) for queue in ("priority", "weighted") for given in ((1.0, 1.0), (1.0, 0.1))
    }
    second = {
        key: json.loads(run.class_latency_s)["2"]
        for run in runs.itertuples()
        for key in [(run.queue, json.loads(run.importance)["2"])]
    }
    assert second["weighted", 0.1] > 1.1 * second["weighted", 1.0]
    assert second["priority", 0.1] == second["priority", 1.0]  # class after class
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert study(out, case, **options)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")} == before
    study(out, case, **(options | {"importance": [1, 0.3]}))
    assert len(read_results(out, "runs")) == 6
    study(out, case, queue="weighted", weights=[0.5, 0.5], importance=[1, 1])
    runs = read_results(out, "runs")
    assert len(runs) == 7
    study(out, case, queue="priority", objective="joint", importance=[1, 1])
    assert len(read_results(out, "runs")) == 8


def test_no_point_of_a_sweep_that_exchanges_plans_is_beaten_by_another_points_plan(tmp_path):
    """By the plain formulas: every plan of the sweep at the importance of every run."""
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    sweep = {"queue": "weighted", "importance": [[1, 1], [1, 0.4], [1, 0.1]]}
    study(out, case, **sweep)
    alone = read_results(out, "runs").set_index("importance").sort_index()
    assert study(out, case, exchange=True, **sweep)[0] == 0
    runs = read_results(out, "runs")
    runs = runs[~runs["run_id"].isin(alone["run_id"])]
    assert len(runs) == 3
    values = np.empty((3, 3))
    for number, run in enumerate(runs.itertuples()):
        follows_from_the_tables(out, run)
        plain, _, reads, stored, weights = recomputed(out, run)
        told = latencies(plain, reads, stored, weights)[0]
        for at, other in enumerate(runs.itertuples()):
            values[at, number] = (
                np.array(list(json.loads(other.importance).values())) * plain.class_share @ told
            )
    assert (values.diagonal() <= values.min(axis=1) * (1 + 1e-6)).all()
    together = runs.set_index("importance").sort_index()["objective"]
    assert (together <= alone["objective"] * (1 + 1e-9)).all()
    # nothing is done twice, and one point has nobody to exchange with
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    study(out, case, exchange=True, **sweep)
    study(out, case, exchange=True, queue="weighted", importance=[1, 0.4])
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")} == before


def test_runs_that_exchange_plans_do_so_with_all_wherever_each_is_planned(tmp_path, monkeypatch):
    """One by one on workers, as what is left of a batch that failed: the same plans, of the same ids."""
    case, sweep = with_classes(problems.mixed(load=0.5)), {"importance": [[1, 1], [1, 0.4], [1, 0.1]]}
    asked = sweep | {"queue": "weighted", "exchange": True}
    study(tmp_path / "whole", case, **asked)
    exchanging = []

    def exchanged(points, *others):
        exchanging.append(len(points))
        return exchange(points, *others)

    exchange = class_run.exchanged
    monkeypatch.setattr(class_run, "exchanged", exchanged)
    monkeypatch.setattr(spine, "open_engine", open_pickled)
    study(tmp_path / "divided", case, **asked)
    assert exchanging == [3, 3, 3]
    same_tables(tmp_path / "whole", tmp_path / "divided", rtol=1e-9)


def test_an_importance_given_twice_is_one_point(tmp_path):
    """It was planned for twice, and a batch with two runs of one id ended in a traceback."""
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    asked = {"queue": "weighted", "exchange": True}
    assert study(out, case, importance=[[1, 1], [1, 0.4], [1.0, 1]], **asked)[0] == 0
    ids = set(read_results(out, "runs")["run_id"])
    assert len(ids) == 2
    study(out, case, importance=[[1, 1], [1, 0.4]], **asked)
    assert set(read_results(out, "runs")["run_id"]) == ids


def test_a_point_that_fails_leaves_the_exchange_to_the_others(tmp_path, monkeypatch, caplog):
    """The plans are those of a sweep of the others, and none is made twice."""
    case, asked = with_classes(problems.mixed(load=0.5)), {"queue": "weighted", "exchange": True}
    study(tmp_path / "others", case, importance=[[1, 1], [1, 0.1]], **asked)
    planned = []

    def plan(model, start, settings, *others):
        planned.append(settings.importance)
        if settings.importance == (1.0, 0.4):
            raise RuntimeError("no plan")
        return plan_classes(model, start, settings, *others)

    monkeypatch.setattr(class_run, "plan_classes", plan)
    assert study(tmp_path / "out", case, importance=[[1, 1], [1, 0.4], [1, 0.1]], **asked)[0] == 1
    assert planned == [(1.0, 1.0), (1.0, 0.4), (1.0, 0.1)]
    assert "1 of 3 plans of the sweep failed; the others go on from each other's plans alone" in caplog.text
    found, expected = (
        read_results(tmp_path / name, "runs").set_index("importance") for name in ("out", "others")
    )
    (failed,) = found[found["status"] != Status.OK].itertuples()
    assert (json.loads(failed.Index), failed.status) == ({"1": 1.0, "2": 0.4}, Status.FAILED)
    assert failed.error == "RuntimeError: no plan"
    for name in ("objective", "latency_s", "max_load"):
        np.testing.assert_allclose(found.loc[expected.index, name], expected[name], rtol=1e-9)


def test_an_exchange_that_fails_is_not_tried_again_by_halves(tmp_path, monkeypatch):
    case, tried = with_classes(problems.mixed(load=0.5)), []

    def exchanged(points, *others):
        tried.append(len(points))
        raise RuntimeError("no exchange")

    monkeypatch.setattr(class_run, "exchanged", exchanged)
    importance = [[1, 1], [1, 0.4], [1, 0.1]]
    assert study(tmp_path / "out", case, queue="weighted", exchange=True, importance=importance)[0] == 1
    assert tried == [3]
    assert read_results(tmp_path / "out", "runs")["error"].tolist() == ["RuntimeError: no exchange"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "weighted"])
def test_a_sweep_side_by_side_has_the_plans_of_one_after_the_other(queue, tmp_path):
    """And those of a sweep of which only a part is missing."""
    case = with_classes(problems.mixed(load=0.5))
    sweep = {
        "queue": queue,
        "objective": "joint",
        "importance": [[1, 1], [1, 0.4], [1, 0.1]],
        "rate_scale": [1.0, 50.0],
    }
    together = sweep | {"device": "jax", "memory_bytes": 1e9}
    assert (
        study(tmp_path / "alone", case, **sweep)[0] == study(tmp_path / "together", case, **together)[0] == 1
    )
    alone, ours = (
        read_results(tmp_path / name, "runs").set_index("run_id") for name in ("alone", "together")
    )
    assert sorted(ours.index) == sorted(alone.index) and len(ours) == 6
    # side by side each takes its share of the time
    assert ours["solve_s"].nunique() == 1 and alone["solve_s"].nunique() == 6
    assert set(ours.loc[ours["status"] == Status.OK, "rate_scale"]) == {1.0}
    alone = alone.loc[ours.index]
    assert ours["status"].tolist() == alone["status"].tolist()
    for name in ("objective", "latency_s", "latency_shared_z_s", "max_load"):
        np.testing.assert_allclose(ours[name], alone[name], rtol=1e-8)
    assert ours["iterations"].tolist() == alone["iterations"].tolist()
    for run in ours[ours["status"] == Status.OK].reset_index().itertuples():
        follows_from_the_tables(tmp_path / "together", run)

    # one run is there already: the others are planned by the programs of the whole sweep
    study(tmp_path / "part", case, **(together | {"importance": [1, 1], "rate_scale": 1.0}))
    (first,) = read_results(tmp_path / "part", "runs")["run_id"]
    study(tmp_path / "part", case, **together)
    rest = read_results(tmp_path / "part", "runs").set_index("run_id").loc[ours.index].drop(first)
    assert rest["solve_s"].nunique() == 1
    for name in ("objective", "latency_s", "latency_shared_z_s"):
        np.testing.assert_allclose(rest[name], ours[name].drop(first), rtol=1e-9)


@pytest.mark.parametrize(
    ("asked", "widths"),
    [({}, [4, 1, 2, 1, 1]), ({"queue": "weighted", "exchange": True}, [4, 2, 1, 1, 1])],
    ids=["by halves", "of the whole sweep"],
)
def test_plans_side_by_side_that_memory_cannot_hold_are_made_by_fewer_at_a_time(
    tmp_path, monkeypatch, asked, widths
):
    """Halves of those that exchange plans would each plan for the whole sweep again."""
    tried = []

    def small(lanes, width):
        tried.append(width)
        if width > 1:
            raise MemoryError("no room")
        return run_together(lanes, width)

    monkeypatch.setattr(class_run, "run_together", small)
    case = with_classes(problems.mixed(load=0.5))
    options = {"importance": [[1, 1], [1, 0.4], [1, 0.1]], "device": "jax", "memory_bytes": 1e9} | asked
    code, text = study(tmp_path / "out", case, **options)
    assert code == 0, text
    assert tried == widths
    assert read_results(tmp_path / "out", "runs")["status"].tolist() == [Status.OK] * 3


def test_what_changes_nothing_keeps_the_run_id(tmp_path):
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    study(out, case, queue="priority")
    study(out, case, queue=["priority"], importance=[1, 1], method="jlop", figures=["class_latency"])
    assert len(read_results(out, "runs")) == 1


def test_given_code_lengths_are_kept_and_the_floor_elsewhere(tmp_path):
    case = with_classes(problems.mixed(load=0.4))
    k, extra = case.k, case.file("min_extra_chunks")
    n = np.where(np.arange(FILES) % 3 == 0, np.nan, np.minimum(k + extra + 1, 6))
    files = case.files.assign(n=pd.array(n, dtype="Int64"))
    assert study(tmp_path / "out", Case(case.nodes, files))[0] == 0
    plans = pd.read_parquet(tmp_path / "out" / "file_plans")
    np.testing.assert_array_equal(plans["n"], np.where(np.isnan(n), k + extra, n))


def test_an_earlier_plan_is_the_start(tmp_path):
    case = with_classes(problems.mixed(load=0.5))
    assert study(tmp_path / "old", case, queue="weighted")[0] == 0
    assert study(tmp_path / "new", case, queue="weighted", plan=str(tmp_path / "old"))[0] == 0
    old, new = (read_results(tmp_path / name, "runs").iloc[0] for name in ("old", "new"))
    assert new["objective"] <= old["objective"] * 1.001
    assert new["moved_chunks"] <= 6
    history = rows(tmp_path / "new", "history", new["run_id"])
    assert history["step"].iloc[0] == "start"
    # with the shares not yet planned it is as good as the plan was at its own shares, or worse
    assert history["objective"].iloc[0] >= old["objective"] * (1 - 1e-9)


def test_fixed_shares_are_those_of_every_node(tmp_path):
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    assert study(out, case, queue="weighted", weights=[0.4, 0.6])[0] == 0
    run = next(read_results(out, "runs").itertuples())
    follows_from_the_tables(out, run)
    weights = recomputed(out, run)[-1]
    np.testing.assert_array_equal(weights, np.repeat([[0.4], [0.6]], weights.shape[1], axis=1))


@pytest.mark.slow
def test_more_chunks_per_node_more_chunks_per_read_and_first_come_first_served_beside(tmp_path):
    case = with_classes(problems.mixed(load=0.4))
    files = case.files.assign(k=2, d=4, min_extra_chunks=2)
    case, out = Case(case.nodes, files).at_load(0.3), tmp_path / "out"
    options = {"queue": list(QUEUES), "start": None, "theta": 0.1, "max_chunks_per_node": 2}
    code, _ = study(out, case, **options)
    assert code == 0
    runs = read_results(out, "runs").set_index("queue")
    assert runs["method"].to_dict() == {"fcfs": "certified", "priority": "jlop", "weighted": "jlwo"}
    assert pd.isna(runs.loc["fcfs", "class_latency_s"])
    placements = pd.read_parquet(out / "placements")
    assert np.all(placements["chunks"] == 2)
    for queue in ("priority", "weighted"):
        run = runs.loc[queue]
        plans = rows(out, "file_plans", run["run_id"])
        np.testing.assert_array_equal(plans["n"], 4)
        sums = placements[placements["run_id"] == run["run_id"]].groupby("file_id")["probability"].sum()
        np.testing.assert_allclose(sums, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "weighted"])
def test_the_default_start(queue, tmp_path):
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    assert study(out, case, queue=queue, start=None)[0] == 0
    assert study(out, case, queue=queue)[0] == 0
    runs = read_results(out, "runs")
    for run in runs.itertuples():
        follows_from_the_tables(out, run)
    runs["start"] = [json.loads(params)["start"] for params in runs["params"]]
    objective = runs.set_index("start")["objective"]
    assert objective["search"] < 1.02 * objective["uniform"]


def test_one_unstable_run_of_several_is_a_row(tmp_path):
    case, out = with_classes(problems.mixed(load=0.5)), tmp_path / "out"
    code, text = study(out, case, rate_scale=[1.0, 50.0], queue="weighted")
    assert code == 1
    runs = read_results(out, "runs").set_index("rate_scale")
    assert runs["status"].to_dict() == {1.0: Status.OK, 50.0: Status.UNSTABLE}
    assert "load rho = " in runs.loc[50.0, "error"]
    assert runs.loc[50.0, ["objective", "latency_s", "class_latency_s"]].isna().all()
    kept = {runs.loc[1.0, "run_id"]}
    for dataset in ("placements", "class_plans", "class_weights", "history"):
        assert set(read_results(out, dataset)["run_id"]) == kept


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Folder with tables of different mistakes."""
    folder = tmp_path_factory.mktemp("tables")
    case = with_classes(problems.mixed(load=0.5))
    case.nodes.to_parquet(folder / "nodes.parquet", index=False)
    files = case.files.astype({"service_class": int})
    unread = files.copy()
    unread.loc[unread["service_class"] == 2, "rate_per_s"] = 0.0
    grouped = files.assign(k=2, min_extra_chunks=0, group=["a", "a"] + [None] * (FILES - 2))
    lengths = {
        "short": files.assign(n=files["k"]),
        "long": files.assign(n=7),
        "groups": grouped.assign(service_class=1, n=[3, 4] + [3] * (FILES - 2)),
        "odd": files.assign(k=2, n=5),
        "full": files.assign(n=6),
    }
    written = {
        "files": files,
        "plain": files.drop(columns="service_class"),
        "unread": unread,
        "unnamed": files.astype({"service_class": "Int64"}).replace({"service_class": {2: pd.NA}}),
        "grouped": grouped,
        **lengths,
    }
    for name, table in written.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)
    case.nodes.assign(capacity_chunks=11).to_parquet(folder / "small.parquet", index=False)
    return folder


MISTAKES = {
    "no classes": (["files=plain"], ["queue=priority", "service_class", "fcfs"]),
    "a file without a class": (
        ["files=unnamed"],
        ["column service_class, row 1", "(null)", "a value in every row"],
    ),
    "nothing read": (["files=unread"], ["rate_per_s", "service_class 2", "above 0"]),
    "one class per group": (
        ["files=grouped"],
        ["column service_class, row 1", "found 2", "has 1", "one class per group"],
    ),
    "importance": (["importance=[1,2,3]"], ["importance: found [1.0, 2.0, 3.0]", "1, 2"]),
    "importance, negative": (["importance=[1,-2]"], ["importance: found [1, -2]", "at least 0"]),
    "importance, all 0": (["importance=[0,0]"], ["importance: found [0, 0]", "not all 0"]),
    "importance, words": (["importance=high"], ["importance: found high"]),
    "importance, fcfs": (["queue=fcfs", "importance=[1,1]"], ["importance", "queue=fcfs"]),
    "weights, priority": (["weights=[0.5,0.5]"], ["weights", "queue=priority", "queue=weighted"]),
    "weights, number": (
        ["queue=weighted", "weights=[0.2,0.3,0.5]"],
        ["weights: found 3 numbers", "one per service class: 1, 2"],
    ),
    "weights, sum": (["queue=weighted", "weights=[0.5,0.4]"], ["weights: found [0.5, 0.4]", "sum to 1"]),
    "weights, sign": (["queue=weighted", "weights=[1.5,-0.5]"], ["weights: found [1.5, -0.5]", "positive"]),
    "weights, infinite": (["queue=weighted", "weights=[.inf,0.5]"], ["weights: found ['.inf', 0.5]"]),
    "weights that do not fit": (
        ["queue=weighted", "weights=[0.99,0.01]"],
        ["class 2 asks for 0.", "of node n", "its share is 0.01", "weights=null"],
    ),
    "exchange of other queues": (["exchange=true"], ["exchange: found true", "queue=weighted"]),
    "deadlines, number": (["deadline_s=[1,2,3]"], ["deadline_s: found [1, 2, 3]", "1, 2"]),
    "deadlines, sign": (["deadline_s=[1,-2]"], ["deadline_s: found [1, -2]", "positive"]),
    "deadlines, class": (["deadline_s={3:1.0}"], ["deadline_s: found class 3", "1, 2"]),
    "objective": (["objective=p99"], ["objective: found p99", "lexicographic, joint"]),
    "lexicographic": (["queue=weighted", "objective=lexicographic"], ["lexicographic", "joint"]),
    "joint, fcfs": (["queue=fcfs", "objective=joint"], ["objective: found joint with queue=fcfs"]),
    "method": (["method=published"], ["method: found published", "jlop (queue=priority)"]),
    "method of the other queue": (["method=jlwo"], ["method: found jlwo", "jlop"]),
    "queue": (["queue=lifo"], ["queue: found 'lifo'", "fcfs, priority, weighted"]),
    "no queue": (["queue=[]"], ["queue: found an empty list"]),
    "scenarios": (["scenarios=[node]"], ["scenarios: found ['node'] with queue=priority", "[]"]),
    "robust": (["robust=mean"], ["robust: found mean with queue=priority", "none"]),
    "polish": (["polish=true"], ["polish: found True with queue=priority", "false"]),
    "dtype": (["dtype=float32"], ["dtype: found float32 with queue=priority", "float64"]),
    "cold start": (["compare_cold_start=true"], ["compare_cold_start", "false"]),
    "start": (["start=warm"], ["start: found 'warm'", "uniform, proportional, plan"]),
    "start, fcfs": (["queue=fcfs", "start=search"], ["start: found search with queue=fcfs"]),
    "rates": (["rate_scale=50"], ["nodes: row ", "load rho = ", "rate_scale=50", "lower the rates"]),
    "n below the floor": (["files=short"], ["column n, row 0", "found 2; allowed: at least 3"]),
    "n beyond the nodes": (["files=long"], ["column n, row 0", "found 7; allowed: at most 6"]),
    "n in a group": (["files=groups"], ["column n, row 1", "found 4", "one n per group, 3 as in row 0"]),
    "n and chunks per node": (
        ["files=odd", "max_chunks_per_node=2", "min_extra_chunks=0"],
        ["column n, row 0", "found 5", "a multiple of max_chunks_per_node=2"],
    ),
    "n and capacities": (["files=full", "nodes=small"], ["capacity_chunks", "66", "72"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line_with_code_2_and_nothing_written(name, tables, tmp_path, capsys):
    words, parts = MISTAKES[name]
    given = {"files": "files", "nodes": "nodes", "queue": "priority", "start": "uniform"}
    given |= dict(word.split("=", 1) for word in words)
    for table in ("files", "nodes"):
        given[table] = str(tables / f"{given[table]}.parquet")
    code = cli.main(
        ["optimize", *(f"{key}={value}" for key, value in given.items()), f"out={tmp_path / 'out'}"]
    )
    lines = capsys.readouterr().err.strip().splitlines()
    [err] = [line for line in lines if line.startswith("ecjax: ")]  # other lines say what is being done
    assert code == 2
    assert err == lines[-1]
    for part in parts:
        assert part in err
    assert files_under(tmp_path) == []


def test_shares_that_fit_only_another_spread_are_found(tmp_path):
    # all that class 2 asks for does not fit its share where reads start, but it does elsewhere
    case = with_classes(problems.mixed(load=0.4))
    assert study(tmp_path / "out", case, queue="weighted", weights=[0.8, 0.2])[0] == 0
    follows_from_the_tables(tmp_path / "out", next(read_results(tmp_path / "out", "runs").itertuples()))
