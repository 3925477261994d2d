"""``ecjax optimize``: from tables (or the built-in cluster) to plans, result tables and figures."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import pyarrow as pa
from rich.console import Console

from ecjax import programs
from ecjax.engine import Engine
from ecjax.options import checked
from ecjax.studies.optimize.batches import (
    batches,
    items_of,
    lanes_of,
    widest_batch,
    width_by_class,
    with_bases,
)
from ecjax.studies.optimize.case import Case
from ecjax.studies.optimize.figures.kinds import draw
from ecjax.studies.optimize.inputs import Tables, case_of, read_tables, with_thetas_that_matter
from ecjax.studies.optimize.loads import case_loads, refuse_overload, table_loads, warn_of_overload
from ecjax.studies.optimize.objective_rules import TRACE
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.recommend import recommend
from ecjax.studies.optimize.run import solve
from ecjax.studies.optimize.streamed import streamed_work
from ecjax.studies.optimize.summary import show
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.optimize.what_if_words import say_answers
from ecjax.studies.spine.log_options import at_peak
from ecjax.studies.spine.study import Work, computed, run_study
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.ids import id_types
from ecjax.tables.recommendation import Recommendation


def optimize_study(options: OptimizeOptions, console: Console) -> int:
    """Run the study; returns the exit code (0, or 1 where some runs have no stable plan).

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)
    if not at_peak(options):
        say_unused(options, ["window_s"], f"rate={options.rate}")

    def present(runs: pd.DataFrame) -> Recommendation | None:
        show(runs, console, options)
        recommendation = recommend(runs, options)
        chosen = recommendation.run_id if recommendation is not None else None
        if options.what_if:
            say_answers(runs, chosen, console)
        draw(options.out, runs.assign(recommended=runs["run_id"] == chosen), options.figures, console)
        return recommendation

    return run_study(TABLES, options, partial(_work, options, None), present, console, _accelerated(options))


def planned(options: OptimizeOptions, tables: Sequence[Tables]) -> pd.DataFrame:
    """Plan what is not yet planned in ``out``; returns the rows of the ``runs`` dataset in the order of the sweep.

    Args:
        options: of the plans.
        tables: that they name, as ``read_tables`` reads them.

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)
    return computed(TABLES, options, partial(_work, options, tables), _accelerated(options))


def _accelerated(options: OptimizeOptions) -> bool:
    """Whether a GPU helps: plans for a log and streamed ones are the processors'.

    So are those by class unless ``device`` says that sweeps of them go side by side.
    Certified ones alone are JAX's where ``device`` says so, or, of one chunk size, where they are large enough.
    """
    if options.stream or options.objective == TRACE:
        return False
    if "fcfs" not in options.queue:
        return options.device == "jax" and options.deadline_s is None
    return options.method != ["certified"] or options.device != "host"


def _work(options: OptimizeOptions, tables: Sequence[Tables] | None, engine: Engine) -> Work:
    if options.stream:
        return streamed_work(options)
    if tables is None:
        tables = list(read_tables(options))
    options = with_thetas_that_matter(options, (each.nodes for each in tables))
    loads = [table_loads(options, each) for each in tables]
    refuse_overload(loads)
    programs.use_compilation_cache()
    cases = [case_of(options, each) for each in tables]
    loads = [case_loads(options, case, without) for case, without in zip(cases, loads, strict=True)]
    refuse_overload(loads)
    warn_of_overload(loads)
    runs = with_bases([(case, items_of(case, options)) for case in cases])
    lanes = sum(len(lanes_of(items)) for _, items in runs)

    def widest(case: Case) -> int:
        return widest_batch(case, options, lanes, engine)

    def by_class(case: Case, runs: int) -> int:
        return width_by_class(case, runs, options, engine)

    return Work(
        run_ids=[item.run.run_id for _, items in runs for item in items],
        batches=partial(batches, runs, widest, options.exchange, by_class=by_class),
        solve=partial(solve, options),
        id_types=id_types(*(table for case in cases for table in (case.nodes, case.files))),
        verb="planning",
        inputs=_inputs,
        at_once=1,
        divisible=False,
        all_unstable_is_wrong=True,
    )


def _inputs(case: Case) -> tuple[str, dict[str, pa.Table]]:
    return case.input_id, {"nodes": case.nodes, "files": case.files}
