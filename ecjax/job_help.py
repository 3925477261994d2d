"""What ``ecjax --help`` and ``ecjax JOB --help`` say, in 80 columns. Imports nothing heavy.

The options of a job are in groups: what its user has, what is wanted of it, how to compute it, and what durability
rests on, which is a record of its own. The second and third are listed here; every other option says what the user has.
"""

import textwrap
from collections.abc import Iterable
from dataclasses import Field, fields, is_dataclass
from typing import Any

from ecjax.jobs_index import COMMANDS, GROUPS, JOBS, Command, Job, choices
from ecjax.options import rule_of, shown
from ecjax.studies.spine.durability_options import DurabilityOptions

WIDTH = 79
_GROUPS = ("what you have", "what you want", "how to compute", "what durability rests on")
_DURABILITY = [item.name for item in fields(DurabilityOptions)]
_COMMON_WANT, _COMMON_HOW = ("out", "figures", "write"), ("seed", "seeds", "engine", "resume")
_WANT = {
    "analyze": ("k", "reference_bytes"),
    "optimize": (
        *("queue", "method", "theta", "objective", "importance", "weights", "deadline_s", "deadline_by"),
        *(
            "service",
            "theta_per",
            "rate_scale",
            "class_rate_scale",
            "size_scale",
            "k",
            "min_extra_chunks",
            "codes",
            "durability_nines",
            "max_any_loss",
            "d",
        ),
        *("max_chunks_per_node", "max_chunks_per_site", "fixed_groups", "scenarios", "scheduling", "robust"),
        *("polish", "compare_cold_start"),
    ),
    "replay": (
        *(
            "policy",
            "probes",
            "cancel",
            "hedge_delay_s",
            "hedges",
            "hedge_budget",
            "queue",
            "weights",
            "service",
            "rate_scale",
        ),
        *("size_scale", "estimate", "earlier_bounds"),
    ),
    "schedule": (
        "scheduler",
        "sources",
        "rate_scale",
        "size_scale",
        "share_at_zero",
        "widths",
        "lower_bound",
    ),
    "adapt": (
        *(
            "strategy",
            "codes",
            "rate",
            "load",
            "steps",
            "rates",
            "rate_scale",
            "memory",
            "capacity",
            "timeline_s",
        ),
    ),
    "cache": (
        *("policy", "capacity", "half_life_s", "memory", "samples", "period_s", "replan_reads", "neighbours"),
        *("fail", "rate_scale", "partitions"),
    ),
    "ceph": (
        *(
            "rates",
            "pools",
            "roles_only",
            "within",
            "load",
            "objective",
            "speeds",
            "primary_work",
            "count_tolerance",
        ),
        *("service_s", "service_cv", "max_misplaced", "max_bytes", "what_if", "apply", "apply_wait_s"),
    ),
    "codes": ("codes", "durability_nines", "max_any_loss"),
    "reproduce": ("claims",),
    "bench": ("cases",),
}
_HOW = {
    "optimize": (
        *("robust_trials", "start", "gap", "loop", "beta", "eps", "max_iterations", "dtype", "memory_bytes"),
    ),
    "replay": ("requests", "replications"),
    "adapt": ("requests",),
    "cache": ("warm_up", "rounds"),
    "reproduce": ("size",),
    "bench": ("repeats", "quick"),
}
EXAMPLES = {
    "analyze": (
        "ecjax analyze requests.parquet out=results/learned",
        "ecjax analyze requests.csv 'columns={arrival_s: ts, file_id: key}'",
        "ecjax analyze requests k=4 engine=ray",
    ),
    "optimize": (
        "ecjax optimize cluster.files=100 theta=3,30,300",
        "ecjax optimize results/learned theta=10,100 out=results/planned",
        "ecjax optimize nodes=nodes.csv files=files.csv scenarios=node",
    ),
    "replay": (
        "ecjax replay plan=results/planned policy=probabilistic,hedged",
        "ecjax replay requests.parquet out=results/checked",
        "ecjax replay plan=results/planned trace=requests.parquet",
    ),
    "schedule": (
        "ecjax schedule seeds=3 generate.requests=200 scheduler=varys,fair",
        "ecjax schedule transfers.parquet rate_scale=1,10",
        "ecjax schedule requests.parquet plan=results/planned",
    ),
    "adapt": (
        "ecjax adapt load=0.1,0.5,0.9 strategy=tofec,best_static",
        "ecjax adapt requests.parquet load=0.5 requests=20000",
        "ecjax adapt load=0.5 strategy=static 'codes=[[3,2],[6,3]]'",
    ),
    "cache": (
        "ecjax cache reads=20000 capacity=100,200 policy=exact,lru",
        "ecjax cache requests.parquet nodes=edges.parquet capacity=20 k=4",
        "ecjax cache neighbours=0.005,0.02 capacity=100",
    ),
    "ceph": (
        "ecjax ceph collect=dumps",
        "ecjax ceph dumps out=results/ceph",
        "ecjax ceph dumps-after verify=results/ceph",
    ),
    "codes": (
        "ecjax codes 4+2 8+3 3x",
        "ecjax codes 8+3 'lrc(12,2,2)' chunks_per_domain=2",
        "ecjax codes domains=20 disks=6 durability_nines=9 out=results/codes",
    ),
    "reproduce": (
        "ecjax reproduce jlcm",
        "ecjax reproduce jlcm differentiated size=full out=results/claims",
        "ecjax reproduce jlcm claims=jlcm-lemma2-tight,jlcm-eq8-closed-form",
    ),
    "bench": (
        "ecjax bench quick=true",
        "ecjax bench engine_start",
        "ecjax bench cases=engine_start,projection repeats=3",
    ),
}
# sections that are the options of another job
_ELSEWHERE = {"planning": "optimize"}


