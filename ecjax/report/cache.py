"""Figures of ``ecjax cache``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from ecjax.report.cache_bars import decisions, edges, failures, policies, throughput
from ecjax.report.cache_lines import neighbours, sweep
from ecjax.report.cache_tables import replayed
from ecjax.report.saving import Kind, draw_kinds

KINDS = {
    "policies": Kind(policies, "a replay"),
    "sweep": Kind(sweep, "runs that differ in k, capacity, copies, items or half_life_s"),
    "neighbours": Kind(neighbours, "two distances of neighbours: neighbours=[0.05,0.2]"),
    "failures": Kind(failures, "nodes or buckets that are down: fail=each_bucket"),
    "decisions": Kind(decisions, "a policy that decides"),
    "throughput": Kind(throughput, "a replay"),
    "edges": Kind(edges, "two edges", ("latencies",)),
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what cannot be drawn is said.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset.
        kinds: of ``KINDS``.
        console: where to say what was drawn.
    """
    draw_kinds(out, replayed(runs), {kind: KINDS[kind] for kind in kinds}, console)
