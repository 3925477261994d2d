"""Arguments of a job's function: their types, and how they become the options of the job. Imports nothing heavy."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from ecjax.command_words import option_of
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS, Job
from ecjax.options import rule_of


class ArrowTable(Protocol):
    """A table in memory of any library: pandas, Arrow, Polars, DuckDB, ... (the Arrow PyCapsule interface)."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table as a stream of Arrow."""


class HasFolder(Protocol):
    """Results of a job: what ``ecjax.analyze`` and ``ecjax.optimize`` return."""

    @property
    def out(self) -> str:
        """Folder of the results."""


# a path, a table in memory, or the results of an earlier job that hold it
TableLike: TypeAlias = str | os.PathLike[str] | ArrowTable | HasFolder
Texts: TypeAlias = str | Sequence[str]
Numbers: TypeAlias = float | Sequence[float]
Wholes: TypeAlias = int | Sequence[int]

# of options whose defaults are not those of the command
_OTHER_TEXTS = {
    "out": "folder of the results; default: a temporary one, which goes with the object",
    "figures": "figures to draw into the folder too; any is drawn by the results' figure(name)",
}

_P = ParamSpec("_P")
_R = TypeVar("_R")


def of_job(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function take the options of the job of its name, documented in its docstring.

    A key of a group may be set by its dotted name, ``**{"cluster.files": 100}``. What is no option is a ``UserError``,
    as on the command line.
    """
    job = JOBS[function.__name__]
    names = set(inspect.signature(function).parameters)

    @wraps(function)
    def call(*values: _P.args, **options: _P.kwargs) -> _R:
        for name in options:
            if name not in names:
                option_of(job, name)  # says what it could be
        return function(*values, **_grouped(options, ""))

    call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{_described(job, names)}"
    return call


def _grouped(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Options by name, those of dotted names in the mapping of their group, wherever that stands.

    Args:
        values: options by name or dotted name.
        prefix: of the names in messages.

    Raises:
        UserError: a key is set twice, or beside its group as something else than a mapping.
    """
    named = {str(name): value for name, value in values.items()}
    grouped = {name: value for name, value in named.items() if "." not in name}
    for name, value in named.items():
        group, dot, key = name.partition(".")
        if not dot:
            continue
        before = grouped.get(group)
        if group == "engine" and isinstance(before, str):
            before = {"name": before}
        before = {} if before is None else before
        if not isinstance(before, Mapping):
            words = f"{prefix}{group} of type {type(before).__name__}, too"
            raise UserError(f"{prefix}{name}: found {words}; allowed: beside a mapping, {{key: value}}")
        if key in before:
            raise UserError(f"{prefix}{name}: found twice; allowed: once")
        grouped[group] = {**before, key: value}
    return grouped


def _described(job: Job, names: Collection[str]) -> str:
    """The section of a docstring that says what the arguments of these names are."""
    lines = ["Args:"]
    for item in fields(job.options_class()):
        if item.name not in names:
            continue
        text = _OTHER_TEXTS.get(item.name) or item.metadata.get("help", "")
        if is_dataclass(item.type):
            text += f"; keys: {', '.join(each.name for each in fields(item.type))}"
        elif rule_of(item).allowed not in ("a text", "true, false"):
            text += f"; allowed: {rule_of(item).allowed}"
        lines += textwrap.wrap(f"{item.name}: {text}", 100, initial_indent="    ", subsequent_indent=" " * 8)
    lines.append("    quiet: false: say and show what the command does")
    return "\n".join(lines)


def options_of(job: Job, values: Mapping[str, Any]) -> Any:
    """The options of a job with these values; groups are mappings.

    Raises:
        UserError: a key of a group is no option.
    """
    return _with_values(job, job.options_class(), values, "")


def _with_values(job: Job, options: Any, values: Mapping[str, Any], prefix: str) -> Any:
    set_to: dict[str, Any] = {}
    for name, value in _grouped(values, prefix).items():
        option_of(job, prefix + name)
        group: Any = getattr(options, name)
        if not is_dataclass(group):
            set_to[name] = plain(value)
        elif isinstance(value, str) and name == "engine":
            set_to[name] = replace(group, name=value)  # type: ignore[type-var]
        elif isinstance(value, Mapping):
            set_to[name] = _with_values(job, group, value, f"{prefix}{name}.")
        elif isinstance(value, type(group)):
            set_to[name] = value
        elif value is not None:
            raise UserError(f"{prefix}{name}: found {value!r}; allowed: a mapping, {{key: value}}")
    return replace(options, **set_to)


def plain(value: Any) -> Any:
    """A value of Python's own types: what arrays of NumPy and columns of pandas hold, paths as texts."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value
