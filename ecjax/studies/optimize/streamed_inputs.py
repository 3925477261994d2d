"""What a streamed plan is made for: the nodes table, and counts of a files table that is read in pieces."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.planning.problem import Problem
from ecjax.planning.streamed.relaxation import Sites, problem_of
from ecjax.planning.streamed.tally import Counts, Piece, Tally
from ecjax.problem import builtin
from ecjax.problem.arrays import column
from ecjax.problem.described_nodes import read_nodes
from ecjax.progress import progress
from ecjax.studies.optimize.case import nodes_of
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.tables.checks import check, check_columns
from ecjax.tables.fingerprint import fingerprint, trace_fingerprint
from ecjax.tables.folder import location, public
from ecjax.tables.ids import with_counted_nulls
from ecjax.tables.place import Place
from ecjax.tables.read import ahead, open_batches
from ecjax.tables.run_ids import run_id
from ecjax.tables.schemas import INPUTS

_NUMBERS = ("bytes", "rate_per_s", "k", "d", "min_extra_chunks")
# what would make files differ in more than code and rate
_REFUSED = ("group", "write_rate_per_s", "stored_bytes", "forbidden_nodes", "small_rate_per_s")
_RATES = ("write_rate_per_s", "small_rate_per_s")  # zeros say nothing
_SAME_SIZE = 1e-9  # relative: bytes / k rounds


class Overrides(NamedTuple):
    """Columns of all files that options set; None leaves what the table has."""

    k: int | None
    d: int | None
    min_extra_chunks: int | None

    def columns(self) -> dict[str, int]:
        """Those that are set."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@dataclass(frozen=True, eq=False)
class StreamedCase:
    """The files at one k and d.

    Attributes:
        source: files table.
        nodes: checked nodes table.
        overrides: what k and d of all files are set to.
        counts: of the files.
        chunk_bytes: B, of every chunk.
        problem: with a row for each step of the counts.
        sites: failure domains that limit chunks, or None.
        input_id: fingerprint of both tables.
    """

    source: str
    nodes: pa.Table
    overrides: Overrides
    counts: Counts
    chunk_bytes: float
    problem: Problem
    sites: Sites | None
    input_id: str

    def pieces(self) -> Iterator[Piece]:
        """The files once more."""
        for piece, _ in _pieces(self.source, self.overrides):
            yield piece

    @property
    def places(self) -> dict[str, str]:
        """Where the files table is."""
        return {"files": public(location(self.source))}


def streamed_cases(options: OptimizeOptions) -> list[StreamedCase]:
    """The cases of a study with ``stream=true``, one for each k and d.

    Raises:
        UserError: something in the tables is wrong, or more than streamed plans know.
    """
    if options.files is None:
        raise UserError("stream=true: files=FILE is missing, the table that is read in pieces")
    nodes = builtin.nodes(options.cluster) if options.nodes is None else read_nodes(options.nodes)
    nodes = check(nodes, "nodes")
    if "capacity_chunks" in nodes.column_names:
        raise UserError(
            "stream=true: nodes has a column capacity_chunks; allowed: nodes without limits of chunks"
        )
    sites = _sites(options, nodes)
    parts = {
        "nodes": fingerprint(nodes, "nodes"),
        "files": trace_fingerprint(options.files, fresh=False),
    }
    _check_columns(options)
    cases = []
    none: list[int | None] = [None]
    for k, d in itertools.product(options.k or none, options.d or none):
        overrides = Overrides(k, d, options.min_extra_chunks)
        counts, chunk_bytes = _counted(options.files, overrides, nodes, sites)
        problem = problem_of(counts, nodes_of(options, nodes, chunk_bytes), chunk_bytes, sites)
        input_id = run_id("inputs", parts | overrides.columns(), "", None, "")
        cases.append(
            StreamedCase(options.files, nodes, overrides, counts, chunk_bytes, problem, sites, input_id)
        )
    return cases


def _check_columns(options: OptimizeOptions) -> None:
    """Refuse a files table of which columns are missing, or misspelt: pieces are read without those that are not known.

    Raises:
        UserError: naming the columns.
    """
    source = str(options.files)
    schema = open_batches(source).schema
    names = schema.names
    set_for_all = {"k": options.k, "d": options.d, "min_extra_chunks": options.min_extra_chunks}
    names += [name for name, value in set_for_all.items() if value is not None and name not in names]
    check_columns(names, Place(schema.empty_table(), "files", source))


def _sites(options: OptimizeOptions, nodes: pa.Table) -> Sites | None:
    most = options.max_chunks_per_site
    if most is None:
        return None
    if "site" not in nodes.column_names:
        raise UserError(f"max_chunks_per_site={most}: the nodes table has no column site, which it needs")
    codes = nodes["site"].combine_chunks().dictionary_encode().indices
    return Sites(pc.fill_null(codes, -1).to_numpy(zero_copy_only=False).astype(np.int64), most)


