"""The reads of a real log, where it is there."""

import csv
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

CLOUDPHYSICS = Path(__file__).parents[3] / "shared" / "data" / "cloudphysics-a.csv"


@lru_cache(2)
def cloudphysics(extent_bytes=2**20):
    """Its items, extents of so many bytes, in the order of the file."""
    if not CLOUDPHYSICS.exists():
        pytest.skip("needs ../shared/data")
    with CLOUDPHYSICS.open() as lines:
        extent = [int(row["lbn"]) * 512 // extent_bytes for row in csv.DictReader(lines) if row["op"] == "28"]
    return np.unique(extent, return_inverse=True)[1]
