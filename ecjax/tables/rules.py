"""What the columns of an input table must satisfy together; runs after each column was checked alone."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.place import Place

MOMENT_COLUMNS = ("service_mean_s", "service_second_s2", "service_third_s3", "reference_bytes")
# what these moments are at least and at most, where only intervals are known
LOW_MOMENTS = ("service_mean_low_s", "service_second_low_s2", "service_third_low_s3")
HIGH_MOMENTS = ("service_mean_high_s", "service_second_high_s2", "service_third_high_s3")
AFFINE_COLUMNS = ("delta_s", "delta_s_per_byte", "psi_s", "psi_s_per_byte")
STALL_COLUMNS = ("stall_probability", "stall_s")  # beside the affine law
BACKGROUND_COLUMNS = ("background_load", "background_second", "background_third")

EXPONENTIAL, LOGNORMAL = LAWS = ("shifted_exponential", "shifted_lognormal")  # of a delays table
_MOST_SIGMA = 10.0  # of a delays table: beyond, means are of no use
_MOST_OF_CODES = 100  # k_max and r_max of a classes table: all codes that they allow are tried

# Moments that were computed from data or rounded for print may miss the inequalities by this much.
_TOLERANCE = 1e-9

_OPERATIONS = {"read": "read", "r": "read", "get": "read", "write": "write", "w": "write", "put": "write"}


def _numpy(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).to_numpy()


def _first(wrong: np.ndarray) -> int | None:
    return int(np.argmax(wrong)) if wrong.any() else None


def check_nodes(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Nodes: one complete form of the service law, possible moments, one price period."""
    lacking = {
        form: [c for c in form if c not in table.column_names] for form in (MOMENT_COLUMNS, AFFINE_COLUMNS)
    }
    complete = [form for form, missing in lacking.items() if not missing]
    if len(complete) == 2:
        both = f"{', '.join(MOMENT_COLUMNS)} and {', '.join(AFFINE_COLUMNS)}"
        raise place.error(f"found two service laws, {both}; allowed: one of them")
    if not complete:
        nearest = min(lacking, key=lambda form: len(lacking[form]))
        other = MOMENT_COLUMNS if nearest is AFFINE_COLUMNS else AFFINE_COLUMNS
        raise place.error(f"missing columns: {', '.join(lacking[nearest])} (or else {', '.join(other)})")
    if complete[0] is MOMENT_COLUMNS:
        _check_moments(table, MOMENT_COLUMNS[:3], place)
    else:
        _check_affine(table, place)
    _check_stalls(table, complete[0], place)
    _check_intervals(table, complete[0], place)
    if "cost_period_s" in table.column_names:
        periods = _numpy(table, "cost_period_s")
        row = _first(periods != periods[0])
        if row is not None:
            message = f"found {periods[row]:g}; allowed: one period for all nodes, {periods[0]:g} as in row 0"
            raise place.error(message, column="cost_period_s", row=row)
    background = [c for c in BACKGROUND_COLUMNS if c in table.column_names]
    if background and len(background) < len(BACKGROUND_COLUMNS):
        missing = [c for c in BACKGROUND_COLUMNS if c not in background]
        raise place.error(f"missing columns: {', '.join(missing)} (beside {', '.join(background)})")
    if background:
        _check_background(table, place)
    return table


def _check_background(table: pa.Table, place: Place) -> None:
    """Sums of lambda times the moments of some service times: (sum of m_2)^2 <= (sum of m_1) (sum of m_3)."""
    load, second, third = (_numpy(table, c) for c in BACKGROUND_COLUMNS)
    row = _first((second > 0) & (load == 0))
    if row is not None:
        message = f"found {second[row]:g} beside {BACKGROUND_COLUMNS[0]} = 0; allowed: 0"
        raise place.error(message, column=BACKGROUND_COLUMNS[1], row=row)
    with np.errstate(over="ignore", invalid="ignore"):
        least = second * second / load
    row = _first(third < least * (1 - _TOLERANCE))
    if row is not None:
        formula = f"{BACKGROUND_COLUMNS[1]}^2 / {BACKGROUND_COLUMNS[0]} = {least[row]:g}"
        message = f"found {third[row]:g}; allowed: at least {formula} (no service time has such moments)"
        raise place.error(message, column=BACKGROUND_COLUMNS[2], row=row)


