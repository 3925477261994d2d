"""ecjax: batch optimizer and trace analyzer for erasure-coded storage.

Importing the package is cheap; the parts are imported by name (``ecjax.queueing``, ``ecjax.caching``,
``ecjax.tables``), and only those that compute load JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ecjax.tables.results import read_results

__all__ = ["__version__", "read_results"]

_PARTS = (
    "adaptation",
    "caching",
    "coflow",
    "model",
    "planning",
    "queueing",
    "simulation",
    "plotting",
    "studies",
    "tables",
)


def __getattr__(name: str) -> Any:
    if name == "read_results":
        return import_module("ecjax.tables.results").read_results
    if name in _PARTS:
        return import_module(f"ecjax.{name}")
    raise AttributeError(f"module 'ecjax' has no attribute {name!r}")
