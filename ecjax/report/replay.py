"""Figures of ``ecjax replay``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd
from rich.console import Console

KINDS: dict = {"cdf": None, "latency": None, "utilisation": None, "sweep": None, "classes": None}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw."""
