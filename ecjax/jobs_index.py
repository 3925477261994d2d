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
        name: the verb; its rooms are in ``ecjax.studies.NAME``.
        doing: a few words for what it does, in the present participle.
        summary: one line.
    """

    name: str
    doing: str
    summary: str

    @property
    def options_class(self) -> Any:
        """Dataclass of the options, ``NameOptions``; its module imports nothing heavy."""
        module = import_module(f"ecjax.studies.{self.name}.options")
        return getattr(module, f"{self.name.capitalize()}Options")


_JOBS = (
    Job("analyze", "reading a log", "learn rates, sizes and service times from an access trace"),
    Job("optimize", "planning", "plan code lengths, placement and scheduling: latency against storage cost"),
    Job(
        "replay",
        "replaying plans",
        "replay plans and dispatch policies: latencies with confidence intervals, beside estimate and bound",
    ),
    Job(
        "schedule",
        "replaying transfers",
        "replay transfers on a fabric: coflow schedulers and source selection, beside a lower bound",
    ),
    Job(
        "adapt",
        "replaying a proxy",
        "replay a proxy that adapts its codes: latency and capacity of coding strategies, thresholds to load",
    ),
    Job(
        "cache",
        "replaying caches",
        "plan and replay chunk caches at edges: latencies, hits, time to decide; how policies differ from the best",
    ),
    Job("bench", "timing", "time ecjax beside the alternatives"),
)
VERIFY = "verify"  # the one command that is no job: it takes a folder, and no options
VERIFY_SUMMARY = "whether the results in a folder are as they were written, and inputs still the same"
JOBS = {job.name: job for job in _JOBS}


def folder(name: str) -> Path:
    """``conf`` or ``jobs``: inside an installed package, else beside it in a checkout."""
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise UserError(f"{name}: the folder is missing from this installation of ecjax")


def experiments(job: str) -> dict[str, str]:
    """Named studies of a job and the first line of what they say of themselves."""
    studies = {}
    for path in sorted((folder("conf") / "experiment").glob("*.yaml")):
        lines = path.read_text().splitlines()
        about = [line.removeprefix("#").strip() for line in lines if line.startswith("# ")]
        if f"job: {job}" in about:
            studies[path.stem] = next(
                (line for line in about if line and ":" not in line[:8] and "@" not in line), ""
            )
    return studies