def overview(version: str) -> str:
    """What the command can do."""
    summaries = {job.name: job.summary for job in JOBS.values()} | {
        one.name: f"{one.summary} (ecjax {one.name} {one.usage})" for one in COMMANDS.values()
    }
    width = max(map(len, summaries))
    lines = [
        f"ecjax {version}: batch optimizer and trace analyzer for erasure-coded storage",
        "",
        "usage: ecjax JOB KEY=VALUE ...     (ecjax JOB --help lists the keys)",
        "",
    ]
    for name, text in summaries.items():
        lines += _wrapped(text, 4 + width, f"  {name:{width}}  ")
    lines += [
        "",
        "Lists are written key=a,b,c (or 'key=[a,b,c]').",
        *_flags(),
        "  -m           sweeps: every combination of the values, key=a,b",
        "",
        'ecjax --completion bash prints what completes words (zsh, fish): eval "$(...)".',
        "",
        "Exit codes: 0 all well, 1 some items failed, 2 a mistake in what was given,",
        "130 interrupted, 143 told to end (SIGTERM).",
    ]
    return "\n".join(lines)


def _flags() -> list[str]:
    return [
        "  --json       one JSON object on standard output: job, out, runs,",
        "               recommendation, exit_code",
        "  --quiet      only warnings, errors and the recommendation",
        "  --guide      what the job is for, with commands to copy",
    ]


def command_help(command: Command) -> str:
    """What a command that is no job takes and does."""
    lines = [
        *_wrapped(f"ecjax {command.name}: {command.summary}", 2),
        "",
        f"usage: ecjax {command.name} {command.usage}",
    ]
    for paragraph in command.about.split("\n\n"):
        lines += ["", *textwrap.wrap(paragraph, WIDTH)]
    lines += ["", "examples:", *(f"  {example}" for example in command.examples)]
    return "\n".join(lines)