def _check_moments(table: pa.Table, columns: tuple[str, ...], place: Place) -> None:
    """The first three raw moments in ``columns`` are those of some law of a service time."""
    first, second, third = (_numpy(table, c) for c in columns)
    with np.errstate(over="ignore"):
        least_second = first * first
        least_third = second * second / first
    bounds = (
        (columns[1], second, least_second, f"{columns[0]}^2"),
        (columns[2], third, least_third, f"{columns[1]}^2 / {columns[0]}"),
    )
    for column, values, least, formula in bounds:
        row = _first(values < least * (1 - _TOLERANCE))
        if row is not None:
            message = f"found {values[row]:g}; allowed: at least {formula} = {least[row]:g}"
            raise place.error(f"{message} (no service time has such moments)", column=column, row=row)


def _check_intervals(table: pa.Table, law: tuple[str, ...], place: Place) -> None:
    """Intervals of moments are complete, and the moments lie in them."""
    ends = (*LOW_MOMENTS, *HIGH_MOMENTS)
    missing = [name for name in ends if name not in table.column_names]
    if len(missing) == len(ends):
        return
    here = next(name for name in ends if name in table.column_names)
    if law is not MOMENT_COLUMNS:
        raise place.error(f"found {here}; allowed: with {', '.join(MOMENT_COLUMNS)} only")
    if missing:
        raise place.error(f"missing columns: {', '.join(missing)} (beside {here})")
    for columns in (LOW_MOMENTS, HIGH_MOMENTS):
        _check_moments(table, columns, place)
    for low, between, high in zip(LOW_MOMENTS, MOMENT_COLUMNS[:3], HIGH_MOMENTS, strict=True):
        least, values, most = (_numpy(table, name) for name in (low, between, high))
        row = _first((values < least * (1 - _TOLERANCE)) | (values > most * (1 + _TOLERANCE)))
        if row is not None:
            message = f"found {values[row]:g}; allowed: from {low} = {least[row]:g} to {high} = {most[row]:g}"
            raise place.error(message, column=between, row=row)


def _check_affine(table: pa.Table, place: Place) -> None:
    total = np.sum([_numpy(table, c) for c in AFFINE_COLUMNS], axis=0)
    if set(STALL_COLUMNS) <= set(table.column_names):
        total = total + np.prod([pc.fill_null(table[c], 0.0).to_numpy() for c in STALL_COLUMNS], axis=0)
    row = _first(total == 0)
    if row is not None:
        raise place.error(
            f"found {', '.join(AFFINE_COLUMNS)} all 0; allowed: a service time above 0", row=row
        )


def _check_stalls(table: pa.Table, law: tuple[str, ...], place: Place) -> None:
    """Stalls are a probability and a time, beside an affine law."""
    present = [name for name in STALL_COLUMNS if name in table.column_names]
    if not present:
        return
    if law is not AFFINE_COLUMNS:
        raise place.error(f"found {present[0]}; allowed: with {', '.join(AFFINE_COLUMNS)} only")
    if len(present) < len(STALL_COLUMNS):
        missing = [name for name in STALL_COLUMNS if name not in present]
        raise place.error(f"missing columns: {', '.join(missing)} (beside {present[0]})")
    share = pc.fill_null(table.column(STALL_COLUMNS[0]), 0.0).to_numpy()
    row = _first(share > 1)
    if row is not None:
        raise place.error(f"found {share[row]:g}; allowed: 0 to 1", column=STALL_COLUMNS[0], row=row)


