"""Options of ``ecjax replay`` that nothing reads beside others are said."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay import study
from ecjax.studies.replay.options import ReplayOptions

OF_PLANS = {
    "rate_scale": ([2.0], "[2.0]"),
    "size_scale": ([3.0], "[3.0]"),
    "policy": (["uniform"], "['uniform']"),
    "queue": (["priority"], "['priority']"),
    "weights": ([0.25, 0.75], "[0.25, 0.75]"),
    "arrivals": ("bursts", "bursts"),
    "rates": ("rates.csv", "rates.csv"),
    "outages": ("outages.csv", "outages.csv"),
    "requests": (1000, "1000"),
    "estimate": (False, "false"),
    "earlier_bounds": (True, "true"),
    "decode_s_per_byte": (1e-9, "1e-09"),
    "client_bandwidth_bytes_per_s": (1e9, "1000000000.0"),
    "device": ("jax", "jax"),
}


@pytest.fixture
def said(monkeypatch, caplog):
    """What the study says of options, before it begins."""
    monkeypatch.setattr(study, "run_study", lambda *_: 0)

    def of(**given):
        caplog.clear()
        assert study.replay_study(ReplayOptions(**given), Console(quiet=True)) == 0
        return [line for line in caplog.messages if " has no effect beside " in line]

    return of


def test_a_log_alone_is_replayed_as_it_came(said):
    beside = "has no effect beside trace=log.csv without plan=FOLDER, which is predicted as it was logged"
    assert said(trace="log.csv", service=["gamma"], replications=2, seed=3, sort=True, figures=[]) == []
    for name, (value, shown) in OF_PLANS.items():
        assert said(trace="log.csv", **{name: value}) == [f"{name}={shown} {beside}"]
    (line,) = said(trace="log.csv", slow={"x": 2.0})
    assert line.startswith("slow={") and line.endswith(beside)
    planning = OptimizeOptions(theta=[10.0], figures=[], cluster=ClusterOptions(files=24))
    assert said(trace="log.csv", planning=planning) == [f"planning.cluster.files=24 {beside}"]


def test_a_log_on_a_plan_has_its_own_reads_and_the_plan_its_own_options(said):
    assert said(trace="log.csv", plan="plans") == []
    assert said(trace="log.csv", plan="plans", requests=1000) == [
        "requests=1000 has no effect beside arrivals=trace"
    ]
    assert said(plan="plans", planning=OptimizeOptions(theta=[5.0], figures=[])) == [
        "planning.theta=[5.0] has no effect beside plan=plans"
    ]
    assert said(planning=OptimizeOptions(theta=[5.0], figures=[]), requests=1000) == []


def test_options_of_policies_services_and_queues_that_are_not_replayed(said, caplog):
    assert said(policy=["fork_join"], cancel=False, service=["pareto", "gamma"], pareto_ratio=10.0) == []
    assert said(policy=["probabilistic", "late_binding"], cancel=False) == [
        "cancel=false has no effect beside policy=probabilistic,late_binding"
    ]
    assert said(pareto_ratio=10.0) == ["pareto_ratio=10.0 has no effect beside service=auto"]

    def weights_said(queue, *made_for):
        caplog.clear()
        plans = [SimpleNamespace(queue=name) for name in made_for]
        study._say_unused_weights(ReplayOptions(queue=queue, weights=[0.25, 0.75]), plans)
        return caplog.messages

    # without queue= a plan is replayed as it was made
    assert weights_said(None, "fcfs", "partitioned") == weights_said(["shared"], "fcfs") == []
    assert weights_said(None, "priority", "fcfs", "priority") == [
        "weights=[0.25, 0.75] has no effect beside queue=priority,fcfs"
    ]
    assert weights_said(["fcfs"], "partitioned") == ["weights=[0.25, 0.75] has no effect beside queue=fcfs"]
