"""The jobs as functions: ``ecjax.optimize(nodes=df, theta=[10, 100])``; options as arguments, results as an object.

Importing it imports nothing heavy; a call does.
"""

from ecjax.library.clusters import ceph
from ecjax.library.comparisons import codes
from ecjax.library.plans import analyze, optimize
from ecjax.library.proxies import adapt, cache
from ecjax.library.replays import replay, schedule

__all__ = ["adapt", "analyze", "cache", "ceph", "codes", "optimize", "replay", "schedule"]
