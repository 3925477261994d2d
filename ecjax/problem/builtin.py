"""The built-in cluster as ordinary input tables: hosts with hard disks, or the testbed of the JLCM paper.

**disk**: twelve hosts in three racks, each of which reads one chunk of 4 MiB at a time from a hard disk of 7200 turns
a minute. The disk is arithmetic on what data sheets of such drives for servers state (8.5 ms average seek, 4.17 ms
average rotational latency, about 250 MB/s sustained on the outermost tracks):

- rotation: uniform over a turn, T = 60/7200 s: mean T/2 = 4.17 ms, variance T^2 / 12;
- seek: grows with the square root of the distance between two uniform positions, whose density is 2 (1 - x): variance
  (1/3) / (8/15)^2 - 1 = 11/64 of the squared mean;
- transfer: tracks of the innermost half radius hold half as much as the outermost ones; bytes spread evenly over the
  platter are read at (250 + 125) / 2 = 187.5 MB/s, the harmonic mean: 22.4 ms for 4 MiB.

Service is a shifted exponential of that mean and of the variance of positioning: the tail stands for the retries and
other work of a real host, and bytes lengthen the fixed part alone. 4 MiB take 35.0 ms on average with a standard
deviation of 4.3 ms, and half as many bytes take more than half as long. Older racks are slower and cheaper.

**tahoe**: the testbed of the JLCM paper in shape: twelve nodes at three sites; chunks of 12.5 MB are served in 13.9 s
on average with a standard deviation of 4.3 s and a third moment of 3476.8 s^3 at the fastest site.

The paper's printed rates overload its nodes (rho of 1.6 to 2.3), so rates keep their ratios and are scaled to a stated
load. All chunks have one size unless file sizes are given.
"""

import math

import numpy as np
import pyarrow as pa

from ecjax.options import checked
from ecjax.problem.cluster_options import ClusterOptions

CHUNK_BYTES = {"disk": float(4 * 2**20), "tahoe": 12.5e6}
SITES = {"disk": ("rack-1", "rack-2", "rack-3"), "tahoe": ("near", "middle", "far")}
CONNECT_VARIATION = 0.2  # standard deviation / mean of the connection delay
MIN_EXTRA_CHUNKS = 2
_PLACES = 0xB111  # purpose of random numbers

SEEK_MEAN_S, TURN_S, BYTES_PER_S = 8.5e-3, 60 / 7200, (250e6 + 125e6) / 2
POSITIONING_MEAN_S = SEEK_MEAN_S + TURN_S / 2
POSITIONING_DEVIATION_S = math.sqrt(11 / 64 * SEEK_MEAN_S**2 + TURN_S**2 / 12)

SERVICE_MEAN_S, SERVICE_DEVIATION_S, SERVICE_THIRD_S3 = 13.9, 4.3, 3476.8


def chunk_bytes(options: ClusterOptions) -> float:
    """Size of the chunks of files whose sizes are not set."""
    return CHUNK_BYTES[options.hardware]


def _site_names(options: ClusterOptions) -> list[str]:
    names, prefix = SITES[options.hardware], {"disk": "rack-", "tahoe": "site"}[options.hardware]
    count = len(options.of_sites.slowdown)
    return [names[i] if i < len(names) else f"{prefix}{i + 1}" for i in range(count)]


def _service(options: ClusterOptions, slowdown: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the service law."""
    if options.hardware == "disk":
        fixed = POSITIONING_MEAN_S - POSITIONING_DEVIATION_S
        return {
            "delta_s": fixed * slowdown,
            "delta_s_per_byte": slowdown / BYTES_PER_S,
            "psi_s": POSITIONING_DEVIATION_S * slowdown,
            "psi_s_per_byte": 0.0 * slowdown,
        }
    second = SERVICE_MEAN_S**2 + SERVICE_DEVIATION_S**2
    return {
        "service_mean_s": SERVICE_MEAN_S * slowdown,
        "service_second_s2": second * slowdown**2,
        "service_third_s3": SERVICE_THIRD_S3 * slowdown**3,
        "reference_bytes": np.full(len(slowdown), chunk_bytes(options)),
    }


def _mean_service(options: ClusterOptions, slowdown: float) -> tuple[float, float]:
    """Mean service time of a chunk at a site: s, and s per byte."""
    if options.hardware == "disk":
        return POSITIONING_MEAN_S * slowdown, slowdown / BYTES_PER_S
    return 0.0, SERVICE_MEAN_S * slowdown / chunk_bytes(options)


def nodes(options: ClusterOptions) -> pa.Table:
    """Nodes table of the built-in cluster.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    options = checked(options, "cluster.")
    per_site = options.nodes_per_site
    sites, of_sites = _site_names(options), options.of_sites
    slowdown, price, connect = (np.repeat(values, per_site) for values in of_sites)
    infix = "-host" if options.hardware == "disk" else ""
    return pa.table(
        {
            "node_id": [f"{site}{infix}-{i + 1}" for site in sites for i in range(per_site)],
            "site": np.repeat(sites, per_site).tolist(),
            **_service(options, slowdown),
            "cost_per_byte_dollars": price / 1e12,
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
        size = k * chunk_bytes(options)
    else:
        least, most = min(options.bytes), max(options.bytes)
        size = np.random.default_rng(options.seed).uniform(least, most, options.files)
    rate = np.array(options.rates)[of_file]
    slowdown = options.of_sites.slowdown
    count = len(slowdown) * options.nodes_per_site
    of_chunk, of_byte = _mean_service(options, max(slowdown))
    chunks = rate * k / count  # per second at every node
    busiest = np.sum(chunks * (size / k) * of_byte) + np.sum(chunks) * of_chunk
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
    if options.n is not None:
        if options.grouped:  # files of a group lie on the same nodes
            lists = _random_nodes(options, np.array(options.n))
            columns["nodes"] = [lists[each] for each in of_file]
        else:
            columns["nodes"] = _random_nodes(options, np.array(options.n)[of_file])
    return pa.table(columns)


def _random_nodes(options: ClusterOptions, length: np.ndarray) -> list[list[str]]:
    """Names of as many nodes for every file, or group of files, as its code is long, in their order."""
    names = nodes(options)["node_id"].to_numpy(zero_copy_only=False)
    random = np.random.default_rng([options.seed, _PLACES])
    order = random.permuted(np.broadcast_to(np.arange(len(names)), (len(length), len(names))), axis=1)
    return [names[np.sort(places[:n])].tolist() for places, n in zip(order, length, strict=True)]
