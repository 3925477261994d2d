"""Sweeps: the jobs that Hydra makes of values, checked before anything starts, run as few commands with lists."""

import logging
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from hydra.core.override_parser.types import Glob, IntervalSweep, Override
from omegaconf import DictConfig, OmegaConf

from ecjax.command_words import check_choice, check_engine, is_group, is_hydras, option_of
from ecjax.composing import composed, load_job, options_from, parsed
from ecjax.console import OutputMode, log, printing
from ecjax.engine.opening import kept_engines
from ecjax.errors import EXIT_USER, UserError
from ecjax.jobs_index import GROUPS, Job, choices, folder
from ecjax.merged_jobs import Group, Listing, merged
from ecjax.options import Listed, Rule, Special, rule_of, shown
from ecjax.progress import overall
from ecjax.stopwatch import wait_begins

_SHOWN = 5  # jobs that are named


class Returned(NamedTuple):
    """What the jobs of a sweep return, or of a round of it.

    Attributes:
        values: of each job its exit code, or means of columns over its runs.
        worst: exit code.
    """

    values: list[Any]
    worst: int


def check_sweep(job: Job, overrides: list[str], folders: Sequence[Path] = ()) -> None:
    """Compose with every value of every sweep, so that mistakes are found before anything starts.

    Args:
        job: of the sweep.
        overrides: as Hydra takes them, without globs.
        folders: of the user's configuration.

    Raises:
        UserError: a value is not allowed.
    """
    choices = [_choices(override, text) for text, override in zip(overrides, parsed(overrides), strict=True)]
    for key, _, value in (text.partition("=") for values in choices for text in values):
        if is_group(job, key):
            check_choice(job, key, value, folders)
        elif key == "engine":
            check_engine(value, folders)
    first = [values[0] for values in choices]
    every = merged([first, *_one_changed(choices)], partial(_listing, job))
    for group in every:
        _checked_group(job, group)


def without_globs(job: Job, overrides: list[str], folders: Sequence[Path]) -> list[str]:
    """Overrides with the names that ``glob(...)`` stands for: of studies those of the job.

    Args:
        job: of the sweep.
        overrides: as Hydra takes them.
        folders: of the user's configuration.

    Raises:
        UserError: there is no such name.
    """
    return [_without_glob(job, text, folders) if "glob(" in text else text for text in overrides]


def _without_glob(job: Job, text: str, folders: Sequence[Path]) -> str:
    (override,) = parsed([text])
    pattern, key = override.value(), override.get_key_element()
    if not isinstance(pattern, Glob):
        return text
    allowed = choices(job.name, key) if key in GROUPS else _names(folder("conf"), key)
    names = sorted({*allowed, *(name for each in folders for name in _names(each, key))})
    if not names:
        raise UserError(
            f"{key}: found {text.partition('=')[2]}; allowed: values, as in {key}=a,b (glob is for names of files, as "
            "in experiment=glob(*))"
        )
    chosen = pattern.filter(names)
    if not chosen:
        raise UserError(
            f"{key}: found {text.partition('=')[2]}; allowed: some of {', '.join(names) or 'none'}"
        )
    return f"{key}={','.join(chosen)}"


def _names(where: Path, group: str) -> list[str]:
    return [
        path.relative_to(where / group).with_suffix("").as_posix() for path in (where / group).rglob("*.yaml")
    ]


def _one_changed(choices: list[list[str]]) -> Iterator[list[str]]:
    first = [values[0] for values in choices]
    for position, values in enumerate(choices):
        for value in values[1:]:
            yield [*first[:position], value, *first[position + 1 :]]


def _choices(override: Override, text: str) -> list[str]:
    """An override for each value of a sweep; of an interval, whose values a sweeper chooses, the first."""
    if not override.is_sweep_override():
        return [text]
    key = override.get_key_element()
    if not override.is_discrete_sweep():
        interval = override.value()
        return [f"{key}={interval.start}"] if isinstance(interval, IntervalSweep) else [text]
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