def check_files(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Files: d >= k, n >= d, one k and one d per group, some reads."""
    k = _numpy(table, "k")
    least, name = k, "k"
    if "d" in table.column_names:
        d = pc.coalesce(table.column("d"), table.column("k")).to_numpy()
        row = _first(d < k)
        if row is not None:
            raise place.error(f"found {d[row]}; allowed: at least k = {k[row]}", column="d", row=row)
        least, name = d, "d"
    if "n" in table.column_names:
        n = table.column("n").cast(pa.float64()).to_numpy()
        row = _first(n < least)
        if row is not None:
            raise place.error(
                f"found {n[row]:g}; allowed: at least {name} = {least[row]}", column="n", row=row
            )
    if "group" in table.column_names:
        _check_groups(table, "k", k, place)
        if name == "d":
            _check_groups(table, "d", least, place)
    small = _check_small_reads(table, k, place)
    with np.errstate(over="ignore"):
        total = float(_numpy(table, "rate_per_s").sum()) + small
    if not 0 < total < np.inf:
        raise place.error(
            f"found rates that sum to {total:g}; allowed: a finite sum above 0", column="rate_per_s"
        )
    return table


def _check_small_reads(table: pa.Table, k: np.ndarray, place: Place) -> float:
    """Small reads have a size, and lie in one of k data chunks; returns the sum of their rates, 1/s."""
    if "small_rate_per_s" not in table.column_names:
        return 0.0
    rate = table.column("small_rate_per_s").fill_null(0.0).to_numpy()
    if "small_bytes" not in table.column_names:
        if rate.any():
            raise place.error("missing columns: small_bytes (beside small_rate_per_s)")
        return 0.0
    row = _first((rate > 0) & table.column("small_bytes").is_null().to_numpy())
    if row is not None:
        raise place.error(
            "found an empty cell; allowed: the bytes of each of the file's small reads",
            column="small_bytes",
            row=row,
        )
    if "small_chunk" in table.column_names:
        chunk = table.column("small_chunk").fill_null(-1).to_numpy()
        row = _first(chunk >= k)
        if row is not None:
            raise place.error(
                f"found {chunk[row]}; allowed: below k = {k[row]}", column="small_chunk", row=row
            )
    with np.errstate(over="ignore"):
        return float(rate.sum())


def _check_groups(table: pa.Table, name: str, values: np.ndarray, place: Place) -> None:
    groups = table.column("group").combine_chunks().dictionary_encode()
    codes = groups.indices.fill_null(-1).to_numpy()
    grouped = np.flatnonzero(codes >= 0)
    first = np.full(len(groups.dictionary), -1)
    first[codes[grouped][::-1]] = grouped[::-1]
    wrong = values[grouped] != values[first[codes[grouped]]]
    if wrong.any():
        row = int(grouped[np.argmax(wrong)])
        group, leader = groups[row].as_py(), int(first[codes[row]])
        allowed = f"one {name} per group, {values[leader]} as in row {leader}"
        message = f"found {values[row]} in group {group!r}; allowed: {allowed}"
        raise place.error(message, column=name, row=row)


def check_network(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Network: a row names a node or a site, not both, and no two rows say the same."""
    names = [name for name in ("client_site", "node_id", "node_site") if name in table.column_names]
    if "node_id" in names and "node_site" in names:
        node, site = (np.asarray(table.column(name).is_valid()) for name in ("node_id", "node_site"))
        row = _first(node & site)
        if row is not None:
            message = (
                f"found {table.column('node_site')[row].as_py()!r} beside a node_id; allowed: one of the two"
            )
            raise place.error(message, column="node_site", row=row)
    first_row: dict[tuple, int] = {}
    columns = [table.column(name).to_pylist() for name in names]
    for row in range(len(table)):
        key = tuple(column[row] for column in columns)
        if key in first_row:
            target = ", ".join(f"{name} {value!r}" for name, value in zip(names, key, strict=True))
            message = f"found {target or 'every node'} again, first in row {first_row[key]}; allowed: once"
            raise place.error(message, row=row)
        first_row[key] = row
    return table


def check_outages(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Outages: intervals that end after they start."""
    start, end = _numpy(table, "start_s"), _numpy(table, "end_s")
    row = _first(~(end > start))
    if row is not None:
        raise place.error(
            f"found {end[row]:g}; allowed: above start_s = {start[row]:g}", column="end_s", row=row
        )
    return table


def check_requests(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Requests: read or write; each access in the order arrival, start, finish; sorted by arrival."""
    table = table.set_column(table.column_names.index("op"), "op", operations(table.column("op"), place))
    order = [c for c in ("arrival_s", "start_s", "finish_s") if c in table.column_names]
    for before, after in combinations(order, 2):
        row = _first(_numpy(table, after) < _numpy(table, before))
        if row is not None:
            value, least = (table.column(c)[row].as_py() for c in (after, before))
            raise place.error(
                f"found {value!r}; allowed: at least {before} = {least!r}", column=after, row=row
            )
    arrivals = _numpy(table, "arrival_s")
    row = _first(np.diff(arrivals) < 0)
    if row is None:
        return table
    if sort:
        return table.take(pa.array(np.argsort(arrivals, kind="stable")))
    earlier, later = arrivals[row : row + 2].tolist()
    message = f"found {later!r} after {earlier!r}; allowed: non-decreasing (or give sort=true)"
    raise place.error(message, column="arrival_s", row=row + 1)


def is_operation(word: str) -> bool:
    """Whether a word of the ``op`` column is understood: read, r, get, write, w or put, in any case."""
    return word.strip().lower() in _OPERATIONS


def operations(column: pa.ChunkedArray, place: Place, more: str = "") -> pa.ChunkedArray:
    """The ``op`` column as "read" or "write"; see ``is_operation``.

    Args:
        column: words.
        place: of the column.
        more: what the message for another word says of others.

    Raises:
        UserError: another word.
    """
    distinct = pc.unique(column).to_pylist()
    for word in distinct:
        if not is_operation(word):
            row = pc.index(column, pa.scalar(word, pa.string())).as_py()
            raise place.error(
                f"found {word!r}; allowed: read or write (r, w, get, put){more}", column="op", row=row
            )
    encoded = pc.dictionary_encode(column).combine_chunks()
    words = pa.array([_OPERATIONS[w.as_py().strip().lower()] for w in encoded.dictionary], pa.string())
    return pa.chunked_array([words.take(encoded.indices)])


def check_delays(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Delays: a known law with the parameters it takes, delays that vary, rho below 1, one row per name and op."""
    table = _with_operations(table, place)
    rows = table.to_pylist()
    first_row: dict[tuple, int] = {}
    for row, law_row in enumerate(rows):
        law, sigma, rho = law_row["law"], law_row.get("sigma"), law_row.get("rho")
        if law not in LAWS:
            raise place.error(f"found {law!r}; allowed: {', '.join(LAWS)}", column="law", row=row)
        if (sigma is None) == (law == LOGNORMAL):
            allowed = "a number > 0" if law == LOGNORMAL else "an empty cell"
            message = (
                f"found {'an empty cell' if sigma is None else sigma}; allowed: {allowed}, as law is {law}"
            )
            raise place.error(message, column="sigma", row=row)
        if sigma is not None and sigma > _MOST_SIGMA:
            raise place.error(
                f"found {sigma}; allowed: numbers up to {_MOST_SIGMA:g}", column="sigma", row=row
            )
        if rho is not None and rho >= 1:
            raise place.error(f"found {rho}; allowed: numbers from 0 to below 1", column="rho", row=row)
        if not law_row["scale_s"] + (law_row.get("scale_s_per_byte") or 0.0) > 0:
            raise place.error(
                "found 0, and no scale_s_per_byte; allowed: delays that vary", column="scale_s", row=row
            )
        name, op = law_row["name"], law_row.get("op")
        for other in (op, None) if op else (None, "read", "write"):
            if (name, other) in first_row:
                before = first_row[name, other]
                raise place.error(
                    f"found {name!r} again for {op or 'both operations'}, first in row {before}; allowed: one row per "
                    "name and op",
                    column="name",
                    row=row,
                )
        first_row[name, op] = row
    return table


def check_classes(table: pa.Table, place: Place, sort: bool) -> pa.Table:
    """Classes: read or write, every name once, k_max and r_max up to 100."""
    table = _with_operations(table, place)
    for column in ("k_max", "r_max"):
        for row, value in enumerate(table[column].to_pylist() if column in table.column_names else ()):
            if value is not None and value > _MOST_OF_CODES:
                message = f"found {value}; allowed: numbers up to {_MOST_OF_CODES}"
                raise place.error(message, column=column, row=row)
    first_row: dict[str, int] = {}
    for row, name in enumerate(table["name"].to_pylist() if "name" in table.column_names else ()):
        if name in first_row:
            message = f"found {name!r} again, first in row {first_row[name]}; allowed: every name once"
            raise place.error(message, column="name", row=row)
        if name is not None:
            first_row[name] = row
    return table


def _with_operations(table: pa.Table, place: Place) -> pa.Table:
    """The table with the words of its column ``op``, if it is there, as "read", "write" or null."""
    if "op" not in table.column_names:
        return table
    place_of = table.column_names.index("op")
    empty = pc.is_null(table["op"])
    words = operations(pc.fill_null(table["op"], "read"), place)
    return table.set_column(place_of, "op", pc.if_else(empty, pa.scalar(None, pa.string()), words))


RULES: dict[str, Callable[[pa.Table, Place, bool], pa.Table]] = {
    "nodes": check_nodes,
    "files": check_files,
    "network": check_network,
    "outages": check_outages,
    "requests": check_requests,
    "delays": check_delays,
    "classes": check_classes,
}
