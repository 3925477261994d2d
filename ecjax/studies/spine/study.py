"""The steps of every study: inputs, runs, engine and store, batches, rows, printed table, figures, exit code."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import pandas as pd
import psutil
import pyarrow as pa
from rich.console import Console

from ecjax.compiling import Compilation, announced
from ecjax.console import OutputMode, conclude, log, output_mode, taken_remarks
from ecjax.display import without_secrets
from ecjax.engine import Engine, EngineOptions, open_engine
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.stopwatch import waited_since
from ecjax.studies.spine.as_json import print_json
from ecjax.studies.spine.batches import Batch, Driven, Solve, run_batches, run_driven
from ecjax.studies.spine.sentences import word
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.folder import location
from ecjax.tables.recommendation import Recommendation, remove_recommendation, write_recommendation
from ecjax.tables.result_schemas import JobTables
from ecjax.tables.results import read_results
from ecjax.tables.sources import sources_text
from ecjax.tables.store import ResultStore, check_out

_FILES_NAMED = 3


class StudyOptions(Protocol):
    """What the options of every study have."""

    @property
    def out(self) -> str:
        """Folder of the results."""

    @property
    def engine(self) -> EngineOptions:
        """Where it runs."""

    @property
    def resume(self) -> bool:
        """Whether finished runs are left as they are."""

    @property
    def write(self) -> list[str] | None:
        """Datasets to write besides runs and inputs; None: all."""


@dataclass(frozen=True)
class Work:
    """What a study computes, once its inputs are read.

    Attributes:
        run_ids: of all runs, in the order of the sweep.
        batches: the batches of those runs that are not among the finished ones.
        solve: runs some runs of a batch where the engine does (see ``batches.run_batches``), or in this process.
        id_types: Arrow types of the ids in the results, by column.
        verb: a few words for the progress, in the present participle.
        inputs: the input tables to keep beside the runs of a batch: input id, and tables by name.
        at_once: batches at a time within a process; default: as many as it has cores.
        divisible: whether the runs of a batch may be spread over workers.
        all_unstable_is_wrong: whether a study without a single stable run is the user's mistake.
    """

    run_ids: Sequence[str]
    batches: Callable[[set[str]], list[Batch]]
    solve: Solve | Driven
    id_types: Mapping[str, pa.DataType]
    verb: str
    inputs: Callable[[Any], tuple[str, dict[str, pa.Table]]] | None = None
    at_once: int | None = None
    divisible: bool = True
    all_unstable_is_wrong: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a study ended with: its rows of ``runs`` in the order of the sweep, and what they recommend."""

    runs: pd.DataFrame
    recommendation: Recommendation | None


class Acted(NamedTuple):
    """What was done by a plan.

    Attributes:
        code: exit code.
        said: how it ended, as JSON has it.
    """

    code: int
    said: Mapping[str, Any]


_outcomes: ContextVar[list[Outcome] | None] = ContextVar("outcomes", default=None)


@contextmanager
def collected_outcomes() -> Iterator[list[Outcome]]:
    """The outcomes of the studies that run within the block: a command needs their exit code only, a library more."""
    outcomes: list[Outcome] = []
    before = _outcomes.set(outcomes)
    try:
        yield outcomes
    finally:
        _outcomes.reset(before)


_only_rows: ContextVar[bool] = ContextVar("only_rows", default=False)


@contextmanager
def only_rows() -> Iterator[None]:
    """Within the block studies compute nothing: their outcome are the rows that are in ``out``."""
    before = _only_rows.set(True)
    try:
        yield
    finally:
        _only_rows.reset(before)


def rows_only() -> bool:
    """Whether this is a call for rows that are there: nothing is printed, nothing is done."""
    return _only_rows.get()


def unfinished(batches: Iterable[Batch]) -> Callable[[set[str]], list[Batch]]:
    """``Work.batches`` of batches that are the same whatever is finished: those runs are left out."""
    listed = list(batches)

    def remaining(finished: set[str]) -> list[Batch]:
        rest = [
            Batch(shared, {name: item for name, item in items.items() if name not in finished})
            for shared, items in listed
        ]
        return [batch for batch in rest if batch.items]

    return remaining


def each_once(batches: Iterable[Batch]) -> list[Batch]:
    """The same runs, each in the first batch that has it: two points of a sweep may come to one run."""
    seen: set[str] = set()
    rest = []
    for shared, items in batches:
        new = {name: item for name, item in items.items() if name not in seen}
        seen |= new.keys()
        if new:
            rest.append(Batch(shared, new))
    return rest


