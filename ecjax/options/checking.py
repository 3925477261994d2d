"""Options checked: every mistake names the option, what was found and what is allowed."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_args

from ecjax.errors import UserError
from ecjax.options.fields import rule_of
from ecjax.options.rules import Wrong, shown

Options = TypeVar("Options")


def changed(options: Any, names: Iterable[str]) -> list[str]:
    """Which of some options and sections are not what they are by default, as ``name=value``.

    Args:
        options: an options dataclass, checked.
        names: of its options and sections.
    """
    return _changed(options, type(options)(), names)


def _changed(options: Any, usual: Any, names: Iterable[str]) -> list[str]:
    """The same, compared with other options: those of a section may be others than its class has by default."""
    names = list(names)
    before, texts = _values(usual, names), []
    for name, value in _values(options, names).items():
        if is_dataclass(value):
            its = [item.name for item in fields(value)]
            texts += [f"{name}.{text}" for text in _changed(value, before[name], its)]
        elif value != before[name]:
            texts.append(f"{name}={shown(value)}")
    return texts


def _values(options: Any, names: Iterable[str]) -> dict[str, Any]:
    """Some options by name, each held against its own rule; sections checked."""
    items = {item.name: item for item in fields(options)}
    values = {}
    for name in names:
        value = getattr(options, name)
        if is_dataclass(value):
            value = checked(value, f"{name}.")
        elif value is not None:
            value = rule_of(items[name])(value)
        values[name] = value
    return values


def checked(options: Options, prefix: str = "") -> Options:
    """Options in the types that their fields declare: lists where one value was set, defaults filled in.

    Every option is held against its rule, then ``completed()`` of the dataclass, if it has one, looks at options
    together. Checked options may be checked again.

    Args:
        options: an options dataclass; not changed.
        prefix: of the names in messages, ``"generate."``.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values: dict[str, Any] = {}
    for item in fields(options):  # type: ignore[arg-type]
        value, name = getattr(options, item.name), prefix + item.name
        if is_dataclass(item.type):
            if not is_dataclass(value):
                raise UserError(f"{name}: found {shown(value)}; allowed: {name}.KEY=VALUE")
            values[item.name] = checked(value, f"{name}.")
            continue
        if value is None and type(None) in get_args(item.type):
            values[item.name] = None
            continue
        rule = rule_of(item)
        try:
            values[item.name] = rule(value)
        except Wrong as wrong:
            allowed = wrong.allowed or rule.allowed
            raise UserError(f"{name}: found {wrong.found}; allowed: {allowed}") from None
    result = replace(options, **values)  # type: ignore[type-var]
    return result.completed() if hasattr(result, "completed") else result
