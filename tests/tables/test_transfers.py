"""Transfers tables: coflows in order whatever the order of rows, ids as they came, and what is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.checks import check
from ecjax.tables.transfers import COLUMNS, read_transfers

ROWS = {
    "coflow_id": ["b", "a", "b", "c", "a"],
    "arrival_s": [0.0, 1.0, 0.0, 1.0, 1.0],
    "src": [9, 7, 7, 30, 9],
    "dst": [7, 9, 30, 9, 9],
    "bytes": [1.0, 2.0, 4.0, 8.0, 16.0],
}


def refused(rows, **options):
    with pytest.raises(UserError) as error:
        read_transfers(pa.table(rows), **options)
    return str(error.value)


def test_rows_of_a_coflow_are_brought_together():
    found = read_transfers(pa.table({**ROWS, "note": list("vwxyz")}))
    assert found.table.column_names == COLUMNS
    assert found.table["bytes"].to_pylist() == [1.0, 4.0, 2.0, 16.0, 8.0]
    np.testing.assert_array_equal(found.first_flow, [0, 2, 4, 5])
    assert found.coflow_ids.to_pylist() == ["b", "a", "c"]
    np.testing.assert_array_equal(found.arrival_s, [0.0, 1.0, 1.0])
    assert found.ports.to_pylist() == [7, 9, 30]


def write(table, folder, form):
    if form == "folder":
        path = folder / "parts"
        path.mkdir(exist_ok=True)
        pq.write_table(table.slice(0, 2), path / "a.parquet")
        pq.write_table(table.slice(2), path / "b.parquet")
        return path
    path = folder / f"flows.{form}"
    {"parquet": pq.write_table, "arrow": pyarrow.feather.write_feather, "csv": pyarrow.csv.write_csv}[form](
        table, path
    )
    return path


@pytest.mark.parametrize("form", ["parquet", "folder", "arrow", "csv"])
def test_every_format_gives_the_same(tmp_path, form):
    expected = read_transfers(pa.table(ROWS))
    for found in (read_transfers(write(pa.table(ROWS), tmp_path, form)), read_transfers(pd.DataFrame(ROWS))):
        assert found.table.equals(expected.table)
        assert found.ports.equals(expected.ports)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_sorting_keeps_every_flow_and_the_order_of_those_that_arrive_together(drawn):
    arrival = [3.0, 1.0, 1.0, 2.0, 0.0, 3.0]
    table = pa.table(
        {
            "coflow_id": [c for c, *_ in drawn],
            "arrival_s": [arrival[c] for c, *_ in drawn],
            "src": [str(s) for _, s, _ in drawn],
            "dst": [str(d) for *_, d in drawn],
            "bytes": np.arange(1.0, len(drawn) + 1),
        }
    )
    found = read_transfers(table, sort=True)
    order = list(dict.fromkeys(c for c, *_ in drawn))
    order.sort(key=lambda c: arrival[c])
    expected = [row for c in order for row in table.to_pylist() if row["coflow_id"] == c]
    assert found.table.to_pylist() == expected
    assert found.coflow_ids.to_pylist() == order
    np.testing.assert_array_equal(np.diff(found.first_flow), [sum(d[0] == c for d in drawn) for c in order])
    assert found.ports.to_pylist() == sorted({end for d in drawn for end in map(str, d[1:])})


def test_ids_come_back_as_they_came(tmp_path):
    rows = {
        **ROWS,
        "coflow_id": [2**62, 1, 2**62, 3, 1],
        "src": ["007", "7", "7", "x", "007"],
        "dst": ["7"] * 5,
    }
    for form in ("parquet", "csv"):
        found = read_transfers(write(pa.table(rows), tmp_path, form))
        assert found.coflow_ids.to_pylist() == [2**62, 1, 3]
        assert found.ports.to_pylist() == ["007", "7", "x"]


def test_ports_of_a_csv_file_are_strings_where_one_column_needs_it(tmp_path):
    rows = {**ROWS, "dst": ["x", "9", "30", "9", "9"]}
    assert read_transfers(write(pa.table(rows), tmp_path, "csv")).ports.to_pylist() == ["30", "7", "9", "x"]
    assert refused(rows) == (
        "transfers table: found int64 in src and string in dst; allowed: one type, as both name ports"
    )


def test_arrivals_that_are_refused(tmp_path):
    assert refused({**ROWS, "arrival_s": [0.0, 1.0, 0.5, 1.0, 1.0]}) == (
        "transfers table, column arrival_s, row 2 (coflow_id 'b'): found 0.5; allowed: 0.0 as in row 0, since a coflow "
        "arrives once"
    )
    late = {**ROWS, "arrival_s": [2.0, 1.0, 2.0, 1.0, 1.0]}
    path = write(pa.table(late), tmp_path, "parquet")
    with pytest.raises(UserError) as error:
        read_transfers(path)
    assert str(error.value) == (
        f"transfers table ({path}), column arrival_s, row 1 (coflow_id 'a'): found 1.0 after 2.0; allowed: coflows in "
        "order of arrival (or give sort=true)"
    )
    assert read_transfers(path, sort=True).coflow_ids.to_pylist() == ["a", "c", "b"]


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"bytes": [1.0, 2.0, float("nan"), 1.0, 1.0]}, "column bytes, row 2 (coflow_id 'b'): found nan"),
        ({"bytes": [1.0, 0.0, 1.0, 1.0, 1.0]}, "column bytes, row 1 (coflow_id 'a'): found 0.0"),
        ({"bytes": [1.0, None, 1.0, 1.0, 1.0]}, "column bytes, row 1 (coflow_id 'a'): found an empty cell"),
        ({"arrival_s": [-1.0, 1, -1, 1, 1]}, "column arrival_s, row 0 (coflow_id 'b'): found -1.0"),
        ({"src": [1.5] * 5}, "column src: found type double; ids are integers"),
        ({name: [] for name in ROWS}, "found no rows; allowed: at least one"),
    ],
)
def test_cells_that_are_refused(wrong, message):
    assert message in refused({**ROWS, **wrong})


def test_columns_that_are_missing():
    assert "missing columns: dst" in refused({name: ROWS[name] for name in ROWS if name != "dst"})


def test_ports_tables():
    rows = {"port_id": ["a", "b"], "send_bytes_per_s": [1.0, None], "receive_bytes_per_s": [None, 2.0]}
    found = check(pa.table(rows), "ports")
    assert found["send_bytes_per_s"].to_pylist() == [1.0, None]
    for wrong, message in (
        (
            {"port_id": ["a", "a"]},
            "column port_id, row 1: found 'a' again, first in row 0; allowed: every id once",
        ),
        (
            {"send_bytes_per_s": [0.0, 1.0]},
            "column send_bytes_per_s, row 0 (port_id 'a'): found 0.0; allowed: finite",
        ),
        ({"receive_bytes_per_s": [1.0, -1.0]}, "column receive_bytes_per_s, row 1 (port_id 'b'): found -1.0"),
    ):
        with pytest.raises(UserError) as error:
            check(pa.table({**rows, **wrong}), "ports")
        assert message in str(error.value)
