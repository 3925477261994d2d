"""Options that have no effect beside others are said."""

from collections.abc import Iterable
from typing import Any

from ecjax.console import log
from ecjax.options import changed


def say_unused(options: Any, names: Iterable[str], beside: str) -> None:
    """Warn of options that were set and that nothing reads.

    Args:
        options: checked.
        names: of the options and sections that nothing reads here.
        beside: what makes them useless.
    """
    for text in changed(options, names):
        log.warning("%s has no effect beside %s", text, beside)
