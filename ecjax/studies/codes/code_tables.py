"""Codes that users describe by their parity checks, in a table."""

import re
from pathlib import Path

import pyarrow as pa

from ecjax.durability.codes import MOST_CHUNKS, Code, code_of, other_name, range_of
from ecjax.durability.parity_checks import MOST_SETS, follows_from_data, sets_of_losses
from ecjax.errors import UserError
from ecjax.tables.formats import list_files, read_file, user_errors

_NEEDED = ("code", "k", "n", "checks")
_OPTIONAL = ("repair_chunks", "degraded_chunks")
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def read_codes(path: str) -> tuple[dict[str, Code], pa.Table]:
    """Codes by name, and the table that they are read from.

    Args:
        path: CSV, Parquet or Arrow IPC with columns code, k, n, checks ("0-4 14; 5-9 15": a check per part), and, where
            they are not as checks say, repair_chunks and degraded_chunks.

    Raises:
        UserError: a column is missing, or a row is no code.
    """
    tables = [read_file(file) for file in list_files(Path(path))]
    with user_errors(f"code_table: {path}", "its files do not fit together"):
        table = pa.concat_tables(tables, promote_options="permissive")
    missing = [name for name in _NEEDED if name not in table.column_names]
    if missing:
        raise UserError(
            f"code_table: {path} has no column {missing[0]}; allowed: {', '.join(_NEEDED)}, and optional "
            f"{', '.join(_OPTIONAL)}"
        )
    table = table.select([name for name in (*_NEEDED, *_OPTIONAL) if name in table.column_names])
    codes: dict[str, Code] = {}
    for number, row in enumerate(table.to_pylist()):
        try:
            code = _code(row)
        except ValueError as error:
            raise UserError(f"code_table: row {number} of {path}: {error}") from None
        if code.name in codes:
            raise UserError(
                f"code_table: row {number} of {path}: a second {code.name}; allowed: one of a name"
            )
        codes[code.name] = code
    return codes, table


def _code(row: dict[str, object]) -> Code:
    text = str(row["code"])
    name = other_name(text)
    if name is None or code_of(name) is not None or range_of(name) is not None:
        raise ValueError(
            f"code {text}; allowed: a name that ecjax does not have, of a letter and letters, digits, '_', '.', '-', "
            "or as azure(12,2,2)"
        )
    k, n = _whole(row["k"], "k", 1, MOST_CHUNKS), _whole(row["n"], "n", 1, MOST_CHUNKS)
    if n <= k:
        raise ValueError(f"n = {n} and k = {k}; allowed: n above k")
    checks = _checks(str(row["checks"] or ""), n)
    if len(checks) > n - k:
        raise ValueError(f"{len(checks)} checks; allowed: at most n - k = {n - k}")
    if not follows_from_data(n, k, checks):
        raise ValueError(
            f"checks {str(row['checks'])!r}, which data of any values do not keep; allowed: checks that chunks {k} to "
            f"{n - 1} follow from, as 0-{k - 1} {k}"
        )
    if sets_of_losses(n, k) > MOST_SETS:
        raise ValueError(f"{sets_of_losses(n, k)} sets of up to n - k = {n - k} losses; allowed: {MOST_SETS}")
    repair, degraded = row.get("repair_chunks"), row.get("degraded_chunks")
    # without sparse checks nothing repairs with less than a part 1 / (n - k) of every other chunk
    least = 1.0 if checks else (n - 1) / (n - k)
    if repair is not None and not (isinstance(repair, int | float) and least * (1 - 1e-9) <= repair <= n):
        why = "a chunk" if checks else "what any n - k losses leave: (n - 1) / (n - k)"
        raise ValueError(f"repair_chunks {repair}; allowed: at least {least:.6g}, {why}, at most n = {n}")
    whole = None if degraded is None else _whole(degraded, "degraded_chunks", 1, n - 1)
    every = (tuple(range(n)),)  # a code without sparse checks has one of all chunks, as all others are
    return Code(name, k, 0, n - k, checks or every, None if repair is None else float(repair), whole)


def _checks(text: str, n: int) -> tuple[tuple[int, ...], ...]:
    checks = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        chunks: list[int] = []
        for word in part.replace(",", " ").split():
            ends = _PART.fullmatch(word)
            if ends is None:
                raise ValueError(f"checks {text!r}; allowed: chunks as 0-4 14, checks apart by ;")
            first, last = int(ends[1]), int(ends[2] or ends[1])
            # before the chunks are counted, which may be very many
            if not first <= last < n:
                raise ValueError(f"check {part!r}; allowed: two or more different chunks of 0 to {n - 1}")
            chunks += range(first, last + 1)
        if len(set(chunks)) < 2 or len(set(chunks)) != len(chunks):
            raise ValueError(f"check {part!r}; allowed: two or more different chunks of 0 to {n - 1}")
        checks.append(tuple(sorted(chunks)))
    return tuple(checks)


def _whole(value: object, name: str, least: int, most: int) -> int:
    if not isinstance(value, int | float) or not least <= value <= most or value != int(value):
        raise ValueError(f"{name} {value}; allowed: a whole number from {least} to {most}")
    return int(value)
