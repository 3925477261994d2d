"""The built-in cluster as ordinary input tables.

The testbed of the JLCM paper in shape: twelve nodes at three sites; chunks of 12.5 MB are served in 13.9 s on average
with a standard deviation of 4.3 s and a third moment of 3476.8 s^3 at the fastest site. The paper's printed rates
overload these nodes (rho of 1.6 to 2.3), so the rates keep their ratios and are scaled to a stated load. All chunks
have one size unless file sizes are given.
"""

import numpy as np
import pyarrow as pa

from ecjax.options import checked
from ecjax.problem.cluster_options import ClusterOptions

REFERENCE_BYTES = 12.5e6
SERVICE_MEAN_S, SERVICE_DEVIATION_S, SERVICE_THIRD_S3 = 13.9, 4.3, 3476.8
SITES = ("near", "middle", "far")
CONNECT_VARIATION = 0.2  # standard deviation / mean of the connection delay
MIN_EXTRA_CHUNKS = 2


def _site_names(count: int) -> list[str]:
    return [SITES[i] if i < len(SITES) else f"site{i + 1}" for i in range(count)]


def nodes(options: ClusterOptions) -> pa.Table:
    """Nodes table of the built-in cluster.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    options = checked(options, "cluster.")
    per_site = options.nodes_per_site
    sites = _site_names(len(options.slowdown))
    slowdown = np.repeat(options.slowdown, per_site)
    price = np.repeat(options.chunk_price, per_site)
    connect = np.repeat(options.connect_mean_s, per_site)
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
    options = checked(options, "cluster.")
    of_file = np.arange(options.files) * len(options.k) // options.files
    k = np.array(options.k)[of_file]
    if options.sizes is not None:
        turns = np.array(options.sizes)
        within = np.arange(options.files) - np.searchsorted(of_file, of_file)
        size = turns[within % len(turns)]
    elif options.bytes is None:
        size = k * REFERENCE_BYTES
    else:
        least, most = options.bytes[0], options.bytes[-1]
        size = np.random.default_rng(options.seed).uniform(least, most, options.files)
    rate = np.array(options.rates)[of_file]
    slowdown = options.slowdown
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
