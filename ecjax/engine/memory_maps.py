"""The kernel's limit on the memory maps of a process, which a process that compiles for hours runs into.

Every program that XLA compiles takes a handful of maps for as long as JAX remembers it. Where a process has
``vm.max_map_count`` of them (65530, unless changed), compilers get no memory, and end the process without a line.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_PART = 0.6  # of the limit; one task may compile some thousand programs
_EVERY_S = 1.0  # a list of 40,000 maps takes as long as a short task, and no second compiles programs by the thousand
_LIMIT = Path("/proc/sys/vm/max_map_count")
_MAPS = Path("/proc/self/maps")
_looked_s = {"last": -_EVERY_S}  # time.monotonic() of the last look of this process


def forget_programs() -> bool:
    """Let JAX forget its programs if the process nears the limit; those that are needed again are on disk.

    Looks once a second at most.

    Returns:
        whether it did; never where the kernel is not Linux.
    """
    jax: Any = sys.modules.get("jax")
    now_s = time.monotonic()
    if jax is None or now_s < _looked_s["last"] + _EVERY_S:
        return False
    _looked_s["last"] = now_s
    with suppress(OSError, ValueError):
        limit = int(_LIMIT.read_text())
        with _MAPS.open("rb") as lines:
            near = sum(1 for _ in lines) > _PART * limit
        if near:
            jax.clear_caches()
        return near
    return False
