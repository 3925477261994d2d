"""Sweeps of Hydra: lists, in this process or by ``engine=ray``; as Ray tasks with the extra ``launcher``."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ecjax import cli
from ecjax.tables.results import read_results

HAS_LAUNCHER = bool(
    importlib.util.find_spec("hydra_plugins") and importlib.util.find_spec("hydra_plugins.hydra_ray_launcher")
)
SMALL = ["scheduler=fair", "seeds=1", "generate.requests=50", "figures=[]"]
SOURCES = 3  # each is a run


def ecjax(place, *words):
    command = [sys.executable, "-m", "ecjax", *words]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def runs(folder):
    return len(list(Path(folder, "runs").glob("*.parquet")))


@pytest.mark.skipif(HAS_LAUNCHER, reason="the extra is installed")
@pytest.mark.parametrize("name", ["ray", "ray_local", "ray_cluster"])
def test_the_missing_extra_is_told_in_one_line(capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["schedule", "-m", f"hydra/launcher={name}", "rate_scale=1,2", *SMALL]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert name in line and "extra `launcher`" in line and "engine=ray" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(HAS_LAUNCHER, reason="the extra is installed")
def test_the_missing_extra_is_told_after_a_sweep_of_the_same_process(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["schedule", "-m", "rate_scale=1,2", *SMALL, "out=swept"]) == 0
    capsys.readouterr()
    assert cli.main(["schedule", "-m", "hydra/launcher=ray", "rate_scale=1,2", *SMALL, "out=other"]) == 2
    assert "extra `launcher`" in capsys.readouterr().err and not Path("other").exists()


@pytest.mark.slow
@pytest.mark.parametrize("flag_first", [True, False])
def test_the_flag_goes_before_or_after_the_overrides(tmp_path, flag_first):
    words = ["rate_scale=1,2", *SMALL, "out=both"]
    done = ecjax(tmp_path, "schedule", *(["-m", *words] if flag_first else [*words, "-m"]))
    assert done.returncode == 0, done.stderr
    assert runs(tmp_path / "both") == 2 * SOURCES


@pytest.mark.slow
@pytest.mark.skipif(not HAS_LAUNCHER, reason="needs the extra `launcher` (hydra-ray-launcher)")
def test_runs_are_ray_tasks_and_one_that_fails_costs_no_other(tmp_path):
    # the second is a mistake that only a run finds
    words = ["hydra/launcher=ray_local", "trace=null,nowhere.parquet", *SMALL, "out=each"]
    done = ecjax(tmp_path, "schedule", "-m", *words)
    assert done.returncode == 2, done.stderr
    assert "nowhere.parquet" in done.stderr + done.stdout
    assert runs(tmp_path / "each" / "0") == SOURCES and not runs(tmp_path / "each" / "1")


def rows(folder):
    table = read_results(folder, "runs").sort_values("run_id", ignore_index=True)
    return table.drop(columns=["solve_s", "batch_id", "batch_runs", "batch_files"])


@pytest.mark.slow
def test_lists_a_sweep_and_a_sweep_on_ray_give_equal_tables(tmp_path):
    lists = ["rate_scale=[1,2]", "share_at_zero=[0.5,1]"]
    sweep = ["-m", "rate_scale=1,2", "share_at_zero=0.5,1"]
    ways = {"lists": lists, "sweep": sweep, "ray": [*sweep, "engine=ray", "engine.actors=2"]}
    for name, words in ways.items():
        done = ecjax(tmp_path, "schedule", *words, *SMALL, f"out={name}")
        assert done.returncode == 0, done.stderr
    first = rows(tmp_path / "lists")
    assert len(first) == 4 * SOURCES
    assert first.equals(rows(tmp_path / "sweep")) and first.equals(rows(tmp_path / "ray"))


@pytest.mark.slow
def test_a_mistake_leaves_nothing_and_a_sweeper_with_rounds_is_given_a_column(tmp_path):
    done = ecjax(tmp_path, "schedule", "-m", "seeds=1,0", "out=wrong")
    assert done.returncode == 2 and not (tmp_path / "wrong").exists()
    words = ["hydra.sweeper.max_batch_size=1", "rate_scale=1,2", *SMALL, "out=rounds"]
    done = ecjax(tmp_path, "schedule", "-m", *words, "hydra.launcher.objective=makespan_s")
    assert done.returncode == 0, done.stderr
    assert runs(tmp_path / "rounds") == 2 * SOURCES
    done = ecjax(tmp_path, "schedule", "-m", *words, "hydra.launcher.objective=nothing")
    assert done.returncode == 2 and "objective: found nothing" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", [["engine=serial"], ["engine=ray", "engine.actors=2"]])
def test_a_sweep_whose_command_was_killed_goes_on_to_the_same_tables(tmp_path, engine):
    # keys without lists: a command of each, so that it dies between them or within one
    words = ["-m", "rate_scale=1,2", "seed=1,2,3,4,5,6", *SMALL, "engine.retries=0", *engine]
    command = [sys.executable, "-m", "ecjax", "schedule", *words, "out=killed"]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not runs(tmp_path / "killed"):
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    done = ecjax(tmp_path, "schedule", *words, "out=killed")
    assert done.returncode == 0, done.stderr
    assert ecjax(tmp_path, "schedule", *words[: -1 - len(engine)], "out=whole").returncode == 0
    first = rows(tmp_path / "whole")
    assert len(first) == 12 * SOURCES and first.equals(rows(tmp_path / "killed"))
