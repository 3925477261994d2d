"""Writes and repairs of a log as the background load of its nodes."""

import numpy as np
import pandas as pd
import pytest

import ecjax
from ecjax.errors import UserError
from ecjax.tables.results import read_results


def log(path, rows=4000, seed=0, starts=True):
    """Two single servers; every fifth access a write of three times the service, every seventh a repair."""
    random = np.random.default_rng(seed)
    arrival = np.cumsum(random.exponential(0.5, rows))
    node = random.integers(0, 2, rows)
    write, repair = np.arange(rows) % 5 == 0, np.arange(rows) % 7 == 3
    service = random.exponential(0.2, rows) * np.where(write, 3, 1) * np.where(repair, 2, 1)
    free, start = [0.0, 0.0], np.empty(rows)
    for i in range(rows):
        start[i] = max(arrival[i], free[node[i]])
        free[node[i]] = start[i] + service[i]
    frame = pd.DataFrame(
        {
            "request_id": np.arange(rows),
            "arrival_s": arrival,
            "file_id": np.where(repair, 99, np.arange(rows) % 6),
            "op": np.where(write, "write", "read"),
            "bytes": 1e6,
            "node_id": node,
            "service_class": np.where(repair, "repair", None),
            **({"start_s": start} if starts else {}),
            "finish_s": start + service,
        }
    )
    frame.to_parquet(path)
    return frame.assign(service=service, repair=repair, write=write)


def analysed(path, out, **options):
    ecjax.analyze(str(path), out=str(out), figures=False, **options)
    return [read_results(out, name) for name in ("nodes", "files", "traces")]


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("background", [["repair"], ["writes"], ["repair", "writes"]])
def test_background_is_the_work_that_made_the_log(background, starts, tmp_path):
    frame = log(tmp_path / "log.parquet", starts=starts)
    nodes, files, traces = analysed(tmp_path / "log.parquet", tmp_path / "out", background=background)
    repairs, writes = "repair" in background, "writes" in background
    users = frame[~frame["repair"]] if repairs else frame
    span = np.ptp(users["arrival_s"])
    for _, row in nodes.iterrows():
        mine = frame[frame["node_id"] == row["node_id"]]
        other = mine[(mine["repair"] & repairs) | (mine["write"] & writes)]["service"]
        for power, name in enumerate(("load", "second", "third"), 1):
            np.testing.assert_allclose(row[f"background_{name}"], np.sum(other**power) / span, rtol=1e-8)
        reads = mine[~mine["write"] & ~(mine["repair"] & repairs)]["service"]
        np.testing.assert_allclose(row["service_mean_s"], reads.mean(), rtol=1e-8)
        np.testing.assert_allclose(row["load"], mine["service"].sum() / span, rtol=1e-8)
    assert (99 in set(files["file_id"])) is not repairs
    counts = users[~users["write"]]["file_id"].value_counts()
    rates = files.set_index("file_id")["rate_per_s"]
    np.testing.assert_allclose(rates, (counts / span).reindex(rates.index), rtol=1e-12)
    assert files["write_rate_per_s"].isna().all() == writes
    assert ("Writes of chunks take" in traces["notices"][0]) is not writes


def test_background_is_of_the_time_of_the_rates(tmp_path):
    """Repairs all the time, users for a fifth of it with a long pause: what came before and after does not count."""
    frame = log(tmp_path / "log.parquet", rows=12000)
    place = np.arange(len(frame))
    users = ((place > 4000) & (place < 5200)) | ((place > 6200) & (place < 7400))
    frame = frame[frame["repair"] | users]
    frame.drop(columns=["service", "repair", "write"]).to_parquet(
        tmp_path / "part.parquet", row_group_size=61
    )
    nodes, _, _ = analysed(tmp_path / "part.parquet", tmp_path / "out", background=["repair"])
    times = frame[~frame["repair"]]["arrival_s"]
    during = frame[frame["repair"] & frame["arrival_s"].between(times.min(), times.max())]
    for _, row in nodes.iterrows():
        services = during[during["node_id"] == row["node_id"]]["service"]
        for power, name in enumerate(("load", "second", "third"), 1):
            expected = np.sum(services**power) / np.ptp(times)
            np.testing.assert_allclose(row[f"background_{name}"], expected, rtol=1e-8)


def test_what_the_log_does_not_have_is_refused(tmp_path):
    frame = log(tmp_path / "log.parquet", rows=50)
    frame.drop(columns="service_class").to_parquet(tmp_path / "other.parquet")
    with pytest.raises(UserError, match="background=repair.*no service_class.*allowed: writes, or classes"):
        analysed(tmp_path / "other.parquet", tmp_path / "out", background=["repair"])
