"""Damage in what files say of their columns: a column is never lost or another one without a word."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.jobs_index import JOBS
from ecjax.tables.importers import open_trace
from ecjax.tables.near_names import check_names
from ecjax.tables.place import Place
from ecjax.tables.read import open_batches, read_input
from ecjax.tables.schemas import INPUTS

FILES = pa.table(
    {
        "file_id": ["a", "b", "c"],
        "bytes": [1.0, 2.0, 3.0],
        "k": [2, 2, 2],
        "d": [3, None, 3],
        "rate_per_s": [0.1, 0.2, 0.3],
        "service_class": ["x", "y", "x"],
        "nodes": [["u", "v"], ["u"], ["v"]],
        "stored_bytes": [1.0, 2.0, 3.0],
    }
)
ACCESSES = pa.table(
    {
        "request_id": [1, 2],
        "arrival_s": [0.0, 1.0],
        "file_id": ["a", "b"],
        "op": ["read", "read"],
        "bytes": [1.0, 2.0],
        "node_id": ["u", "v"],
        "finish_s": [1.0, 2.0],
    }
)


@pytest.mark.parametrize("arrow", [True, False], ids=["both schemas", "of Parquet only"])
def test_no_flip_in_a_footer_is_silent(tmp_path, arrow):
    path = tmp_path / "files.parquet"
    pq.write_table(FILES, path, store_schema=arrow, write_page_checksum=True)
    whole, content = read_input(path, "files"), path.read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    refused = 0
    for bit in random.Random(7).sample(range(8 * begin, 8 * len(content)), 300):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found = read_input(path, "files")
        except UserError:
            refused += 1
            continue
        assert found.equals(whole), f"bit {bit}"
    assert refused > 100


def flip(path: Path, word: bytes, place: int) -> None:
    """Change a bit of a word, at one of the places where it stands."""
    content = bytearray(path.read_bytes())
    start = [n for n in range(len(content)) if content.startswith(word, n)][place]
    content[start + 1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("place", [0, 1])
def test_a_column_of_two_names_is_an_error(tmp_path, place):
    """A name of one letter is near no other name: that of the chunk, and that of Arrow, differ."""
    path = tmp_path / "files.parquet"
    table = FILES.select(["file_id", "bytes", "k", "rate_per_s"]).append_column("xyz", FILES["d"])
    pq.write_table(table, path)
    flip(path, b"xyz", place)
    with pytest.raises(UserError, match=f"^{path}: damaged or of another format: .*x[xy]z"):
        read_input(path, "files")


def test_a_table_read_in_pieces_has_one_schema(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(ACCESSES, path)
    flip(path, b"finish_s", 0)
    with pytest.raises(UserError, match="its schemas have columns 'finish_s' and 'fhnish_s'"):
        open_batches(path)


# Names that are almost those of optional columns


@pytest.mark.parametrize(
    ("name", "optional"),
    [
        ("servise_class", "service_class"),
        ("stored_byte", "stored_bytes"),
        ("Stored_Bytes", "stored_bytes"),
        ("gxoup", None),
        ("grouq", "group"),
        ("min_extra_chunk", "min_extra_chunks"),
        ("write_rates_per_s", "write_rate_per_s"),
        ("note", None),
        ("e", None),
        ("owner", None),
        ("storage_class", None),
    ],
)
def test_names_that_are_almost_those_of_optional_columns(tmp_path, name, optional):
    columns = FILES.select(["file_id", "bytes", "k", "rate_per_s"]).append_column(name, FILES["d"])
    path = tmp_path / "files.csv"
    pyarrow.csv.write_csv(columns, path)
    if optional is None:
        assert name in read_input(path, "files").column_names
        return
    message = rf"files table \({path}\), column {name}: unknown, and almost {optional}; allowed: {optional}, or another"
    with pytest.raises(UserError, match=message):
        read_input(path, "files")


def test_a_name_may_be_near_one_that_is_there():
    place = Place(pa.table({}), "nodes")
    check_names(["service_mean_s", "service_men_s"], place)
    with pytest.raises(UserError, match="nodes table, column service_men_s: .* almost service_mean_s"):
        check_names(["service_men_s"], place)


def test_a_log_with_a_column_almost_named_as_an_optional_one(tmp_path):
    path = tmp_path / "log.csv"
    pyarrow.csv.write_csv(ACCESSES.rename_columns([*ACCESSES.column_names[:-1], "finish_z"]), path)
    with pytest.raises(
        UserError, match="column finish_z: unknown, and almost finish_s; allowed: finish_s, or"
    ):
        open_trace(str(path), "auto", None, None, False)


@pytest.mark.parametrize("job", JOBS)
def test_tables_of_results_are_near_no_optional_column(job):
    from importlib import import_module

    for name, columns in import_module(f"ecjax.studies.{job}.tables").TABLES.datasets.items():
        if name in INPUTS:
            check_names([column.name for column in columns], Place(pa.table({}), name))
