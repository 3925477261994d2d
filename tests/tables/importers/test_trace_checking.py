import datetime
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace
from ecjax.tables.importers.checking import checked
from ecjax.tables.importers.clock import clock_resolution


def requests(**columns):
    base = {
        "request_id": [1, 1, 2, 3],
        "arrival_s": [0.0, 0.0, 1.0, 2.0],
        "file_id": ["a", "a", "b", "c"],
        "op": ["read"] * 4,
        "bytes": [5.0] * 4,
        "node_id": [7, 8, 7, 9],
        "start_s": [0.5, 0.5, 1.5, 2.5],
        "finish_s": [1.0, 1.0, 2.0, 3.0],
    }
    return pa.table({name: values for name, values in (base | columns).items() if values is not None})


def read(folder, table, **options):
    pq.write_table(table, folder / "log.parquet", row_group_size=3)
    trace = open_trace(folder / "log.parquet", **options)
    return trace, pa.Table.from_batches(list(trace.batches()))


def test_columns_are_projected_and_typed(tmp_path):
    table = requests(extra=[1, 2, 3, 4], op=["R", "get", "WRITE", "put"], bytes=[1, 2, 3, 4])
    trace, found = read(tmp_path, table.set_column(2, "file_id", table["file_id"].dictionary_encode()))
    assert found.column_names == [
        "request_id",
        "arrival_s",
        "file_id",
        "op",
        "bytes",
        "node_id",
        "start_s",
        "finish_s",
    ]
    assert found["op"].to_pylist() == ["read", "read", "write", "write"]
    assert found["file_id"].type == pa.string() and found["bytes"].type == pa.float64()
    assert trace.provides == {"rates", "sojourn", "service"} and trace.rows == 4
    _, found = read(tmp_path, requests(node_id=None))
    assert "request_id" not in found.column_names


def test_optional_columns_without_values_are_absent(tmp_path):
    nothing = pa.nulls(4, pa.float64())
    trace, found = read(tmp_path, requests(start_s=nothing, node_id=pa.nulls(4, pa.string())))
    assert "start_s" not in found.column_names and "node_id" not in found.column_names
    assert trace.provides == {"rates", "sojourn"}


def test_values_that_come_late_are_not_dropped_in_silence():
    batches = requests(start_s=None, finish_s=[None, None, None, 3.0]).to_batches(3)
    with pytest.raises(
        UserError, match="column finish_s, row 3 .*found a value after none in the rows before"
    ):
        list(checked(batches, "log.parquet", sort=False))


def test_timestamps_are_counted_from_the_first_arrival_to_the_nanosecond(tmp_path):
    begin = np.datetime64("2024-05-06T07:08:09.123456789", "ns")
    stamps = {
        "arrival_s": begin + np.array([0, 0, 1, 10**9]),
        "start_s": begin + np.array([1, 1, 2, 10**9 + 1]),
        "finish_s": begin + np.array([3, 3, 3, 10**9 + 3]),
    }
    trace, found = read(tmp_path, requests(**stamps))
    assert found["arrival_s"].to_pylist() == [0, 0, 1e-9, 1]
    assert found["finish_s"].to_pylist() == pytest.approx([3e-9, 3e-9, 3e-9, 1 + 3e-9], abs=1e-16)
    assert trace.clock_resolution_s == 1e-9
    with pytest.raises(UserError, match="arrival_s is timestamp.* and start_s is double"):
        read(tmp_path, requests(arrival_s=stamps["arrival_s"]))


@pytest.mark.parametrize("zoned", ["arrival_s", "finish_s"])
def test_times_with_and_without_a_zone_are_not_subtracted(tmp_path, zoned):
    """An hour of Berlin's clock without its zone would add an hour to all sojourns."""
    begin = pa.array([0, 0, 10**9, 2 * 10**9], pa.timestamp("ns"))
    times = {"arrival_s": begin, "finish_s": begin} | {zoned: begin.cast(pa.timestamp("ns", "Europe/Berlin"))}
    with pytest.raises(
        UserError, match="log.parquet.*times with and without a time zone are mixed: {.*Europe/Berlin"
    ):
        read(tmp_path, requests(**times, start_s=None))
    both = dict.fromkeys(times, times[zoned])
    assert read(tmp_path, requests(**both, start_s=None))[1]["finish_s"].to_pylist() == [0, 0, 1, 2]


