"""``ecjax adapt`` by workers that share nothing with it, and what is prepared for its replays."""

from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from engines import PickledEngine, open_pickled, same_tables
from rich.console import Console

from ecjax.adaptation import strategies
from ecjax.adaptation.capacity import Capacity
from ecjax.errors import UserError
from ecjax.studies.adapt import prepare as adapt_prepare
from ecjax.studies.adapt import strategies as adapt_strategies
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.study import adapt_study
from ecjax.studies.spine import study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
TRACE = Path(__file__).parents[3] / "traces" / "requests_objects.parquet"


def options(out, **values):
    given = {"out": str(out), "load": [0.1, 0.8], "requests": 2000, "k_max": 2, "figures": []}
    return AdaptOptions(**(given | values))


@pytest.fixture
def prepares(monkeypatch):
    """Choices whose tables are made and whose capacities are searched, both in no time."""
    made, searched = [], []

    def strategy(choice, proxy, memory):
        made.append((proxy.delays, choice.strategy))
        return strategies.tofec(proxy.classes, proxy.models, proxy.threads, memory)._replace(
            name=choice.strategy
        )

    def capacity(strategy, shares, tasks, threads, seed):
        searched.append(strategy.name)
        return Capacity(60.0 + strategy.k.sum(), 1.0)

    monkeypatch.setattr(adapt_prepare, "strategy", strategy)
    monkeypatch.setattr(adapt_prepare, "capacity", capacity)
    return made, searched


def test_a_worker_that_shares_nothing_finds_the_same(tmp_path, monkeypatch):
    # the two that are not here are slow
    given = {"strategy": ["static", "best_static", "fast_cloud", "tofec"], "codes": "all"}
    given |= {"delays": ["shifted_exp", "correlated"], "capacity": False, "load": 0.8}
    assert adapt_study(options(tmp_path / "serial", **given), QUIET) == 0
    monkeypatch.setattr(study, "open_engine", open_pickled)
    assert adapt_study(options(tmp_path / "pickled", **given), QUIET) == 0
    same_tables(tmp_path / "serial", tmp_path / "pickled")
    assert len(read_results(tmp_path / "pickled", "runs")) == 2 * (5 + 3)


def test_capacities_come_back(tmp_path, monkeypatch):
    given = {"strategy": ["static", "best_static", "tofec"], "load": 0.5}
    assert adapt_study(options(tmp_path / "serial", **given), QUIET) == 0
    monkeypatch.setattr(study, "open_engine", open_pickled)
    assert adapt_study(options(tmp_path / "pickled", **given), QUIET) == 0
    same_tables(tmp_path / "serial", tmp_path / "pickled")
    assert read_results(tmp_path / "pickled", "runs")["capacity_per_s"].notna().all()


def test_a_trace_is_sent_once_for_all_points_and_laws(tmp_path, monkeypatch):
    engines = []

    @contextmanager
    def opened(options, accelerated):
        engines.append(PickledEngine())
        yield engines[-1]

    classes = [{"bytes": 1e6}, {"op": "write", "bytes": 1e6}]
    given = {"trace": str(TRACE), "rate_scale": [1.0, 20.0], "classes": classes, "capacity": False}
    given |= {"strategy": ["tofec", "greedy"], "delays": ["shifted_exp", "correlated"], "timeline_s": 300.0}
    assert adapt_study(options(tmp_path / "serial", **given), QUIET) == 0
    monkeypatch.setattr(study, "open_engine", opened)
    assert adapt_study(options(tmp_path / "pickled", **given), QUIET) == 0
    same_tables(tmp_path / "serial", tmp_path / "pickled")
    requests = int(read_results(tmp_path / "serial", "runs")["requests"].iloc[0])
    [(*preparing, replays)] = [engine.sent for engine in engines]
    assert len(preparing) == 2 and max(preparing) < 5000
    assert 9 * requests < replays < 9 * requests + 10_000  # a time and a class of each


def test_what_laws_and_choices_need_is_prepared_once(tmp_path, prepares):
    made, searched = prepares
    given = {"strategy": ["static", "best_static", "calibrated", "tofec"], "seeds": 2}
    given |= {"delays": ["shifted_exp", "correlated"], "load": 0.1}
    assert adapt_study(options(tmp_path, **given), QUIET) == 0
    names = [(law, name) for law in given["delays"] for name in ("calibrated", "tofec")]
    assert sorted(made) == sorted(names)
    assert sorted(searched) == sorted(["calibrated", "static", "static", "tofec"] * 2)
    runs = read_results(tmp_path, "runs")
    # (1, 1) serves the most, and there is one k = 1 in its table
    assert set(runs.loc[runs["strategy"].isin(["static", "best_static"]), "capacity_per_s"]) == {61.0}
    del made[:], searched[:]
    # of what is there nothing is prepared
    assert adapt_study(options(tmp_path, **given | {"strategy": "static", "codes": [2, 1]}), QUIET) == 0
    assert not made and searched == ["static", "static"]
    assert adapt_study(options(tmp_path, **given | {"seeds": 1}), QUIET) == 0
    assert not made and searched == ["static", "static"]
    # for a new seed all of it
    assert adapt_study(options(tmp_path, **given | {"seeds": 3, "delays": "correlated"}), QUIET) == 0
    assert sorted(made) == [("correlated", "calibrated"), ("correlated", "tofec")]


def test_what_cannot_be_prepared_is_failed_runs_and_the_rest_finish(tmp_path, monkeypatch, prepares):
    def fails(classes, models, threads, seed):
        raise MemoryError("no room")

    monkeypatch.setattr(adapt_prepare, "strategy", adapt_strategies.strategy)
    monkeypatch.setattr(adapt_strategies, "calibrated", fails)
    given = options(tmp_path, strategy=["calibrated", "tofec", "static"], load=0.1, seeds=2)
    console = Console(file=StringIO(), width=200)
    assert adapt_study(given, console) == 1
    assert "2 runs: MemoryError: no room" in console.file.getvalue()
    runs = read_results(tmp_path, "runs").set_index("strategy")
    assert set(runs.loc["calibrated", "status"]) == {"failed"} and len(runs) == 6
    assert set(runs.loc[["tofec", "static"], "status"]) <= {"ok", "not_stationary"}
    assert runs.loc["calibrated", ["rate_per_s", "load", "seed", "params"]].notna().all(axis=None)
    monkeypatch.setattr(
        adapt_strategies, "calibrated", lambda classes, models, *_: strategies.tofec(classes, models, 16)
    )
    assert adapt_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs")
    assert len(runs) == 6 and set(runs["status"]) <= {"ok", "not_stationary"}


def test_a_mistake_that_preparing_meets_ends_the_study(tmp_path, monkeypatch):
    def refuses(classes, models, threads, seed):
        raise UserError("classes: found some; allowed: others")

    monkeypatch.setattr(adapt_strategies, "calibrated", refuses)
    with pytest.raises(UserError, match="classes: found some"):
        adapt_study(options(tmp_path, strategy=["calibrated", "static"], capacity=False), QUIET)
    assert not list(tmp_path.glob("runs/*"))
