"""From the access log of one day to a plan, and the log of another day held against it."""

import pyarrow as pa
import pytest
import sample_logs
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
