"""A clock for compiled loops."""

import time
from typing import Any

import numpy as np
from numba import types

from ecjax.machine_code import njit

# of the C library, found by name when the loop is loaded; about 30 ns a call, steps of 1 ns
_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))
_MONOTONIC = int(time.CLOCK_MONOTONIC)


@njit()
def nanoseconds(scratch):
    """Nanoseconds since some moment in the past; ``scratch`` is (2,) int64."""
    _clock_gettime(np.int32(_MONOTONIC), scratch.ctypes.data)
    return scratch[0] * 1_000_000_000 + scratch[1]
