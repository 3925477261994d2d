"""Columns as Arrow schemas."""

from collections.abc import Mapping

import pyarrow as pa

from ecjax.tables.result_schemas import SCHEMA_VERSION, JobTables
from ecjax.tables.schemas import BOOLEAN, BYTES, FLOAT, ID, IDS, INPUTS, INTEGER, STRING, TIME, Column

VERSION_KEY, JOB_KEY = b"ecjax_schema_version", b"ecjax_job"
INPUT_DATASETS = ("inputs/nodes", "inputs/files", "inputs/network")

_NODE_IDS = ("nodes", "forbidden_nodes", "busiest_node", "worst_node")  # node ids under another name


def arrow_type(kind: str, id_type: pa.DataType) -> pa.DataType:
    """Arrow type of a column kind; ``id_type`` is the type the ids of this column came with."""
    types = {
        FLOAT: pa.float64(),
        INTEGER: pa.int64(),
        STRING: pa.string(),
        BOOLEAN: pa.bool_(),
        TIME: pa.float64(),
        BYTES: pa.binary(),
    }
    if kind == ID:
        return id_type
    return pa.list_(id_type) if kind == IDS else types[kind]


def dataset_schema(tables: JobTables, dataset: str, id_types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Schema of a dataset of a job: one of its own or one of ``INPUT_DATASETS``.

    Args:
        tables: datasets of the job.
        dataset: name of one.
        id_types: Arrow type by id column name (``file_id``, ``node_id``, ``group``, ...), string where absent;
            columns that hold node ids under another name take the type of ``node_id``.
    """
    if dataset in INPUT_DATASETS:
        columns: tuple[Column, ...] = INPUTS[dataset.removeprefix("inputs/")]
        fields = [pa.field("input_id", pa.string(), nullable=False)]
    else:
        columns, fields = tables.datasets[dataset], []
    for column in columns:
        source = "node_id" if column.name in _NODE_IDS else column.name
        kind = arrow_type(column.kind, id_types.get(source, pa.string()))
        required = column.required and dataset not in INPUT_DATASETS
        metadata = {"unit": column.unit, "meaning": column.meaning}
        fields.append(pa.field(column.name, kind, nullable=not required, metadata=metadata))
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION), JOB_KEY: tables.job})
