"""The fields that options are."""

from collections.abc import Callable
from dataclasses import Field, field, fields, is_dataclass
from typing import Any, get_args

from ecjax.options.rules import Flag, Rule, Text

Identifies = bool | Callable[[Any], bool]


def option(default: Any, text: str, rule: Rule | None = None, identifies: Identifies = False) -> Any:
    """A field of an options dataclass.

    Args:
        default: its value where none is set; lists are copied for every instance.
        text: one line of help.
        rule: what it may be; default: what its type says, of texts and of true or false.
        identifies: whether two runs that differ in it are different runs; or a function of the options that tells it.
    """
    metadata = {"help": text, "rule": rule, "identifies": identifies}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def section(factory: Callable[[], Any], text: str) -> Any:
    """A field that holds options of its own, ``name.key``."""
    return field(default_factory=factory, metadata={"help": text})


def rule_of(item: Field[Any]) -> Rule:
    """The rule of a field.

    Raises:
        TypeError: it has none, and its type tells none: a mistake of the program.
    """
    rule: Rule | None = item.metadata.get("rule")
    if rule is not None:
        return rule
    kinds = [kind for kind in get_args(item.type) or (item.type,) if kind is not type(None)]
    if kinds == [bool]:
        return Flag()
    if kinds == [str]:
        return Text()
    raise TypeError(f"option {item.name} needs a rule")


def defaults(options: Any) -> dict[str, Any]:
    """Options as plain values, sections as dicts: what a configuration starts from."""
    values = {item.name: getattr(options, item.name) for item in fields(options)}
    return {name: defaults(value) if is_dataclass(value) else value for name, value in values.items()}


def identifying(options: Any) -> dict[str, Any]:
    """Those options by name that tell a run from another of the same inputs, checked options assumed."""
    values = {}
    for item in fields(options):
        identifies = item.metadata.get("identifies", False)
        if identifies(options) if callable(identifies) else identifies:
            values[item.name] = getattr(options, item.name)
    return values
