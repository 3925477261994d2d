"""The kernel's limit on the memory maps of a process, which a process that compiles for hours runs into.

Every program that XLA compiles takes a handful of maps for as long as JAX remembers it. Where a process has
``vm.max_map_count`` of them (65530, unless changed), compilers get no memory, and end the process without a line.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_PART = 0.6  # of the limit; one task may compile some thousand programs
_LIMIT = Path("/proc/sys/vm/max_map_count")
_MAPS = Path("/proc/self/maps")


def forget_programs() -> bool:
    """Let JAX forget its programs if the process nears the limit; those that are needed again are on disk.

    Returns:
        whether it did; never where the kernel is not Linux.
    """
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return False
    with suppress(OSError, ValueError):
        limit = int(_LIMIT.read_text())
        with _MAPS.open("rb") as lines:
            near = sum(1 for _ in lines) > _PART * limit
        if near:
            jax.clear_caches()
        return near
    return False
