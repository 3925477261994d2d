"""Figures of ``ecjax analyze``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd


def draw(out: Path, tables: dict[str, pd.DataFrame]) -> list[Path]:
    """Draw the figures."""
    return []
