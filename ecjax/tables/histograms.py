"""Histograms of monitoring as a nodes table: Prometheus text or JSON, and ``ceph tell osd.N perf histogram dump``.

Prometheus: series NAME_bucket with cumulative counts up to ``le``, NAME_sum and NAME_count, in the text format of an
exporter or as the JSON of its HTTP API (an instant query that has all three). A node for each set of other labels. They
count seconds, unless NAME ends in another unit (_milliseconds, _ms, _us).

Ceph: ``{"osd": {NAME: {"axes": [...], "values": [[...]]}}}`` with ranges of whole numbers, both ends included, of
each axis: time, then bytes. Its time axis says usec and counts nanoseconds (quant_size 100,000 is 0.1 ms).
There is neither sum nor count of times. A node is the file.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.formats import user_errors
from ecjax.tables.histogram_moments import Histogram, moment_interval
from ecjax.tables.rules import HIGH_MOMENTS, LOW_MOMENTS, MOMENT_COLUMNS

_SAMPLE = re.compile(r'^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+([^\s#]+)')
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_NS = 1e-9
# how the names of metrics say that they do not count seconds, which are Prometheus's base unit
_UNITS = {
    "milliseconds": 1e-3,
    "millis": 1e-3,
    "ms": 1e-3,
    "microseconds": 1e-6,
    "micros": 1e-6,
    "us": 1e-6,
    "nanoseconds": _NS,
    "nanos": _NS,
    "ns": _NS,
}
_NODE_LABELS = ("instance", "node", "device", "drive", "disk", "ceph_daemon")
MOMENTS = MOMENT_COLUMNS[:3]
HIGH, LOW = "high", "low"


class _Series(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def histogram_nodes(path: Path, metric: str, chunk_bytes: float, end: str = HIGH) -> pa.Table:
    """The nodes table of histograms of service times, with the intervals that their moments lie in.

    Args:
        path: of a file, or of a folder of files.
        metric: name of the histogram, without _bucket, which counts seconds or the unit that it ends in; of Ceph
            COLLECTION.NAME.
        chunk_bytes: size of the chunks that were served (B), which no histogram of times tells.
        end: which of the laws in the buckets: ``HIGH`` with the largest, or ``LOW`` with the least moments.

    Raises:
        UserError: a file is no such histogram, or its moments are unknown.
    """
    with user_errors(path):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
        files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    histograms: dict[str, Histogram] = {}
    for file in files:
        for name, histogram in _histograms(file, metric).items():
            node = file.stem if not name else name
            if node in histograms:
                raise UserError(f"{file}: node {node}: found twice in {path}; allowed: one histogram of each")
            histograms[node] = histogram
    intervals = [moment_interval(each, f"{path}: {metric} of {node}") for node, each in histograms.items()]
    low, high = (np.array([getattr(each, side) for each in intervals]) for side in (LOW, HIGH))
    sides = ((MOMENTS, high if end == HIGH else low), (LOW_MOMENTS, low), (HIGH_MOMENTS, high))
    columns = {name: rows[:, place] for names, rows in sides for place, name in enumerate(names)}
    return pa.table(
        {"node_id": list(histograms), **columns, "reference_bytes": np.full(len(histograms), chunk_bytes)}
    )


def _histograms(file: Path, metric: str) -> dict[str, Histogram]:
    """The histograms of a file by node; "" is the file itself.

    Raises:
        UserError: it has none of this name.
    """
    with user_errors(file):
        text = file.read_bytes().decode("utf-8", errors="replace")
    if text.lstrip().startswith("{"):
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{file}: no JSON: {error}; allowed: Prometheus, or ceph perf histogram dump"
            ) from error
        if "data" not in content:
            return {"": _of_ceph(content, metric, file)}
        series = list(_of_api(content, file))
    else:
        series = list(_of_text(text, file))
    return _of_series(series, metric, file)


def _of_text(text: str, file: Path) -> Iterator[_Series]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.match(line)
        try:
            if match is None:
                raise ValueError(line)
            labels = {name: value.replace('\\"', '"') for name, value in _LABEL.findall(match[2] or "")}
            yield _Series(match[1], labels, float(match[3]))
        except ValueError:
            raise UserError(
                f'{file}, line {number}: no sample; allowed: NAME{{LABEL="..."}} VALUE, Prometheus text'
            ) from None


def _of_api(content: dict[str, Any], file: Path) -> Iterator[_Series]:
    try:
        for each in content["data"]["result"]:
            labels = {str(name): str(value) for name, value in each["metric"].items()}
            yield _Series(labels.pop("__name__"), labels, float(each["value"][1]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UserError(
            f"{file}: {type(error).__name__} {error}; allowed: an instant query of Prometheus with names, as "
            'query={__name__=~"NAME_(bucket|sum|count)"}'
        ) from error


def _of_series(series: list[_Series], metric: str, file: Path) -> dict[str, Histogram]:
    parts: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for each in series:
        kind = each.name.removeprefix(f"{metric}_")
        if each.name != f"{metric}_{kind}" or kind not in ("bucket", "sum", "count"):
            continue
        labels = {name: value for name, value in each.labels.items() if name != "le"}
        part = parts.setdefault(tuple(sorted(labels.items())), {"bucket": {}})
        if kind == "bucket":
            end = each.labels.get("le", "")
            try:
                place: float | str = float(end)
            except ValueError:
                raise UserError(f"{file}: {metric}: found le={end!r}; allowed: a number, or +Inf") from None
            into = part["bucket"]
        else:
            place, into = kind, part
        if place in into:
            raise UserError(
                f"{file}: {metric}: found two samples of {each.name} {each.labels}; allowed: one scrape"
            )
        into[place] = each.value
    if not any(part["bucket"] for part in parts.values()):
        names = sorted(
            {each.name.removesuffix("_bucket") for each in series if each.name.endswith("_bucket")}
        )
        raise UserError(
            f"{file}: found no histogram {metric}; allowed: {', '.join(names[:12]) or 'a file with one'}"
        )
    varied = {name for key in parts for name, _ in key if len({dict(other).get(name) for other in parts}) > 1}
    unit_s = _unit_of(metric)
    return {
        _node_name(dict(key), varied): _cumulative(part, f"{file}: {metric}", unit_s)
        for key, part in parts.items()
    }


def _node_name(labels: dict[str, str], varied: set[str]) -> str:
    """The labels that differ from node to node; where none does, the one that names a node, if any."""
    names = sorted(varied) or [name for name in _NODE_LABELS if name in labels][:1]
    return "/".join(labels.get(name, "") for name in names)


def _unit_of(metric: str) -> float:
    """The unit (s) that a metric of Prometheus has by its name: NAME_milliseconds, NAME_us; others count seconds."""
    return _UNITS.get(metric.lower().rpartition("_")[2], 1.0)


def _cumulative(part: dict[str, Any], name: str, unit_s: float) -> Histogram:
    edges = np.array(sorted(part["bucket"]))
    counts = np.array([part["bucket"][edge] for edge in sorted(part["bucket"])])
    if (
        not edges.size
        or np.isnan(edges).any()
        or not np.all(np.isfinite(counts))
        or np.any(np.diff(counts, prepend=0.0) < 0)
    ):
        raise UserError(f"{name}: found buckets that do not add up; allowed: cumulative counts with le")
    if edges[0] < 0:
        raise UserError(f"{name}: found le={edges[0]:g}; allowed: times")
    count = np.diff(counts, prepend=0.0)
    total, mean = part.get("count", counts[-1]), None
    if total != counts[-1]:
        raise UserError(
            f"{name}: found {counts[-1]:g} in its buckets and a count of {total:g}; allowed: one scrape"
        )
    if "sum" in part and total > 0:
        mean = part["sum"] / total * unit_s
    edges = edges * unit_s
    return Histogram(np.concatenate([[0.0], edges[:-1]]), edges, count, mean)


def _of_ceph(content: dict[str, Any], metric: str, file: Path) -> Histogram:
    collection, _, name = metric.partition(".")
    try:
        one = content[collection][name]
        axis, values = one["axes"][0], np.array(one["values"], float)
        ranges = axis["ranges"]
        lower = np.array([max(each.get("min", 0), 0) for each in ranges]) * _NS
        upper = np.array([max(each["max"] + 1, 0) if "max" in each else np.inf for each in ranges]) * _NS
        counts = values.reshape(len(ranges), -1).sum(axis=1)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        names = [
            f"{group}.{each}"
            for group, several in content.items()
            if isinstance(several, dict)
            for each, value in several.items()
            if isinstance(value, dict) and "axes" in value
        ]
        raise UserError(
            f"{file}: found no histogram {metric}; allowed: "
            f"{', '.join(names[:12]) or 'ceph tell osd.N perf histogram dump'}"
        ) from None
    return Histogram(lower, upper, counts)
