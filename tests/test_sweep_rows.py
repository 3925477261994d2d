"""A sweep of Hydra has, row for row, the results of the lists of values that it stands for, in every job with lists."""

from pathlib import Path

import pytest

from ecjax import hydra_run
from ecjax.jobs_index import JOBS
from ecjax.tables.results import read_results

# when and with what else a run was computed
_HOW = ("solve_s", "compile_s", "batch_", "decision_", "requests_per_s")
_CLASSES = [
    "queue=weighted",
    "cluster.hardware=tahoe",
    "cluster.k=[4,4]",
    "cluster.rates=[1,1]",
    "cluster.load=0.5",
]
_PLANS = ["cluster.files=12", "estimate=false"]
_CEPH = str(Path(__file__).parents[1] / "traces" / "ceph")
CASES = {
    "optimize": (_PLANS, {"theta": ["1", "10", "100"], "k": ["4", "6"]}),
    "optimize by class": (
        [*_CLASSES, *_PLANS, "start=certified"],
        {"importance": ["[1,0.4]", "[1,1]"]},
    ),
    "replay": (
        ["planning.cluster.files=12", "requests=300", "replications=2"],
        {
            "planning.theta": ["10", "1000"],
            "policy": ["probabilistic", "proportional"],
            "rate_scale": ["0.5", "1"],
        },
    ),
    "schedule": (
        ["generate.requests=20", "seeds=1", "scheduler=fair"],
        {"k": ["2", "4"], "sources": ["random"], "rate_scale": ["1", "10"]},
    ),
    "adapt": (
        ["requests=300", "strategy=static"],
        {"codes": ["[2,1]", "[6,3]"], "load": ["0.3", "0.6"], "delays": ["shifted_exp"]},
    ),
    "ceph": ([_CEPH], {"within": ["0.01", "0.1"]}),
    "cache": (
        ["reads=200", "items=[20]"],
        {"policy": ["lru"], "capacity": ["30", "60"], "neighbours": ["0.1", "0.4"]},
    ),
}


def _rows(out):
    runs = read_results(out, "runs").sort_values("run_id", ignore_index=True)
    return runs.drop(columns=[name for name in runs if name.startswith(_HOW)])


_SLOW = ("optimize", "optimize by class", "replay")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow if each in _SLOW else ()) for each in CASES]
)
def test_a_sweep_has_the_rows_of_lists(tmp_path, name):
    fixed, swept = CASES[name]
    job = JOBS[name.split()[0]]
    fixed = [*fixed, "figures=[]"]
    lists = [f"{key}=[{','.join(values)}]" for key, values in swept.items()]
    sweep = [f"{key}={','.join(values)}" for key, values in swept.items()]
    assert hydra_run.run_job(job, [*fixed, *lists, f"out={tmp_path}/lists"]) == 0
    assert hydra_run.run_job(job, ["-m", *fixed, *sweep, f"out={tmp_path}/sweep"]) == 0
    first, second = _rows(tmp_path / "lists"), _rows(tmp_path / "sweep")
    assert len(first) >= len(list(swept.values())[0])
    assert first.equals(second)
