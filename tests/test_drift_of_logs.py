"""From the access log of one day to a plan, and the log of another day held against it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sample_logs
from channel_logs import single_starts
from test_drift import NODES, answer

import ecjax

OBJECTS = 12


def write_day(path, requests, hottest):
    """An hour of an S3 log; the object of this rank is the most popular one."""

    def moved(key):
        number = int(key.split()[1].removesuffix(".jpg"))
        return f"album/photo {(number + hottest) % OBJECTS}.jpg"

    day = sample_logs.hour(requests=requests, objects=OBJECTS, seed=sample_logs.SEED + requests)
    same = [each._replace(key=moved(each.key), bucket="bucket0", size=2**20) for each in day]
    sample_logs.write_log(path, sample_logs.s3(same))
    return path


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    log = write_day(folder / "one.log.gz", 4000, 0)
    ecjax.analyze(str(log), out=str(folder / "learned"), k=1, keep_ids=True, figures=False)
    files = str(folder / "learned" / "files")
    ecjax.optimize(pa.table(NODES), files, method="max_ec", theta=1, estimate=False, out=folder / "plan")
    return folder / "plan", log


def test_the_day_that_was_planned_for_is_not_worth_another_plan(capsys, planned):
    plan, log = planned
    result = answer(capsys, plan, log)
    assert result["worth_replanning"] is False
    for row in result["rows"]:
        assert row["low"] <= row["planned"] * (1 + 1e-6) and row["planned"] <= row["high"] * (1 + 1e-6), row


def test_a_day_with_other_rates_is(capsys, planned, tmp_path):
    plan, _ = planned
    result = answer(capsys, plan, write_day(tmp_path / "two.log.gz", 12000, 5))
    assert result["worth_replanning"] is True
    changed = [row for row in result["rows"] if row["changed"]]
    assert changed and any(row["low"] > row["planned"] for row in changed)


def write_work(path, seed, starts):
    """Reads of six files at two nodes, half of all accesses being repairs of the first file."""
    random = np.random.default_rng(seed)
    rows = 6000
    arrival = np.cumsum(random.exponential(0.5, rows))
    repair, node = np.arange(rows) % 2 == 1, random.integers(0, 2, rows)
    service = random.exponential(0.02, rows)
    start = single_starts(arrival, node, service)
    frame = pd.DataFrame(
        {
            "request_id": np.arange(rows),
            "arrival_s": arrival,
            "file_id": np.where(repair, 0, np.arange(rows) // 2 % 6),
            "op": "read",
            "bytes": 1e6,
            "node_id": node,
            "service_class": np.where(repair, "repair", None),
            **({"start_s": start} if starts else {}),
            "finish_s": start + service,
        }
    )
    frame.to_parquet(path)
    return path


@pytest.mark.parametrize("starts", [True, False])
def test_repairs_that_a_plan_leaves_out_are_no_requests(capsys, caplog, tmp_path, starts):
    log = write_work(tmp_path / "day.parquet", 1, starts)
    learned, plan = tmp_path / "learned", tmp_path / "plan"
    options = {"background": ["repair"], "k": 1, "keep_ids": True, "figures": False}
    ecjax.analyze(str(log), out=str(learned), **options)
    given = {"method": "max_ec", "theta": 1, "estimate": False, "out": plan}
    ecjax.optimize(f"{learned}/nodes", f"{learned}/files", **given)
    result = answer(capsys, plan, log)
    assert result["worth_replanning"] is False and not any(row["changed"] for row in result["rows"])
    (total,) = (row for row in result["rows"] if row["quantity"] == "reads of all files (1/s)")
    users = pd.read_parquet(log)[lambda frame: frame["service_class"].isna()]
    assert total["log"] == pytest.approx(len(users) / np.ptp(users["arrival_s"]), rel=1e-9)
    services = [row for row in result["rows"] if row["quantity"] == "mean service time (s)"]
    assert len(services) == (2 if starts else 0)
    # of another day it is said that repairs count, and what leaves them out
    other = write_work(tmp_path / "next.parquet", 2, starts)
    caplog.clear()
    assert answer(capsys, plan, other)["worth_replanning"] is True
    assert "analysis of this log with background=repair" in caplog.text
    ecjax.analyze(str(other), out=str(tmp_path / "next"), **options)
    assert answer(capsys, plan, tmp_path / "next")["worth_replanning"] is False