@lru_cache(maxsize=100_000)
def _listing(job: Job, text: str) -> tuple[str, list[Any]] | None:
    """Key and values of an override of an option whose values are runs of their own; None of all others."""
    (override,) = parsed([text])
    key = override.get_key_element()
    if is_hydras(key) or not key[:1].isalpha() or is_group(job, key):
        return None
    item = option_of(job, key)
    if item is None or is_dataclass(item.type) or override.is_sweep_override() or "${" in text:
        return None
    values = _values_of_runs(rule_of(item), override.value())
    return (key, values) if values else None


def _values_of_runs(rule: Rule, value: Any) -> list[Any] | None:
    """The values within one that are runs of their own, which can be told apart; None where all is one run's."""
    if isinstance(rule, Special):
        values = rule.runs_of(value)
        if values is None or not all(_is_plain(part) for each in values for part in _parts(each)):
            return None
        return [tuple(each) if isinstance(each, list) else each for each in values]
    if not isinstance(rule, Listed) or rule.together:
        return None
    values = value if isinstance(value, list) else [value]
    return values if all(_is_plain(each) or (each is None and rule.null) for each in values) else None


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float | str)


def _checked_group(job: Job, group: Group) -> DictConfig:
    """The configuration of the command that a group of jobs is.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    cfg = composed(job, group.overrides)
    for key, values in group.lists.items():
        listed = [list(each) if isinstance(each, tuple) else each for each in values]
        OmegaConf.update(cfg, key, listed[0] if len(listed) == 1 else listed, merge=False)
    cfg.out = options_from(cfg, job.options_class).out  # a folder may be named as a number is
    return cfg


def _commands(
    job: Job, jobs: list[list[str]], *, with_objectives: bool = False
) -> list[tuple[Group, DictConfig]]:
    """The commands that the jobs of a sweep are, all checked; where values do not go together, one for each job.

    Args:
        job: of all of them.
        jobs: overrides of each.
        with_objectives: whether the rows of each are read again, by the ids that it has alone. What a plan is compared
            with is part of its id, so jobs are not joined then; those that act on a cluster are, as they act once.
    """
    listing: Listing = _no_list if with_objectives and not job.acting else partial(_listing, job)
    commands = []
    for group in merged(jobs, listing):
        try:
            commands.append((group, _checked_group(job, group)))
        except UserError:
            if len(group.jobs) == 1:
                raise
            alone = [Group(jobs[number], {}, [number]) for number in group.jobs]
            commands += [(one, _checked_group(job, one)) for one in alone]
    return commands


def run_jobs(job: Job, jobs: list[list[str]], columns: list[str], first: int) -> Returned:
    """Run jobs of a sweep.

    Args:
        job: of all of them.
        jobs: overrides of each.
        columns: of ``runs``, whose means over its runs a job returns; empty: its exit code.
        first: number of the first one in the whole sweep.

    Raises:
        UserError: an option of one has a value that is not allowed, or the job has no such columns: nothing was
            started; or there is no column of a name.
    """
    from ecjax.tables.folder import kept, location  # not for every command

    if columns and not job.objectives:
        raise UserError(
            f"hydra.launcher.objective: found {', '.join(columns)} with ecjax {job.name}; allowed: null"
        )
    commands = _commands(job, jobs, with_objectives=bool(columns))
    module, codes = load_job(job), dict[int, int]()
    programs = "one command" if len(commands) == 1 else f"{len(commands)} commands"
    log.info("%s: sweep of %d jobs from job %d, as %s", job.name, len(jobs), first, programs)
    several = len(commands) > 1
    bar = overall(f"{job.name}: jobs of the sweep", len(jobs)) if several else nullcontext(_nothing)
    folders = dict.fromkeys(cfg.out for _, cfg in commands)
    written: list[str] = []
    with kept(map(location, folders)), kept_engines(), bar as advance:
        for number, (group, cfg) in enumerate(commands, 1):
            if several:
                log.info("command %d of %d: %s", number, len(commands), " ".join(_words_of(group)))
            ended = _codes(job, jobs, module, group, cfg)
            codes |= ended
            written += [cfg.out] if set(ended.values()) != {EXIT_USER} else []
            wait_begins()
            advance(len(group.jobs))
    mistaken = [number for number, code in sorted(codes.items()) if code == EXIT_USER]
    if mistaken and len(jobs) > 1:
        changed = _differing(jobs)
        first_few = "; ".join(" ".join(changed[number]) for number in mistaken[:_SHOWN])
        more = "; ..." if len(mistaken) > _SHOWN else ""
        line = f"ecjax: {len(mistaken)} of {len(jobs)} jobs of the sweep have a mistake: {first_few}{more}"
        print(line, file=sys.stderr)
    if several and written:
        outs = [shlex.quote(out) for out in dict.fromkeys(written)]
        log.info(
            "runs of the whole sweep: ecjax %s %s", "show" if len(outs) == 1 else "report", " ".join(outs)
        )
    worst = max(codes.values())
    if not columns:
        return Returned([codes[number] for number in range(len(jobs))], worst)
    means = [
        _objectives(job, module, words, columns) if codes[number] != EXIT_USER else [math.nan] * len(columns)
        for number, words in enumerate(jobs)
    ]
    return Returned([values[0] if len(columns) == 1 else tuple(values) for values in means], worst)


def _codes(
    job: Job, jobs: list[list[str]], module: ModuleType, group: Group, cfg: DictConfig
) -> dict[int, int]:
    """Run a command; exit codes by job. One with a mistake does not take the others of its command with it.

    But where the command acts on a cluster: what it did before it was refused is not to be done again, nor is what
    each job alone would recommend.
    """
    try:
        return dict.fromkeys(group.jobs, module.run(cfg))
    except UserError as error:
        if len(group.jobs) == 1 or any(cfg[name] for name in job.acting):
            print(f"ecjax: {error}", file=sys.stderr)
            return dict.fromkeys(group.jobs, EXIT_USER)
    codes, said = dict[int, int](), set[str]()
    for number in group.jobs:  # nothing was computed: what is the matter is the matter before
        try:
            codes[number] = module.run(_checked_group(job, Group(jobs[number], {}, [number])))
        except UserError as error:
            codes[number] = EXIT_USER
            if str(error) not in said:
                print(f"ecjax: {error}", file=sys.stderr)
            said.add(str(error))
    return codes


def _differing(jobs: list[list[str]]) -> list[list[str]]:
    """Of each job the overrides that not all have."""
    alike = set(jobs[0]).intersection(*jobs)
    return [[text for text in words if text not in alike and not is_hydras(text)] for words in jobs]


def _nothing(items: float) -> None:
    pass


def _no_list(text: str) -> None:
    pass


def _words_of(group: Group) -> list[str]:
    words = [f"{key}=[{','.join(map(_written, values))}]" for key, values in group.lists.items()]
    others = [text for text in group.overrides if not is_hydras(text.partition("=")[0])]
    return words + [text for text in others if text.partition("=")[0] not in group.lists]


def _written(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else shown(value)


def _objectives(job: Job, module: ModuleType, words: list[str], columns: list[str]) -> list[float]:
    """Means of columns over the runs of a job that are in ``out``; not a number where a run did not finish.

    Raises:
        UserError: ``runs`` has no such column of numbers.
    """
    from ecjax.status import Status  # not for every command
    from ecjax.studies.spine.study import collected_outcomes, only_rows

    level = log.level
    log.setLevel(logging.WARNING)  # what is read again was said before
    try:
        with printing(OutputMode.QUIET), only_rows(), collected_outcomes() as outcomes:
            module.run(composed(job, words))
    finally:
        log.setLevel(level)
    if not outcomes:
        raise UserError(f"hydra.launcher.objective: ecjax {job.name} has no rows of runs; allowed: null")
    runs = outcomes[-1].runs
    numbers = list(runs.select_dtypes("number").columns)
    for name in columns:
        if name not in numbers:
            raise UserError(f"hydra.launcher.objective: found {name}; allowed: {', '.join(numbers)}")
    if not all(Status(status).finished for status in runs["status"]):
        return [math.nan] * len(columns)
    return [float(runs[name].mean()) for name in columns]
