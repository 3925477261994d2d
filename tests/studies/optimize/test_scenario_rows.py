"""Scenarios from the nodes table, and the rows of the ``scenarios`` dataset."""

import numpy as np
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.planning.scenarios import Outcomes
from ecjax.studies.optimize.scenario_rows import failures, scenarios, summary
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.finite import check_finite

NODES = pa.table({"node_id": [7, 8, 9], "site": ["b", "a", "b"]})


def outcomes(latency: list[float], **changes) -> Outcomes:
    count = len(latency)
    known = {
        "latency": np.array(latency),
        "latency_shared_z": np.array(latency) + 1,
        "max_load": np.full(count, 0.5),
        "busiest": np.arange(count, dtype=np.int32) % 3,
        "unavailable_files": np.arange(count, dtype=np.int32),
        "unavailable_share": np.linspace(0, 1, count),
        "converged": np.ones(count, bool),
    }
    return Outcomes(**(known | changes))


def test_nodes_then_sites_in_the_order_of_the_table():
    found = failures(NODES, ["site", "node"])
    assert found.names == ["7", "8", "9", "b", "a"]
    assert found.kinds == ["node"] * 3 + ["site"] * 2
    np.testing.assert_array_equal(
        found.down, np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 0]], bool)
    )
    assert failures(NODES, ["site"]).names == ["b", "a"]
    assert failures(NODES.drop_columns("site"), ["node"]).names == ["7", "8", "9"]


@pytest.mark.parametrize(
    "nodes, kinds, message",
    [
        (NODES, ["rack", "node"], "scenarios: found rack; allowed: node, site"),
        (NODES, [], "scenarios: found nothing; allowed: node, site"),
        (
            NODES.drop_columns("site"),
            ["node", "site"],
            "scenarios=site: found no column site in nodes; it names the site of every node",
        ),
    ],
)
def test_mistakes_are_one_line(nodes, kinds, message):
    with pytest.raises(UserError) as caught:
        failures(nodes, kinds)
    assert str(caught.value) == message


def test_rows_carry_ids_as_they_came_and_null_where_nothing_is_served():
    which = failures(pa.table({"node_id": [7, 8, 9], "site": ["a", "a", "a"]}), ["node", "site"])
    found = outcomes([2.0, np.inf, 3.0, np.nan], converged=np.array([True, True, False, True]))
    table = scenarios("r" * 16, found, which, NODES["node_id"].combine_chunks())
    assert table.to_pydict() == {
        "run_id": ["r" * 16] * 4,
        "scenario": ["7", "8", "9", "a"],
        "kind": ["node"] * 3 + ["site"],
        "status": ["ok", "unstable", "not_converged", "infeasible"],
        "latency_s": [2.0, np.inf, 3.0, None],
        "latency_shared_z_s": [3.0, np.inf, 4.0, None],
        "max_load": [0.5, 0.5, 0.5, None],
        "busiest_node": [7, 8, 9, None],
        "unavailable_files": [0, 1, 2, 3],
        "unavailable_share": np.linspace(0, 1, 4).tolist(),
    }
    assert table.schema.field("busiest_node").type == pa.int64()


def test_summary_names_the_worst_scenario():
    which = failures(NODES, ["node"])
    found = summary(outcomes([2.0, 6.0, 4.0]), which)
    assert found == {
        "scenarios_mean_latency_s": 4.0,
        "worst_scenario": "8",
        "worst_scenario_latency_s": 6.0,
        "worst_unavailable_share": 1.0,
    }
    # one that serves nothing is the worst and has no latency; the mean is over the others
    lost = summary(outcomes([2.0, np.nan, 4.0]), which)
    assert (lost["scenarios_mean_latency_s"], lost["worst_scenario"]) == (3.0, "8")
    assert lost["worst_scenario_latency_s"] is None
    assert summary(outcomes([np.nan] * 3), which)["scenarios_mean_latency_s"] is None


def test_runs_whose_plan_fails_in_a_scenario_are_ok():
    """An overloaded node has an infinite latency there, and reads that cannot be served have none."""
    runs = {"run_id": ["r"], "latency_s": [2.0]}
    runs |= {"scenarios_mean_latency_s": [np.inf], "worst_scenario_latency_s": [np.inf]}
    scenarios = {"run_id": ["r", "r"], "latency_s": [np.inf, None], "latency_shared_z_s": [np.inf, None]}
    for name, columns in (("runs", runs), ("scenarios", scenarios)):
        table = pa.table(columns)
        for column in TABLES.datasets[name]:
            if column.name not in columns:
                table = table.append_column(column.name, pa.nulls(len(table), pa.string()))
        check_finite(table, name, TABLES, ["r"])
