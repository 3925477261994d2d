"""Figures of ``ecjax adapt``, drawn from its result tables only."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.report.adapt_tables import replayed
from ecjax.report.saving import save

KINDS: dict[str, Callable[[Path, pd.DataFrame], Figure | None]] = {}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """x"""
