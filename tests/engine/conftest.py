"""A cluster of three nodes on this machine, for the tests of a file."""

import os
import time
from collections.abc import Iterator

import jax
import pytest

# workers compile as this process does, so that they round alike
WORKERS = {"JAX_DISABLE_MOST_OPTIMIZATIONS": str(int(jax.config.values["jax_disable_most_optimizations"]))}
WORKERS |= {"RAY_USAGE_STATS_ENABLED": "0", "JAX_PLATFORMS": "cpu"}
# Ray reads it when it is imported, and would else write a token of its own into the user's folder.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
# Ray's workers are otherwise 15 nicer than the other tests, which would leave them next to nothing of the cores.
os.environ.setdefault("RAY_worker_niceness", "0")
STORE_BYTES = 100 << 20


def set_variables(patch: pytest.MonkeyPatch) -> None:
    """What workers inherit from the process that starts Ray."""
    for name, value in WORKERS.items():
        patch.setenv(name, value)


class ThreeNodes:
    """Three nodes of one core each, the first with the driver; those that are killed can be replaced."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
        with pytest.MonkeyPatch.context() as patch:
            set_variables(patch)
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.others: list = []
        self.replace()
        self.address = self._cluster.address

    def replace(self) -> None:
        """Have three nodes again."""
        with pytest.MonkeyPatch.context() as patch:
            set_variables(patch)
            while len(self.others) < 2:
                node = self._cluster.add_node(wait=False, num_cpus=1, object_store_memory=STORE_BYTES)
                self.others.append(node)
        self._cluster.wait_for_nodes()

    def kill(self, node_id: str) -> None:
        """Kill a node and all that runs on it."""
        (node,) = [one for one in self.others if one.node_id == node_id]
        self.others.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def stop(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[ThreeNodes]:
    """Address and nodes of the cluster; this process has not joined it.

    Of a module: its idle programs take a twentieth of a core for as long as they run.
    """
    pytest.importorskip("ray")
    try:
        cluster = ThreeNodes()
    except Exception:  # ports that others took in the meantime
        time.sleep(5)
        cluster = ThreeNodes()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def joined(three_nodes) -> Iterator[ThreeNodes]:
    """The cluster, which this process has joined."""
    import ray

    ray.init(three_nodes.address, log_to_driver=False, logging_level="ERROR")
    yield three_nodes
    ray.shutdown()


@pytest.fixture
def workers_compute_alike(monkeypatch) -> None:
    """For tests that start Ray themselves."""
    set_variables(monkeypatch)
