"""Fingerprints: equal content, equal id; any change of content, another id."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.checks import check
from ecjax.tables.fingerprint import fingerprint, trace_fingerprint

FILES = {
    "file_id": ["a", "bc", "d"],
    "bytes": [1.0, 2.0, 3.0],
    "k": [1, 2, 3],
    "rate_per_s": [0.5, 0.25, 0.0],
    "n": [None, 3, 4],
    "group": [None, "g", None],
    "nodes": [["x", "y"], None, []],
}


def files(**changes) -> pa.Table:
    return pa.table({**FILES, **changes})


def test_pieces_and_order_of_columns_do_not_count():
    whole = files()
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1)])
    assert fingerprint(pieces) == fingerprint(whole)
    assert fingerprint(whole.select(whole.column_names[::-1])) == fingerprint(whole)
    assert fingerprint(pa.concat_tables([whole, whole]).slice(3)) == fingerprint(whole)


def test_types_that_check_makes_equal_give_one_fingerprint():
    plain = check(files(), "files")
    other = files(
        file_id=pa.array(FILES["file_id"], pa.large_string()).dictionary_encode(),
        bytes=pa.array([1, 2, 3], pa.int32()),
        k=pa.array([1.0, 2.0, 3.0], pa.float32()),
        nodes=pa.array(FILES["nodes"], pa.large_list(pa.large_string())),
    )
    assert fingerprint(check(other, "files")) == fingerprint(plain)
    assert fingerprint(check(files(rate_per_s=[0.5, 0.25, -0.0]), "files")) == fingerprint(plain)


def test_extra_columns_do_not_count_for_a_named_table():
    extra = files().append_column("note", pa.array([1, 2, 3]))
    assert fingerprint(extra, "files") == fingerprint(files(), "files") == fingerprint(files())
    assert fingerprint(extra) != fingerprint(files())


@pytest.mark.parametrize(
    "change",
    [
        {"file_id": ["ab", "c", "d"]},
        {"file_id": ["a", "bc", "e"]},
        {"bytes": [1.0, 2.0, np.nextafter(3.0, 4.0)]},
        {"bytes": [2.0, 1.0, 3.0]},
        {"k": [1, 2, 4]},
        {"n": [0, 3, 4]},
        {"n": [3, None, 4]},
        {"group": ["", "g", None]},
        {"nodes": [["x"], ["y"], []]},
        {"nodes": [["x", "y"], [], None]},
        {"nodes": [["x", "y"], [], []]},
        {"file_id": [1, 2, 3]},
        {"k": [1.0, 2.0, 3.0]},
    ],
)
def test_any_change_counts(change):
    assert fingerprint(files(**change)) != fingerprint(files())


def test_names_count():
    assert fingerprint(files().rename_columns(["file", *list(FILES)[1:]])) != fingerprint(files())


ROWS = st.lists(
    st.tuples(st.text(max_size=3) | st.none(), st.integers(-2, 2), st.lists(st.integers(0, 2), max_size=2)),
    max_size=4,
)
SCHEMA = pa.schema([("s", pa.string()), ("i", pa.int64()), ("l", pa.list_(pa.int64()))])


@given(ROWS, ROWS)
def test_equal_exactly_where_tables_are(first, second):
    tables = [
        pa.Table.from_pylist([dict(zip("sil", row, strict=True)) for row in rows], SCHEMA)
        for rows in (first, second)
    ]
    assert (fingerprint(tables[0]) == fingerprint(tables[1])) == tables[0].equals(tables[1])


def test_type_without_canonical_form():
    with pytest.raises(TypeError, match="canonical column types, found timestamp"):
        fingerprint(pa.table({"t": pa.array([1], pa.timestamp("s"))}))


def make_trace(folder):
    (folder / "deep").mkdir(parents=True)
    (folder / "b.csv").write_bytes(b"1,2\n")
    (folder / "deep" / "a.csv").write_bytes(b"3,4\n")
    return folder


def test_trace_may_move(tmp_path):
    one, two = make_trace(tmp_path / "one"), make_trace(tmp_path / "two")
    (two / ".hidden").write_text("x")
    (two / "_temporary").mkdir()
    (two / "_temporary" / "x").write_text("x")
    assert trace_fingerprint(one) == trace_fingerprint(str(two))
    assert trace_fingerprint(one / "b.csv") == trace_fingerprint([two / "b.csv"])


def test_trace_fingerprint_is_what_it_says(tmp_path):
    one = make_trace(tmp_path / "one")
    lines = "".join(
        f"{name}\0{len(content)}\0{hashlib.sha256(content).hexdigest()}\n"
        for name, content in [("b.csv", b"1,2\n"), ("deep/a.csv", b"3,4\n")]
    )
    assert trace_fingerprint(one) == hashlib.sha256(lines.encode()).hexdigest()


def test_trace_changes_count(tmp_path):
    one = make_trace(tmp_path / "one")
    before = trace_fingerprint(one)
    (one / "b.csv").write_bytes(b"1,3\n")
    changed = trace_fingerprint(one)
    (one / "b.csv").rename(one / "c.csv")
    assert len({before, changed, trace_fingerprint(one), trace_fingerprint([one, one / "c.csv"])}) == 4


def test_missing_trace(tmp_path):
    with pytest.raises(UserError, match="none: no such file or folder"):
        trace_fingerprint(tmp_path / "none")
    with pytest.raises(UserError, match="File name too long"):
        trace_fingerprint(tmp_path / ("x" * 300))
