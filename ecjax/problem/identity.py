"""The ids that rows of the result tables carry."""

from dataclasses import dataclass

import pyarrow as pa

from ecjax.problem.arrays import Rows, placement_rows


@dataclass(frozen=True)
class Identity:
    """The ids that rows of the result tables carry."""

    nodes: pa.Array  # (m,)
    files: pa.Array  # (r,)
    rows: Rows
    classes: pa.DictionaryArray  # (r,) service class of each file, else its k
    per_node: int = 1  # chunks of a file that each of its nodes keeps


def identity(nodes: pa.Table, files: pa.Table, per_node: int = 1) -> Identity:
    """Ids of checked input tables, and how many chunks of a file each of its nodes keeps."""
    column = "service_class" if "service_class" in files.column_names else "k"
    return Identity(
        nodes=nodes["node_id"].combine_chunks(),
        files=files["file_id"].combine_chunks(),
        rows=placement_rows(files),
        classes=files[column].combine_chunks().dictionary_encode(null_encoding="encode"),
        per_node=per_node,
    )
