"""``ecjax optimize``: from tables (or the built-in cluster) to plans, result tables and figures."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console

from ecjax import precision
from ecjax.console import log
from ecjax.engine import Engine
from ecjax.errors import UserError
from ecjax.optimize import scaled
from ecjax.options import checked
from ecjax.problem.overload import EVENLY, least_overload, overload
from ecjax.studies.optimize.batches import batches, items_of, lanes_of, widest_batch
from ecjax.studies.optimize.figures.kinds import draw
from ecjax.studies.optimize.inputs import Case, read_cases
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.run import solve
from ecjax.studies.optimize.summary import show
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine.study import Work, computed, run_study
from ecjax.tables.ids import id_types


def optimize_study(options: OptimizeOptions, console: Console) -> int:
    """Run the study; returns the exit code (0, or 1 where some runs have no stable plan).

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)

    def present(runs: pd.DataFrame) -> None:
        show(runs, console, options)
        draw(options.out, runs, options.figures, console)

    return run_study(TABLES, options, partial(_work, options), present, _accelerated(options))


def planned(options: OptimizeOptions) -> pd.DataFrame:
    """Plan what is not yet planned in ``out``; returns the rows of the ``runs`` dataset in the order of the sweep.

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)
    return computed(TABLES, options, partial(_work, options), _accelerated(options))


def _accelerated(options: OptimizeOptions) -> bool:
    """Whether a GPU helps: the certified method, and plans by class, are computed by processors."""
    return "fcfs" in options.queue and options.method != ["certified"]


def _work(options: OptimizeOptions, engine: Engine) -> Work:
    precision.use_compilation_cache()
    cases = list(read_cases(options))
    _check_loads(options, cases)
    runs = [(case, items_of(case, options)) for case in cases]
    lanes = sum(len(lanes_of(items)) for _, items in runs)

    def widest(case: Case) -> int:
        return widest_batch(case, options, lanes, engine)

    return Work(
        run_ids=[item.run.run_id for _, items in runs for item in items],
        batches=partial(batches, runs, widest),
        solve=partial(solve, options),
        id_types=id_types(*(table for case in cases for table in (case.nodes, case.files))),
        verb="planning",
        inputs=_inputs,
        at_once=1,
        divisible=False,
        all_unstable_is_wrong=True,
    )


def _check_loads(options: OptimizeOptions, cases: list[Case]) -> None:
    """Say at once which points of the sweep overload a node however reads are spread.

    Raises:
        UserError: all of them do.
    """
    errors, stable = list[tuple[float, str]](), False
    for case in cases:
        problem = case.problem if "fcfs" in options.queue else case.fixed_lengths
        for size in np.unique(case.lanes.size_scale):
            # a point that is not overloaded is not overloaded at lower rates either
            for rate in np.unique(case.lanes.rate_scale)[::-1]:
                load = least_overload(scaled(problem, rate, size))
                if load is None:
                    stable = True
                    break
                background = np.asarray(problem.nodes.background[0])
                errors.append((load.max(), overload(load, background, rate, case.names.nodes, EVENLY)))
    if errors and not stable:
        raise UserError(min(errors)[1])
    for _, error in errors:
        log.warning("%s", error)


def _inputs(case: Case) -> tuple[str, dict[str, pa.Table]]:
    return case.input_id, {"nodes": case.nodes, "files": case.files}
