"""What the command line can run, and where its configuration and entry points are. Light: no heavy import."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ecjax.errors import UserError

# folders of conf whose files set options of a job: studies, and parts of them
GROUPS = ("experiment", "hardware", "storage", "policies")

_PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Job:
    """One verb of the command line.

    Attributes:
        name: the verb; its rooms are in ``ecjax.studies.NAME``.
        doing: a few words for what it does, in the present participle.
        summary: one line.
        objectives: whether a sweep can read means of columns of its runs again, for a sweeper that learns from them.
        acting: options that have it change more than its results, as a running cluster.
    """

    name: str
    doing: str
    summary: str
    objectives: bool = True
    acting: tuple[str, ...] = ()

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
    Job(
        "ceph",
        "planning a Ceph cluster",
        "plan which shards of a real Ceph cluster are read, and write the commands: even loads, few copies",
        acting=("apply", "collect"),
    ),
    Job(
        "codes",
        "comparing codes",
        "which k+m, LRC or copies: durability, overhead, repair hours and traffic, for a number of nines",
    ),
    Job(
        "reproduce",
        "judging claims",
        "say what becomes of the claims of the papers that ecjax implements",
        objectives=False,
    ),
    Job("bench", "timing", "time ecjax beside the alternatives", objectives=False),
)


@dataclass(frozen=True)
class Command:
    """A verb of the command line that is no job: it takes folders of results and computes nothing.

    Attributes:
        name: the verb; ``ecjax.NAME_command.run_NAME`` runs it.
        usage: the words that follow the verb.
        summary: one line.
        about: what its help says below the usage, in paragraphs.
        examples: commands.
    """

    name: str
    usage: str
    summary: str
    about: str
    examples: tuple[str, ...]

    @property
    def run(self) -> Callable[[Sequence[str]], int]:
        """What runs it on the words that follow the verb, and returns the exit code."""
        module = import_module(f"ecjax.{self.name}_command")
        function: Callable[[Sequence[str]], int] = getattr(module, f"run_{self.name}")
        return function


_COMMANDS = (
    Command(
        "guide",
        "PAGE",
        "a page of the guide: one per job, and some on results, clusters, Python, words",
        """Without PAGE it lists the pages. ecjax JOB --guide prints that of a job.""",
        ("ecjax guide", "ecjax guide glossary", "ecjax optimize --guide"),
    ),
    Command(
        "show",
        "OUT",
        "what a folder of results holds: runs, the best of them, what is recommended",
        """Prints what a job wrote to OUT, what it was told as out=, as the job itself printed it: nothing is computed
again. Of many runs these are the best. --json prints one object: job, out, runs, recommendation, exit_code; --quiet
only what is recommended.

Exit codes: 0 it was printed, 2 OUT holds no results.""",
        ("ecjax show results/optimize", "ecjax show s3://bucket/results"),
    ),
    Command(
        "compare",
        "A B",
        "two plans or two replays beside each other, or a plan and a newer log: worth replanning?",
        """A and B are folders of results of ecjax optimize, or of ecjax replay: OUT where it holds one finished run or
recommends one; else OUT:RUN_ID, or OUT:theta=10,method=certified, values of columns of its dataset runs.
where=theta=10 holds for both. --json prints one object: job, a, b, quantities, moved_chunks, sentence, exit_code;
--quiet only the sentence.

Where B is an access log, or the folder of its analysis, A is a plan: are the read rates of its files, the service times
and the loads of its nodes still those that were planned, with 95 % intervals by the reads that there are, and is it
worth replanning? format= is that of the log; write=FILE.parquet keeps every row. Names must be those of the plan:
analyze both with keep_ids=true.

Exit codes: 0 both were compared, 2 a run cannot be told.""",
        (
            "ecjax compare results/optimize:theta=100 traces/logs/s3.log.gz write=drift.parquet",
            "ecjax compare results/optimize:theta=100 results/optimize:theta=1000",
            "ecjax compare results/before results/after",
        ),
    ),
    Command(
        "report",
        "OUT [OUT2 ...] [page=FILE] [pictures=FOLDER [figures=NAME,...]]",
        "studies as one page of HTML: what is recommended, and charts with their tables",
        """Writes OUT/report.html, or FILE, from the result tables in OUT, what a job was told as out=: nothing is
computed again. The page opens from disk in any browser and asks nothing of a network. Several folders stand side by
side on it, the first as A, with the difference of each other one in a sentence.

pictures=FOLDER writes the figures of the jobs instead, for papers: PNG and SVG; figures= names some of them, as the
jobs' own figures= does.

Exit codes: 0 it was written, 2 OUT holds no results, or what was asked cannot be written.""",
        (
            "ecjax report results/optimize",
            "ecjax report results/before results/after page=compared.html",
            "ecjax report results/optimize pictures=pictures figures=tradeoff,convergence",
        ),
    ),
    Command(
        "verify",
        "OUT",
        "whether the results in a folder are as they were written, and inputs still the same",
        """Reads every file under OUT, what a job was told as out=, and compares it with the hash that it was written
with. Each file that is damaged, missing, a copy, of another program, or holds rows of runs that were never committed
(after a kill) is a line that says what to do. Of inputs that were files it says whether they are the same, changed or
not found. --json prints one object: job, out, datasets, findings, inputs, exit_code; --quiet only what is wrong.

Exit codes: 0 all as it was written, 1 something is not, 2 OUT holds no results.""",
        (
            "ecjax verify results/optimize",
            "ecjax verify results/optimize --quiet",
            "ecjax verify s3://bucket/results --json",
        ),
    ),
)
COMMANDS = {command.name: command for command in _COMMANDS}
JOBS = {job.name: job for job in _JOBS}


def folder_of_results(command: str, words: Sequence[str]) -> str:
    """The one folder that a command is about.

    Raises:
        UserError: there is no word, or there are several.
    """
    if len(words) != 1 or words[0].startswith("-"):
        listed = " ".join(words) or "nothing"
        raise UserError(f"{command}: found {listed}; allowed: one folder of results, ecjax {command} OUT")
    return words[0].removeprefix("out=")


def folder(name: str) -> Path:
    """``conf`` or ``jobs``: inside an installed package, else beside it in a checkout."""
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise UserError(f"{name}: the folder is missing from this installation of ecjax")


def experiments(job: str) -> dict[str, str]:
    """Named studies of a job and the first line of what they say of themselves."""
    return choices(job, "experiment")


def engines() -> list[str]:
    """Names of the engines, files of ``conf/engine``."""
    return sorted(path.stem for path in (folder("conf") / "engine").glob("*.yaml"))


def choices(job: str, group: str) -> dict[str, str]:
    """What a job may choose in a group of ``conf``, and the first line of what it says of itself.

    Args:
        job: its name.
        group: of ``GROUPS``.
    """
    studies = {}
    for path in sorted((folder("conf") / group).glob("*.yaml")):
        lines = path.read_text().splitlines()
        about = [line.removeprefix("#").strip() for line in lines if line.startswith("# ")]
        if f"job: {job}" in about:
            studies[path.stem] = next(
                (line for line in about if line and ":" not in line[:8] and "@" not in line), ""
            )
    return studies
