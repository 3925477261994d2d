"""How much memory a process has for the arrays of a task."""

import psutil

_USABLE, _USABLE_OF_GPU = 0.5, 0.9  # of the memory that is free, of what JAX may take of a GPU


def usable_bytes() -> float:
    """Of the GPU that JAX computes on in this process, else of the machine; all processes that share it together."""
    import jax  # slow, and often not needed

    if jax.default_backend() != "cpu":
        limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
        if limit:
            return _USABLE_OF_GPU * limit
    return usable_on_host()


def usable_on_host() -> float:
    """Of the machine, without a look at its GPUs."""
    return _USABLE * psutil.virtual_memory().available
