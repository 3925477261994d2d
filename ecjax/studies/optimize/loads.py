"""Which points of a sweep overload a node however reads are spread: said before anything is planned or compiled."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.problem.overload import EVENLY, Demand, demand_of, demand_of_tables, least_overload, overload
from ecjax.studies.optimize.case import Case
from ecjax.studies.optimize.inputs import Tables
from ecjax.studies.optimize.options import OptimizeOptions


class Loads(NamedTuple):
    """What the points of a sweep come to.

    Attributes:
        errors: of points that overload a node for certain: the load, and a line.
        stable: whether there are other points.
    """

    errors: list[tuple[float, str]]
    stable: bool


def table_loads(
    options: OptimizeOptions,
    tables: Tables,
    rates: Sequence[float] | None = None,
    sizes: Sequence[float] | None = None,
) -> Loads:
    """What the points of a sweep over checked tables come to, whatever the constraints.

    Args:
        options: checked.
        tables: of the sweep.
        rates: that rates are multiplied by; default: those of the options.
        sizes: that file sizes are multiplied by; default: those of the options.
    """
    if tables.error is not None:
        return Loads([], stable=False)
    demand = demand_of_tables(
        tables.nodes, tables.files, tables.names.rows, options.size_scaling, options.max_chunks_per_node
    )
    rates, sizes = (
        options.rate_scale if rates is None else rates,
        options.size_scale if sizes is None else sizes,
    )
    return loads_of(demand, rates, sizes, tables.names.nodes)


def case_loads(options: OptimizeOptions, case: Case, without: Loads) -> Loads:
    """The same where constraints or lengths of files that are kept leave fewer spreads.

    Args:
        options: checked.
        case: with its constraints.
        without: what the points come to without them.
    """
    if case.error is not None:
        return Loads([], stable=False)
    problem = case.problem if "fcfs" in options.queue else case.fixed_lengths
    if problem.allowed is None and (problem.writes is None or problem is case.problem):
        return without
    return loads_of(demand_of(problem), options.rate_scale, options.size_scale, case.names.nodes)


def loads_of(demand: Demand, rates: Iterable[float], sizes: Iterable[float], nodes: pa.Array) -> Loads:
    """What the points of a sweep come to.

    Args:
        demand: at rates and sizes as they are.
        rates: that rates are multiplied by.
        sizes: that file sizes are multiplied by.
        nodes: ids.
    """
    errors, stable = list[tuple[float, str]](), False
    for size in np.unique(list(sizes)):
        # a point that is not overloaded is not overloaded at lower rates either
        for rate in np.unique(list(rates))[::-1]:
            load = least_overload(demand.scaled(rate, size))
            if load is None:
                stable = True
                break
            errors.append((load.max(), overload(load, demand.background, rate, nodes, EVENLY)))
    return Loads(errors, stable)


def refuse_overload(loads: Iterable[Loads]) -> None:
    """Refuse a sweep of which all points overload a node.

    Raises:
        UserError: names the node of the point with the least load.
    """
    listed = list(loads)
    errors = [error for each in listed for error in each.errors]
    if errors and not any(each.stable for each in listed):
        raise UserError(min(errors)[1])


def warn_of_overload(loads: Iterable[Loads]) -> None:
    """Say which points overload a node."""
    for each in loads:
        for _, error in each.errors:
            log.warning("%s", error)
