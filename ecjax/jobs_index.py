"""What the command line can run, and where its configuration and entry points are. Light: no heavy import."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ecjax.errors import UserError

_PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Job:
    """One verb of the command line.

    Attributes:
        name: the verb.
        summary: one line.
        options: module and dataclass of its options.
    """

    name: str
    summary: str
    options: tuple[str, str]

    @property
    def options_class(self) -> Any:
        """Dataclass of the options; its module imports nothing heavy."""
        return getattr(import_module(self.options[0]), self.options[1])


JOBS = {
    job.name: job
    for job in (
        Job(
            "analyze",
            "learn rates, sizes and service times from an access trace",
            ("ecjax.studies.analyze.options", "AnalyzeOptions"),
        ),
        Job(
            "optimize",
            "plan code lengths, placement and scheduling: latency against storage cost",
            ("ecjax.studies.optimize.options", "OptimizeOptions"),
        ),
        Job(
            "replay",
            "replay plans and dispatch policies: latencies with confidence intervals, beside estimate and bound",
            ("ecjax.studies.replay.options", "ReplayOptions"),
        ),
        Job(
            "schedule",
            "replay transfers on a fabric: coflow schedulers and source selection, beside a lower bound",
            ("ecjax.studies.schedule.options", "ScheduleOptions"),
        ),
        Job(
            "adapt",
            "replay a proxy that adapts its codes: latency and capacity of coding strategies, thresholds to load",
            ("ecjax.studies.adapt.options", "AdaptOptions"),
        ),
        Job(
            "cache",
            "plan and replay chunk caches at edges: latencies, hits, time to decide; how policies differ from the best",
            ("ecjax.studies.cache.options", "CacheOptions"),
        ),
        Job("bench", "time ecjax beside the alternatives", ("ecjax.studies.bench.options", "BenchOptions")),
    )
}


def folder(name: str) -> Path:
    """``conf`` or ``jobs``: inside an installed package, else beside it in a checkout."""
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise UserError(f"{name}: the folder is missing from this installation of ecjax")


def experiments(job: str) -> dict[str, str]:
    """Named studies of a job and the first line of what they say of themselves."""
    found = {}
    for path in sorted((folder("conf") / "experiment").glob("*.yaml")):
        lines = path.read_text().splitlines()
        about = [line.removeprefix("#").strip() for line in lines if line.startswith("# ")]
        if f"job: {job}" in about:
            found[path.stem] = next(
                (line for line in about if line and ":" not in line[:8] and "@" not in line), ""
            )
    return found
