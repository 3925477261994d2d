"""Strict numerics for every test: 64-bit floats, no silent promotion; few, repeatable examples."""

from pathlib import Path

import jax
from hypothesis import settings

import ecjax.precision  # noqa: F401  (turns on 64-bit floats before any array exists)

# tests compile many small programs and run each a few times (commands that they start are compiled as ever)
jax.config.update("jax_disable_most_optimizations", True)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

HERE = Path(__file__).parent

settings.register_profile("ecjax", max_examples=25, deadline=None, derandomize=True, database=None)
settings.load_profile("ecjax")


def pytest_collection_modifyitems(items):
    """The README's commands first: they are one file, for one worker, and the longest.

    The tests of what they compile come last: what Numba has compiled is found by all processes.
    """
    last = ("adapt", "cache", "coflow", "replay")
    items.sort(
        key=lambda item: (item.path.name != "test_readme.py") + (item.path.relative_to(HERE).parts[0] in last)
    )
