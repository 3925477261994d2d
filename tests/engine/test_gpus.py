"""Who gets GPUs: workers of jobs that gain from them, where nodes have some. The nodes are made up."""

import pytest

joining = pytest.importorskip("ecjax.engine.joining")

from ecjax.engine import EngineOptions  # noqa: E402
from ecjax.engine import worker_pool as module  # noqa: E402
from ecjax.errors import UserError  # noqa: E402


class Handle:
    """Stands for Ray's of a worker process."""

    class describe:  # noqa: N801
        @staticmethod
        def remote():
            return object()


@pytest.fixture
def pool(monkeypatch):
    """A function that makes a pool on nodes of some (cores, GPUs); what its workers are given is listed."""

    def made(nodes, accelerated, **options):
        listed = [{"Alive": True, "Resources": {"CPU": cores, "GPU": gpus}} for cores, gpus in nodes]
        total = {"CPU": sum(cores for cores, _ in nodes), "GPU": sum(gpus for _, gpus in nodes)}
        monkeypatch.setattr(joining.ray, "nodes", lambda: listed)
        monkeypatch.setattr(module.ray, "cluster_resources", lambda: total)
        given = []
        monkeypatch.setattr(module, "process", lambda cores, gpus: given.append((cores, gpus)) or Handle())
        workers = module.WorkerPool(EngineOptions("ray", **options), accelerated)
        workers.start(1000)
        return given

    return made


MIXED = [(8, 0), (16, 2), (4, 8)]


@pytest.mark.parametrize(
    ("nodes", "accelerated", "options", "expected"),
    [
        (MIXED, False, {}, [(1, 0.0)] * 28),
        (MIXED, True, {}, [(1, 1.0)] * (2 + 4)),  # the third node has no more cores than four
        ([(8, 0), (16, 0)], True, {}, [(1, 0.0)] * 24),
        (MIXED, True, {"gpus_per_actor": 0}, [(1, 0.0)] * 28),
        (MIXED, False, {"gpus_per_actor": 2}, [(1, 2.0)] * (1 + 4)),
        (MIXED, True, {"gpus_per_actor": 0.5, "cpus_per_actor": 2}, [(2, 0.5)] * (4 + 2)),
        (MIXED, True, {"actors": 3}, [(1, 1.0)] * 3),
    ],
)
def test_workers_get_gpus_where_the_job_gains_from_them(pool, nodes, accelerated, options, expected):
    assert pool(nodes, accelerated, **options) == expected


def test_more_gpus_than_a_node_of_this_machine_has(pool):
    with pytest.raises(
        UserError, match=r"gpus_per_actor=3; allowed: what this machine has, 8 cores and 2 GPUs"
    ):
        pool([(8, 2)], True, gpus_per_actor=3)


def test_a_node_that_has_left_counts_no_more(monkeypatch):
    nodes = [{"Alive": alive, "Resources": {"CPU": 4, "GPU": 1}} for alive in (True, False, True)]
    monkeypatch.setattr(joining.ray, "nodes", lambda: nodes)
    assert joining.places(1, 0.0) == 8 and joining.places(1, 1.0) == 2 and joining.gpus_in_cluster() == 2
