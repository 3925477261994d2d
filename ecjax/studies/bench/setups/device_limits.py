"""What JAX's devices copy and multiply per second at most, as measured, and the share of it that a kernel reaches.

Limits: a copy of an array that no cache holds, bytes read and written per second; and a product of square matrices,
operations per second by number type. A kernel's bytes are those that have to be moved, not those that are: a share of 1
is as good as a copy.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import clocked, compiled

LIMIT_RUNS = 5
_COPIED = {"cpu": 2**26, "other": 2**30}  # bytes
_PRODUCT = {"cpu": 1024, "other": 8192}  # rows of a matrix


class Work(NamedTuple):
    """What a kernel has to do, at least: bytes to move or operations."""

    bytes: float | None = None
    operations: float | None = None


@cache
def limits_of(device: jax.Device, dtype: str) -> tuple[float, float]:
    """Bytes per second of a copy, and operations per second of a product of matrices."""
    kind = "cpu" if device.platform == "cpu" else "other"
    count = _COPIED[kind] // np.dtype(dtype).itemsize
    size = _PRODUCT[kind]
    values = jax.device_put(np.ones(count, dtype), device)
    matrix = jax.device_put(np.ones((size, size), dtype), device)
    # adding keeps the copy from being left out
    copy, _ = compiled(lambda x: x + jnp.ones((), x.dtype), values)
    product, _ = compiled(lambda x: jnp.matmul(x, x, precision="highest"), matrix)
    times = [min(clocked(call).seconds for _ in range(LIMIT_RUNS + 1)) for call in (copy, product)]
    return 2 * values.nbytes / times[0], 2.0 * size**3 / times[1]


def against_limits(row: Row, work: Work, device: jax.Device | None = None) -> Row:
    """The row with its work, and with the share of the device's limits that its least time is.

    Args:
        row: with its number type.
        work: that it had to do.
        device: that did it; None: JAX's first.
    """
    copy, product = limits_of(jax.devices()[0] if device is None else device, row.dtype or "float64")
    share = (work.bytes or 0.0) / row.min_s / copy + (work.operations or 0.0) / row.min_s / product
    return replace(row, bytes_moved=work.bytes, operations=work.operations, limit_share=share)
