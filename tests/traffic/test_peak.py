"""The busiest window of a log against all windows tried one after another."""

import numpy as np
import pandas as pd
import pytest

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace
from ecjax.tables.statistics.scan import scan
from ecjax.traffic.peak import busiest_window, window_of_requests, window_statistics


def most_reads(times, write, window_s):
    """Reads in the busiest window that begins at a read, and where it begins."""
    reads = times[~write]
    counts = [np.count_nonzero((reads >= begin) & (reads < begin + window_s)) for begin in reads]
    return max(counts), reads[int(np.argmax(counts))]


def written_log(folder, rng, tick, rows_each):
    """A log of 300 requests with a busy stretch; requests are of 1 to ``rows_each`` rows that come one by one."""
    times = np.sort(np.concatenate([rng.uniform(0, 100, 240), rng.uniform(37, 44, 60)]))
    if tick:
        times = np.floor(times / tick) * tick
    rows = rng.integers(1, rows_each + 1, len(times))
    requests = pd.DataFrame(
        {
            "request_id": rng.permutation(len(times)),
            "arrival_s": times,
            "file_id": rng.choice(["a", "b", "c", "d"], len(times), p=[0.1, 0.2, 0.3, 0.4]),
            "op": rng.choice(["read", "write"], len(times), p=[0.8, 0.2]),
            "bytes": 1e6,
        }
    )
    each = requests.loc[requests.index.repeat(rows)]
    each["node_id"] = "n" + (each.groupby("request_id").cumcount()).astype(str)
    # later rows of a request come later, though before the next request
    gaps = np.append(np.diff(times), 0.0)[each.index]
    each["arrival_s"] += gaps * each.groupby("request_id").cumcount() / (2 * rows_each)
    each.to_parquet(folder / "log.parquet", index=False)
    return str(folder / "log.parquet"), requests


@pytest.mark.parametrize(("tick", "rows_each"), [(0.0, 1), (0.0, 3), (0.5, 1)])
@pytest.mark.parametrize("window_s", [1.0, 10.0, 43.0])
def test_the_busiest_window_and_its_reads_by_brute_force(tmp_path, tick, rows_each, window_s):
    rng = np.random.default_rng([rows_each, int(10 * tick), int(window_s)])
    path, requests = written_log(tmp_path, rng, tick, rows_each)
    times, write = requests["arrival_s"].to_numpy(), (requests["op"] == "write").to_numpy()
    most, begin = most_reads(times, write, window_s)
    trace = open_trace(path)
    statistics = scan(trace)
    window = busiest_window(statistics.times.reads, window_s)
    first_s = float(times[0])
    assert (window.reads, window.length_s) == (most, pytest.approx(window_s, abs=1e-5))
    assert window.start_s == pytest.approx(begin - first_s, abs=1e-5)
    inside = window_statistics(trace, window, first_s)
    expected = requests[(times >= begin) & (times < begin + window_s)]
    counts = expected.groupby(["file_id", "op"]).size().unstack(fill_value=0)
    counts = counts.reindex(inside.file_ids.to_pylist(), fill_value=0)
    np.testing.assert_array_equal(inside.files[:, :2], counts[["read", "write"]])
    same, chosen = window_of_requests(times, write, trace.clock_resolution_s, window_s)
    np.testing.assert_array_equal(chosen, np.isin(requests.index, expected.index))
    assert (same.reads, same.start_s) == (window.reads, window.start_s)


def test_a_window_is_taken_in_whole_ticks():
    """Of 10.5 s on a clock of seconds ten are left: two reads in each, and two more in the first."""
    times = np.repeat(np.arange(100.0), 2)
    times[times == 40] = 41
    window, inside = window_of_requests(np.sort(times), np.zeros(200, bool), 1.0, 10.5)
    assert (window.length_s, window.reads) == (10.0, 22) and inside.sum() == 22


def test_a_window_that_a_log_does_not_have():
    times = np.array([0.0, 1.0, 2.0, 4.0])
    with pytest.raises(
        UserError, match="window_s: found 3; allowed for this log: from .* to 2 s, half of the"
    ):
        window_of_requests(times, np.zeros(4, bool), 0.0, 3.0)
    with pytest.raises(UserError, match="rate=peak: found no reads"):
        window_of_requests(times, np.ones(4, bool), 0.0, 1.0)
    with pytest.raises(UserError, match="rate=mean"):
        window_of_requests(np.zeros(4), np.zeros(4, bool), 0.0, 1.0)