def _counted(source: str, overrides: Overrides, nodes: pa.Table, sites: Sites | None) -> tuple[Counts, float]:
    """Counts of the files and the size of their chunks, B."""
    tally, chunk_bytes = Tally(), None
    rows = open_batches(source, ["bytes"]).rows
    with progress("counting files", rows) as advance:
        for piece, size in _pieces(source, overrides, with_ids=True):
            if chunk_bytes is None:
                chunk_bytes = float(size[0])
            other = np.abs(size - chunk_bytes) > _SAME_SIZE * chunk_bytes
            if other.any():
                raise UserError(
                    f"stream=true: {source}: found chunks of {chunk_bytes:g} and {size[other.argmax()]:g} bytes; "
                    "allowed: one chunk size, bytes / k (or bytes / d) of all files alike"
                )
            tally.add(piece)
            advance(len(size))
    if chunk_bytes is None:
        raise UserError(f"files table ({source}): found no rows; allowed: at least one")
    counts = tally.counts()
    if not counts.total.sum() > 0:
        raise UserError(
            f"files table ({source}): column rate_per_s: no file is read; allowed: a rate above 0"
        )
    _check_room(source, counts, nodes.num_rows, sites)
    return counts, chunk_bytes


def _check_room(source: str, counts: Counts, nodes: int, sites: Sites | None) -> None:
    room, where = nodes, f"nodes has {nodes}"
    if sites is not None:
        room = int(np.minimum(np.bincount(sites.site - sites.site.min()), sites.per_site).sum())
        where = f"with max_chunks_per_site={sites.per_site} there is room on {room}"
    longest = max(counts.codes, key=lambda code: code.length)
    if longest.length > room:
        raise UserError(
            f"files table ({source}): a file with k={longest.k} needs {longest.length} nodes; {where}"
        )


def _pieces(
    source: str, overrides: Overrides, *, with_ids: bool = False
) -> Iterator[tuple[Piece, np.ndarray]]:
    """Pieces of the table with the sizes of their chunks, (r,) B.

    Args:
        source: files table.
        overrides: columns that options set.
        with_ids: read and check the ids too.

    Raises:
        UserError: a value is wrong, or of a kind that streamed plans do not know.
    """
    constants = overrides.columns()
    columns = [name for name in (*_NUMBERS, *_REFUSED) if name not in constants]
    columns += ["file_id"] if with_ids else []
    before = 0
    for batch in ahead(open_batches(source, columns).batches):
        table = pa.Table.from_batches([batch])
        for name, value in constants.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value), len(table)))
        if not _is_plain(table):
            table = check(table, "files", source=source, piece_from=before)
        _refuse(table, source)
        k = _whole(table, "k", 0)
        read = np.maximum(_whole(table, "d", 0), k)
        if "d" in table.column_names:
            few = np.flatnonzero(_whole(table, "d", 2**31) < k)
            if len(few):
                place, row = Place(table, "files", source, before), int(few[0])
                raise place.error(
                    f"found {table['d'][row]}; allowed: at least k = {k[row]}", column="d", row=row
                )
        length = np.maximum(k + _whole(table, "min_extra_chunks", 0), read)
        before += len(table)
        yield Piece(k, read, length, column(table, "rate_per_s")), column(table, "bytes") / read


def _refuse(table: pa.Table, source: str) -> None:
    for name in _REFUSED:
        if name not in table.column_names:
            continue
        values = table[name]
        silent = name in _RATES and not pc.any(pc.not_equal(values, 0)).as_py()
        if values.null_count < len(values) and not silent:
            raise UserError(
                f"stream=true: {source} has a column {name}; allowed: files that differ in code and rate"
            )


def _is_plain(table: pa.Table) -> bool:
    """Whether all has canonical types and ranges, and ids are full; a quick look that spares most pieces the check."""
    if "file_id" in table.column_names and with_counted_nulls(table["file_id"]).null_count:
        return False
    for name in _RATES:
        if name in table.column_names and not _is_number(table[name].type):
            return False
    schema = {each.name: each for each in INPUTS["files"]}
    for name in _NUMBERS:
        if name not in table.column_names:
            if schema[name].required:
                return False
            continue
        values, rule = table[name], schema[name]
        kind = pa.int64() if rule.kind == "int64" else pa.float64()
        if values.type != kind or values.null_count:
            return False
        numbers = values.to_numpy()
        least = rule.smallest if rule.smallest is not None else -np.inf
        if not (numbers.min() >= least and numbers.max() <= rule.most):
            return False
    return True


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _whole(table: pa.Table, name: str, default: int) -> np.ndarray:
    if name not in table.column_names:
        return np.full(len(table), default)
    return pc.fill_null(table[name].combine_chunks(), default).to_numpy(zero_copy_only=False)


def say_what_is_left_aside(source: str) -> None:
    """Say which columns of the files table do not count."""
    names = open_batches(source).schema.names
    for name in ("n", "nodes", "client_site", "service_class"):
        if name in names:
            log.info("files: %s is left aside with stream=true", name)
