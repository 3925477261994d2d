"""Delays at nodes and bounds on the latency of files: service moments, M/G/1, order statistics, dispatch.

Seconds and 1/s throughout; every function works under ``jit``, ``vmap`` and differentiation.
"""

from ecjax.queueing.bounds import latency_bound, latency_bound_at, optimal_z, shared_z, shared_z_bound
from ecjax.queueing.mg1 import Delay, fcfs, load, waiting
from ecjax.queueing.moments import ServiceMoments
from ecjax.queueing.sampling import sample_subset
from ecjax.queueing.superchunks import superchunk

__all__ = [
    "Delay",
    "ServiceMoments",
    "fcfs",
    "latency_bound",
    "latency_bound_at",
    "load",
    "optimal_z",
    "sample_subset",
    "shared_z",
    "shared_z_bound",
    "superchunk",
    "waiting",
]
