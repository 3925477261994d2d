"""A plan of an earlier run as probabilities for the files and nodes at hand."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.inputs import index_in
from ecjax.studies.options_optimize import OptimizeOptions
from ecjax.studies.plan_tables import Identity
from ecjax.tables.results import find_run, read_run


class GivenPlan(NamedTuple):
    """An earlier plan on the rows and nodes at hand."""

    probabilities: jax.Array  # (R, m), zero for rows that it does not know
    stored: jax.Array  # (R, m) bool
    run_id: str


def read_plan(options: OptimizeOptions, names: Identity) -> GivenPlan:
    """The chosen run's plan.

    Rows that the run does not know are zero, which projects to uniform.

    Raises:
        UserError: no or several runs fit, or the run shares no placement row or no node with the inputs.
    """
    folder = Path(str(options.plan))
    if not folder.is_dir():
        raise UserError(f"plan={options.plan}: no such folder")
    run = find_run(folder, options.plan_run, options.plan_where)
    probabilities, stored, known = plan_arrays(folder, run["run_id"], names)
    if not known.any():
        raise UserError(f"plan={options.plan}: run {run['run_id']} shares no file or no node with the inputs")
    if not known.all():
        log.info(
            "plan: %d of %d rows are not in run %s and are placed anew",
            (~known).sum(),
            len(known),
            run["run_id"],
        )
    return GivenPlan(jnp.asarray(probabilities), jnp.asarray(stored), run["run_id"])


def plan_arrays(folder: Path, run_id: str, names: Identity) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The placements of a run: probabilities (R, m), stored (R, m) bool, and the rows (R,) that the run knows."""
    table = read_run(folder, "placements", run_id)
    probabilities = np.zeros((names.rows.count, len(names.nodes)))
    stored = np.zeros(probabilities.shape, bool)
    known = np.zeros(names.rows.count, bool)
    node = index_in(table["node_id"], names.nodes)
    for column, ids in (("file_id", names.rows.file), ("group", names.rows.group)):
        if ids is None:
            continue
        row = index_in(table[column], ids)
        there = (row >= 0) & (node >= 0)
        probabilities[row[there], node[there]] = table["probability"].to_numpy()[there]
        stored[row[there], node[there]] = True
        known[row[there]] = True
    return probabilities, stored, known