def computed(
    tables: JobTables, options: StudyOptions, prepare: Callable[[Engine], Work], accelerated: bool = False
) -> pd.DataFrame:
    """Compute what is not yet finished in ``out``; returns the rows of ``runs`` in the order of the sweep.

    Args:
        tables: datasets of the job.
        options: checked.
        prepare: reads the inputs.
        accelerated: whether the work gains from a GPU.

    Raises:
        UserError: something the user gave is wrong; no run was written.
    """
    check_out(options.out, tables)
    if rows_only():
        with open_engine(EngineOptions()) as engine:
            return runs_of(options.out, prepare(engine).run_ids)
    with ExitStack() as stack:
        # first of all: Ray starts processes, which is not safe once JAX has started threads
        engine = stack.enter_context(open_engine(options.engine, accelerated))
        work = prepare(engine)
        run_ids = list(dict.fromkeys(work.run_ids))
        sources = sources_text(vars(options))
        store = stack.enter_context(
            ResultStore(options.out, tables, dict(work.id_types), options.write, sources)
        )
        finished = resumed(run_ids, store) if options.resume else set()
        batches = each_once(work.batches(finished))
        if isinstance(work.solve, Driven):
            run_driven(batches, work.solve, store, engine, work.verb)
            return runs_of(options.out, run_ids)

        def keep(shared: Any) -> None:
            if work.inputs is not None:
                input_id, inputs = work.inputs(shared)
                for name, table in inputs.items():
                    store.write_input(name, input_id, table)

        run_batches(
            batches,
            work.solve,
            store,
            engine,
            work.verb,
            at_once=work.at_once,
            divisible=work.divisible,
            keep=keep,
            all_unstable_is_wrong=work.all_unstable_is_wrong and not finished,
        )
    return runs_of(options.out, run_ids)


def resumed(run_ids: Sequence[str], store: ResultStore) -> set[str]:
    """The runs that need not be computed again; says how many there are, and which files are damaged."""
    finished, damaged = store.finished(run_ids), store.damaged(run_ids)
    if damaged:
        named = [f"{file} {wrong}" for file, wrong in sorted(damaged.items())]
        more = f" and {len(named) - _FILES_NAMED} more" if len(named) > _FILES_NAMED else ""
        text = "%s: files are not as they were written, their runs are computed anew: %s%s"
        log.warning(text, store.out, ", ".join(named[:_FILES_NAMED]), more)
    if finished:
        log.info("%d of %d runs are finished in %s", len(finished), len(run_ids), store.out)
    return finished


def run_study(
    tables: JobTables,
    options: StudyOptions,
    prepare: Callable[[Engine], Work],
    present: Callable[[pd.DataFrame], Recommendation | None],
    console: Console,
    accelerated: bool = False,
    act: Callable[[], Acted] | None = None,
) -> int:
    """All steps of a study; returns its exit code: 0, or 1 where some of its runs did not finish.

    Args:
        tables: datasets of the job.
        options: checked.
        prepare: reads the inputs.
        present: prints and draws rows of ``runs``; returns what they recommend, which is said last and kept.
        console: where the recommendation is said.
        accelerated: whether the work gains from a GPU.
        act: does what is recommended, once all is written and where all runs finished; the exit code is its own then.

    Raises:
        UserError: something the user gave is wrong; no run was written, unless it is ``act`` that says so.
    """
    if options.engine.name == "serial" and not rows_only():
        say_unused(options, ["engine"], "engine=serial")
    with announced() as compilation:
        runs = computed(tables, options, prepare, accelerated)
        taken_remarks()
        recommendation = None if rows_only() else present(runs)
        if recommendation is not None:
            recommendation = replace(recommendation, remarks=taken_remarks(), run_count=len(runs))
            conclude(console, recommendation.sentence)
            write_recommendation(location(options.out), recommendation)
        elif not rows_only():
            remove_recommendation(location(options.out))
        if not rows_only():
            say_charts(options.out)
            say_seconds(compilation)
    outcomes = _outcomes.get()
    if outcomes is not None:
        outcomes.append(Outcome(runs, recommendation))
    code, applied = exit_code(runs), dict[str, Any]()
    if act is not None and code == 0 and not rows_only():
        code, said = act()
        applied = {"applied": said}
    if output_mode() is OutputMode.JSON:
        print_json(tables, options.out, runs, recommendation, code, applied)
    return code


def say_charts(out: str) -> None:
    """Name the command that makes a page of results."""
    log.info("charts of it: ecjax report %s", word(out))


def say_seconds(compilation: Compilation) -> None:
    """Say how long the user has waited for the command or call, and for which part a compiler is to blame."""
    seconds = time.time() - (waited_since() or psutil.Process().create_time())
    of_it = f", {compilation.seconds:.1f} s of it compiling" if compilation.seconds >= 0.1 else ""
    log.info("took %.1f s%s", seconds, of_it)


def runs_of(out: str, run_ids: Iterable[str]) -> pd.DataFrame:
    """Rows of the dataset ``runs`` of these runs, in their order.

    Raises:
        UserError: a run has no row.
    """
    names, rows = list(run_ids), read_results(out, "runs").set_index("run_id")
    missing = [name for name in names if name not in rows.index]
    if missing:
        raise UserError(
            f"out={without_secrets(out)}: found no rows of {len(missing)} of {len(names)} runs, as {missing[0]}; "
            "allowed: a folder where they were run with the same options"
        )
    return rows.loc[names].reset_index()


def exit_code(runs: pd.DataFrame) -> int:
    """0, or 1 where some of the runs did not finish."""
    return 0 if all(Status(status).finished for status in runs["status"]) else 1
