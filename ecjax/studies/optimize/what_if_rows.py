"""Rows of the dataset ``what_if``: what becomes of latency, cost and load in every scenario."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case
from ecjax.studies.spine.batches import Rows

AS_IT_IS = "as it is"
_COPIED = (
    *("status", "error", "node_count", "estimated_mean_s", "estimated_p99_s", "latency_s"),
    *("cost_dollars_per_period", "max_load", "mean_n", "moved_chunks"),
)


def answer_rows(case: Case, rows: Rows, items: Mapping[str, Item]) -> pa.Table:
    """A row per run, of the tables as they are too.

    Args:
        case: what the runs plan for.
        rows: of ``runs``.
        items: the runs by id.
    """
    reads = float(np.sum(np.asarray(case.problem.files.rate)))
    if case.small is not None:
        reads += float(case.small.rate.sum())
    answers = []
    for row in rows:
        name = row["run_id"]
        rate_scale = case.lane(items[name].lane).rate_scale
        answers.append(
            {
                "run_id": name,
                "scenario": case.what_if or AS_IT_IS,
                "base_run_id": items[name].base,
                "reads_per_s": reads * rate_scale,
                **{column: row.get(column) for column in _COPIED},
            }
        )
    return pa.Table.from_pylist(answers)
