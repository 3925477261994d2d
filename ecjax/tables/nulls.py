"""Missing values of arrays as nulls of tables."""

import numpy as np
import pyarrow as pa


def empty_to_null(values: np.ndarray) -> pa.Array:
    """Floats with null for NaN."""
    return pa.array(np.asarray(values, float), mask=np.isnan(values))
