"""Readers: every format gives the same table; what cannot be read is named by its file."""

import gzip
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace
from ecjax.tables.read import open_batches, read_input

ROWS = 5000


def files_table(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "file_id": [f"file-{i}" for i in range(rows)],
            "bytes": random.uniform(1, 1e6, rows),
            "k": random.integers(1, 9, rows),
            "rate_per_s": random.uniform(0, 1, rows),
            "group": [None if i % 3 else f"{i:05d}" for i in range(rows)],
            "note": random.integers(0, 9, rows),
        }
    ).set_column(2, "k", pa.array([4] * rows))


def write_csv(table, path):
    pyarrow.csv.write_csv(table, path)


def write_gzip(table, path):
    write_csv(table, f"{path}.plain")
    with open(f"{path}.plain", "rb") as plain, gzip.open(path, "wb") as packed:
        packed.write(plain.read())


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def write_folder(table, path):
    deep = path / "part=2" / "more"
    deep.mkdir(parents=True)
    pq.write_table(table.slice(0, 1500), path / "a.parquet")
    pq.write_table(table.slice(1500, 500), path / "b.parquet", write_page_checksum=True)
    pq.write_table(table.slice(2000), deep / "a.PARQUET", row_group_size=999)
    for name in ("_metadata", ".a.parquet.tmp", "_x.parquet", "readme.txt"):
        (path / name).write_text("not Parquet")


FORMATS = {
    "t.parquet": pq.write_table,
    "T.Parquet": lambda table, path: pq.write_table(
        table, path, row_group_size=100, write_page_checksum=True
    ),
    "folder": write_folder,
    "t.arrow": write_file,
    "t.ipc": write_stream,
    "t.feather": lambda table, path: pyarrow.feather.write_feather(table, path),
    "t.csv": write_csv,
    "t.csv.gz": write_gzip,
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_table(tmp_path, name):
    table = files_table()
    FORMATS[name](table, tmp_path / name)
    assert read_input(tmp_path / name, "files").equals(table)
    assert read_input(str(tmp_path / name), "files").equals(table)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_batches(tmp_path, name):
    table = files_table()
    FORMATS[name](table, tmp_path / name)
    opened = open_batches(tmp_path / name)
    batches = list(opened.batches)
    assert all(batch.schema == opened.schema for batch in batches)
    assert (
        pa.Table.from_batches(batches)
        .select(table.column_names[:2])
        .equals(table.select(table.column_names[:2]))
    )
    assert pa.Table.from_batches(batches).column("group").equals(table.column("group"))
    known = "csv" not in name and "parquet" in name.lower() or name == "folder"
    assert opened.rows == (ROWS if known else None)


@pytest.mark.parametrize("name", FORMATS)
def test_columns_are_chosen_as_far_as_they_are_there(tmp_path, name):
    table = files_table()
    FORMATS[name](table, tmp_path / name)
    opened = open_batches(tmp_path / name, ["bytes", "file_id", "n"])
    assert sorted(opened.schema.names) == ["bytes", "file_id"]
    read = pa.Table.from_batches(opened.batches)
    assert read.select(["file_id", "bytes"]).equals(table.select(["file_id", "bytes"]))


def test_columns_that_are_an_index_are_told_how_to_be_columns():
    frame = pd.DataFrame({"file_id": ["a", "b"], "bytes": [1, 2], "k": [1, 1], "rate_per_s": [0.5, 0.5]})
    for names in ("file_id", ["k", "file_id"], "k", "rate_per_s"):
        with pytest.raises(
            UserError, match=r"files table: missing columns: .*index of this name.*reset_index\(\)"
        ):
            read_input(frame.set_index(names), "files")
        assert read_input(frame.set_index(names).reset_index(), "files").num_rows == 2
    assert read_input(frame.set_index("k", drop=False), "files").num_rows == 2
    assert read_input(frame.rename_axis("number"), "files").num_rows == 2


def test_tables_and_data_frames():
    table = files_table(10)
    assert read_input(table, "files").equals(table)
    frame = pd.DataFrame({"file_id": ["a", "b"], "bytes": [1, 2], "k": [1, 1], "rate_per_s": [0.5, 0.5]})
    assert read_input(frame, "files").column("bytes").to_pylist() == [1.0, 2.0]
    with pytest.raises(
        UserError, match=r"files table, column bytes, row 1 \(file_id 'b'\): found an empty cell"
    ):
        read_input(frame.assign(bytes=[1.0, None]), "files")
    with pytest.raises(UserError, match="mine: the data frame has no Arrow form"):
        read_input(frame.assign(bytes=[1, "x"]), "files", name="mine")


def test_name_of_the_source(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(UserError, match=rf"^files table \({path}\): missing columns"):
        read_input(path, "files")
    with pytest.raises(UserError, match=r"^files table \(files=t\): missing columns"):
        read_input(path, "files", name="files=t")


def test_sort_reaches_the_check():
    table = pa.table(
        {"request_id": [1, 2], "arrival_s": [2, 1], "file_id": [1, 1], "op": ["r", "r"], "bytes": [1, 1]}
    )
    assert read_input(table, "requests", sort=True).column("request_id").to_pylist() == [2, 1]


# What cannot be read


def both(path, message):
    """Reading whole and in pieces refuse alike."""
    with pytest.raises(UserError, match=message) as caught:
        read_input(path, "files")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=message) as caught:
        list(open_batches(path).batches)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_path(tmp_path):
    both(tmp_path / "none.parquet", "no such file or folder")


def test_path_that_the_system_refuses(tmp_path):
    both(tmp_path / ("x" * 300 + ".parquet"), "File name too long")


def test_unknown_ending(tmp_path):
    (tmp_path / "t.xlsx").write_text("")
    both(tmp_path / "t.xlsx", r"unknown ending; allowed: \.parquet, \.arrow")


def test_folder_without_parquet(tmp_path):
    (tmp_path / "_t.parquet").write_text("")
    (tmp_path / "t.csv").write_text("a\n1\n")
    both(tmp_path, "holds no Parquet file")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "folder"])
