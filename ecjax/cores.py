"""How many cores this process may compute on."""

import os

VARIABLE = "ECJAX_CORES"


def available_cores() -> int:
    """The cores that this process may run on, or ``ECJAX_CORES`` where that is set: a worker has a part of a node."""
    given = os.environ.get(VARIABLE, "")
    if given.isascii() and given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
