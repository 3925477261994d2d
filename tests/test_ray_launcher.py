"""Sweeps of Hydra: values one after another, and as Ray tasks where the extra ``launcher`` is installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ecjax import cli

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
