"""JAX set-up shared by every module that computes: 64-bit floats and the compilation cache.

ecjax computes in float64 unless asked otherwise, so importing a computing module turns on JAX's 64-bit types;
setting ``JAX_ENABLE_X64`` in the environment overrides that.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar

import jax

from ecjax.cache_folder import cache_folder

_Result = TypeVar("_Result")

if "JAX_ENABLE_X64" not in os.environ:
    jax.config.update("jax_enable_x64", True)


def use_compilation_cache() -> None:
    """Keep compiled programs in the user's cache folder (see ``cache_folder``).

    A folder that JAX was already given (``JAX_COMPILATION_CACHE_DIR``) is left alone, and so is a shorter least
    time of compilation.
    """
    if jax.config.values.get("jax_compilation_cache_dir") is None:
        folder = cache_folder()
        if folder is not None:
            jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
    least = min(jax.config.values["jax_persistent_cache_min_compile_time_secs"], 0.1)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@cache
def quick_options() -> dict[str, bool]:
    """Options of ``jax.jit`` for long programs of small arrays on a CPU: less compiling, the same speed.

    Empty where this JAX has no such option.
    """
    # one kernel per operation that is fused, as XLA made them before its emitters
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except Exception:  # XLA has no class of its own for an option that it does not know
        return {}
    return options


def quickly(function: Callable[..., _Result], **how: Any) -> Callable[..., _Result]:
    """The same, compiled by ``jax.jit`` with ``quick_options``; no device is looked for before it is called.

    Args:
        function: of arrays; not for what other compiled functions call.
        how: further arguments of ``jax.jit``.
    """
    one = Lock()

    @cache
    def compiled() -> Callable[..., _Result]:
        return jax.jit(function, compiler_options=quick_options(), **how)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> _Result:
        # of two threads each would make a program of its own
        with one:
            program = compiled()
        return program(*args, **kwargs)

    return call


def device_name() -> str:
    """What JAX computes on, as the column ``device`` of results has it."""
    return str(jax.devices()[0].device_kind)