def test_dates_are_timestamps(tmp_path):
    days = [datetime.date(2024, 1, day) for day in (1, 1, 2, 4)]
    _, found = read(tmp_path, requests(arrival_s=days, start_s=None, finish_s=None))
    assert found["arrival_s"].to_pylist() == [0, 0, 86400, 3 * 86400]


def test_times_below_others_by_rounding_are_equal_to_them(tmp_path):
    below = np.nextafter([0.5, 1.0, 2.5], 0.0)
    table = requests(start_s=[0.5, 0.5, below[1], 2.5], finish_s=[1.0, below[0], None, below[2]])
    _, found = read(tmp_path, table)
    assert found["start_s"].to_pylist() == [0.5, 0.5, 1.0, 2.5]
    assert found["finish_s"].to_pylist() == [1.0, 0.5, None, 2.5]
    with pytest.raises(UserError, match="column start_s, row 2.*allowed: at least arrival_s"):
        read(tmp_path, requests(start_s=[0.5, 0.5, 1.0 - 1e-12, 2.5]))


def test_arrivals_rounded_above_the_begin_of_service(tmp_path):
    """Arrivals in whole milliseconds, the nearest; services of 0.3 ms begin at once, by a finer clock."""
    rng = np.random.default_rng(1)
    exact = np.sort(rng.uniform(0, 1, 200))
    columns = {"request_id": np.arange(200), "arrival_s": np.round(exact, 3), "start_s": exact}
    columns |= {"finish_s": exact + 3e-4, "file_id": np.arange(200), "node_id": np.arange(200) % 7}
    columns |= {"op": ["read"] * 200, "bytes": [5.0] * 200}
    trace, found = read(tmp_path, requests(**columns))
    arrival, start, finish = (found[name].to_numpy() for name in ("arrival_s", "start_s", "finish_s"))
    assert trace.clock_resolution_s == 1e-3 and np.any(exact < columns["arrival_s"])
    np.testing.assert_array_equal(arrival, columns["arrival_s"])
    np.testing.assert_allclose(start, np.maximum(exact, arrival), rtol=1e-12)
    np.testing.assert_allclose(finish - start, 3e-4, rtol=1e-9)
    # of the same clock, or a whole step before, no rounding can be
    for wrong in (np.round(exact, 3) - 1e-3, exact - 2e-3):
        with pytest.raises(UserError, match="column start_s, row [01] .*allowed: at least arrival_s"):
            read(tmp_path, requests(**columns | {"start_s": np.maximum(wrong, 0)}))


def of_files(folder, columns, ends):
    """A folder with these rows, in files that end at these places."""
    table = requests(**columns)
    for number, (begin, end) in enumerate(itertools.pairwise([0, *ends, len(table)])):
        pq.write_table(table.slice(begin, end - begin), folder / f"{number}.parquet")
    return open_trace(folder)


@pytest.mark.parametrize("ends", [[], [1], [200]])
def test_rounded_arrivals_are_taken_whatever_the_batches(tmp_path, ends):
    """The last five arrivals tell no clock by themselves, the first one neither."""
    arrival = np.round(np.sort(np.random.default_rng(3).uniform(0, 1, 205)), 3)
    start = arrival.copy()
    start[202] -= 4e-4
    columns = {"request_id": np.arange(205), "arrival_s": arrival, "start_s": start, "finish_s": start + 1e-3}
    columns |= {"file_id": np.arange(205), "op": ["read"] * 205, "bytes": [5.0] * 205, "node_id": [1] * 205}
    found = pa.Table.from_batches(list(of_files(tmp_path, columns, ends).batches()))
    np.testing.assert_array_equal(found["start_s"], arrival)


@pytest.mark.parametrize(("digits", "resolution"), [(None, 0.0), (3, 1e-3)])
@pytest.mark.parametrize("ends", [[1], [2, 5, 9]])
def test_the_clock_is_told_by_more_than_a_short_first_batch(tmp_path, ends, digits, resolution):
    arrival = np.append(0.0, np.sort(np.random.default_rng(4).uniform(0, 100, 400)))
    arrival = arrival if digits is None else np.round(arrival, digits)
    columns = {"request_id": np.arange(401), "arrival_s": arrival, "file_id": np.arange(401) % 9}
    columns |= {
        "op": ["read"] * 401,
        "bytes": [5.0] * 401,
        "node_id": None,
        "start_s": None,
        "finish_s": None,
    }
    trace = of_files(tmp_path, columns, ends)
    assert trace.clock_resolution_s == resolution
    assert {piece.clock_resolution_s for piece in trace.pieces(3)} == {resolution}


