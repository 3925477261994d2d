"""Failure scenarios from the nodes table, and the ``scenarios`` dataset."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.planning.scenarios import Outcomes, node_scenarios, site_scenarios

KINDS = ("node", "site")


@dataclass(frozen=True)
class Failures:
    """Which nodes are down in each of S scenarios."""

    names: list[str]  # node or site id, as text
    kinds: list[str]  # of KINDS
    down: np.ndarray  # (S, m) bool


def failures(nodes: pa.Table, kinds: list[str]) -> Failures:
    """Every node down alone, and every site down as a whole.

    Args:
        nodes: checked nodes table.
        kinds: of ``KINDS``, in any order.

    Raises:
        UserError: an unknown kind, no kind, or sites that the table does not have.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise UserError(f"scenarios: found {', '.join(unknown) or 'nothing'}; allowed: {', '.join(KINDS)}")
    names, of_kind, down = [], [], []
    if "node" in kinds:
        names += list(map(str, nodes["node_id"].to_pylist()))
        of_kind += ["node"] * nodes.num_rows
        down.append(node_scenarios(nodes.num_rows))
    if "site" in kinds:
        if "site" not in nodes.column_names:
            raise UserError("scenarios=site: found no column site in nodes; it names the site of every node")
        sites = nodes["site"].combine_chunks().dictionary_encode()
        names += list(map(str, sites.dictionary.to_pylist()))
        of_kind += ["site"] * len(sites.dictionary)
        down.append(site_scenarios(sites.indices.to_numpy()))
    return Failures(names, of_kind, np.concatenate(down))


def scenarios(run_id: str, outcomes: Outcomes, which: Failures, nodes: pa.Array) -> pa.Table:
    """Rows of the ``scenarios`` dataset.

    Args:
        run_id: run whose plan it is.
        outcomes: what happens in every scenario.
        which: the scenarios.
        nodes: (m,) node ids.
    """
    nothing_up = which.down.all(axis=1)
    return pa.table(
        {
            "run_id": pa.repeat(pa.scalar(run_id, pa.string()), outcomes.count),
            "scenario": pa.array(which.names, pa.string()),
            "kind": pa.array(which.kinds, pa.string()),
            "status": pa.array([str(status) for status in outcomes.status], pa.string()),
            "latency_s": _unless_nan(outcomes.latency),
            "latency_shared_z_s": _unless_nan(outcomes.latency_shared_z),
            "max_load": pa.array(outcomes.max_load, pa.float64(), mask=nothing_up),
            "busiest_node": nodes.take(pa.array(outcomes.busiest.astype(np.int64), mask=nothing_up)),
            "unavailable_files": outcomes.unavailable_files.astype(np.int64),
            "unavailable_share": outcomes.unavailable_share,
        }
    )


def summary(outcomes: Outcomes, which: Failures) -> dict[str, Any]:
    """Columns of the ``runs`` dataset that sum up all scenarios of a plan."""
    worst, mean = outcomes.worst(), outcomes.mean()
    latency = float(outcomes.latency[worst])
    return {
        "scenarios_mean_latency_s": None if math.isnan(mean) else mean,
        "worst_scenario": which.names[worst],
        "worst_scenario_latency_s": None if math.isnan(latency) else latency,
        "worst_unavailable_share": float(outcomes.unavailable_share.max()),
    }


def _unless_nan(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))
