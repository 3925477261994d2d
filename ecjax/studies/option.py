"""One option of a job: a dataclass field with its help text."""

from dataclasses import field
from typing import Any


def option(default: Any, text: str) -> Any:
    """A field with this default and one line of help; lists are copied for every instance."""
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})
