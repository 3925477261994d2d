"""The command ``ecjax show OUT``: what a folder of results holds, as its job printed it."""

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pandas as pd

from ecjax.console import OUTPUT, OutputMode, conclude, output_mode, say
from ecjax.jobs_index import folder_of_results


def run_show(words: Sequence[str]) -> int:
    """Print what a folder of results holds; returns the exit code, 0.

    Raises:
        UserError: no or several folders are named, or it holds no results.
    """
    out = folder_of_results("show", words)
    # slow to import
    from ecjax.studies.spine.as_json import print_json
    from ecjax.summaries import in_order, print_summary
    from ecjax.tables.datasets import results_job, written_datasets
    from ecjax.tables.folder import location
    from ecjax.tables.recommendation import read_recommendation
    from ecjax.tables.results import read_results

    job, place = results_job("show", out), location(out)
    runs = in_order(job, read_results(out, "runs"))
    recommendation = read_recommendation(place)
    if output_mode() is OutputMode.JSON:
        tables = import_module(f"ecjax.studies.{job}.tables").TABLES
        print_json(tables, out, runs, recommendation, 0)
        return 0
    say(OUTPUT, f"{out}: {_counted(job, runs)}", "bold", soft_wrap=True)
    say(OUTPUT, f"datasets: {', '.join(written_datasets(place))}", soft_wrap=True)
    figures = place / "figures"
    drawn = sorted(path.name for path in figures.iterdir()) if figures.is_dir() else []
    if drawn:
        say(OUTPUT, f"figures: {', '.join(drawn)}", soft_wrap=True)
    for folder, other in _inside(place):
        say(OUTPUT, f"{folder}: results of ecjax {other} (ecjax show {folder})", soft_wrap=True)
    if len(runs):
        print_summary(out, job, runs, OUTPUT)
    if recommendation is not None:
        if recommendation.run_count is not None and recommendation.run_count < len(runs):
            of = f"of the last command, {recommendation.run_count} of these {len(runs)} runs:"
            say(OUTPUT, of, soft_wrap=True)
        conclude(OUTPUT, recommendation.sentence)
    return 0


def _counted(job: str, runs: pd.DataFrame) -> str:
    """The job with the number of its runs by status, and the version that made them."""
    if runs.empty:
        return f"ecjax {job}, no runs"
    counts = Counter(runs["status"])
    several = "run" if len(runs) == 1 else "runs"
    by_status = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    versions = ", ".join(sorted(set(runs["version"])))
    return f"ecjax {job} {versions}, {len(runs)} {several} ({by_status})"


def _inside(place: Path) -> list[tuple[Path, str]]:
    """Folders of results within a folder of results: of plans that a replay made first, of a sweep."""
    from ecjax.tables.datasets import written_by

    inside = [(entry, written_by(entry)) for entry in sorted(place.iterdir()) if entry.is_dir()]
    return [(entry, job) for entry, job in inside if job is not None]
