"""From the words of the command line to a composed configuration and a job that runs on it.

A single run composes its configuration and writes nothing but results. With Hydra's own flags (-m for sweeps,
--cfg, --info) the job goes through ``hydra.main``, whose files go under ``out``.
"""

import errno
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hydra import main as hydra_main
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from ecjax import sweeps
from ecjax.command_words import (
    bracketed,
    check_choice,
    check_engine,
    check_written,
    config_folders,
    is_group,
    is_hydras,
    is_text,
    is_written,
    option_of,
    split_flags,
)
from ecjax.composing import composed, composed_with_mode, load_job, options_from, user_message
from ecjax.console import OutputMode, log, log_lines_of_libraries, output_mode, show_log_lines
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS, Job, folder
from ecjax.stopwatch import wait_begins

__all__ = ["load_job", "options_from", "run_job"]


def run_job(job: Job, words: list[str]) -> int:
    """Run a job; returns its exit code.

    Raises:
        UserError: an override does not parse, names no option, or has a value of the wrong type.
    """
    module = load_job(job)
    flags, plain = split_flags(words)
    flags, folders = config_folders(flags)
    _check_launcher(plain)
    overrides = [
        _override(job, word, sweep=_is_sweep(flags), folders=folders) for word in _named(job, module, plain)
    ]
    searched = _searched(folders)
    overrides = searched + overrides
    if _is_sweep(flags):
        shown = [
            flag
            for flag in flags
            if flag.partition("=")[0] in ("--cfg", "-c", "--info", "-i", "--hydra-help")
        ]
        if shown:
            raise UserError(f"found -m with {shown[0]}; allowed: one of them")
        overrides = sweeps.without_globs(job, overrides, folders)
        sweeps.check_sweep(job, overrides, folders)
    else:
        cfg, mode = composed_with_mode(job, overrides)
        if not flags and mode is RunMode.MULTIRUN:
            if output_mode() is not OutputMode.ALL:
                what = f"{output_mode().value} with a sweep, which hydra.mode of a file of conf makes it"
                raise UserError(f"found {what}; allowed: one of them")
            flags = ["-m"]
    if not flags:
        options = options_from(cfg, job.options_class)
        show_log_lines()
        log.info("%s: %s; results in %s", job.name, job.doing, options.out)
        return module.run(cfg)
    # flags come last: --info would take the word after it for its value
    return _through_hydra(job, overrides + _logs_here(overrides) + flags, searched)


def options_of_words(name: str, words: list[str]) -> Any:
    """The checked options of a job with words KEY=VALUE, as its command line has them.

    Args:
        name: of the job.
        words: may name an experiment; none of Hydra's own.

    Raises:
        UserError: a word does not parse, names no option, or has a value that is not allowed.
    """
    job = JOBS[name]
    return options_from(
        composed(job, [_override(job, word, sweep=False) for word in words]), job.options_class
    )


def _is_sweep(flags: list[str]) -> bool:
    return "-m" in flags or "--multirun" in flags


def _named(job: Job, module: ModuleType, words: list[str]) -> list[str]:
    """Words without '=' (paths, names) turned into overrides by the job.

    Raises:
        UserError: other words set all that they stand for.
    """
    bare = [word for word in words if "=" not in word and not word.startswith("~")]
    overrides: list[str] = module.bare_words(bare) if bare else []
    by_key = {word.partition("=")[0].lstrip("+"): word for word in words if "=" in word}
    keys = [override.partition("=")[0] for override in overrides]
    # a folder of tables stands for several options, of which one may be another table
    if keys and all(key in by_key for key in keys):
        raise UserError(
            f"{by_key[keys[0]]}: found {' '.join(bare)}, too; allowed: one of them, as both set {keys[0]}"
        )
    return overrides + [word for word in words if word not in bare]


def _searched(folders: Sequence[Path]) -> list[str]:
    """The override that has Hydra look for groups in the user's folders, too."""
    quoted = ["'file://{}'".format(str(each).replace("'", "\\'")) for each in folders]
    return [f"hydra.searchpath=[{','.join(quoted)}]"] if folders else []


def _logs_here(overrides: Sequence[str]) -> list[str]:
    """The override that has Hydra write its own files here where ``out`` is in an object store, which it knows not."""
    set_elsewhere = any(text.startswith("hydra.sweep.dir=") for text in overrides)
    away = any(text.startswith("out=") and "://" in text for text in overrides)
    return ["hydra.sweep.dir=logs/${now:%Y-%m-%dT%H-%M-%S}"] if away and not set_elsewhere else []


def _override(job: Job, word: str, sweep: bool, folders: Sequence[Path] = ()) -> str:
    """One override, its value quoted where it is text: paths may hold '=' and ','."""
    key, _, value = word.partition("=")
    name = key.lstrip("+~")
    if is_hydras(name):
        return word
    if is_group(job, name):
        if not sweep:
            check_choice(job, name, value, folders)
        return word
    item = option_of(job, name)
    if item is not None and item.type is EngineOptions and not sweep:
        check_engine(value, folders)
        return word
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
    if item is None or not is_text(item.type) or is_written(value, item.type) or (sweep and "," in value):
        return word
    escaped = value.replace("'", "\\'")
    return f"{key}='{escaped}'"


def _through_hydra(job: Job, words: list[str], searched: list[str]) -> int:
    """Run by ``hydra.main``; the worst exit code of its runs."""
    name, start_folder = job.name, os.getcwd()

    def task(cfg: DictConfig) -> _ExitCode:
        # holds names only: a launcher may send it to another process, on another machine
        return _run_of_sweep(name, start_folder, cfg)

    def run_jobs(jobs: list[list[str]], columns: list[str], first: int) -> list[Any]:
        values, worst = sweeps.run_jobs(job, [searched + words for words in jobs], columns, first)
        _ExitCode(worst)
        return values

    from ecjax.sweep_plugins import register  # looks for plugins, which takes time

    register(run_jobs)
    show_log_lines()
    arguments = sys.argv
    sys.argv = [f"ecjax {job.name}", *words]
    GlobalHydra.instance().clear()
    _ExitCode.worst = 0
    try:
        with warnings.catch_warnings(), log_lines_of_libraries(), _raised():
            warnings.simplefilter("ignore", UserWarning)
            hydra_main(version_base="1.3", config_path=str(folder("conf").resolve()), config_name=job.name)(
                task
            )()
    except SystemExit as stop:
        _ExitCode(2 if stop.code else 0)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(user_message(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise
        where = "" if error.filename is None else f": {error.filename}"
        raise UserError(f"out: {error.strerror or error}{where}") from error
    finally:
        sys.argv = arguments
    return _ExitCode.worst


@contextmanager
def _raised() -> Iterator[None]:
    """Within the block Hydra raises its errors, which it would print in its own way."""
    name = "HYDRA_FULL_ERROR"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


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
    show_log_lines()  # a launcher may have it in another process
    hydra = HydraConfig.get()
    if not hydra.launcher._target_.endswith("BasicLauncher"):
        # runs at the same time may not share a folder, and elsewhere have another working folder
        from ecjax.tables.folder import absolute, is_local, location  # not for every command

        if os.path.isdir(start_folder):
            os.chdir(start_folder)
        out = location(str(cfg.out)) / str(hydra.job.num)
        cfg.out = str(out) if is_local(out) else absolute(out)
    try:
        return _ExitCode(load_job(JOBS[name]).run(cfg))
    except UserError as error:
        print(f"ecjax: {error}", file=sys.stderr)
        return _ExitCode(2)
    finally:
        wait_begins()


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
