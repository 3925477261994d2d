"""From the words of the command line to a composed configuration and a job that runs on it.

A single run composes its configuration and writes nothing but results. With Hydra's own flags (-m for sweeps,
--cfg, --info) the job goes through ``hydra.main``, whose files go under ``out``.
"""

import importlib.util
import math
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, TypeVar

from hydra import compose, initialize_config_dir
from hydra import main as hydra_main
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ecjax.command_words import (
    bracketed,
    check_experiment,
    check_written,
    is_hydras,
    is_text,
    is_written,
    option_of,
    split_flags,
)
from ecjax.console import OutputMode, log, printing, show_log_lines
from ecjax.engine.options import NAMES, EngineOptions
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS, Job, folder
from ecjax.merged_jobs import Group, merged
from ecjax.options import Listed, checked, defaults, rule_of

_Options = TypeVar("_Options")


def run_job(job: Job, words: list[str]) -> int:
    """Run a job; returns its exit code.

    Raises:
        UserError: an override does not parse, names no option, or has a value of the wrong type.
    """
    module = load_job(job)
    flags, plain = split_flags(words)
    _check_launcher(plain)
    overrides = [_override(job, word, sweep=_is_sweep(flags)) for word in _named(job, module, plain)]
    if _is_sweep(flags):
        _check_sweep(job, overrides)
    else:
        cfg = _compose(job, overrides)
    if not flags:
        options = options_from(cfg, job.options_class)
        show_log_lines()
        log.info("%s: %s; results in %s", job.name, job.doing, options.out)
        return module.run(cfg)
    return _through_hydra(job, flags + overrides)


