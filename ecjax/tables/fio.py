"""What ``fio --output-format=json`` measured of disks, as a nodes table: a node per job.

fio reports the mean and standard deviation of the latencies of reads, and percentiles. At a depth of one request the
latency is the service time; deeper it includes the time in the queue, which the model adds itself.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.formats import parquet_files, user_errors

_ENDING = ".json"
_NS = 1e-9
_ALL_CLIENTS = "All clients"  # sums of fio --client, which are no node
_ALONE = 99.0  # percent of the requests that were alone at the disk


class Service(NamedTuple):
    """Raw moments of the service time of reads of a size: s, s^2, s^3, bytes."""

    mean_s: float
    second_s2: float
    third_s3: float
    reference_bytes: float


def is_fio(path: Path) -> bool:
    """Whether a path is that of output of fio: a JSON file, or a folder of such and of no Parquet files."""
    if path.name.lower().endswith(_ENDING):
        return True
    with user_errors(path):
        return path.is_dir() and bool(_json_files(path)) and not parquet_files(path)


def _json_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.lower().endswith(_ENDING))


def fio_nodes(path: Path) -> pa.Table:
    """The nodes table: ``node_id`` and the moments of service at ``reference_bytes``.

    A node is named by its job; by the file (and its job, where it has several) where there are several files.

    Args:
        path: of a JSON file, or of a folder of them.

    Raises:
        UserError: a file is not the JSON of fio, or a job is no measurement of single reads of one size.
    """
    with user_errors(path):
        files = _json_files(path) if path.is_dir() else [path]
    rows: dict[str, Service] = {}
    for file in files:
        content = _content(file)
        try:
            services = _services(content, file, path.is_dir())
        except UserError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(
                f"{file}: {type(error).__name__} {error}; allowed: the output of fio --output-format=json"
            ) from error
        for name, service in services:
            if name in rows:
                raise UserError(f"{file}: job {name}: found twice; allowed: a name per node (fio --name)")
            rows[name] = service
    if not rows:
        raise UserError(f"{path}: found no jobs; allowed: the output of fio --output-format=json")
    columns = zip(*rows.values(), strict=True)
    names = ("service_mean_s", "service_second_s2", "service_third_s3", "reference_bytes")
    return pa.table({"node_id": list(rows), **dict(zip(names, map(list, columns), strict=True))})


def _services(content: dict[str, Any], file: Path, several: bool) -> list[tuple[str, Service]]:
    """Name and service of each job of a file, one of several files or the only one."""
    general = content.get("global options", {})
    jobs = content.get("jobs") or [
        job for job in content.get("client_stats", []) if job.get("jobname") != _ALL_CLIENTS
    ]
    services = []
    for job in jobs:
        name = ":".join(filter(None, (job.get("hostname"), str(job.get("jobname", "")))))
        if several:
            name = file.stem if len(jobs) == 1 else f"{file.stem}/{name}"
        options = {**general, **job.get("job options", {})}
        services.append((name, _service(job, options, f"{file}: job {name}")))
    return services


def _content(file: Path) -> dict[str, Any]:
    """The JSON of a file; lines that fio prints before it are left aside."""
    with user_errors(file):
        if not file.exists():
            raise UserError(f"{file}: no such file or folder")
        with file.open("rb") as stream:
            text = stream.read().decode("utf-8", errors="replace")
    start = max(text.find("{"), 0)
    try:
        content, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{file}: no JSON: {error}; allowed: fio --output-format=json --output=FILE"
        ) from error
    if not isinstance(content, dict) or not {"jobs", "client_stats"} & set(content):
        raise UserError(f"{file}: found no jobs in it; allowed: the output of fio --output-format=json")
    return content


def _service(job: dict[str, Any], options: dict[str, Any], name: str) -> Service:
    """Moments of a job's reads.

    Raises:
        UserError: reads were not alone at the disk, were of several sizes, or there were none.
    """
    try:
        _refuse_queueing(job, options, name)
        for key in ("bsrange", "bssplit", "blocksize_range"):
            if key in options:
                raise UserError(f"{name}: found {key}={options[key]}; allowed: one size (bs=1M)")
        read = job["read"]
        count = int(read["total_ios"])
        latency = read["clat_ns"]
        if count < 1 or not latency["mean"] > 0:
            raise UserError(f"{name}: found no reads; allowed: rw=randread")
        mean, deviation = latency["mean"] * _NS, max(latency["stddev"], 0.0) * _NS
        skewness = _skewness(latency, mean, deviation)
        second = mean**2 + deviation**2
        third = mean**3 + 3 * mean * deviation**2 + skewness * deviation**3
        # no service time has a smaller third moment than this
        return Service(mean, second, max(third, second**2 / mean), float(read["io_bytes"]) / count)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UserError):
            raise
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{name}: {what}; allowed: the JSON of fio 3 or later, with read.clat_ns") from error


def _refuse_queueing(job: dict[str, Any], options: dict[str, Any], name: str) -> None:
    """Latencies are service times only where requests do not wait for each other.

    Raises:
        UserError: more than one was under way at a time.
    """
    for key in ("iodepth", "numjobs"):
        if int(options.get(key, 1)) > 1 and not (key == "iodepth" and _alone(job)):
            raise UserError(
                f"{name}: found {key}={options[key]}, whose latencies include the wait for other requests; allowed: "
                f"{key}=1, which measures service"
            )


def _alone(job: dict[str, Any]) -> bool:
    """Whether a depth that was set had no effect, as that of synchronous engines has none."""
    return float(job.get("iodepth_level", {}).get("1", 0.0)) >= _ALONE


def _skewness(latency: dict[str, Any], mean: float, deviation: float) -> float:
    """Third central moment / deviation^3.

    That of the distribution whose quantiles lie on straight lines between the percentiles that fio reports, from the
    least to the largest latency; where it reports none that of the gamma law of this mean and deviation, 2 deviation /
    mean.
    """
    percentiles = {float(share) / 100: float(value) for share, value in latency.get("percentile", {}).items()}
    inner = {share: value for share, value in percentiles.items() if 0 < share < 1}
    if len(inner) < 3:
        return 2 * deviation / mean
    points = sorted({0.0: float(latency["min"]), **inner, 1.0: float(latency["max"])}.items())
    shares, values = np.array(points).T
    # buckets of fio may lie beyond the largest latency by their width
    values = np.maximum.accumulate(np.clip(values, latency["min"], latency["max"])) * _NS
    widths, low, high = np.diff(shares), values[:-1], values[1:]
    # raw moments of a uniform piece from a to b: (a + b) / 2, (a^2 + ab + b^2) / 3, (a^3 + a^2 b + a b^2 + b^3) / 4
    centre = float(widths @ (low + high)) / 2
    low, high = low - centre, high - centre
    variance = float(widths @ (low**2 + low * high + high**2)) / 3
    third = float(widths @ (low**3 + low**2 * high + low * high**2 + high**3)) / 4
    return third / variance**1.5 if variance > 0 else 0.0
