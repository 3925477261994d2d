"""How many cores this process may compute on."""

import os

VARIABLE = "ECJAX_CORES"


def available_cores() -> int:
    """The cores that this process may run on, or ``ECJAX_CORES`` where that is set: a worker has a part of a node."""
    setting = os.environ.get(VARIABLE, "")
    if setting.isascii() and setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
