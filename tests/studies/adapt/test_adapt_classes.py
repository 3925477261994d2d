from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.adapt.classes import _size_groups, read_classes
from ecjax.studies.adapt.options import AdaptOptions

TRACES = Path(__file__).parents[3] / "traces"


def classes(**options):
    return read_classes(checked(AdaptOptions(**options)))


def object_log(path, sizes, ops=None, times=None):
    count = len(sizes)
    table = {
        "request_id": np.arange(count),
        "arrival_s": np.arange(count) * 2.0 + 5 if times is None else times,
        "file_id": np.arange(count),
        "op": ops or ["read"] * count,
        "bytes": np.asarray(sizes, float),
    }
    pq.write_table(pa.table(table), path)
    return str(path)


def test_one_class_of_reads_is_the_default():
    (found,), traced = classes()
    assert found == ("read_3MB", "read", 3e6, 1.0, 6, 2.0, False)
    assert traced is None


def test_classes_are_given_as_a_list():
    given = [
        {"bytes": 1e6, "share": 3, "k_max": 4},
        {"bytes": 500, "op": "PUT", "share": 1, "r_max": 1.5, "name": "small"},
    ]
    (one, other), _ = classes(classes=given, writes="background")
    assert one == ("read_1MB", "read", 1e6, 0.75, 4, 2.0, False)
    assert other == ("small", "write", 500.0, 0.25, 6, 1.5, True)


def test_shares_are_equal_where_none_is_given():
    found, _ = classes(classes=[{"bytes": 1e6}, {"bytes": 2e6}])
    assert [one.share for one in found] == [0.5, 0.5]


def test_classes_are_given_as_a_table():
    found, _ = classes(classes=str(TRACES / "classes.parquet"))
    assert [one.name for one in found] == ["thumbnails", "videos", "uploads"]
    assert [one.share for one in found] == pytest.approx([0.6, 0.3, 0.1])
    assert [one.k_max for one in found] == [2, 12, 6]
    assert [one.background for one in found] == [False] * 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "classes: found 3; allowed: a table, or a list of mappings (name, op, bytes"),
        ([], "classes: found []; allowed"),
        ([3], "classes: found 3 in row 0; allowed: a mapping"),
        ([{"bytes": 1e6, "size": 3}], "classes: found 'size' in row 0; allowed: name, op, bytes"),
        ([{"op": "read"}], "missing columns: bytes"),
        ([{"bytes": 1e6}, {"bytes": 0}], "column bytes, row 1: found 0.0; allowed: finite numbers > 0"),
        ([{"bytes": -1}], "column bytes, row 0: found -1.0"),
        ([{"bytes": float("nan")}], "column bytes, row 0: found nan"),
        ([{"bytes": "3MB"}], "column bytes, row 0: found '3MB'; allowed: finite numbers > 0"),
        ([{"bytes": 1e6}, {"bytes": "3MB"}], "classes: bytes: found values of different types"),
        ([{"bytes": True}], "column bytes: found type bool"),
        ([{"bytes": 1e6, "share": 0}], "column share, row 0: found 0.0; allowed: finite numbers > 0"),
        ([{"bytes": 1e6, "share": 1}, {"bytes": 2e6}], "column share, row 1: found an empty cell (null)"),
        ([{"bytes": 1e6, "k_max": 0}], "column k_max, row 0: found 0; allowed: integers >= 1"),
        ([{"bytes": 1e6, "k_max": 2.5}], "column k_max, row 0: found 2.5; allowed: integers >= 1"),
        ([{"bytes": 1e6, "r_max": 0.5}], "column r_max, row 0: found 0.5; allowed: finite numbers >= 1"),
        ([{"bytes": 1e6, "k_max": 101}], "column k_max, row 0: found 101; allowed: numbers up to 100"),
        (
            [{"bytes": 1e6}, {"bytes": 2e6, "k_max": 100_000}],
            "column k_max, row 1: found 100000; allowed: numbers",
        ),
        ([{"bytes": 1e6, "r_max": 1e30}], "column r_max, row 0: found 1e+30; allowed: numbers up to 100"),
        ([{"bytes": 1e6, "op": "remove"}], "column op, row 0: found 'remove'; allowed: read or write"),
        ([{"bytes": 1, "name": "a"}, {"bytes": 2, "name": "a"}], "column name, row 1: found 'a' again"),
        ([{"bytes": 1e6}, {"bytes": 1e6}], "classes: rows 0 and 1: found the name 'read_1MB' twice"),
        (
            [{"bytes": i + 1.0, "name": str(i)} for i in range(257)],
            "classes: found 257; allowed: at most 256",
        ),
    ],
)
def test_mistakes_in_classes_are_named(given, message):
    with pytest.raises(UserError) as error:
        classes(classes=given)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_classes_of_a_trace_are_its_sizes_where_they_are_few(tmp_path):
    path = object_log(tmp_path / "log.parquet", [2e6, 1e6, 2e6, 2e6], ["read", "read", "write", "read"])
    found, traced = classes(trace=path)
    assert [(one.name, one.bytes, one.share) for one in found] == [
        ("read_1MB", 1e6, 0.25),
        ("read_2MB", 2e6, 0.5),
        ("write_2MB", 2e6, 0.25),
    ]
    np.testing.assert_array_equal(traced.arrival_s, [0.0, 2.0, 4.0, 6.0])
    np.testing.assert_array_equal(traced.class_of, [1, 0, 2, 1])
    assert traced.span_s == 6.0 and traced.class_of.dtype == np.uint8


