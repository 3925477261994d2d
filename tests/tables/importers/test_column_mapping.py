import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace

BASE = {"arrival_s": "t", "file_id": "f", "bytes": "b"}


def read(path, **columns):
    trace = open_trace(path, columns=BASE | columns)
    return trace, pa.Table.from_batches(list(trace.batches())).to_pandas()


def test_nanoseconds_since_1970_stay_exact(tmp_path):
    clock = 1_700_000_000_000_000_000 + np.array([0, 1, 1500, 10**9])
    pq.write_table(
        pa.table({"t": clock, "f": ["a", "b", "a", "c"], "b": [1, 2, 3, 4]}), tmp_path / "a.parquet"
    )
    trace, found = read(tmp_path / "a.parquet", arrival_s_scale=1e-9)
    assert found["arrival_s"].tolist() == pytest.approx([0, 1e-9, 1.5e-6, 1], rel=1e-12)
    assert trace.clock_resolution_s == 1e-9
    assert set(found["op"]) == {"read"} and "count as reads" in trace.loses[0]


def test_response_times_of_another_unit_end_the_accesses(tmp_path):
    frame = pd.DataFrame(
        {"t": [10.0, 11.5], "f": [1, 2], "b": [5.0, 6.0], "n": ["x", "y"], "took": [250, 1000]}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    trace, found = read(tmp_path / "a.csv", sojourn_s="took", sojourn_s_scale=0.001, node_id="n")
    assert found["finish_s"].tolist() == [10.25, 12.5] and trace.provides == {"rates", "sojourn"}
    assert found["request_id"].tolist() == [0, 1] and "no ids" in trace.loses[1]


def test_times_of_different_units_share_an_origin(tmp_path):
    frame = pd.DataFrame(
        {"t": [100, 101], "f": [1, 2], "b": 5, "start": [100500, 101250], "end": [100.75, 101.5]}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    trace, found = read(tmp_path / "a.csv", start_s="start", start_s_scale=0.001, finish_s="end")
    np.testing.assert_allclose(found["start_s"], [0.5, 1.25])
    np.testing.assert_allclose(found["finish_s"], [0.75, 1.5])
    assert trace.provides == {"rates", "sojourn", "service"}


@pytest.mark.parametrize(
    ("nothing", "kind", "message"),
    [
        (
            2**64 - 1,
            pa.uint64(),
            "found 18446744073709551615; allowed: at most 9223372036854775807, and empty",
        ),
        (2**63, pa.uint64(), "found 9223372036854775808; allowed: at most 9223372036854775807, and empty"),
        # the least 64-bit integer, as NumPy has for no time: less the first arrival it would be far ahead
        (
            -(2**63),
            pa.int64(),
            "found a time more than 9223372036854775807 units from the first arrival; allowed",
        ),
    ],
)
def test_numbers_that_stand_for_no_time_are_refused(tmp_path, nothing, kind, message):
    begin = 1_700_000_000_000_000_000
    columns = {"t": [begin, begin + 5], "f": ["a", "b"], "b": [1, 2]}
    options = {"arrival_s_scale": 1e-9, "finish_s": "end_ns", "finish_s_scale": 1e-9}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns | {"end_ns": pa.array([begin + 1, nothing], kind)}), path)
    with pytest.raises(UserError, match=rf"a\.parquet, column end_ns \(finish_s\): {message}"):
        read(path, **options)
    pq.write_table(pa.table(columns | {"end_ns": pa.array([begin + 10**9, None], kind)}), path)
    assert read(path, **options)[1]["finish_s"].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)


