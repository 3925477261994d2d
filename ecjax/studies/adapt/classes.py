"""Classes of requests of ``ecjax adapt``: those of the options, or those of a trace."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.adaptation.proxy import RequestClass
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.adapt.logs import OPERATIONS, WHOLE, reading_of
from ecjax.studies.adapt.options import AdaptOptions, ClassValues
from ecjax.studies.spine.logs import BACKGROUND, Reading, open_reading
from ecjax.tables.formats import user_errors
from ecjax.tables.read import read_input
from ecjax.tables.requests import requests
from ecjax.units import count_text

_MOST_PER_OP = 8
MOST_CLASSES = 256  # a request's class is a byte
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True)
class Traced:
    """Requests of a trace by class, N of them.

    Attributes:
        arrival_s: (N,) s since the first of the trace, ascending.
        class_of: (N,) uint8.
        span_s: from the first of them to the last, above 0.
        names: what names the trace and how it was read, for run ids.
    """

    arrival_s: np.ndarray
    class_of: np.ndarray
    span_s: float
    names: dict[str, Any]


def read_classes(options: AdaptOptions) -> tuple[list[RequestClass], Traced | None]:
    """The classes that the options name, or that their trace has, and the requests of the trace.

    Without ``classes`` those of a trace are made of its sizes: up to 8 distinct sizes per operation are classes of
    their own; of more, requests of one power of two form a class, and of more than 8 such classes the neighbours with
    the fewest requests are joined until 8 are left. A class has the mean size of its requests, which are all replayed
    with that. The size of a request is what its rows ask for together: in a log of accesses of chunks, the parity
    chunks that were written too.

    With ``classes`` a request of a trace goes to the class of its operation that is nearest in size (by ratio). Log
    lines say what was lost.

    Args:
        options: checked.

    Raises:
        UserError: the classes or the trace are malformed, or no request is left.
    """
    classes = None if options.classes is None else _of_options(options, options.classes)
    if options.trace is not None:
        return _of_trace(options, classes)
    if classes is None:
        classes = [_class(options, "", "read", options.bytes, 1.0)]
    return classes, None


def _class(
    options: AdaptOptions,
    name: str,
    op: str,
    size: float,
    share: float,
    k_max: int | None = None,
    r_max: float | None = None,
) -> RequestClass:
    return RequestClass(
        name or f"{op}_{_words(size)}",
        op,
        size,
        share,
        options.k_max if k_max is None else k_max,
        options.r_max if r_max is None else r_max,
        op == "write" and options.writes == "background",
    )


def _words(size: float) -> str:
    """A size in words, 3MB."""
    unit, word = next((pair for pair in _UNITS if size >= pair[0]), _UNITS[-1])
    return f"{size / unit:.3g}{word}"


def _of_options(options: AdaptOptions, values: str | list[ClassValues]) -> list[RequestClass]:
    """The classes of the option: a list of mappings, or a table."""
    if isinstance(values, str):
        table = read_input(values, "classes")
    else:
        table = read_input(_table(values), "classes", name="given as a list")
    rows = table.to_pylist()
    if len(rows) > MOST_CLASSES:
        raise UserError(f"classes: found {len(rows)}; allowed: at most {MOST_CLASSES}")
    total = sum(row.get("share") or 1.0 for row in rows)
    classes = [
        _class(
            options,
            row.get("name") or "",
            row.get("op") or "read",
            row["bytes"],
            (row.get("share") or 1.0) / total,
            row.get("k_max"),
            row.get("r_max"),
        )
        for row in rows
    ]
    names = [each.name for each in classes]
    for row, name in enumerate(names):
        if name in names[:row]:
            raise UserError(
                f"classes: rows {names.index(name)} and {row}: found the name {name!r} twice; allowed: a name each "
                "(default: op and size)"
            )
    return classes


def _table(values: list[ClassValues]) -> pa.Table:
    """A list of mappings as a table."""
    columns = {}
    for name in dict.fromkeys(name for mapping in values for name in mapping):
        with user_errors(f"classes: {name}", "found values of different types"):
            columns[name] = pa.array([mapping.get(name) for mapping in values])
    return pa.table(columns)


def _of_trace(options: AdaptOptions, classes: list[RequestClass] | None) -> tuple[list[RequestClass], Traced]:
    reading = reading_of(str(options.trace), options)
    trace = open_reading(reading)
    logged = requests(trace)
    if logged.returned:
        log.info(
            "trace: %d requests have rows that do not follow each other: their parts count as requests of their own",
            logged.returned,
        )
    mask = logged.bytes > 0
    if not mask.all():
        log.info("trace: left out: %s of 0 bytes", count_text(np.sum(~mask), "request"))
    if classes is not None:
        ops = np.isin(logged.write, [each.op == "write" for each in classes])
        if not ops[mask].all():
            log.info(
                "trace: left out: %s of an op that no class has", count_text(np.sum(mask & ~ops), "request")
            )
            mask &= ops
    if not mask.any():
        raise UserError(
            f"trace={trace.name}: found no requests to replay; allowed: one of a byte or more of a class"
        )
    write, size, arrival = logged.write[mask], logged.bytes[mask], logged.arrival[mask]
    if not arrival[-1] > arrival[0]:
        raise UserError(f"trace={trace.name}: found requests at one time only; allowed: a log that lasts")
    if classes is None:
        classes, class_of = _size_classes(options, write, size)
    else:
        classes, class_of = _nearest(classes, write, size)
    sizes = np.array([each.bytes for each in classes])[class_of]
    log.info(
        "trace: %d requests in %d classes (%s); sizes differ from those of the classes by up to a factor of %.3g",
        len(arrival),
        len(classes),
        ", ".join(each.name for each in classes),
        np.exp(np.abs(np.log(sizes / size)).max()),
    )
    span = float(arrival[-1] - arrival[0])
    if logged.tick_s * len(arrival) > span:
        log.info(
            "trace: its clock ticks every %g s, and requests come more often: those of one tick arrive at once",
            logged.tick_s,
        )
    names = _names(reading, trace.fingerprint)
    return classes, Traced(arrival - arrival[0], class_of.astype(np.uint8), span, names)


def _names(reading: Reading, fingerprint: str) -> dict[str, Any]:
    columns, extent_bytes = reading.options["columns"], reading.options["extent_bytes"]
    names = {"trace": fingerprint, "columns": columns, "format": reading.options["format"]}
    names |= {BACKGROUND: reading.options[BACKGROUND]} if BACKGROUND in reading.options else {}
    # a run is named as ever where accesses are whole
    return names if extent_bytes in (None, WHOLE) else names | {"extent_bytes": extent_bytes}


def _size_classes(
    options: AdaptOptions, write: np.ndarray, size: np.ndarray
) -> tuple[list[RequestClass], np.ndarray]:
    """Classes by operation and size, with the class of each request."""
    classes: list[RequestClass] = []
    class_of = np.empty(len(size), np.int64)
    for op in OPERATIONS:
        rows = write == (op == "write")
        if not rows.any():
            continue
        group = _size_groups(size[rows])
        class_of[rows] = len(classes) + group
        counts = np.bincount(group)
        means = np.bincount(group, size[rows]) / counts
        for mean, count in zip(means.tolist(), counts.tolist(), strict=True):
            name = f"{op}_{_words(mean)}"
            same = sum(each.name.split("#")[0] == name for each in classes)
            name += f"#{same + 1}" if same else ""
            classes.append(_class(options, name, op, mean, count / len(size)))
    return classes, class_of


def _size_groups(size: np.ndarray) -> np.ndarray:
    """Group of each size (N,), from 0, ascending with the size, at most 8."""
    distinct, group = np.unique(size, return_inverse=True)
    if len(distinct) <= _MOST_PER_OP:
        return group
    _, group = np.unique(np.floor(np.log2(size)), return_inverse=True)
    counts = np.bincount(group)
    while len(counts) > _MOST_PER_OP:
        least = int(np.argmin(counts[1:] + counts[:-1]))
        group = group - (group > least)
        counts[least] += counts[least + 1]
        counts = np.delete(counts, least + 1)
    return group


def _nearest(
    classes: list[RequestClass], write: np.ndarray, size: np.ndarray
) -> tuple[list[RequestClass], np.ndarray]:
    """The classes that have requests, with their shares in the trace, and the class of each request."""
    class_of = np.empty(len(size), np.int64)
    for op in OPERATIONS:
        places = np.array([place for place, each in enumerate(classes) if each.op == op])
        rows = write == (op == "write")
        if places.size and rows.any():
            places = places[np.argsort([classes[place].bytes for place in places], kind="stable")]
            edges = np.log([classes[place].bytes for place in places])
            middles = (edges[1:] + edges[:-1]) / 2
            class_of[rows] = places[np.searchsorted(middles, np.log(size[rows]))]
    counts = np.bincount(class_of, minlength=len(classes))
    used = np.flatnonzero(counts)
    if len(used) < len(classes):
        empty = ", ".join(each.name for each, count in zip(classes, counts, strict=True) if not count)
        log.info("trace: no request is nearest to class %s", empty)
    shares = counts / len(size)
    present = [classes[place]._replace(share=float(shares[place])) for place in used]
    return present, np.searchsorted(used, class_of)
