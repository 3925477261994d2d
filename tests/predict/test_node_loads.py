"""The dataset ``node_loads``, file by file and node by node from the tables."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pytest

from ecjax.planning import evaluate, scaled
from ecjax.predict.node_loads import node_loads
from ecjax.problem.identity import identity

RATE, SIZE = 1.3, 0.7


@pytest.mark.parametrize("make", [problems.mixed, problems.affine, problems.fixed, problems.grouped])
def test_loads_reads_and_costs_of_every_node(make):
    case = make()
    names, problem = identity(*case.tables()), case.problem()
    files, nodes = len(case.files), len(case.nodes)
    surcharge, reading = np.random.default_rng(0).uniform(0, 5, (2, files, nodes))
    problem = replace(problem, surcharge=jnp.asarray(surcharge), reading=jnp.asarray(reading))
    row = np.arange(files) if problem.row is None else np.asarray(problem.row)
    stored = np.random.default_rng(1).random((problem.rows, nodes)) < 0.7
    stored[:, : int(case.k.max())] = True
    probabilities = stored * (np.asarray(problem.k) / stored.sum(axis=1))[:, None]

    plan = scaled(problem, RATE, SIZE)
    table = node_loads("r", plan, probabilities, stored, names).to_pandas()
    scaled_case = case.scaled(RATE, SIZE)
    reads, kept = probabilities[row], stored[row]
    assert table["run_id"].tolist() == ["r"] * nodes
    assert table["node_id"].tolist() == case.nodes["node_id"].tolist()
    np.testing.assert_allclose(table["load"], problems.node_work(scaled_case, reads, kept)[0], rtol=1e-12)
    rate = scaled_case.file("rate_per_s")
    total = sum(rate[i] * reads[i, j] for i in range(files) for j in range(nodes))
    assert table["read_share"].sum() == pytest.approx(1.0)
    for j, node in enumerate(case.nodes.to_dict("records")):
        assert table["read_share"][j] == pytest.approx(sum(rate * reads[:, j]) / total, rel=1e-12)
        chunks, stored_bytes, dollars = 0, 0.0, 0.0
        for i, file in enumerate(scaled_case.files.to_dict("records")):
            dollars += RATE * SIZE * reading[i, j] * reads[i, j]
            if kept[i, j]:
                size = file.get("stored_bytes", file["bytes"]) / file["k"]
                chunks, stored_bytes = chunks + 1, stored_bytes + size
                dollars += node.get("cost_per_chunk_dollars", 0) + node.get("cost_per_byte_dollars", 0) * size
                dollars += SIZE * surcharge[i, j]
        assert table["chunks"][j] == chunks
        assert table["bytes_stored"][j] == pytest.approx(stored_bytes, rel=1e-12)
        assert table["cost_dollars_per_period"][j] == pytest.approx(dollars, rel=1e-12)
    evaluation = evaluate(plan, jnp.asarray(probabilities), jnp.asarray(stored), jnp.zeros(()))
    assert table["cost_dollars_per_period"].sum() == pytest.approx(float(evaluation.cost), rel=1e-12)
