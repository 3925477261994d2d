"""Accesses of a log that are work of its nodes, not requests of users: some classes of them, or all writes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ecjax.tables.importers.trace import Trace

WRITES = "writes"  # the word for all of them, beside classes


def of_classes(batch: pa.RecordBatch, classes: frozenset[str]) -> np.ndarray:
    """Whether rows with ``service_class`` are of some classes, (n,) bool."""
    column = batch.column("service_class").dictionary_encode()
    names = column.dictionary.to_pylist()
    member = np.array([str(name) in classes for name in names] + [False])
    return member[column.indices.fill_null(len(names)).to_numpy()]


def of_users(batch: pa.RecordBatch, background: frozenset[str]) -> pa.RecordBatch:
    """The rows of a batch that are not background work: of none of these classes, and no writes if these are."""
    left = np.ones(batch.num_rows, bool)
    classes = background - {WRITES}
    if classes and "service_class" in batch.schema.names:
        left &= ~of_classes(batch, classes)
    if WRITES in background:
        operations = batch.column("op")
        words = np.array([word == "write" for word in operations.dictionary.to_pylist()], bool)
        left &= ~words[operations.indices.to_numpy()]
    return batch if left.all() else batch.filter(pa.array(left))


def without_background(trace: Trace, background: frozenset[str]) -> Trace:
    """A trace without its background work; numbers of rows in messages are then those of the rows that are left.

    Args:
        trace: with it.
        background: classes, and ``WRITES``; empty: there is none.
    """
    if not background:
        return trace
    read = trace.read

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in read():
            kept = of_users(batch, background)
            if kept.num_rows:
                yield kept

    return replace(trace, read=rows, rows=None, cut=None, background=background)
