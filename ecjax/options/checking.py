"""Options checked: every mistake names the option, what was found and what is allowed."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_args

from ecjax.errors import UserError
from ecjax.options.fields import rule_of
from ecjax.options.rules import Wrong, shown

Options = TypeVar("Options")


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