def test_empty_file(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    both(tmp_path / name, r"the file is empty \(0 bytes\); allowed: a file with rows")


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("folder", "t.csv")])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.98])
def test_truncated_file(tmp_path, name, kept):
    path = tmp_path / name
    FORMATS[name](files_table(), path)
    os.truncate(path, int(path.stat().st_size * kept))
    both(path, "damaged or of another format")


def test_file_of_another_format(tmp_path):
    for name in ("t.parquet", "t.arrow", "t.csv.gz"):
        (tmp_path / name).write_text("file_id,bytes,k,rate_per_s\n" + "1,1,1,1\n" * 100)
        both(tmp_path / name, "damaged or of another format")


def test_every_damaged_page_is_found(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(files_table(100), path, write_page_checksum=True, compression="none")
    intact = path.read_bytes()
    metadata = pq.read_metadata(path)
    data_end = metadata.row_group(0).column(metadata.num_columns - 1).data_page_offset
    for position in range(40, data_end, 97):
        damaged = bytearray(intact)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        try:
            read = read_input(path, "files")
        except UserError as error:
            assert str(path) in str(error)
        else:  # a byte of a page header that carries nothing
            assert read.equals(files_table(100))


def test_damaged_file_of_a_folder_is_named(tmp_path):
    write_folder(files_table(), tmp_path / "folder")
    damaged = tmp_path / "folder" / "b.parquet"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(UserError, match="b.parquet"):
        read_input(tmp_path / "folder", "files")
    with pytest.raises(UserError, match="b.parquet"):
        list(open_batches(tmp_path / "folder").batches)


def test_files_of_a_folder_that_do_not_fit(tmp_path):
    table = files_table(4)
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.set_column(0, "file_id", pa.array(range(4))), tmp_path / "b.parquet")
    both(tmp_path, "its files do not fit together")


def test_files_of_a_folder_may_lack_optional_columns(tmp_path):
    table = files_table(4).drop_columns(["group", "note"])
    pq.write_table(table.set_column(1, "bytes", pa.array([1, 2, 3, 4], pa.int32())), tmp_path / "a.parquet")
    more = files_table(8).slice(4)
    pq.write_table(more, tmp_path / "b.parquet")
    read = read_input(tmp_path, "files")
    assert read.column("bytes").to_pylist() == [1.0, 2.0, 3.0, 4.0, *more.column("bytes").to_pylist()]
    assert read.column("group").to_pylist() == [None] * 4 + more.column("group").to_pylist()
    assert pa.Table.from_batches(open_batches(tmp_path).batches).to_pylist() == read.to_pylist()


def test_unreadable_file(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(files_table(1), path)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    both(path, "Permission denied")


def test_column_names_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("file_id,bytes,bytes,k,rate_per_s\n1,1,1,1,1\n")
    both(path, "occur more than once: bytes")


# Several runs


def test_rows_of_several_runs(tmp_path):
    one = files_table(4)
    runs = [one.append_column("run_id", pa.array([run] * 4)) for run in ("aaaa", "bbbb")]
    for run, table in zip("ab", runs, strict=True):
        pq.write_table(table, tmp_path / f"{run}.parquet")
    assert read_input(tmp_path / "a.parquet", "files").num_rows == 4
    with pytest.raises(
        UserError, match=r"found rows of 2 runs \(aaaa, bbbb\); name one file that holds one run"
    ):
        read_input(tmp_path, "files")
    with pytest.raises(UserError, match="files table: found rows of 2 runs"):
        read_input(pa.concat_tables(runs), "files")


# CSV


def csv(tmp_path, text: str):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


HEADER = "file_id,bytes,k,rate_per_s"


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["1", "0", "-5", "9223372036854775807"], [1, 0, -5, 2**63 - 1]),
        (["1", "9223372036854775808"], ["1", "9223372036854775808"]),
        (["007", "7"], ["007", "7"]),
        (["+7", "8"], ["+7", "8"]),
        (["1e5", "2e5"], ["1e5", "2e5"]),
        (["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-01-02"]),
        (["NA", "null", "nan"], ["NA", "null", "nan"]),
        (["true", "false"], ["true", "false"]),
    ],
)
def test_ids_in_csv_come_back_as_they_came(tmp_path, ids, expected):
    path = csv(tmp_path, HEADER + "\n" + "".join(f"{i},1,1,1\n" for i in ids))
    assert read_input(path, "files").column("file_id").to_pylist() == expected
    assert pa.Table.from_batches(open_batches(path).batches).column("file_id").to_pylist() == expected


