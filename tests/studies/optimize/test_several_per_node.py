"""Several chunks of a file on each of its nodes, held fixed."""

import json
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import problems
import pytest

from ecjax.errors import UserError
from ecjax.problem.arrays import check_together, files_arrays, nodes_arrays, several_per_node
from ecjax.queueing import ServiceMoments, fcfs
from ecjax.tables.results import read_results

VECTORS = json.loads((Path(__file__).parents[2] / "queueing" / "vectors.json").read_text())


@pytest.mark.parametrize("count", [2, 3])
def test_service_of_a_super_chunk_is_a_sum_of_chunk_services(count):
    """Cumulants of independent services add up, whatever the size."""
    case = problems.mixed()
    tables = case.tables()
    nodes, files = nodes_arrays(tables[0], case.size_scaling), files_arrays(tables[1])
    super_nodes, super_files = several_per_node(nodes, files, count)
    size = 2.5e6
    one, together = (
        np.einsum("npm,p->nm", np.asarray(of.service), size ** np.arange(4.0)) for of in (nodes, super_nodes)
    )
    mean, variance = count * one[0], count * (one[1] - one[0] ** 2)
    skew = count * (one[2] - 3 * one[0] * one[1] + 2 * one[0] ** 3)
    np.testing.assert_allclose(together[0], mean, rtol=1e-12)
    np.testing.assert_allclose(together[1], variance + mean**2, rtol=1e-12)
    np.testing.assert_allclose(together[2], skew + 3 * mean * variance + mean**3, rtol=1e-12)
    np.testing.assert_allclose(super_files.k * count, files.k)
    assert np.all((super_files.k + super_files.min_extra_chunks) * count >= files.k + files.min_extra_chunks)


@pytest.mark.parametrize("case", VECTORS["d_superchunk"])
def test_sojourns_are_those_of_the_corrected_lemma(case):
    inputs, expected = case["inputs"], case["expected"]
    tables = problems.mixed().tables()
    nodes, files = nodes_arrays(tables[0], problems.mixed().size_scaling), files_arrays(tables[1])
    moments = np.stack([np.atleast_1d(inputs[name]) for name in ("m1", "m2", "m3")])
    constant = replace(nodes, service=jnp.zeros((3, 4, moments.shape[1])).at[:, 0].set(moments))
    rates = np.reshape(inputs["rates"], (len(inputs["xs"]), -1))
    of_count = [np.asarray(several_per_node(constant, files, x)[0].service)[:, 0] for x in inputs["xs"]]
    delay = fcfs(rates, ServiceMoments(*jnp.asarray(np.stack(of_count, axis=1))))
    np.testing.assert_allclose(np.ravel(delay.mean), np.ravel(expected["ET"]), rtol=1e-10)
    np.testing.assert_allclose(np.ravel(delay.variance), np.ravel(expected["VarT"]), rtol=1e-10)


def test_tables_count_chunks_and_k_must_be_a_multiple(tmp_path):
    case = problems.mixed()
    case = problems.Case(case.nodes, case.files.assign(k=2, rate_per_s=case.files["rate_per_s"] / 4))
    out = tmp_path / "out"
    code, _ = problems.study(out, case, method="certified", max_chunks_per_node=2)
    assert code == 0
    placed = read_results(out, "placements")
    plans = read_results(out, "file_plans")
    assert set(placed["chunks"]) == {2}
    np.testing.assert_array_equal(placed.groupby("file_id")["chunks"].sum()[plans["file_id"]], plans["n"])
    np.testing.assert_allclose(placed.groupby("file_id")["probability"].sum(), 1.0)
    run = read_results(out, "runs").iloc[0]
    price = case.nodes.set_index("node_id")
    bytes_ = case.files.set_index("file_id")
    stored = bytes_["stored_bytes"] if "stored_bytes" in bytes_ else bytes_["bytes"]
    by_byte = price["cost_per_byte_dollars"] if "cost_per_byte_dollars" in price else 0 * price.iloc[:, 0]
    per_chunk = price["cost_per_chunk_dollars"] if "cost_per_chunk_dollars" in price else 0 * by_byte
    each = per_chunk[placed["node_id"]].fillna(0).to_numpy() + (
        by_byte[placed["node_id"]].fillna(0).to_numpy() * stored[placed["file_id"]].to_numpy() / 2
    )
    assert run.cost_dollars_per_period == pytest.approx(np.sum(2 * each), rel=1e-9)
    loads = read_results(out, "node_loads").set_index("node_id")
    chunks = placed.groupby("node_id")["chunks"].sum().reindex(loads.index, fill_value=0)
    np.testing.assert_array_equal(loads["chunks"], chunks)
    stored_bytes = pd.Series(placed["chunks"].to_numpy() * stored[placed["file_id"]].to_numpy() / 2)
    stored_bytes = stored_bytes.groupby(placed["node_id"]).sum().reindex(loads.index, fill_value=0.0)
    np.testing.assert_allclose(loads["bytes_stored"], stored_bytes, rtol=1e-9)
    assert loads["cost_dollars_per_period"].sum() == pytest.approx(run.cost_dollars_per_period, rel=1e-9)
    assert loads["load"].max() == pytest.approx(run.max_load, rel=1e-9)
    with pytest.raises(UserError, match="a read takes 3 chunks; allowed: a multiple of 2"):
        check_together(*problems.Case(case.nodes, case.files.assign(k=3)).tables(), 2)


def test_queues_by_class_count_chunks_and_estimate_nothing(tmp_path):
    """The estimate is of single chunks; as with one queue for all there is none of chunks served together."""
    case = problems.mixed()
    files = case.files.assign(k=2, rate_per_s=case.files["rate_per_s"] / 4)
    case = problems.Case(case.nodes, files.assign(service_class=np.arange(len(files)) % 2))
    out = tmp_path / "out"
    by_class = {"queue": "priority", "method": None, "start": "uniform", "eps": 0.01, "theta": 0.0}
    code, _ = problems.study(out, case, max_chunks_per_node=2, estimate=True, **by_class)
    assert code == 0
    plans = read_results(out, "file_plans")
    classes = read_results(out, "class_plans").set_index("service_class")
    placed = read_results(out, "placements").groupby("file_id")["chunks"].sum()
    for name, own in plans.groupby("service_class"):
        assert classes["mean_n"][name] == placed[own["file_id"]].mean() == own["n"].mean()
    assert read_results(out, "runs")[["estimated_mean_s", "estimated_p99_s"]].isna().all(axis=None)
