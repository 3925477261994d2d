"""Sweepers that ask for values round after round, and learn from what a round returned."""

import importlib.util
import sys
from types import ModuleType

import pytest
import yaml
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper

from ecjax import hydra_run
from ecjax.jobs_index import JOBS
from ecjax.tables.results import read_results

SMALL = [
    "scheduler=fair",
    "sources=random",
    "generate.requests=20",
    "figures=[]",
    "seeds=1",
    "lower_bound=false",
]
MODULE = "hydra_plugins.halving"


class HalvingSweeper(Sweeper):
    """Halves the larger value, round after round: three rounds of two jobs."""

    def __init__(self, max_batch_size=None, params=None):
        self.rounds = []

    def setup(self, *, hydra_context, task_function, config):
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments):
        low, high = 0.5, 8.0
        for number in range(3):
            jobs = [[*arguments, f"generate.duration_s={value}"] for value in (low, high)]
            returned = [job.return_value for job in self.launcher.launch(jobs, 2 * number)]
            type(self).seen.append((low, high, *returned))
            low, high = sorted((low, high / 2))


def test_a_sweeper_of_rounds_gets_the_objective_of_every_job(tmp_path, monkeypatch):
    HalvingSweeper.seen = []
    Plugins.instance()
    module = ModuleType(MODULE)
    module.HalvingSweeper = HalvingSweeper
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setattr(HalvingSweeper, "__module__", MODULE)
    Plugins.instance().register(HalvingSweeper)
    out = tmp_path / "out"
    words = [f"hydra.sweeper._target_={MODULE}.HalvingSweeper", "hydra.launcher.objective=makespan_s"]
    assert hydra_run.run_job(JOBS["schedule"], ["-m", *SMALL, f"out={out}", *words]) == 0
    runs = read_results(out, "runs")
    assert [row[:2] for row in HalvingSweeper.seen] == [(0.5, 8.0), (0.5, 4.0), (0.5, 2.0)]
    assert len(runs) == 4  # the first value came three times
    found = {value for row in HalvingSweeper.seen for value in row[2:]}
    assert found == set(runs["makespan_s"])


@pytest.mark.filterwarnings("ignore")  # of its libraries among each other
@pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="needs the group sweepers")
def test_optuna_finds_the_best_of_a_sweep(tmp_path):
    out = tmp_path / "out"
    words = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=6", "hydra.sweeper.n_jobs=3"]
    words += ["hydra.sweeper.sampler.seed=1", "hydra.launcher.objective=makespan_s", "k=choice(1,2,4)"]
    command = ["-m", *SMALL, f"out={out}", *words, "generate.duration_s=interval(1,1000)"]
    assert hydra_run.run_job(JOBS["schedule"], command) == 0
    runs = read_results(out, "runs")
    (path,) = out.glob("logs/*/optimization_results.yaml")
    found = yaml.safe_load(path.read_text())
    best = runs.loc[runs["makespan_s"].idxmin()]
    assert len(runs) == 6 and found["best_value"] == best["makespan_s"]
    assert found["best_params"]["k"] == best["k"]
