"""Small reads of each class of files: without load they take what their own sizes take."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ecjax
from ecjax.planning.read_kinds.sizes import few_sizes
from ecjax.studies.codes.traffic import ChunkRates, spread_evenly, work_of_small

pytestmark = pytest.mark.usefixtures("optimized")
PER_BYTE = 1e-7  # s, mean of exponential services
SMALL = {
    "below 1 MB": 2e5,
    "from 1 MB": 2e6,
}  # B, a chunk each: estimates of all and of one class are of two sizes
LITTLE_REPAIR = {
    "repair_bytes_per_s": 1e6,
    "user_bytes": 1e9,
    "groups": 64,
    "durability_nines": 1,
    "gap": 0.2,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    law = {"delta_s": [0.0], "delta_s_per_byte": [0.0], "psi_s": [0.0], "psi_s_per_byte": [PER_BYTE]}
    # as many of both as where small reads of the files have their own rates: one compiled program estimates both
    nodes = {"node_id": range(6)} | {name: value * 6 for name, value in law.items()}
    large = np.arange(60) % 3 == 0
    files = {
        "file_id": range(60),
        "bytes": np.where(large, 4e6, 4e5),
        "k": [1] * 60,
        "rate_per_s": [1e-4] * 60,
        "small_rate_per_s": np.where(large, 2e-4, 5e-5),
        "small_bytes": np.where(large, SMALL["from 1 MB"], SMALL["below 1 MB"]),
    }
    places = {}
    for name, columns in (("nodes", nodes), ("files", files)):
        places[name] = str(folder / f"{name}.csv")
        pd.DataFrame(columns).to_csv(places[name], index=False)
    options = {"classes": "size", "size_bounds": [1e6], "out": str(folder / "out")}
    with ecjax.codes(["2+1"], **places, **options, **LITTLE_REPAIR) as found:
        yield found


def test_each_class_has_the_latencies_of_its_small_reads(results):
    rows = results.class_codes.set_index("service_class")
    for name, size in SMALL.items():
        mean = PER_BYTE * size
        assert rows.loc[name, "small_healthy_mean_s"] == pytest.approx(mean, rel=0.02)
        assert rows.loc[name, "small_healthy_p99_s"] == pytest.approx(mean * np.log(100), rel=0.03)
        # one read in six finds its chunk on the node that is down, and takes two others
        assert rows.loc[name, "small_down_mean_s"] == pytest.approx(mean * (5 + 1.5) / 6, rel=0.05)


def test_all_small_reads_are_those_of_the_classes(results):
    [row] = results.combinations.to_dict("records")
    by_class = json.loads(row["class_small_healthy_mean_s"])
    rates = {"below 1 MB": 40 * 5e-5, "from 1 MB": 20 * 2e-4}
    mean = sum(rates[name] * by_class[name] for name in rates) / sum(rates.values())
    assert row["small_healthy_mean_s"] == pytest.approx(mean, rel=5e-3)
    [code] = results.codes.to_dict("records")
    assert code["small_healthy_mean_s"] == pytest.approx(mean, rel=5e-3)


def test_loads_are_of_all_sizes_of_small_reads():
    """Of twelve sizes, where estimates know eight."""
    size, rate = np.geomspace(1e3, 1e6, 12), np.linspace(1.0, 2.0, 12)
    small = ChunkRates(size, *few_sizes(size, rate), rate, np.ones(12, int))
    assert len(small.sizes) < 12
    service = np.zeros((3, 4, 6))
    for order, times in enumerate((1.0, 2.0, 6.0)):
        service[order, order + 1] = times * PER_BYTE ** (order + 1)
    problem = SimpleNamespace(nodes=SimpleNamespace(work=service, count=6))
    each = np.array([rate @ (times * (PER_BYTE * size) ** n) for n, times in ((1, 1.0), (2, 2.0), (3, 6.0))])
    np.testing.assert_allclose(spread_evenly(problem, small), np.tile(each[:, None] / 6, 6), rtol=1e-12)
    chunks = rate[:, None] * np.eye(12, 6)
    load = work_of_small(problem, small, chunks)[0]
    np.testing.assert_allclose(load, PER_BYTE * (size * rate)[:6], rtol=1e-12)
