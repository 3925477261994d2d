"""Names of runs: what a run computes, hashed."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

# Part of every run id: to be raised when the same inputs and parameters are to give other results.
ALGORITHM_VERSION = 1


def run_id(
    job: str,
    parameters: Mapping[str, Any],
    input_id: str,
    seed: int | None,
    dtype: str,
    algorithm_version: int = ALGORITHM_VERSION,
) -> str:
    """Name of a run by what it computes: the first 16 hex digits of the SHA-256 of canonical JSON.

    Args:
        job: analyze, optimize, ...
        parameters: all resolved parameters that can change the result of this run, and no others (no out,
            resume, engine, device, and no path).
        input_id: fingerprint of the inputs.
        seed: random seed.
        dtype: floating-point type of the computation.
        algorithm_version: version of the algorithms.

    Raises:
        ValueError: a parameter is NaN or infinite, for which JSON has no name.
        TypeError: a parameter is neither a number, string, None, list nor dict.
    """
    content = {
        "job": job,
        "algorithm_version": algorithm_version,
        "parameters": dict(parameters),
        "input_id": input_id,
        "seed": seed,
        "dtype": dtype,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()[:16]


def canonical(content: Mapping[str, Any]) -> str:
    """JSON with sorted keys and without spaces: one text for one content.

    Raises:
        ValueError: a value is NaN or infinite.
        TypeError: a value is neither a number, string, None, list nor dict.
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a parameter of type {type(value).__name__} has no canonical form")