def load_job(job: Job) -> ModuleType:
    """The job's entry point, from the installed package or the checkout."""
    path = folder("jobs") / f"{job.name}.py"
    spec = importlib.util.spec_from_file_location(f"ecjax_jobs_{job.name}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"jobs: {path.name} is missing from this installation of ecjax")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options_from(cfg: DictConfig, kind: type[_Options]) -> _Options:
    """The composed configuration as the options dataclass of the job, checked.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    try:
        values = OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(_user_message(error)) from error
    return checked(_options_of(values, kind))


def _options_of(values: Any, kind: Any, prefix: str = "") -> Any:
    """An options dataclass with the values of a configuration."""
    if not isinstance(values, dict):
        raise UserError(f"{prefix[:-1]}: found {values}; allowed: {prefix}KEY=VALUE")
    for item in fields(kind):
        if item.name not in values:
            raise UserError(f"{prefix}{item.name}: found no value (~{prefix}{item.name}); allowed: a value")
    named = {
        item.name: _options_of(values[item.name], item.type, f"{prefix}{item.name}.")
        if is_dataclass(item.type)
        else values[item.name]
        for item in fields(kind)
    }
    return kind(**named)


def _is_sweep(flags: list[str]) -> bool:
    return "-m" in flags or "--multirun" in flags


def _named(job: Job, module: ModuleType, words: list[str]) -> list[str]:
    """Words without '=' (paths, names) turned into overrides by the job."""
    bare = [word for word in words if "=" not in word and not word.startswith("~")]
    overrides: list[str] = module.bare_words(bare) if bare else []
    return overrides + [word for word in words if word not in bare]


def _override(job: Job, word: str, sweep: bool) -> str:
    """One override, its value quoted where it is text: paths may hold '=' and ','."""
    key, _, value = word.partition("=")
    name = key.lstrip("+~")
    if is_hydras(name):
        return word
    if name == "experiment":
        if not sweep:
            check_experiment(job, value)
        return word
    item = option_of(job, name)
    if item is not None and item.type is EngineOptions and not sweep and value not in NAMES:
        raise UserError(f"engine: found {value!r}; allowed: {', '.join(NAMES)} (or engine.KEY=...)")
    if (
        item is not None
        and is_dataclass(item.type)
        and item.type is not EngineOptions
        and value[:1] not in "{"
    ):
        raise UserError(f"{name}: found {value}; allowed: {name}.KEY=VALUE")
    if not sweep and "," in value:
        value = bracketed(name, item, value)
        word = f"{key}={value}"
    check_written(name, item, value)
    if item is None or not is_text(item.type) or is_written(value) or (sweep and "," in value):
        return word
    escaped = value.replace("'", "\\'")
    return f"{key}='{escaped}'"


def _user_message(error: Exception) -> str:
    text = str(error)
    key = getattr(error, "full_key", None)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [
        line
        for line in lines
        if not line.startswith(("full_key:", "object_type=", "reference_type=", "See "))
    ]
    cause = error.__cause__
    if cause is not None and isinstance(cause, OmegaConfBaseException):
        key = key or cause.full_key
        lines.append(str(cause).splitlines()[0])
    message = " ".join(dict.fromkeys(lines))
    return f"{key}: {message}" if key and key not in message else message


def _compose(job: Job, overrides: list[str]) -> DictConfig:
    ConfigStore.instance().store(name=f"{job.name}_options", node=defaults(job.options_class()))
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(folder("conf").resolve()), version_base="1.3"):
            return compose(job.name, overrides)
    except (HydraException, OmegaConfBaseException, ValueError, RecursionError) as error:
        raise UserError(_user_message(error)) from error


def _parsed(overrides: list[str]) -> list[Override]:
    try:
        return OverridesParser.create().parse_overrides(overrides)
    except (HydraException, ValueError, RecursionError) as error:
        raise UserError(_user_message(error)) from error


def _check_sweep(job: Job, overrides: list[str]) -> None:
    """Compose with every value of every sweep, so that mistakes are found before anything starts."""
    choices = [_choices(override, text) for text, override in zip(overrides, _parsed(overrides), strict=True)]
    first = [values[0] for values in choices]
    every = merged([first, *_one_changed(choices)], partial(_listing, job))
    for group in every:
        _checked_group(job, group)


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
    (override,) = _parsed([text])
    key = override.get_key_element()
    if is_hydras(key) or not key[:1].isalpha() or key == "experiment":
        return None
    item = option_of(job, key)
    rule = None if item is None or is_dataclass(item.type) else rule_of(item)
    if not isinstance(rule, Listed) or rule.together or override.is_sweep_override():
        return None
    value = override.value()
    values = value if isinstance(value, list) else [value]
    plain = all(isinstance(each, int | float | str) or (each is None and rule.null) for each in values)
    return (key, values) if values and plain and "${" not in text else None


def _checked_group(job: Job, group: Group) -> DictConfig:
    """The configuration of the command that a group of jobs is.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    cfg = _compose(job, group.overrides)
    for key, values in group.lists.items():
        OmegaConf.update(cfg, key, values[0] if len(values) == 1 else values)
    options_from(cfg, job.options_class)
    return cfg


def _commands(job: Job, jobs: list[list[str]]) -> list[tuple[Group, DictConfig]]:
    """The commands that the jobs of a sweep are, all checked; where values do not go together, one for each job."""
    commands = []
    for group in merged(jobs, partial(_listing, job)):
        try:
            commands.append((group, _checked_group(job, group)))
        except UserError:
            if len(group.jobs) == 1:
                raise
            alone = [Group(jobs[number], {}, [number]) for number in group.jobs]
            commands += [(one, _checked_group(job, one)) for one in alone]
    return commands


def _run_jobs(job: Job, jobs: list[list[str]], columns: list[str], first: int) -> list[Any]:
    """Run jobs of a sweep; what each of them returns: its exit code, or the means of columns over its runs."""
    show_log_lines()
    commands, module, codes = _commands(job, jobs), load_job(job), dict[int, int]()
    programs = "one command" if len(commands) == 1 else f"{len(commands)} commands"
    log.info("%s: sweep of %d jobs from job %d, as %s", job.name, len(jobs), first, programs)
    for number, (group, cfg) in enumerate(commands, 1):
        if len(commands) > 1:
            log.info("command %d of %d: %s", number, len(commands), " ".join(_words_of(group)))
        try:
            code = _ExitCode(module.run(cfg))
        except UserError as error:
            print(f"ecjax: {error}", file=sys.stderr)
            code = _ExitCode(2)
        codes |= dict.fromkeys(group.jobs, int(code))
    if not columns:
        return [codes[number] for number in range(len(jobs))]
    means = [
        _objectives(job, module, words, columns) if codes[number] != 2 else [math.nan] * len(columns)
        for number, words in enumerate(jobs)
    ]
    return [values[0] if len(columns) == 1 else tuple(values) for values in means]


def _words_of(group: Group) -> list[str]:
    words = [f"{key}=[{','.join(map(str, values))}]" for key, values in group.lists.items()]
    return words + [text for text in group.overrides if text.partition("=")[0] not in group.lists]


def _objectives(job: Job, module: ModuleType, words: list[str], columns: list[str]) -> list[float]:
    """Means of columns over the runs of a job that are in ``out``; not a number where a run did not finish.

    Raises:
        UserError: ``runs`` has no such column of numbers.
    """
    from ecjax.status import Status  # not for every command
    from ecjax.studies.spine.study import collected_outcomes, only_rows

    with printing(OutputMode.QUIET), only_rows(), collected_outcomes() as outcomes:
        module.run(_compose(job, words))
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


def _through_hydra(job: Job, words: list[str]) -> int:
    """Run by ``hydra.main``; the worst exit code of its runs."""
    name, start_folder = job.name, os.getcwd()

    def task(cfg: DictConfig) -> _ExitCode:
        # holds names only: a launcher may send it to another process, on another machine
        return _run_of_sweep(name, start_folder, cfg)

    stopped: list[BaseException] = []

    def run_jobs(jobs: list[list[str]], columns: list[str], first: int) -> list[Any]:
        try:
            return _run_jobs(job, jobs, columns, first)
        except Exception as error:
            stopped.append(error)  # which Hydra would print in its own way
            raise SystemExit(2) from error

    from ecjax.sweep_plugins import register  # looks for plugins, which takes time

    register(run_jobs)
    arguments = sys.argv
    sys.argv = [f"ecjax {job.name}", *words]
    GlobalHydra.instance().clear()
    _ExitCode.worst = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            hydra_main(version_base="1.3", config_path=str(folder("conf").resolve()), config_name=job.name)(
                task
            )()
    except SystemExit as stop:
        if stopped:
            raise stopped[0] from None
        _ExitCode(2 if stop.code else 0)
    except OSError as error:
        raise UserError(f"out: {error.strerror or error}: {error.filename}") from error
    finally:
        sys.argv = arguments
    return _ExitCode.worst


class _ExitCode(int):
    """Exit code of a run. Hydra keeps none, so the worst is kept here, also of codes from other processes."""

    worst = 0

    def __new__(cls, code: int) -> "_ExitCode":
        cls.worst = max(cls.worst, code)
        return super().__new__(cls, code)

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return _ExitCode, (int(self),)


def _run_of_sweep(name: str, start_folder: str, cfg: DictConfig) -> _ExitCode:
    """One run of a sweep: a mistake in it ends that run with a line, not the sweep."""
    hydra = HydraConfig.get()
    if not hydra.launcher._target_.endswith("BasicLauncher"):
        # runs at the same time may not share a folder, and elsewhere have another working folder
        from ecjax.tables.folder import absolute, is_local, location  # not for every command

        if os.path.isdir(start_folder):
            os.chdir(start_folder)
        out = location(cfg.out) / str(hydra.job.num)
        cfg.out = str(out) if is_local(out) else absolute(out)
    try:
        return _ExitCode(load_job(JOBS[name]).run(cfg))
    except UserError as error:
        print(f"ecjax: {error}", file=sys.stderr)
        return _ExitCode(2)


def _check_launcher(words: list[str]) -> None:
    """Say how to get the launcher on Ray where it is asked for and missing."""
    for word in words:
        key, _, value = word.partition("=")
        if key == "hydra/launcher" and value.startswith("ray") and not _has_ray_launcher():
            raise UserError(
                f"hydra/launcher: found {value}, which comes with the extra `launcher` (pip install "
                "'ecjax[launcher]', or uv run --extra launcher); allowed: basic. engine=ray needs no extra"
            )


def _has_ray_launcher() -> bool:
    # a module of a package that is missing cannot be looked for
    return all(map(importlib.util.find_spec, ("hydra_plugins", "hydra_plugins.hydra_ray_launcher")))
