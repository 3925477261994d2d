"""A call of a job, which imports what runs it with the first call. Itself imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ecjax.stopwatch import wait_begins

if TYPE_CHECKING:
    from ecjax.library.results import Results


def call_job(name: str, values: Mapping[str, Any]) -> Results:
    """Run a job with these options, see ``running.run``.

    Raises:
        UserError: something in the options or tables is wrong.
    """
    wait_begins()
    from ecjax.library.running import run

    return run(name, values)
