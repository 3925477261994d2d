"""How many cores this process may compute on."""

import os
from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController

VARIABLE = "ECJAX_CORES"


def available_cores() -> int:
    """The cores that this process may run on, or ``ECJAX_CORES`` where that is set: a worker has a part of a node."""
    setting = os.environ.get(VARIABLE, "")
    if setting.isascii() and setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[object]:
    """Within the block linear algebra of this process runs in the thread that asks for it.

    Small matrices take longer with several, and threads of our own have the cores. The limit is that of the process:
    set once, around all threads.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded; made at first use, when NumPy and SciPy are."""
    return ThreadpoolController()
