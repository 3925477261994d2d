"""Delays at nodes and bounds on the latency of files: service moments, M/G/1, order statistics, dispatch.

Seconds and 1/s throughout; every function works under ``jit``, ``vmap`` and differentiation.
"""

from ecjax.queueing.bounds import latency_bound, latency_bound_at, shared_z
from ecjax.queueing.class_queues import ClassQueues, partitioned_queues, priority_queues
from ecjax.queueing.estimate import Estimate, estimate_latency, latency_objective
from ecjax.queueing.mg1 import Delay, fcfs, load, waiting
from ecjax.queueing.moments import ServiceMoments
from ecjax.queueing.service_classes import priority, priority_waiting, weighted
from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.queueing.tail import TailBound, tail_bound
from ecjax.queueing.wait_law import WaitLaw
from ecjax.queueing.workload import Workload

__all__ = [
    "ClassQueues",
    "Delay",
    "Estimate",
    "ServiceLaw",
    "ServiceMoments",
    "TailBound",
    "UnitLaw",
    "WaitLaw",
    "Workload",
    "estimate_latency",
    "fcfs",
    "latency_bound",
    "latency_bound_at",
    "latency_objective",
    "load",
    "partitioned_queues",
    "priority",
    "priority_queues",
    "priority_waiting",
    "shared_z",
    "tail_bound",
    "waiting",
    "weighted",
]
