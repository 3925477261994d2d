"""Exact plans of all edges as one program on JAX's device: whether that is possible, and worth it."""

from functools import partial
from threading import Lock

import numpy as np

from ecjax.caching.replay import PLANS_OF_EDGES
from ecjax.caching.system import Policy
from ecjax.caching.whole_plans import EdgesPlanner
from ecjax.engine.memory import usable_bytes
from ecjax.errors import UserError

# ``ecjax bench gpu_caches``, 10^4 caches of 1000 items with room for 100 of their 6000 chunks: 1.0 s on an H200, 1.6 s
# on a core, whose time depends on the items alone
_DEVICE_CHOICES_PER_S = 6e9  # of numbers of chunks, for every room and item
_HOST_ITEMS_PER_S = 6e6
_STARTING_S = 1.0  # until the program is there
_FASTER = 2.0
_ONE_AT_A_TIME = Lock()  # plans that run side by side would each take all memory of the device


def edges_planner(device: str, policy: Policy, edges: int, items: int, k: int) -> EdgesPlanner | None:
    """What plans all edges together; None where processors do, one edge after the other.

    Args:
        device: auto, host or jax.
        policy: whose plans.
        edges: E.
        items: M.
        k: data chunks of an item.

    Raises:
        UserError: jax is asked for, and the plan of one edge does not fit into its memory.
    """
    if device == "host" or policy.name not in PLANS_OF_EDGES:
        return None
    room = min(policy.capacity, k * items)
    if device == "auto":
        device_s = _STARTING_S + edges * items * (room + 1) * k / _DEVICE_CHOICES_PER_S
        if edges * items / _HOST_ITEMS_PER_S < _FASTER * device_s:
            return None
    import jax  # slow, and hardly ever needed

    from ecjax.programs import use_compilation_cache

    use_compilation_cache()
    lane_bytes, memory_bytes = items * (room + 1 + 8 * (k + 1)), usable_bytes()
    if device == "auto" and (jax.default_backend() == "cpu" or lane_bytes > memory_bytes):
        return None
    if lane_bytes > memory_bytes:
        raise UserError(
            f"device=jax: found {policy.name} of {items:,} items with room for {room:,} chunks, "
            f"{lane_bytes / 1e9:.0f} GB an edge; allowed: at most {memory_bytes / 1e9:.0f} GB, or device=host"
        )
    return partial(_planned, memory_bytes)


def device_name() -> str:
    """What JAX computes on, as the column ``device`` of results has it."""
    from ecjax.precision import device_name as name

    return name()


def _planned(memory_bytes: float, tau: np.ndarray, capacity: int) -> np.ndarray:
    from ecjax.caching.batched import exact_batched  # the host's plans do without JAX

    with _ONE_AT_A_TIME:
        return exact_batched(tau, np.full(len(tau), capacity), memory_bytes=memory_bytes)