def test_columns_that_occur_twice(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,f,b,b,x,x\n1,a,5,6,7,8\n")
    with pytest.raises(
        UserError, match=r"a\.csv: columns that occur more than once: b; allowed: each of columns= once"
    ):
        read(path)
    path.write_text("t,f,b,x,x\n1,a,5,7,8\n")
    assert read(path)[1]["bytes"].tolist() == [5]


def test_ids_come_back_as_they_were_written(tmp_path):
    (tmp_path / "a.csv").write_text("t,f,b\n1,007,5\n2,8,5\n")
    assert read(tmp_path / "a.csv")[1]["file_id"].tolist() == ["007", "8"]
    (tmp_path / "b.csv").write_text("t,f,b\n1,7,5\n2,8,5\n")
    assert read(tmp_path / "b.csv")[1]["file_id"].tolist() == [7, 8]


@pytest.mark.parametrize("late", [False, True])
def test_bytes_that_are_not_utf_8_are_backslashes_and_numbers(tmp_path, late):
    """As Python writes them, of rows in the first block and in later ones."""
    name = "caf\xe9".encode("latin-1")
    rows = b"".join(b"%d,x,5,get\n" % i for i in range(500_000 * late))
    rows += b"500000,%b,5,get\n500001,,5,get\n500002,%b,5,l\xe9\n" % (name, "é".encode())
    (tmp_path / "a.csv").write_bytes(b"t,f,b,m,s\n" + rows.replace(b",,", b',"",').replace(b"\n", b",\xe9\n"))
    mapping = BASE | {"op": "m", "op_write": "l\\xe9"}
    trace = open_trace(tmp_path / "a.csv", columns={key: mapping[key] for key in mapping})
    found = pa.Table.from_batches(list(trace.batches())).to_pandas()
    assert found["file_id"].tolist()[-3:] == ["caf\\xe9", "", "é"]
    assert found["op"].tolist()[-3:] == ["read", "read", "write"]
    (tmp_path / "a.csv").write_bytes(b"t,f,b,\xe9\n1,a,5,5\n")
    with pytest.raises(UserError, match="line 1: names of columns hold bytes that are not UTF-8; allowed"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_clocks_with_and_without_a_zone(tmp_path, form):
    path = tmp_path / f"a.{form}"
    begin = pd.Series(pd.to_datetime(["2024-01-01 00:00:00", "2024-01-01 00:01:00"]))
    frame = pd.DataFrame({"t": begin, "f": ["a", "b"], "b": 5, "end": begin.dt.tz_localize("UTC")})
    for zoned in (False, True):
        frame["t"] = begin.dt.tz_localize("UTC") if zoned else begin
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
        if zoned:
            assert read(path, finish_s="end")[1]["finish_s"].tolist() == [0, 60]
        else:
            with pytest.raises(UserError, match=rf"a\.{form}: times with and without a time zone are mixed"):
                read(path, finish_s="end")


@pytest.fixture(scope="module")
def first_block():
    """Rows whose ids are integers: more than one block."""
    return "".join(f"{i},{i % 5 - 2},5\n" for i in range(500_000))


def test_integer_ids_are_integers_after_the_first_block(tmp_path, first_block):
    path = tmp_path / "a.csv"
    path.write_text(f"t,f,b\n{first_block}500000,9223372036854775807,5\n")
    found = read(path)[1]["file_id"]
    assert found.dtype == np.int64 and found.iloc[-1] == 2**63 - 1 and found.iloc[3] == 1


@pytest.mark.parametrize("late", ["007", " 7", "7 ", "0x1F", "+7", "x", "9223372036854775808", '"7 "'])
def test_integer_ids_stay_what_is_written_after_the_first_block(tmp_path, first_block, late):
    """Arrow reads 007 and 0x7 as 7: files would be merged."""
    path = tmp_path / "a.csv"
    rows = f"{first_block}500000,1,5\n500001,{late},5\n500002,1,5\n"
    path.write_text(f"t,f,b\n{rows}")
    text = late.strip('"')
    with pytest.raises(
        UserError, match=rf"a\.csv, line 500003: found {re.escape(repr(text))}; allowed: int64, as in"
    ):
        read(path)
    headless = tmp_path / "b.csv"
    headless.write_text(rows)
    numbered = {"arrival_s": 0, "file_id": 1, "bytes": 2}
    with pytest.raises(UserError, match=rf"b\.csv, line 500002: found {re.escape(repr(text))}"):
        list(open_trace(headless, columns=numbered).batches())


def test_iso_timestamps(tmp_path):
    (tmp_path / "a.csv").write_text("t,f,b\n2024-01-01 00:00:00,a,5\n2024-01-01 00:01:00,b,5\n")
    trace, found = read(tmp_path / "a.csv")
    assert found["arrival_s"].tolist() == [0, 60]
    with pytest.raises(UserError, match="arrival_s_scale for timestamps"):
        read(tmp_path / "a.csv", arrival_s_scale=2)


@pytest.mark.parametrize(
    ("clock", "scale", "word", "mend"),
    [
        (1_726_560_000_005, None, "milliseconds", "0.001"),
        (1_726_560_000_005.25, None, "milliseconds", "0.001"),
        (1_726_560_000_005_000, 0.001, "microseconds", "1e-06"),
        (1_726_560_000_005_000_000, None, "nanoseconds", "1e-09"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_clock_in_another_unit_is_noticed(tmp_path, form, clock, scale, word, mend):
    path = tmp_path / f"a.{form}"
    frame = pd.DataFrame({"t": [clock, clock + 10], "f": ["a", "b"], "b": 5})
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    message = f"column t \\(arrival_s\\): found .* {word} since 1970; allowed: .* arrival_s_scale: {mend}"
    with pytest.raises(UserError, match=message):
        read(path, **({} if scale is None else {"arrival_s_scale": scale}))


@pytest.mark.parametrize(
    "operations",
    [
        pa.array(["load", "store", "load"], pa.large_string()),
        pa.array(["load", "store", "load"], pa.string_view()),
        pa.array(["load", "store", "load"]).dictionary_encode(),
        pa.array([7, 2, 7], pa.uint8()),
    ],
    ids=lambda operations: str(operations.type),
)
def test_words_for_operations_of_any_type(tmp_path, operations):
    """Polars writes large strings, pandas categories, and some logs have codes."""
    table = pa.table({"t": [0, 1, 2], "f": ["a", "b", "a"], "b": [5, 5, 5], "o": operations})
    pq.write_table(table, tmp_path / "a.parquet")
    _, found = read(tmp_path / "a.parquet", op="o", op_read=["load", 7], op_write=["store", 2])
    assert found["op"].tolist() == ["read", "write", "read"]


def log_of_methods(folder, form, count, accesses):
    """A log of ``count`` rows, row i at i s, of which those at ``accesses`` read or write; others lack a size."""
    words = np.where(np.arange(count) % 3, "HEAD", "DELETE").astype(object)
    words[accesses] = [("GET", "PUT")[i % 2] for i in range(len(accesses))]
    size = np.full(count, np.nan)
    size[accesses] = 7
    frame = pd.DataFrame({"t": np.arange(count), "f": "a", "b": size, "m": words, "n": "x"})
    path = folder / f"log.{form}"
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    return path, dict(frame["m"].value_counts().drop(["GET", "PUT"]))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("others", ["any", ["HEAD", "DELETE"]])
def test_other_operations_are_counted_and_left_out(tmp_path, form, others):
    """Also where the first accesses come after more rows than a batch has."""
    accesses = [400_000, 400_002, 400_003, 400_009]
    path, counts = log_of_methods(tmp_path, form, 400_010, accesses)
    words = {"op": "m", "op_read": "GET", "op_write": "PUT", "op_other": others, "node_id": "n"}
    trace, found = read(path, **words)
    assert found["request_id"].tolist() == accesses and set(found["bytes"]) == {7.0}
    assert found["arrival_s"].tolist() == [0, 2, 3, 9]  # since the first access
    assert found["op"].tolist() == ["read", "write"] * 2 and list(found.columns) == list(trace.schema.names)
    assert trace.tally.others == counts and trace.rows is None and trace.pieces(4) is None
    assert len(list(trace.batches())) and trace.tally.others == counts  # begun anew
    [sentence] = trace.tally.notices()
    assert sentence == (
        f"Left out as they read or write no object: 400,006 lines, {counts['HEAD']:,} HEAD, "
        f"{counts['DELETE']:,} DELETE."
    )


def test_words_that_are_understood_are_no_others(tmp_path):
    rows = "0,a,5,get\n1,a,5,Write\n2,a,5,list\n3,a,5,any\n4,a,5,LOAD\n"
    (tmp_path / "a.csv").write_text(f"t,f,b,m\n{rows}")
    trace, found = read(tmp_path / "a.csv", op="m", op_read=["LOAD"], op_other="any")
    assert found["op"].tolist() == ["read", "write", "read"] and trace.tally.others == {"list": 1, "any": 1}
    trace, found = read(tmp_path / "a.csv", op="m", op_read=["LOAD"], op_other=["any", "list", "get"])
    assert found["op"].tolist() == ["write", "read"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("4,a,5,", "column op, row 4.*empty cell"),
        ("4,a,-1,GET", "column bytes, row 4"),
        ("0,a,5,GET", "arrival_s, row 4.*after"),
    ],
)
def test_mistakes_after_rows_that_are_left_out_have_the_number_of_their_row(tmp_path, row, message):
    (tmp_path / "a.csv").write_text(
        f"t,f,b,m\n0,a,5,HEAD\n1,a,5,GET\n2,,,HEAD\n3,a,5,GET\n{row}\n5,a,5,GET\n"
    )
    with pytest.raises(UserError, match=message):
        read(tmp_path / "a.csv", op="m", op_other="any")


WRONG = {
    "none": (None, "columns: missing; allowed: a mapping"),
    "key": (BASE | {"when": "t"}, "columns: found 'when'; allowed: request_id, arrival_s"),
    "needed": ({"arrival_s": "t", "bytes": "b"}, "columns: missing file_id; needed"),
    "absent": (BASE | {"bytes": "size"}, "missing columns: size; found: t, f, b, s"),
    "scale": (BASE | {"arrival_s_scale": -1}, "found arrival_s_scale=-1; allowed: numbers > 0"),
    "scale alone": (BASE | {"start_s_scale": 2}, "found start_s_scale without start_s"),
    "words alone": (BASE | {"op_read": "GET"}, "op_read, op_write or op_other without op"),
    "others alone": (BASE | {"op_other": "any"}, "op_read, op_write or op_other without op"),
    "word twice": (BASE | {"op": "s", "op_read": "x", "op_other": ["y", "x"]}, "'x' in op_read and op_other"),
    "two ends": (BASE | {"finish_s": "t", "sojourn_s": "b"}, "finish_s and sojourn_s; allowed: one"),
    "mixed": (BASE | {"bytes": 2}, "found names and numbers"),
    "kind": (BASE | {"bytes": ["b"]}, r"found bytes=\['b'\]; allowed: a column's name"),
    "type": (BASE | {"bytes": "s"}, "found 'x'; allowed: double"),
    "time": (BASE | {"arrival_s": "s"}, r"column s \(arrival_s\): found type string; allowed: numbers"),
    "op": (
        BASE | {"op": "s", "op_read": ["y"]},
        "column op, row 0.*found 'x'; allowed: read or write .*, to leave them out, op_other",
    ),
    "no access": (
        BASE | {"op": "s", "op_other": "any"},
        "found no access .* among 2 rows; allowed: at least one",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_mappings_are_named_in_one_line(tmp_path, case):
    (tmp_path / "a.csv").write_text("t,f,b,s\n1,a,5,x\n2,b,5,y\n")
    columns, message = WRONG[case]
    with pytest.raises(UserError, match=message) as error:
        list(open_trace(tmp_path / "a.csv", format="columns", columns=columns).batches())
    assert "\n" not in str(error.value)


def test_numbered_columns_need_a_csv_file(tmp_path):
    pq.write_table(pa.table({"t": [1], "f": [1], "b": [1]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="only CSV files may lack a header"):
        open_trace(tmp_path / "a.parquet", columns={"arrival_s": 0, "file_id": 1, "bytes": 2})
