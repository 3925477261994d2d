"""Samples of reads, stratified in time, for groups of them."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ecjax.traffic.bins import BinnedReads

_OF_ALL = 6000  # reads in the sample of all
_OF_CLASSES, _LEAST_OF_CLASS, _OF_CLASS = 60_000, 16, 1500  # of all classes together; least and most of one
_OF_FILES, _OF_FILE, _MOST_OF_FILE = 12_000, 16, 1000  # of all files together; least and most of one


class Groups(NamedTuple):
    """What latencies are estimated of: all reads, then classes, then files; G groups."""

    class_of_file: np.ndarray  # (r,) below ``classes``
    classes: int
    files: np.ndarray  # (F,) files of interest, all different

    @property
    def total(self) -> int:
        """Number of groups G."""
        return 1 + self.classes + len(self.files)


class FileKinds(NamedTuple):
    """Files that are read alike (probabilities, chunk size) as kinds, K of them."""

    first: np.ndarray  # (K,) a file of each kind
    of_file: np.ndarray  # (r,) kind of every file


class Sample(NamedTuple):
    """Reads that stand for those of groups, n of them."""

    group: np.ndarray  # (n,)
    entry: np.ndarray  # (n,) place among the pairs of bin and file
    weight: np.ndarray  # (n,) reads that it stands for


def all_reads(classes: int = 0) -> Groups:
    """No groups but that of all reads."""
    return Groups(np.zeros(0, np.int64), classes, np.zeros(0, np.int64))


def file_kinds(probabilities: np.ndarray, chunk_bytes: np.ndarray) -> FileKinds:
    """Kinds of files, by probabilities (r, m) and chunk sizes (r,)."""
    # equal rows have equal sums, and others almost surely not
    draw = np.random.default_rng(0).uniform(0.5, 1.5, probabilities.shape[1])
    key = np.stack([chunk_bytes, probabilities @ draw], axis=1)
    _, first, of_file = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return FileKinds(first, of_file.ravel())


def alike(kinds: FileKinds, groups: Groups) -> np.ndarray:
    """A file that counts as each does, (r,): of its kind and class, and itself where it has figures of its own."""
    key = kinds.of_file.astype(np.int64)
    if groups.classes:
        key = key * groups.classes + groups.class_of_file
    key[groups.files] = key.max() + 1 + np.arange(len(groups.files))
    _, first, of_file = np.unique(key, return_index=True, return_inverse=True)
    return first[of_file]


def within(reads: BinnedReads, member: np.ndarray) -> BinnedReads:
    """The reads of some bins, (B,) bool."""
    chosen = member[reads.bin]
    return reads._replace(bin=reads.bin[chosen], file=reads.file[chosen], reads=reads.reads[chosen])


def group_reads(reads: BinnedReads, groups: Groups, kinds: FileKinds) -> csr_matrix:
    """Reads of each kind in each group, (G, K)."""
    place = np.full(reads.files, -1)
    place[groups.files] = 1 + groups.classes + np.arange(len(groups.files))
    kind = kinds.of_file[reads.file]
    rows = [np.zeros(len(kind), np.int64), place[reads.file]]
    if groups.classes:
        rows.append(1 + groups.class_of_file[reads.file])
    row, column = np.concatenate(rows), np.tile(kind, len(rows))
    amount = np.tile(reads.reads, len(rows))
    used = row >= 0
    shape = (groups.total, len(kinds.first))
    return csr_matrix((amount[used], (row[used], column[used])), shape=shape)


def sampled(reads: BinnedReads, chosen: np.ndarray, groups: Groups, of_all: int = _OF_ALL) -> Sample:
    """A sample of the reads of every group.

    Args:
        reads: by bin and file.
        chosen: (P,) bool, pairs that are sampled.
        groups: of files.
        of_all: size of the sample of all reads.
    """
    entries = np.flatnonzero(chosen)
    if not len(entries):
        nothing = np.zeros(0, np.int64)
        return Sample(nothing, nothing, np.zeros(0))
    share = reads.reads[entries].sum() / reads.reads.sum()
    parts = [_part(reads, entries, 0, int(np.ceil(of_all * share)) + 100)]
    if groups.classes > 1:
        of_class = int(np.clip(_OF_CLASSES // groups.classes, _LEAST_OF_CLASS, _OF_CLASS))
        by_class = _apart(entries, groups.class_of_file[reads.file[entries]], np.arange(groups.classes))
        parts += [_part(reads, each, 1 + number, of_class) for number, each in enumerate(by_class)]
    elif groups.classes == 1:
        parts.append(Sample(np.ones_like(parts[0].group), *parts[0][1:]))
    of_file = _OF_FILES // max(len(groups.files), 1)
    of_file = min(max(of_file, _OF_FILE), _MOST_OF_FILE)
    by_file = _apart(entries, reads.file[entries], groups.files)
    parts += [_part(reads, each, 1 + groups.classes + number, of_file) for number, each in enumerate(by_file)]
    return Sample(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _apart(entries: np.ndarray, label: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """The entries of each label that is wanted, in their order."""
    if not len(wanted):
        return []
    order = np.argsort(label, kind="stable")
    begin, end = (np.searchsorted(label[order], wanted, side=side) for side in ("left", "right"))
    by_label = entries[order]
    return [by_label[first:last] for first, last in zip(begin.tolist(), end.tolist(), strict=True)]


def _part(reads: BinnedReads, entries: np.ndarray, group: int, count: int) -> Sample:
    """Every so many-th read of these entries, which are in order of time; all entries where they are few."""
    weight = reads.reads[entries]
    if len(entries) > count:
        passed = np.cumsum(weight)
        entries = entries[np.searchsorted(passed, (np.arange(count) + 0.5) / count * passed[-1])]
        weight = np.full(count, passed[-1] / count)
    return Sample(np.full(len(entries), group), entries, weight)
