"""One option of a job: a dataclass field with its help text; and what counts as a number."""

import math
from dataclasses import field
from numbers import Real
from typing import Any


def option(default: Any, text: str) -> Any:
    """A field with this default and one line of help; lists are copied for every instance."""
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})


def is_number(value: Any) -> bool:
    """Whether ``value`` is a finite number; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