def test_classes_of_a_trace_of_many_sizes_are_powers_of_two(tmp_path, caplog):
    sizes = [1000, 1020, 1030, 1500, 2040, 5000, 5001, 5002, 5003, 5004, 5005]
    with caplog.at_level("INFO"):
        found, traced = classes(trace=object_log(tmp_path / "log.parquet", sizes))
    assert [one.bytes for one in found] == pytest.approx([1010, (1030 + 1500 + 2040) / 3, 5002.5])
    np.testing.assert_array_equal(traced.class_of, [0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    # the one farthest from the mean of its class, 1523: 1030
    assert "by up to a factor of 1.48" in caplog.text


def test_names_of_near_sizes_differ(tmp_path):
    found, _ = classes(trace=object_log(tmp_path / "log.parquet", [1000000, 1000001, 1000002]))
    assert [one.name for one in found] == ["read_1MB", "read_1MB#2", "read_1MB#3"]


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=60))
def test_groups_of_sizes_are_at_most_eight_ranges(sizes):
    sizes = np.array(sizes)
    group = _size_groups(sizes)
    used = np.unique(group)
    np.testing.assert_array_equal(used, np.arange(len(used)))
    assert len(used) <= 8
    assert np.all(np.diff(group[np.argsort(sizes, kind="stable")]) >= 0)


def test_given_classes_take_the_requests_nearest_in_ratio(tmp_path, caplog):
    random = np.random.default_rng(1)
    sizes = np.round(random.lognormal(13, 2, 300))
    ops = random.choice(["read", "write"], 300).tolist()
    given = [{"bytes": 1e6}, {"bytes": 1e5}, {"bytes": 3e6, "op": "write"}, {"bytes": 1e12, "name": "huge"}]
    with caplog.at_level("INFO"):
        found, traced = classes(trace=object_log(tmp_path / "log.parquet", sizes, ops), classes=given)
    assert [one.name for one in found] == ["read_1MB", "read_100kB", "write_3MB"]
    assert "no request is nearest to class huge" in caplog.text
    for size, op, own in zip(sizes, ops, traced.class_of, strict=True):
        ratios = [abs(np.log(size / one.bytes)) if one.op == op else np.inf for one in found]
        assert own == np.argmin(ratios)
    shares = np.bincount(traced.class_of) / 300
    assert [one.share for one in found] == pytest.approx(shares)


def test_requests_without_a_class_or_a_byte_are_left_out(tmp_path, caplog):
    sizes, ops = [1e6, 0, 2e6, 1e6], ["write", "read", "read", "read"]
    with caplog.at_level("INFO"):
        path = object_log(tmp_path / "log.parquet", sizes, ops)
        found, traced = classes(trace=path, classes=[{"bytes": 1e6, "op": "read"}])
    assert len(found) == 1 and found[0].share == 1.0
    np.testing.assert_array_equal(traced.arrival_s, [0.0, 2.0])
    assert "left out: 1 request of 0 bytes" in caplog.text
    assert "left out: 1 request of an op that no class has" in caplog.text


def test_accesses_of_chunks_are_requests(tmp_path):
    found, traced = classes(trace=str(TRACES / "requests_chunks.parquet"))
    table = pq.read_table(TRACES / "requests_chunks.parquet").to_pandas().groupby("request_id")
    np.testing.assert_allclose(
        traced.arrival_s, table["arrival_s"].first() - table["arrival_s"].first().iloc[0]
    )
    sizes = np.array([one.bytes for one in found])[traced.class_of]
    np.testing.assert_allclose(sizes, table["bytes"].sum())


def test_requests_in_pieces_are_told(tmp_path, caplog):
    path = object_log(tmp_path / "log.parquet", [1e6, 1e6, 1e6, 1e6])
    table = pq.read_table(path).set_column(0, "request_id", pa.array([7, 8, 7, 8]))
    table = table.set_column(2, "file_id", pa.array([1, 2, 1, 2])).append_column("node_id", pa.array([0] * 4))
    pq.write_table(table, path)
    with caplog.at_level("INFO"):
        _, traced = classes(trace=path)
    assert len(traced.arrival_s) == 4
    assert "2 requests have rows that do not follow each other" in caplog.text


def test_accesses_of_a_block_trace_are_whole(tmp_path, caplog):
    rows = ["version,time,op,size,lbn", "1,10,28,4096,7", "1,11,2a,70000,123", "1,13,28,4096,900000000000"]
    (tmp_path / "disk.csv").write_text("\n".join(rows) + "\n")
    with caplog.at_level("INFO"):
        found, traced = classes(trace=str(tmp_path / "disk.csv"))
    assert "its clock ticks every 1 s" not in caplog.text
    assert [(one.op, one.bytes) for one in found] == [("read", 4096.0), ("write", 70000.0)]
    np.testing.assert_array_equal(traced.class_of, [0, 1, 0])
    np.testing.assert_array_equal(traced.arrival_s, [0.0, 1.0, 3.0])


def test_a_coarse_clock_is_told(tmp_path, caplog):
    times = np.repeat(np.arange(50.0), 4)
    with caplog.at_level("INFO"):
        classes(trace=object_log(tmp_path / "log.parquet", [1e6] * 200, times=times))
    assert "its clock ticks every 1 s" in caplog.text


@pytest.mark.parametrize(
    ("sizes", "times", "message"),
    [
        ([0.0, 0.0], None, "found no requests to replay"),
        ([1.0, 1.0], [3.0, 3.0], "found requests at one time only"),
        ([1.0, 1.0], [3.0, 2.0], "found 2.0 after 3.0; allowed: non-decreasing"),
        ([1.0, float("nan")], None, "column bytes, row 1 (request_id 1): found nan"),
    ],
)
def test_a_trace_without_requests_is_refused(tmp_path, sizes, times, message):
    path = object_log(tmp_path / "log.parquet", sizes, times=times)
    with pytest.raises(UserError) as error:
        classes(trace=path)
    assert message in str(error.value) and "\n" not in str(error.value)
