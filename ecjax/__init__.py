"""ecjax: batch optimizer and trace analyzer for erasure-coded storage.

The jobs of the command line are functions: ``ecjax.analyze``, ``ecjax.optimize``, ``ecjax.replay``,
``ecjax.schedule``, ``ecjax.adapt``, ``ecjax.cache``, ``ecjax.codes``, ``ecjax.ceph``, with its options as arguments.
Importing the package is cheap; its parts are imported by name (``ecjax.queueing``, ``ecjax.caching``,
``ecjax.tables``), and only those that compute load JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ecjax.errors import UserError
    from ecjax.library import adapt, analyze, cache, ceph, codes, optimize, replay, schedule
    from ecjax.tables.results import read_results

__all__ = [
    "UserError",
    "__version__",
    "adapt",
    "analyze",
    "cache",
    "ceph",
    "codes",
    "optimize",
    "read_results",
    "replay",
    "schedule",
]

_JOBS = ("adapt", "analyze", "cache", "ceph", "codes", "optimize", "replay", "schedule")

_PARTS = (
    "adaptation",
    "caching",
    "coflow",
    "errors",
    "library",
    "model",
    "planning",
    "queueing",
    "rados",
    "simulation",
    "plotting",
    "studies",
    "tables",
)


def __getattr__(name: str) -> Any:
    if name == "read_results":
        return import_module("ecjax.tables.results").read_results
    if name == "UserError":
        return import_module("ecjax.errors").UserError
    if name in _JOBS:
        return getattr(import_module("ecjax.library"), name)
    if name in _PARTS:
        return import_module(f"ecjax.{name}")
    raise AttributeError(f"module 'ecjax' has no attribute {name!r}")
