"""Configurations composed by Hydra, the options that they are, and the entry point that takes them."""

import importlib.util
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from ecjax.errors import UserError, among
from ecjax.jobs_index import GROUPS, Job, folder
from ecjax.options import checked, defaults

_Options = TypeVar("_Options")
_ERRORS = (HydraException, OmegaConfBaseException, YAMLError, ValueError, RecursionError)  # of composing


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
        raise UserError(user_message(error)) from error
    return checked(_options_of(values, kind))


def _options_of(values: Any, kind: Any, prefix: str = "") -> Any:
    """An options dataclass with the values of a configuration."""
    if not isinstance(values, dict):
        raise UserError(f"{prefix[:-1]}: found {values}; allowed: {prefix}KEY=VALUE")
    names = [item.name for item in fields(kind)]
    for name in values:
        if name not in names:  # words of the command are checked before: this one is of a file
            raise UserError(f"found option '{prefix}{name}' in a file of conf{_hint(name, names, prefix)}")
    for item in fields(kind):
        if item.name not in values:
            raise UserError(f"{prefix}{item.name}: found no value (~{prefix}{item.name}); allowed: a value")
    named = {
        item.name: _options_of(values[item.name], item.type, f"{prefix}{item.name}.")
        if is_dataclass(item.type)
        else _mapping(values[item.name])
        for item in fields(kind)
    }
    return kind(**named)


def _hint(name: Any, names: list[str], prefix: str) -> str:
    """What may have been meant by a key of a file that is none of the options ``names``."""
    if name in GROUPS:
        return "; allowed: keys of the job, after a first line '# @package _global_'"
    return among(str(name), names, prefix)


def _mapping(value: Any) -> Any:
    """What a quoted text in braces says: Hydra's grammar knows few characters in the keys of a mapping."""
    if not (isinstance(value, str) and value.startswith("{") and ": " in value):
        return value
    try:
        return OmegaConf.to_container(OmegaConf.create(value))
    except (YAMLError, OmegaConfBaseException):
        return value


_QUOTED = "text in double quotes within single ones, as 'slow=\"{é: 5}\"'"


def user_message(error: Exception) -> str:
    """What an error of Hydra or of its configurations says, in one line."""
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
    if message.startswith("LexerNoViableAltException"):
        # Hydra's grammar knows few characters without quotes
        word = message.partition(": ")[2].rstrip(" ^")
        message = f"{word}: found characters that need quotes; allowed: {_QUOTED}"
    elif message.startswith("no viable alternative"):
        message = f"{message}; allowed: keys without quotes, or {_QUOTED}"
    return f"{key}: {message}" if key and key not in message else message


def composed(job: Job, overrides: list[str]) -> DictConfig:
    """The configuration of a job.

    Raises:
        UserError: an override names nothing, or has a value of the wrong type.
    """
    return composed_with_mode(job, overrides)[0]


def composed_with_mode(job: Job, overrides: list[str]) -> tuple[DictConfig, RunMode | None]:
    """The configuration of a job, and what it says of itself: that it is a sweep, or one run.

    Raises:
        UserError: an override names nothing, or has a value of the wrong type.
    """
    try:
        return _of_values(job, overrides) or _by_hydra(job, overrides)
    except _ERRORS as error:
        raise UserError(user_message(error)) from error


def _of_values(job: Job, overrides: list[str]) -> tuple[DictConfig, RunMode | None] | None:
    """What Hydra makes of overrides, where they do but choose files and set values of the job.

    Commands of a sweep differ in values alone, and composing takes 0.1 s: values are set in a copy of what was composed
    of the same files before. None where Hydra has to do it all: overrides are of its own, or one is wrong, of which it
    says best what is the matter.
    """
    groups = [path.name for path in folder("conf").iterdir() if path.is_dir()]
    try:
        words = parsed(overrides)
        if any(word.is_hydra_override() or word.is_sweep_override() for word in words):
            return None
        files, values = list[str](), list[Override]()
        for text, word in zip(overrides, words, strict=True):
            name = word.key_or_group
            if name in groups or "/" in name or word.package is not None:
                files.append(text)
            else:
                values.append(word)
        cfg, mode = deepcopy(_of_files(job, tuple(files)))
        ConfigLoaderImpl._apply_overrides_to_config(values, cfg)
        return cfg, mode
    except (UserError, *_ERRORS):
        return None


@lru_cache(maxsize=64)
def _of_files(job: Job, overrides: tuple[str, ...]) -> tuple[DictConfig, RunMode | None]:
    """What is composed of files alone; not to be changed."""
    return _by_hydra(job, list(overrides))


def _by_hydra(job: Job, overrides: list[str]) -> tuple[DictConfig, RunMode | None]:
    ConfigStore.instance().store(name=f"{job.name}_options", node=defaults(job.options_class()))
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(folder("conf").resolve()), version_base="1.3"):
        cfg = compose(job.name, overrides, return_hydra_config=True)
    mode = cfg.hydra.mode
    with open_dict(cfg):
        del cfg["hydra"]
    return cfg, mode


def parsed(overrides: list[str]) -> list[Override]:
    """Overrides in Hydra's grammar.

    Raises:
        UserError: one of them is not.
    """
    try:
        return OverridesParser.create().parse_overrides(overrides)
    except (HydraException, ValueError, RecursionError) as error:
        raise UserError(user_message(error)) from error
