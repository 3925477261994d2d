"""Which code each file has: one for all, or one for every class of files."""

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.durability.assessment import Failures, repair_loads
from ecjax.durability.codes import Code
from ecjax.durability.repair_times import RepairCluster, repair_time
from ecjax.errors import UserError
from ecjax.problem.arrays import column
from ecjax.units import bytes_text

_MOST_CLASSES = 8  # one estimate is of so many groups of reads
_ROUNDING = 1e-9  # relative, of sums of rates


class Classes(NamedTuple):
    """Classes of files.

    Attributes:
        names: of the classes
        of_file: (r,) class of each file
        bytes_share: of the bytes of all files, by class
        read_share: of their reads
    """

    names: tuple[str, ...]
    of_file: np.ndarray
    bytes_share: np.ndarray
    read_share: np.ndarray


class Layout(NamedTuple):
    """The code of each file.

    Attributes:
        codes: of the classes; one where there are none
        of_file: (r,) which of them each file has
        share: of the bytes, by code
        group: (r,) class whose reads are told apart
        groups: how many there are
    """

    codes: tuple[Code, ...]
    of_file: np.ndarray
    share: np.ndarray
    group: np.ndarray
    groups: int

    @property
    def name(self) -> str:
        """Of the codes."""
        return " and ".join(dict.fromkeys(code.name for code in self.codes))

    @property
    def longest(self) -> int:
        """Most chunks of a file."""
        return max(code.n for code in self.codes)

    @property
    def k(self) -> np.ndarray:
        """(r,) data chunks."""
        return np.array([code.k for code in self.codes])[self.of_file]

    @property
    def n(self) -> np.ndarray:
        """(r,) chunks."""
        return np.array([code.n for code in self.codes])[self.of_file]

    @property
    def degraded(self) -> np.ndarray:
        """(r,) chunks read for a range of one that is away."""
        return np.array([code.degraded_chunks for code in self.codes])[self.of_file]

    def repair_bytes_per_s(self, cluster: RepairCluster) -> float:
        """Read and written while a disk is repaired, of the code that takes most."""
        return max(
            repair_time(cluster, code.n, code.k, code.repair_chunks, 0, 1).bytes_per_s for code in self.codes
        )

    def repair_share(self, cluster: RepairCluster, failures: Failures) -> float:
        """Share of the time in which a disk or a domain is repaired: that of every code by its share of the bytes."""
        loads = [sum(repair_loads(code, cluster, failures)) for code in self.codes]
        return min(1.0, float(self.share @ np.array(loads)))


def one_code(code: Code, classes: Classes | None, files: int) -> Layout:
    """All files in one code; reads of classes are told apart where there are any."""
    group, groups = (np.zeros(files, int), 1) if classes is None else (classes.of_file, len(classes.names))
    return Layout((code,), np.zeros(files, int), np.ones(1), group, groups)


def by_class(codes: tuple[Code, ...], classes: Classes) -> Layout:
    """A code for each class."""
    return Layout(codes, classes.of_file, classes.bytes_share, classes.of_file, len(classes.names))


def classes_of(files: pa.Table, kinds: list[str], hot_share: float, size_bounds: list[float]) -> Classes:
    """Classes of files: every combination of the kinds that has a file.

    Args:
        files: checked files table.
        kinds: hot_cold, size, service_class
        hot_share: of all reads, that the hot files have: the fewest files with so many
        size_bounds: bytes between classes of size, ascending

    Raises:
        UserError: the table has no service classes, or there is one class only, or too many.
    """
    labels: list[list[str]] = []
    rate, size = column(files, "rate_per_s"), column(files, "bytes")
    for kind in kinds:
        if kind == "hot_cold":
            # the fewest files with so many of the reads
            order = np.argsort(-rate, kind="stable")
            before = np.cumsum(rate[order]) - rate[order]
            hot = np.zeros(len(rate), bool)
            # sums of equal rates are rounded: those that come to the share are not below it
            hot[order[before < (1 - _ROUNDING) * hot_share * rate.sum()]] = True
            labels.append(["hot" if each else "cold" for each in hot])
        elif kind == "size":
            steps = [bytes_text(bound) for bound in size_bounds]
            names = [f"below {steps[0]}", *(f"from {step}" for step in steps)]
            labels.append([names[at] for at in np.searchsorted(size_bounds, size, side="right")])
        else:
            if "service_class" not in files.column_names:
                raise UserError("classes=service_class: found no column service_class in files")
            labels.append([str(name) for name in files["service_class"].to_pylist()])
    every = [", ".join(parts) for parts in zip(*labels, strict=True)]
    named, index = np.unique(every, return_inverse=True)
    if not 2 <= len(named) <= _MOST_CLASSES:
        some = ", ".join(named[:3]) + (", ..." if len(named) > 3 else "")
        raise UserError(
            f"classes: found {len(named)} of files ({some}); allowed: 2 to {_MOST_CLASSES}, by other size_bounds or "
            "hot_share"
        )
    if not math.fsum(rate) > 0:
        raise UserError("classes: no file is read; allowed: files with rates")
    mean = np.bincount(index, rate) / np.bincount(index)
    order = np.argsort(-mean, kind="stable")  # the hottest first
    of_file = np.argsort(order)[index]
    by_bytes, by_reads = (np.bincount(of_file, weights, len(named)) for weights in (size, rate))
    return Classes(
        tuple(map(str, named[order])), of_file, by_bytes / by_bytes.sum(), by_reads / by_reads.sum()
    )
