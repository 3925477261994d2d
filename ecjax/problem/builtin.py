"""The built-in cluster as ordinary input tables.

The testbed of the JLCM paper in shape: twelve nodes at three sites; chunks of 12.5 MB are served in 13.9 s on average
with a standard deviation of 4.3 s and a third moment of 3476.8 s^3 at the fastest site. The paper's printed rates
overload these nodes (rho of 1.6 to 2.3), so the rates keep their ratios and are scaled to a stated load. All chunks
have one size unless file sizes are given.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.problem.cluster_options import ClusterOptions

REFERENCE_BYTES = 12.5e6
SERVICE_MEAN_S, SERVICE_DEVIATION_S, SERVICE_THIRD_S3 = 13.9, 4.3, 3476.8
SITES = ("near", "middle", "far")
CONNECT_VARIATION = 0.2  # standard deviation / mean of the connection delay
MIN_EXTRA_CHUNKS = 2


def _list(value: Any, name: str, length: int | None = None, zero: bool = False) -> list[float]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    good = numbers and all(0 < v < np.inf or (zero and v == 0) for v in values)
    if not values or not good or (length is not None and len(values) != length):
        kind = "numbers of at least 0" if zero else "positive numbers"
        raise UserError(f"cluster.{name}: found {value}; allowed: {f'{length} ' if length else ''}{kind}")
    return [float(v) for v in values]


def _site_names(count: int) -> list[str]:
    return [SITES[i] if i < len(SITES) else f"site{i + 1}" for i in range(count)]


def _check(options: ClusterOptions) -> None:
    classes = len(_list(options.k, "k"))
    whole = (("files", classes, "one file per class"), ("nodes_per_site", 1, "one node"), ("seed", 0, "0"))
    for name, least, words in whole:
        value = getattr(options, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UserError(f"cluster.{name}: found {value}; allowed: a whole number, at least {words}")
    if any(k != int(k) for k in _list(options.k, "k")):
        raise UserError(f"cluster.k: found {options.k}; allowed: whole numbers")
    if options.bytes is not None and len(_list(options.bytes, "bytes")) > 2:
        raise UserError(f"cluster.bytes: found {options.bytes}; allowed: one or two numbers")
    if options.bytes is not None and options.sizes is not None:
        raise UserError(
            f"cluster.sizes: found cluster.bytes={options.bytes} too; allowed: one of both, sizes in turn or bytes"
        )
    if not isinstance(options.load, float) or not 0 < options.load < 1:
        raise UserError(f"cluster.load: found {options.load}; allowed: a number between 0 and 1")


def nodes(options: ClusterOptions) -> pa.Table:
    """Nodes table of the built-in cluster.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    _check(options)
    per_site = options.nodes_per_site
    sites = _site_names(len(_list(options.slowdown, "slowdown")))
    slowdown = np.repeat(_list(options.slowdown, "slowdown"), per_site)
    price = np.repeat(_list(options.chunk_price, "chunk_price", len(sites)), per_site)
    connect = np.repeat(_list(options.connect_mean_s, "connect_mean_s", len(sites), zero=True), per_site)
    second = SERVICE_MEAN_S**2 + SERVICE_DEVIATION_S**2
    return pa.table(
        {
            "node_id": [f"{site}-{i + 1}" for site in sites for i in range(per_site)],
            "site": np.repeat(sites, per_site).tolist(),
            "service_mean_s": SERVICE_MEAN_S * slowdown,
            "service_second_s2": second * slowdown**2,
            "service_third_s3": SERVICE_THIRD_S3 * slowdown**3,
            "reference_bytes": np.full(len(slowdown), REFERENCE_BYTES),
            "cost_per_byte_dollars": price / REFERENCE_BYTES,
            "connect_mean_s": connect,
            "connect_var_s2": (CONNECT_VARIATION * connect) ** 2,
        }
    )


def files(options: ClusterOptions) -> pa.Table:
    """Files table of the built-in cluster: classes of equal size, rates scaled to the stated load.

    The load is that of the slowest node when every node serves the same number of chunks (as round robin over all
    nodes does).

    Raises:
        UserError: an option has a value that is not allowed.
    """
    _check(options)
    k_of_class = _list(options.k, "k")
    ratio = _list(options.rates, "rates", len(k_of_class))
    of_file = np.arange(options.files) * len(k_of_class) // options.files
    k = np.array(k_of_class)[of_file]
    if options.sizes is not None:
        turns = np.array(_list(options.sizes, "sizes"))
        within = np.arange(options.files) - np.searchsorted(of_file, of_file)
        size = turns[within % len(turns)]
    elif options.bytes is None:
        size = k * REFERENCE_BYTES
    else:
        ends = _list(options.bytes, "bytes")
        size = np.random.default_rng(options.seed).uniform(ends[0], ends[-1], options.files)
    rate = np.array(ratio)[of_file]
    slowdown = _list(options.slowdown, "slowdown")
    service = SERVICE_MEAN_S * max(slowdown) / REFERENCE_BYTES
    count = len(slowdown) * options.nodes_per_site
    busiest = np.sum(rate * k / count * (size / k) * service)
    columns = {
        "file_id": np.arange(options.files),
        "bytes": size,
        "k": k.astype(np.int64),
        "rate_per_s": rate * options.load / busiest,
        "service_class": of_file + 1,
        "min_extra_chunks": np.full(options.files, MIN_EXTRA_CHUNKS),
    }
    if options.grouped:
        columns["group"] = of_file + 1
    return pa.table(columns)
