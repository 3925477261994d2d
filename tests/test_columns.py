"""Columns of all tables, of inputs and of results: names once, units from one vocabulary, told by the name."""

import pytest
import result_guide

from ecjax.jobs_index import JOBS
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.result_schemas import RUN_COLUMNS, RUNS
from ecjax.tables.schemas import FLOAT, INPUTS

UNITS = {
    "",
    "s",
    "s^2",
    "s^3",
    "1/s",
    "1/year",
    "B",
    "B/s",
    "s/B",
    "s/$",
    "$",
    "$/B",
    "$/period",
    "$/(B period)",
    "chunks",
}
# how the names of numbers end, the longest ending first
ENDINGS = {
    "bytes_per_s": {"B/s"},
    "_per_s": {"1/s"},
    "_s_per_byte": {"s/B"},
    "dollars_per_period": {"$/period"},
    "moving_dollars": {"$"},
    "dollars_per_byte": {"$/B"},
    "_per_chunk_dollars": {"$/period"},
    "_per_byte_dollars": {"$/(B period)"},
    "_s": {"s"},
    "_s2": {"s^2"},
    "_s3": {"s^3"},
    "_bytes": {"B"},
    "_scale": {""},
    "_share": {""},
    "_load": {""},
}
RESULTS = {
    f"{job}: {name}": columns
    for job in JOBS
    for name, columns in result_guide.tables_of(job).datasets.items()
}
TABLES = RESULTS | INPUTS


def test_datasets_of_a_job_begin_with_its_runs():
    for job in JOBS:
        tables = result_guide.tables_of(job)
        assert tables.job == job and next(iter(tables.datasets)) == RUNS
        assert tables.datasets[RUNS][: len(RUN_COLUMNS)] == RUN_COLUMNS
        assert tables.names == tuple(tables.datasets)[1:]


@pytest.mark.parametrize("table", TABLES)
def test_names_are_there_once_and_every_column_says_what_it_is(table):
    names = [column.name for column in TABLES[table]]
    assert len(set(names)) == len(names)
    assert (names[0] == "run_id") == (table in RESULTS)
    for column in TABLES[table]:
        assert column.unit in UNITS, column
        assert column.meaning, column
        assert not (column.above and column.least is None), column


@pytest.mark.parametrize("table", TABLES)
def test_names_of_numbers_tell_their_unit(table):
    for column in TABLES[table]:
        if column.kind == FLOAT:
            ending = next((ending for ending in ENDINGS if column.name.endswith(ending)), None)
            assert ending is None or column.unit in ENDINGS[ending], column


@pytest.mark.parametrize("job", JOBS)
def test_files_carry_units_and_meanings(job):
    tables = result_guide.tables_of(job)
    for name, columns in tables.datasets.items():
        schema = dataset_schema(tables, name, {})
        assert schema.names == [column.name for column in columns]
        for column in columns:
            metadata = schema.field(column.name).metadata
            assert metadata == {b"unit": column.unit.encode(), b"meaning": column.meaning.encode()}
