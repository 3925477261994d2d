"""Columns of ``runs`` on moments of service: figures where they are intervals, and laws that miss those measured."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ecjax.planning import Solution
from ecjax.planning.problem import EVALUATE
from ecjax.predict.plan_estimates import plan_estimate
from ecjax.problem.arrays import files_arrays, several_per_node
from ecjax.problem.service_laws import mean_chunk_bytes
from ecjax.studies.optimize.case import Case, Lane, laws_of, nodes_of
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.tables.rules import HIGH_MOMENTS, LOW_MOMENTS, MOMENT_COLUMNS


def moment_columns(
    options: OptimizeOptions, case: Case, lane: Lane, plan: Solution
) -> dict[str, float | None]:
    """``latency_s`` and the estimates of a plan with the least and the largest moments; none where these are one.

    Each end is moments of one law. Where the mean is known, mean and variance of a sojourn grow with the second and
    the third moment, and so does the bound: that of every law in the buckets is between both. Without a mean (Ceph)
    they are what the two extreme laws give. Null where a node is overloaded with them.

    Args:
        options: of the study.
        case: what is planned for.
        lane: of the run.
        plan: stable, without a lane axis.
    """
    if LOW_MOMENTS[0] not in case.nodes.column_names:
        return {}
    problem, placed = case.problem_of(lane), (plan.probabilities, plan.stored)
    columns: dict[str, float] = {}
    for end, names in (("low", LOW_MOMENTS), ("high", HIGH_MOMENTS)):
        nodes = _with_moments(case.nodes, names)
        arrays = nodes_of(options, nodes, mean_chunk_bytes(case.problem.files))
        if options.max_chunks_per_node > 1:
            arrays, _ = several_per_node(arrays, files_arrays(case.files), options.max_chunks_per_node)
        there = replace(problem, nodes=replace(problem.nodes, service=arrays.service))
        columns[f"latency_{end}_s"] = float(EVALUATE(there, *placed, np.asarray(lane.theta)).latency)
        if options.objective == "bound" and options.estimate and case.names.per_node == 1:
            laws = laws_of(options, case, lane, nodes)
            estimate = plan_estimate(there, laws, *map(np.asarray, placed))
            columns |= {f"estimated_mean_{end}_s": estimate.mean, f"estimated_p99_{end}_s": estimate.p99}
    return {name: value if np.isfinite(value) else None for name, value in columns.items()}


def misfit_columns(case: Case) -> dict[str, float]:
    """How far the affine laws of an analysis are from what it measured, in second moments; none of other nodes.

    Args:
        case: what is planned for.
    """
    names = ("observed_second_s2", "law_second_s2")
    if not set(names) <= set(case.nodes.column_names) or "delta_s" not in case.nodes.column_names:
        return {}
    try:
        measured, fitted = (case.nodes[name].to_numpy(zero_copy_only=False).astype(float) for name in names)
    except (ValueError, TypeError):
        return {}  # a column of the user's own
    known = (measured > 0) & (fitted > 0) & np.isfinite(measured) & np.isfinite(fitted)
    ratio = measured[known] / fitted[known]
    return {"service_second_ratio": float(ratio[np.argmax(np.abs(np.log(ratio)))])} if len(ratio) else {}


def _with_moments(nodes: pa.Table, names: tuple[str, ...]) -> pa.Table:
    for name, other in zip(MOMENT_COLUMNS, names, strict=False):
        nodes = nodes.set_column(nodes.column_names.index(name), name, nodes[other])
    return nodes
