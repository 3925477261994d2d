"""From a log of nodes with several channels to a nodes table that plans know."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from channel_logs import served

import ecjax
from ecjax.tables.results import read_results

CHANNELS = [1, 2, 4]
LOAD = 0.6


def log(folder, starts, law="shifted exponential"):
    node, arrival, start, finish = served(CHANNELS, LOAD, law, rows=12_000)
    columns = {
        "request_id": np.arange(len(node)),
        "arrival_s": arrival,
        "file_id": np.arange(len(node)) % 5,
        "op": "read",
        "bytes": 2.0**20,
        "node_id": [f"disk{each}" for each in node],
        **({"start_s": start} if starts else {}),
        "finish_s": finish,
    }
    path = folder / "log.parquet"
    pd.DataFrame(columns).to_parquet(path)
    return path, node, start, finish, arrival


@pytest.mark.parametrize("starts", [True, False])
def test_channels_and_services_of_the_nodes_are_those_that_made_the_log(starts, tmp_path):
    path, node, start, finish, arrival = log(tmp_path, starts)
    ecjax.analyze(str(path), out=str(tmp_path / "out"), figures=False)
    nodes = read_results(tmp_path / "out", "nodes").sort_values("node_id")
    assert nodes["channels"].tolist() == CHANNELS
    for number, (_, row) in enumerate(nodes.iterrows()):
        service = (finish - start)[node == number]
        for power, name in enumerate(("service_mean_s", "service_second_s2", "service_third_s3"), 1):
            np.testing.assert_allclose(row[name], np.mean(service**power), rtol=1e-8)
        # 0.7 + Exp(0.3): the moments that made the log, within four standard errors
        moments = 1.0, 0.7**2 + 2 * 0.7 * 0.3 + 2 * 0.09
        for name, value in zip(("observed_mean", "observed_second"), moments, strict=True):
            unit = "s" if name == "observed_mean" else "s2"
            assert abs(row[f"{name}_{unit}"] - value) < 4 * row[f"{name}_error_{unit}"]
        np.testing.assert_allclose(row["load"], service.sum() / np.ptp(arrival) / CHANNELS[number], rtol=1e-9)
    (trace,) = read_results(tmp_path / "out", "traces").to_dict("records")
    assert "2 nodes (disk" in trace["notices"] and "2 to 4 accesses at once (channels)" in trace["notices"]
    assert ("one law" in trace["notices"]) is False


def test_channels_of_a_table_count_instead(tmp_path):
    path, node, start, finish, arrival = log(tmp_path, True)
    table = pa.table(
        {
            "node_id": [f"disk{number}" for number in range(3)],
            "service_mean_s": [1.0] * 3,
            "service_second_s2": [1.1] * 3,
            "service_third_s3": [1.3] * 3,
            "reference_bytes": [2.0**20] * 3,
            "channels": [1, 2, 8],
        }
    )
    pa.parquet.write_table(table, tmp_path / "nodes.parquet")
    out = tmp_path / "out"
    ecjax.analyze(str(path), nodes=str(tmp_path / "nodes.parquet"), out=str(out), figures=False)
    nodes = read_results(out, "nodes").sort_values("node_id")
    assert nodes["channels"].tolist() == [1, 2, 8]
    busy = (finish - start)[node == 2].sum()
    assert nodes["load"].iloc[2] == pytest.approx(busy / np.ptp(arrival) / 8)
    (trace,) = read_results(out, "traces").to_dict("records")
    assert "1 node has other channels in nodes=" in trace["notices"]
