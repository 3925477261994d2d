"""Classes of files: results are summed by them, and they have queues of their own where nodes serve by class."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.problem.identity import Identity


@dataclass(frozen=True)
class Classes:
    """Classes of files, in order: the first goes first under priority.

    Attributes:
        names: (K,) as results name them.
        of_file: (r,) int64.
    """

    names: list[str]
    of_file: np.ndarray


def in_class_order(classes: pa.DictionaryArray) -> list[int]:
    """Places of the classes in their dictionary, which has them as they come in the table: ascending, null last."""
    values = classes.dictionary.to_pylist()
    return sorted(range(len(values)), key=lambda i: (values[i] is None, values[i]))


def file_classes(names: Identity, files: pa.Table) -> Classes:
    """Service classes in ascending order, null last; where files have none, a class per k, named k=..."""
    values, order = names.classes.dictionary.to_pylist(), in_class_order(names.classes)
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    prefix = "" if "service_class" in files.column_names else "k="
    return Classes([f"{prefix}{values[i]}" for i in order], rank[names.classes.indices.to_numpy()])


def check_classes(names: Identity, files: pa.Table, queue: str) -> Classes:
    """The classes that a queue by class needs.

    Raises:
        UserError: files have no column service_class, files of a group belong to several classes, or nothing of a class
            is read.
    """
    if "service_class" not in files.column_names:
        raise UserError(f"queue={queue}: files have no column service_class; allowed without it: fcfs")
    classes = file_classes(names, files)
    rate = np.bincount(classes.of_file, files["rate_per_s"].to_numpy(), len(classes.names))
    if np.any(rate <= 0):
        name = classes.names[int(np.argmin(rate))]
        raise UserError(
            f"files: column rate_per_s: no file of service_class {name} is read; allowed with queue={queue}: classes "
            "with a read rate above 0"
        )
    row = names.rows.of_file
    if row is not None:
        first = np.full(names.rows.count, -1)
        first[row[::-1]] = np.arange(len(row))[::-1]
        wrong = np.flatnonzero(classes.of_file != classes.of_file[first[row]])
        if wrong.size:
            file = int(wrong[0])
            name, other = (classes.names[classes.of_file[each]] for each in (file, first[row[file]]))
            raise UserError(
                f"files: column service_class, row {file}: found {name}, another file of its group has {other}; "
                "allowed: one class per group"
            )
    return classes
