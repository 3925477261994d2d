"""A job called from Python: options composed, tables written, the study run, its outcome handed over."""

import io
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from ecjax.console import MESSAGES, OUTPUT, log, show_log_lines
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS
from ecjax.library.arguments import options_of
from ecjax.library.memory_tables import MemoryTables
from ecjax.library.results import Results
from ecjax.options import checked


def run(name: str, values: Mapping[str, Any]) -> Results:
    """Run a job.

    Args:
        name: of the job.
        values: its options by name, and ``quiet``.

    Returns:
        What it made; where ``out`` is None in a temporary folder, which goes with the object.

    Raises:
        UserError: something in the options or tables is wrong.
    """
    arguments = dict(values)
    quiet, out = arguments.pop("quiet"), arguments.pop("out")
    temporary = Path(tempfile.mkdtemp(prefix="ecjax-"))
    tables = MemoryTables(temporary)
    plan = arguments.get("plan")
    if isinstance(plan, Results) and not (arguments["plan_run"] or arguments["plan_where"]):
        arguments["plan_run"] = plan.recommended_run  # where none is, the job says which there are
    try:
        named = tables.paths(arguments)
        folder = temporary / "results" if out is None else out
        options = checked(options_of(JOBS[name], {**named, "out": folder}))
        tables.write()
        from ecjax.studies.spine.study import collected_outcomes  # slow to import, as all studies are

        study = getattr(import_module(f"ecjax.studies.{name}.study"), f"{name}_study")
        with collected_outcomes() as outcomes, _consoles(quiet) as console:
            study(options, console)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, UserError):
            raise UserError(tables.renamed(str(error))) from error.__cause__
        raise
    return Results(name, options.out, outcomes[-1].runs, outcomes[-1].recommendation, temporary)


@contextmanager
def _consoles(quiet: bool) -> Iterator[Console]:
    """Where a study prints: as the command does, or nowhere; what is said meanwhile is not said afterwards."""
    if quiet:
        before = MESSAGES.quiet
        MESSAGES.quiet = True
        handler: logging.Handler = logging.NullHandler()  # without any, logging prints warnings itself
        log.addHandler(handler)
        try:
            yield Console(file=io.StringIO(), quiet=True)
        finally:
            MESSAGES.quiet = before
            log.removeHandler(handler)
        return
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    show_log_lines()
    try:
        yield OUTPUT
    finally:
        log.handlers[:], log.propagate = handlers, propagate
        log.setLevel(level)
