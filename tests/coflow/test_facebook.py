"""The Facebook trace: figures that two independent programs agreed on (mean and 95 % quantile of completion times)."""

from pathlib import Path

import numpy as np
import pytest

from ecjax.coflow.replay import replay
from ecjax.coflow.workload import Fabric, given_sources
from ecjax.tables.importers.coflow_benchmark import read_coflow_benchmark

TRACE = Path(__file__).parents[3] / "shared" / "data" / "FB2010-1Hr-150-0.txt"

pytestmark = pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE} is not here")


@pytest.mark.parametrize(
    ("scheduler", "mean", "p95"),
    [
        pytest.param("fair", 58.790, 228.890),
        pytest.param("pfabric", 33.305, 71.848, marks=pytest.mark.slow),
        pytest.param("varys", 22.225, 37.379, marks=pytest.mark.slow),
    ],
)
def test_means_and_quantiles(scheduler, mean, p95):
    found = read_coflow_benchmark(TRACE)
    ports = len(found.ports)
    columns = (found.table.column(name).to_numpy() for name in ("src", "dst", "bytes"))
    source, target, size = columns
    fabric = Fabric(np.full(ports, 125e6), np.full(ports, 125e6))
    place = {port: i for i, port in enumerate(found.ports.to_pylist())}
    where = np.vectorize(place.__getitem__)
    workload = given_sources(found.arrival_s, found.first_flow, where(source), where(target), size)
    took = replay(workload, fabric, scheduler).completion_s
    np.testing.assert_allclose(took.mean(), mean, rtol=1e-3)
    np.testing.assert_allclose(np.quantile(took, 0.95), p95, rtol=1e-3)