def job_help(job: Job) -> str:
    """The options of a job in their groups, its named studies, and examples."""
    options = job.options_class()
    lines = [
        *_wrapped(f"ecjax {job.name}: {job.summary}", 2),
        "",
        f"usage: ecjax {job.name} KEY=VALUE ...",
        "",
    ]
    lines += _flags()
    grouped = group_of(job.name)
    for group in _GROUPS:
        members = [item for item in fields(options) if grouped[item.name] == group]
        if members:
            lines += ["", f"{group}:"]
            lines += _keys(options, members, "")
    for group in GROUPS:
        named = choices(job.name, group)
        if not named:
            continue
        for what, names in _kinds_of_choices(group, named):
            lines += ["", f"{what}, {group}=NAME:"]
            for name in names:
                lines += _wrapped(named[name], 8, f"  {name}  ")
    lines += ["", "examples:", *(f"  {example}" for example in EXAMPLES[job.name])]
    return "\n".join(lines)


def _kinds_of_choices(group: str, named: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Headings with the names under each; studies that answer a question say it first."""
    if group != "experiment":
        return [("named sets of options", list(named))]
    questions = [name for name, text in named.items() if "?" in text]
    kinds = [
        ("studies by question", questions),
        ("studies of the papers", [name for name in named if name not in questions]),
    ]
    return [(what, names) for what, names in kinds if names]


def group_of(job: str) -> dict[str, str]:
    """The group of every option of a job."""
    have, want, how, durability = _GROUPS
    options = JOBS[job].options_class()
    groups = dict.fromkeys((item.name for item in fields(options)), have)
    if isinstance(options, DurabilityOptions):
        groups |= dict.fromkeys(_DURABILITY, durability)
    groups |= dict.fromkeys((*_COMMON_WANT, *_WANT.get(job, ())), want)
    return groups | dict.fromkeys((*_COMMON_HOW, *_HOW.get(job, ())), how)


def _keys(options: Any, members: Iterable[Field[Any]], prefix: str) -> list[str]:
    lines = []
    for item in members:
        value, name = getattr(options, item.name), prefix + item.name
        text = item.metadata.get("help", "")
        if is_dataclass(value):
            if item.name in _ELSEWHERE:
                text += f"; ecjax {_ELSEWHERE[item.name]} --help lists them"
            lines += _wrapped(f"{name}.*: {text}", 6, "  ")
            if item.name not in _ELSEWHERE:
                lines += _keys(value, fields(value), f"{name}.")
            continue
        line = f"  {written(name, value)}"
        allowed = rule_of(item).allowed
        if len(line) <= WIDTH:
            lines.append(line)
        else:
            lines.append(f"  {name}")
            text += f"; default: {', '.join(map(shown, value))}"
        lines += _wrapped(text, 6, " " * 6)
        if allowed not in ("a text", "true, false"):
            lines += _wrapped(f"allowed: {allowed}", 6, " " * 6)
    return lines


def written(name: str, value: Any) -> str:
    """An option as it can be pasted into any shell: lists without brackets, or quoted."""
    if not isinstance(value, list | tuple):
        return f"{name}={shown(value)}"
    if value and not any(isinstance(each, list | tuple | dict) for each in value):
        return f"{name}={','.join(map(shown, value))}"
    return f"{name}='{value}'"


def quoted(text: str) -> str:
    """The text with quotes around what stands in brackets and has none: shells do not take brackets as they are."""
    result, depth, quote = "", 0, ""
    for before, letter in zip(f" {text}", text, strict=False):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and not depth and not before.isalnum():
            quote = letter
        elif letter in "[{":
            result += "" if depth else "'"
            depth += 1
        elif letter in "]}":
            depth -= 1
            letter += "" if depth else "'"
        result += letter
    return result


def _wrapped(text: str, indent: int, first: str = "") -> list[str]:
    """The text in lines that fit, values with brackets quoted."""
    return textwrap.wrap(
        quoted(text), WIDTH, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False
    )
