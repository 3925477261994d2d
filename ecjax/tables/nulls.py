"""Missing values of arrays as nulls of tables."""

import math

import numpy as np
import pyarrow as pa


def empty_to_null(values: np.ndarray) -> pa.Array:
    """Floats with null for NaN."""
    return pa.array(np.asarray(values, float), mask=np.isnan(values))


def or_none(value: float) -> float | None:
    """A cell of a row: None for NaN."""
    number = float(value)
    return None if math.isnan(number) else number
