"""One day of traffic written in five formats of logs: ``analyze`` finds the same files in each."""

from collections import Counter

import numpy as np
import pytest
import sample_logs

import ecjax
from ecjax.tables.results import read_results

DAY = sample_logs.hour(requests=300, objects=25)
NAMES = [f"{each.bucket}/{each.key}" for each in DAY]
READS = Counter(name for name, each in zip(NAMES, DAY, strict=True) if not each.write)
SIZES = dict(zip(NAMES, (each.size for each in DAY), strict=True))
SPAN_S = DAY[-1].second - DAY[0].second
# What each may be wrong by in the length of the log, s: nginx writes the whole second of the end of a request, so that
# its begin is up to a second early; Swift's times are floats with nine decimals.
CLOCK_S = {"s3": 0.0, "nginx": 1.0, "minio": 1e-6, "rgw": 0.0, "swift_proxy": 1e-6}


@pytest.mark.parametrize("name", CLOCK_S)
def test_the_same_day_gives_the_same_files(name, tmp_path):
    file, lines = sample_logs.LOGS[name]
    sample_logs.write_log(tmp_path / file, lines(DAY))
    ecjax.analyze(str(tmp_path / file), out=str(tmp_path / "out"), k=4, keep_ids=True, figures=False)
    (row,) = read_results(tmp_path / "out", "traces").to_dict("records")
    assert row["format"] == name
    assert (row["rows"], row["reads"], row["writes"]) == (300, READS.total(), 300 - READS.total())
    # nginx does not say how large writes are
    moved = sum(each.size for each in DAY if name != "nginx" or not each.write)
    assert row["bytes"] == moved
    assert abs(row["span_s"] - SPAN_S) <= CLOCK_S[name]
    mean_s = np.mean([each.duration_ms / 1000 for each in DAY if not each.write])
    np.testing.assert_allclose(row["mean_delay_s"], mean_s, atol=1e-6)
    files = read_results(tmp_path / "out", "files")
    files.index = files["file_id"].str.removeprefix("AUTH_test/")
    assert set(files.index) == set(NAMES)
    for key, each in files.iterrows():
        np.testing.assert_allclose(
            each["rate_per_s"], READS[key] / SPAN_S, rtol=1.001 * CLOCK_S[name] / SPAN_S
        )
        if READS[key] or name != "nginx":
            assert each["bytes"] == SIZES[key]