def test_ids_that_turn_into_words_late(tmp_path):
    rows = [f"{i},1,1,1" for i in range(200_000)] + ["x,1,1,1"]
    path = csv(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert read_input(path, "files").column("file_id")[0].as_py() == "0"
    with pytest.raises(
        UserError, match=r"t.csv, line 200002: found 'x'; allowed: int64, as in the rows before"
    ):
        list(open_batches(path).batches)


@pytest.mark.parametrize("late", ["007", " 7", "0x1F", "9223372036854775808"])
def test_ids_that_are_written_otherwise_late(tmp_path, late):
    """Arrow reads 007 and 0x7 as 7, below which two files would be one."""
    rows = [f"{i},1,1,1" for i in range(200_000)] + [f"{late},1,1,1"]
    path = csv(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert read_input(path, "files").column("file_id")[-1].as_py() == late
    with pytest.raises(
        UserError, match=rf"t.csv, line 200002: found '{late}'; allowed: int64, as in the rows before"
    ):
        list(open_batches(path).batches)


def test_numbers_that_turn_into_fractions_late(tmp_path):
    rows = [f"{i},1,1,1" for i in range(200_000)] + ["7,1.5,1,1"]
    path = csv(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert pa.Table.from_batches(open_batches(path).batches).column("bytes")[-1].as_py() == 1.5


def test_timestamps_that_turn_into_fractions_late(tmp_path):
    rows = [f"{i},2024-05-01 10:00:00,a,r,1" for i in range(100_000)] + ["7,2024-05-01 10:00:00.25,a,r,1"]
    path = csv(tmp_path, "\n".join(["request_id,arrival_s,file_id,op,bytes", *rows, ""]))
    arrivals = pa.Table.from_batches(open_batches(path).batches).column("arrival_s")
    assert (arrivals[-1].value - arrivals[0].value) == 250_000_000


def test_empty_cells_in_csv(tmp_path):
    path = csv(tmp_path, HEADER + "\n1,1,1,1\n,1,1,1\n")
    with pytest.raises(UserError, match=r"column file_id, row 1: found an empty cell"):
        read_input(path, "files")
    path = csv(tmp_path, HEADER + "\n1,1,1,1\n2,,1,1\n")
    with pytest.raises(UserError, match=r"column bytes, row 1 \(file_id 2\): found an empty cell"):
        read_input(path, "files")


def test_words_in_csv_numbers(tmp_path):
    path = csv(tmp_path, HEADER + "\n1,1,1,1\n2,big,1,1\n")
    with pytest.raises(
        UserError, match=r"column bytes, row 1 \(file_id 2\): found 'big'; allowed: finite numbers > 0"
    ):
        read_input(path, "files")
    path = csv(tmp_path, HEADER + "\n" + "1,1,1,1\n" * 200_000 + "2,big,1,1\n")
    with pytest.raises(UserError, match=r"t.csv, line 200002: found 'big'; allowed: double"):
        list(open_batches(path).batches)


@pytest.mark.parametrize("good", [1, 100_000])
def test_line_of_another_length(tmp_path, good):
    path = csv(tmp_path, HEADER + "\n" + "1,1,1,1\n" * good + "2,1,1\n")
    both(path, rf"t.csv, line {good + 2}: damaged or of another format: Expected 4 columns, got 3: 2,1,1")


def test_csv_without_rows(tmp_path):
    both(csv(tmp_path, HEADER + "\n"), "found no rows")


def test_csv_that_is_no_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER.encode() + b"\n\xff\xfe,1,1,1\n")
    both(path, "t.csv")


def test_csv_timestamps(tmp_path):
    path = csv(
        tmp_path,
        "request_id,arrival_s,file_id,op,bytes\n1,2024-05-01 10:00:00.5,a,r,1\n2,2024-05-01 10:00:02,a,r,1\n",
    )
    assert read_input(path, "requests").column("arrival_s").to_pylist() == [0.0, 1.5]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.arrow", "x.log"])
def test_an_empty_log(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(UserError, match=r"the file is empty \(0 bytes\); allowed: a file with rows"):
        open_trace(tmp_path / name)
