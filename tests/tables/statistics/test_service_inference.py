import numpy as np

from ecjax.tables.statistics.service import ServiceInference


def served(seed=0, rows=2000, nodes=4):
    """A plain simulation of first-come first-served nodes."""
    random = np.random.default_rng(seed)
    node = random.integers(0, nodes, rows)
    arrival = np.cumsum(random.exponential(0.3, rows))
    service = random.exponential(1.0, rows)
    free, finish = [0.0] * nodes, np.empty(rows)
    for i in range(rows):
        free[node[i]] = finish[i] = max(arrival[i], free[node[i]]) + service[i]
    return node, arrival, service, finish


def infer(node, arrival, finish, batch=77):
    inference = ServiceInference()
    parts = [
        inference.add(
            node[i : i + batch],
            arrival[i : i + batch],
            finish[i : i + batch],
            int(node[: i + batch].max()) + 1,
        )
        for i in range(0, len(node), batch)
    ]
    return np.concatenate(parts), inference


def test_service_times_of_first_come_first_served_nodes_are_found():
    node, arrival, service, finish = served()
    found, inference = infer(node, arrival, finish)
    np.testing.assert_allclose(found, service, atol=1e-9)
    assert inference.reason is None


def test_a_gap_in_the_log_or_another_order_is_named():
    node, arrival, _, finish = served(rows=200)
    lost = finish.copy()
    lost[150] = np.nan
    assert "row 150 has no finish_s" in infer(node, arrival, lost)[1].reason
    swapped = finish.copy()
    same = np.flatnonzero(node == node[90])
    following = same[same > 90][0]
    swapped[[90, following]] = swapped[[following, 90]]
    assert f"row {following} first" in infer(node, arrival, swapped)[1].reason