def test_arrivals_rounded_above_the_end_of_service(tmp_path):
    """The same where only ends are known, as of logs with times of response."""
    rng = np.random.default_rng(2)
    exact = np.sort(rng.uniform(0, 1, 200))
    columns = {"request_id": np.arange(200), "arrival_s": np.round(exact, 3), "finish_s": exact + 1e-4}
    columns |= {"file_id": np.arange(200), "node_id": np.arange(200) % 7, "op": ["read"] * 200}
    columns |= {"bytes": [5.0] * 200, "start_s": None}
    assert np.any(columns["finish_s"] < columns["arrival_s"])
    _, found = read(tmp_path, requests(**columns))
    arrival, finish = (found[name].to_numpy() for name in ("arrival_s", "finish_s"))
    np.testing.assert_array_equal(arrival, columns["arrival_s"])
    np.testing.assert_allclose(finish, np.maximum(exact + 1e-4, arrival), rtol=1e-12)
    with pytest.raises(UserError, match="column finish_s, row [01] .*allowed: at least arrival_s"):
        read(tmp_path, requests(**columns | {"finish_s": np.maximum(exact - 2e-3, 0)}))


WRONG = {
    "finish": (
        {"finish_s": [1.0, 1.0, 2.0, 2.25]},
        "column finish_s, row 3 .request_id 3.: found 2.25; allowed: at least start_s = 2.5",
    ),
    "start": (
        {"start_s": [0.5, 0.5, 1.5, 1.5]},
        "column start_s, row 3.*found 1.5; allowed: at least arrival_s = 2.0",
    ),
    "infinite": (
        {"finish_s": [1.0, 1.0, 2.0, np.inf]},
        "column finish_s, row 3.*found inf; allowed: finite numbers",
    ),
    "node": ({"node_id": [7, 8, 7, None]}, r"column node_id, row 3.*found an empty cell \(null\)"),
    "ids": ({"file_id": [1.5, 2.0, 3.0, 4.0]}, "column file_id: found type double; ids are integers"),
    "op type": ({"op": [1, 1, 1, 1]}, "column op: found type int64; allowed: strings"),
    "words": (
        {"bytes": ["a", "b", "c", "d"]},
        "column bytes, row 0.*found 'a'; allowed: finite numbers >= 0",
    ),
    "order": ({"arrival_s": [0.0, 0.0, 1.0, 0.5]}, "column arrival_s, row 3.*found 0.5 after 1.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_impossible_rows_are_named(tmp_path, case):
    columns, message = WRONG[case]
    with pytest.raises(UserError, match=message) as error:
        read(tmp_path, requests(**columns))
    assert "\n" not in str(error.value) and "log.parquet" in str(error.value)


def test_sorting_keeps_the_rows_of_a_request_together(tmp_path):
    table = requests(request_id=[1, 2, 1, 2], arrival_s=[1.0, 1.0, 1.0, 1.0], start_s=None, finish_s=None)
    _, found = read(tmp_path, table, sort=True)
    assert found["request_id"].to_pylist() == [1, 1, 2, 2]
    assert found["node_id"].to_pylist() == [7, 7, 8, 9]


@pytest.mark.parametrize(
    ("times", "resolution"),
    [
        ([0, 1, 5, 5], 1.0),
        ([0.25, 1.5], 0.01),
        ([1.7e9 + 0.001, 1.7e9 + 0.002], 1e-3),
        ([0.1234567, 3.0], 1e-7),
        (np.random.default_rng(0).random(50).tolist(), 0.0),
        ((1.7e9 + np.random.default_rng(0).random(50)).tolist(), 0.0),
        ([1e12, 2e12], 1.0),
        ([0.0, 1e-9], 1e-9),
        ([], 0.0),
        # ties of a coarse clock: its step, and not what the digits allow
        (60 * np.repeat(np.arange(100), 3) + 1.7e9 // 60 * 60, 60.0),
        (np.repeat(np.arange(0, 25, 0.25), 2), 0.25),
        # without ties arrivals may be regular; few times may have a divisor by chance
        (60.0 * np.arange(100), 1.0),
        (60 * np.repeat(np.arange(10), 3), 1.0),
    ],
)
def test_clock_resolution(times, resolution):
    assert clock_resolution(np.array(times, float)) == pytest.approx(resolution)
