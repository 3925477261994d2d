"""The sample tables in ``traces/``, generated: ``python traces/make/sample_tables.py`` writes them anew."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
from result_guide import result_guide
from sample_coflows import write_coflows
from sample_guide import guide, sources
from sample_logs import LOGS

from ecjax.problem import builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.tables.importers.access_logs import PROFILES

SEED = 20240917
K, STORED = 4, 6
SITES = ("virginia", "oregon", "tokyo")
SLOWDOWN = (1.0, 1.3, 1.6)
CHUNK_BYTES = (262144, 524288, 1048576, 2097152)
DELTA_S, DELTA_S_PER_BYTE = 0.020, 40e-9
PSI_S, PSI_S_PER_BYTE = 0.015, 25e-9
_REQUESTS, _LOAD, _WRITE_SHARE = 2200, 0.5, 0.08
_RACKS_REQUESTS, _RACKS_LOAD = 2300, 0.6


def nodes() -> pa.Table:
    """Twelve nodes at three sites, the law of each affine in the chunk size; the fast site is the dear one."""
    site = np.repeat(np.arange(3), 4)
    slow = np.array(SLOWDOWN)[site]
    return pa.table(
        {
            "node_id": [f"{SITES[s]}-{i % 4}" for i, s in enumerate(site)],
            "delta_s": DELTA_S * slow,
            "delta_s_per_byte": DELTA_S_PER_BYTE * slow,
            "psi_s": PSI_S * slow,
            "psi_s_per_byte": PSI_S_PER_BYTE * slow,
            "cost_per_byte_dollars": np.array([2.4e-11, 2.0e-11, 1.6e-11])[site],
            "cost_period_s": np.full(12, 30 * 86400.0),
            "site": [SITES[s] for s in site],
            "connect_mean_s": np.array([0.004, 0.030, 0.080])[site],
            "connect_var_s2": np.array([1e-6, 2e-5, 1e-4])[site],
            "capacity_chunks": np.full(12, 1e5),
            "bandwidth_bytes_per_s": np.full(12, 1.25e9),
        }
    )


def files() -> pa.Table:
    """Sixty files of four sizes, each on six of the twelve nodes, any four of which rebuild it; Zipf popularity."""
    random = np.random.default_rng([SEED, 1])
    count = 60
    chunk = np.array(CHUNK_BYTES)[np.arange(count) % len(CHUNK_BYTES)]
    share = np.arange(1, count + 1) ** -0.8
    share = random.permutation(share / share.sum())
    names = nodes()["node_id"].to_pylist()
    placement = [sorted(random.choice(len(names), STORED, replace=False)) for _ in range(count)]
    rate = share * _total_rate(share, chunk, placement)
    return pa.table(
        {
            "file_id": [f"video/{i:03d}" for i in range(count)],
            "bytes": K * chunk.astype(float),
            "k": np.full(count, K),
            "rate_per_s": rate * (1 - _WRITE_SHARE),
            "n": np.full(count, STORED),
            "service_class": [("gold", "silver")[i % 2] for i in range(count)],
            "min_extra_chunks": np.full(count, 2),
            "write_rate_per_s": rate * _WRITE_SHARE,
            "nodes": [[names[j] for j in chosen] for chosen in placement],
            "stored_bytes": K * chunk.astype(float),
            "client_site": [SITES[i % 3] for i in range(count)],
        }
    )


def network() -> pa.Table:
    """What a byte costs between sites, nothing within one; Tokyo is dear to read from, wherever the client is."""
    return pa.table(
        {
            "client_site": [*SITES, "virginia", "oregon", None],
            "node_site": [*SITES, "oregon", "virginia", "tokyo"],
            "dollars_per_byte": [0.0, 0.0, 0.0, 2e-11, 2e-11, 9e-11],
        }
    )


def _total_rate(share: np.ndarray, chunk: np.ndarray, placement: list[list[int]]) -> float:
    """Request rate (1/s) at which the mean node load is that of the sample."""
    chunks = K * (1 - _WRITE_SHARE) + STORED * _WRITE_SHARE
    work = np.array(
        [np.mean([_mean_service(j, b) for j in p]) for p, b in zip(placement, chunk, strict=True)]
    )
    return _LOAD * 12 / float(share @ work * chunks)


def _mean_service(node: int, chunk: float) -> float:
    fixed, random = _law(node, chunk)
    return fixed + random


def _law(node: int, chunk: float) -> tuple[float, float]:
    slow = SLOWDOWN[node // 4]
    return slow * (DELTA_S + DELTA_S_PER_BYTE * chunk), slow * (PSI_S + PSI_S_PER_BYTE * chunk)


def requests_chunks() -> pa.Table:
    """Chunk accesses of Poisson requests to ``files`` on ``nodes``, each node first-come first-served."""
    random = np.random.default_rng([SEED, 2])
    table, names = files(), nodes()["node_id"].to_pylist()
    rate = table["rate_per_s"].to_numpy() + table["write_rate_per_s"].to_numpy()
    chunk = table["bytes"].to_numpy() / K
    placement = [[names.index(name) for name in row] for row in table["nodes"].to_pylist()]
    arrivals = np.cumsum(random.exponential(1 / rate.sum(), _REQUESTS))
    chosen = random.choice(len(rate), _REQUESTS, p=rate / rate.sum())
    writes = random.random(_REQUESTS) < _WRITE_SHARE
    free = np.zeros(len(names))
    rows: dict[str, list] = {name: [] for name in ("request_id", "node_id", "start_s", "finish_s", "file")}
    for request in range(_REQUESTS):
        file = chosen[request]
        stored = placement[file]
        used = stored if writes[request] else sorted(random.choice(stored, K, replace=False))
        for node in used:
            fixed, mean = _law(node, chunk[file])
            start = max(arrivals[request], free[node])
            free[node] = start + fixed + random.exponential(mean)
            for name, value in zip(rows, (request, names[node], start, free[node], file), strict=True):
                rows[name].append(value)
    of_row, file_of_row = np.array(rows["request_id"]), np.array(rows["file"])
    return pa.table(
        {
            "request_id": of_row,
            "arrival_s": _microseconds(arrivals[of_row]),
            "file_id": table["file_id"].take(pa.array(file_of_row)).combine_chunks(),
            "op": np.where(writes[of_row], "write", "read"),
            "bytes": chunk[file_of_row],
            "node_id": rows["node_id"],
            "start_s": _microseconds(np.array(rows["start_s"])),
            "finish_s": _microseconds(np.array(rows["finish_s"])),
            "service_class": table["service_class"].take(pa.array(file_of_row)).combine_chunks(),
        }
    )


def _microseconds(times: np.ndarray) -> np.ndarray:
    return np.round(times, 6)


def nodes_racks() -> pa.Table:
    """The twelve hosts of the built-in cluster: three racks of hard disks of unequal age, with their prices."""
    table = builtin.nodes(ClusterOptions())
    return table.append_column("capacity_chunks", pa.array(np.full(len(table), 1e6)))


def catalog() -> pa.Table:
    """What is stored on ``nodes_racks``: the ninety files of ``requests_racks``, and thirty that nobody reads."""
    count = 120
    chunk = np.where(np.arange(count) % 3 == 0, 1.0, 4.0) * 2**20
    return pa.table({"file_id": [f"photos/{number:02d}" for number in range(count)], "bytes": K * chunk})


def requests_racks() -> pa.Table:
    """Reads of ninety files on ``nodes_racks``: 4 of the 6 chunks, two per rack, whichever; some hosts run hot."""
    random = np.random.default_rng([SEED, 5])
    table, count = nodes_racks(), 90
    names = table["node_id"].to_pylist()
    law = [table[name].to_numpy() for name in ("delta_s", "delta_s_per_byte", "psi_s")]
    chunk = np.where(np.arange(count) % 3 == 0, 1.0, 4.0) * 2**20
    share = np.arange(1, count + 1) ** -0.6
    share = random.permutation(share / share.sum())
    placement = [
        np.concatenate([4 * rack + random.choice(4, 2, replace=False) for rack in range(3)])
        for _ in range(count)
    ]
    mean = law[0] + law[1] * chunk[:, None] + law[2]
    work = np.array([row[stored].mean() for row, stored in zip(mean, placement, strict=True)])
    rate = _RACKS_LOAD * len(names) / float(share @ work * K)
    arrivals = np.cumsum(random.exponential(1 / rate, _RACKS_REQUESTS))
    chosen = random.choice(count, _RACKS_REQUESTS, p=share)
    free = np.zeros(len(names))
    rows = []
    for request, (arrival, file) in enumerate(zip(arrivals, chosen, strict=True)):
        for node in np.sort(random.choice(placement[file], K, replace=False)):
            start = max(arrival, free[node])
            fixed = law[0][node] + law[1][node] * chunk[file]
            free[node] = start + fixed + random.exponential(law[2][node])
            rows.append((request, arrival, file, chunk[file], node, start, free[node]))
    of_row, arrived, file, size, node, start, finish = (
        np.array(values) for values in zip(*rows, strict=True)
    )
    return pa.table(
        {
            "request_id": of_row,
            "arrival_s": _microseconds(arrived),
            "file_id": [f"photos/{number:02d}" for number in file],
            "op": ["read"] * len(rows),
            "bytes": size,
            "node_id": [names[place] for place in node],
            "start_s": _microseconds(start),
            "finish_s": _microseconds(finish),
        }
    )


def requests_objects() -> pa.Table:
    """Accesses of whole objects with integer ids and timestamps: nothing but rates can be learned from it."""
    random = np.random.default_rng([SEED, 3])
    count, objects = 5000, 800
    share = np.arange(1, objects + 1) ** -0.9
    sizes = np.round(random.lognormal(13.0, 1.0, objects))
    chosen = random.choice(objects, count, p=share / share.sum())
    times = np.cumsum(random.exponential(0.72, count) * 1e6).astype(np.int64)
    origin = np.datetime64("2024-09-17T08:00:00", "us").astype(np.int64)
    return pa.table(
        {
            "request_id": np.arange(count),
            "arrival_s": pa.array(origin + times, pa.timestamp("us", "UTC")),
            "file_id": 100_000 + 7 * chosen,
            "op": np.where(random.random(count) < 0.2, "write", "read"),
            "bytes": sizes[chosen],
            "edge": np.array(["paris", "lagos", "quito"])[random.integers(0, 3, count)],
        }
    )


def rates() -> pa.Table:
    """A day in hours: the rates of both service classes follow a sine, those of the second with an evening peak."""
    hours = np.arange(24)
    factor = 1 + 0.6 * np.sin(2 * np.pi * (hours - 9) / 24)
    evening = np.where((hours >= 18) & (hours < 22), 2.0, 1.0)
    return pa.table(
        {
            "start_s": np.tile(3600.0 * hours, 2),
            "factor": np.round(np.concatenate([factor, factor * evening]), 4),
            "service_class": np.repeat(["gold", "silver"], 24),
        }
    )


def outages() -> pa.Table:
    """One node down for ten minutes, then two nodes at once for five."""
    names = nodes()["node_id"].to_pylist()
    return pa.table(
        {
            "node_id": [names[1], names[4], names[7]],
            "start_s": [600.0, 3600.0, 3600.0],
            "end_s": [1200.0, 3900.0, 3900.0],
        }
    )


def transfers() -> pa.Table:
    """Forty coflows between the twelve nodes, Poisson arrivals, widths 1 to 8, log-normal flow sizes."""
    random = np.random.default_rng([SEED, 4])
    names = np.array(nodes()["node_id"].to_pylist())
    arrivals = _microseconds(np.cumsum(random.exponential(0.5, 40)))
    width = random.integers(1, 9, 40)
    coflow = np.repeat(np.arange(40), width)
    source = random.integers(0, 12, len(coflow))
    return pa.table(
        {
            "coflow_id": coflow,
            "arrival_s": arrivals[coflow],
            "src": names[source],
            "dst": names[(source + random.integers(1, 12, len(coflow))) % 12],
            "bytes": np.round(random.lognormal(17.0, 1.0, len(coflow))),
        }
    )


def ports() -> pa.Table:
    """The slow site sends and receives at a tenth of what is usual, one node at Oregon receives at ten times that."""
    names = nodes()["node_id"].to_pylist()
    return pa.table(
        {
            "port_id": [*names[8:], names[4]],
            "send_bytes_per_s": [12.5e6] * 4 + [None],
            "receive_bytes_per_s": [12.5e6] * 4 + [1.25e9],
        }
    )


def delays() -> pa.Table:
    """A near store, whose writes take longer than its reads, and a far one with long and similar delays."""
    return pa.table(
        {
            "name": ["near", "near", "far"],
            "op": ["read", "write", None],
            "law": ["shifted_exponential", "shifted_exponential", "shifted_lognormal"],
            "shift_s": [0.004, 0.009, 0.05],
            "shift_s_per_byte": [8e-9, 12e-9, 24e-9],
            "scale_s": [0.006, 0.015, 0.02],
            "scale_s_per_byte": [2e-9, 3e-9, 4e-9],
            "sigma": [None, None, 1.3],
            "rho": [None, None, 0.2],
        }
    )


def classes() -> pa.Table:
    """Reads of two sizes and writes of one."""
    return pa.table(
        {
            "name": ["thumbnails", "videos", "uploads"],
            "op": ["read", "read", "write"],
            "bytes": [2e5, 6e6, 3e6],
            "share": [0.6, 0.3, 0.1],
            "k_max": [2, 12, 6],
            "r_max": [2.0, 2.0, 1.5],
        }
    )


def edges() -> pa.Table:
    """The three sites of the nodes, each at another distance from the three edges of ``requests_objects``."""
    latency = {"quito": (0.14, 0.21, 0.52), "lagos": (0.31, 0.47, 0.58), "paris": (0.18, 0.35, 0.46)}
    return pa.table(
        {
            "node_id": [site for _ in latency for site in SITES],
            "edge": [edge for edge in latency for _ in SITES],
            "latency_s": [value for row in latency.values() for value in row],
        }
    )


TABLES: dict[str, Callable[[], pa.Table]] = {
    "requests_objects.parquet": requests_objects,
    "requests_chunks.parquet": requests_chunks,
    "requests_racks.parquet": requests_racks,
    "nodes.parquet": nodes,
    "nodes.arrow": nodes,
    "nodes_racks.csv": nodes_racks,
    "files.parquet": files,
    "catalog.csv": catalog,
    "network.parquet": network,
    "rates.parquet": rates,
    "outages.parquet": outages,
    "transfers.parquet": transfers,
    "transfers.csv": transfers,
    "ports.parquet": ports,
    "delays.parquet": delays,
    "classes.parquet": classes,
    "edges.parquet": edges,
}


def write(folder: Path) -> None:
    """Write all sample tables, the sample of coflows, the schema guide and the list of sources to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in TABLES.items():
        table, path = make(), folder / name
        if name.endswith(".csv"):
            pa.csv.write_csv(table, path)
        elif name.endswith(".arrow"):
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        else:
            floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
            pq.write_table(
                table,
                path,
                compression="zstd",
                use_dictionary=[name for name in table.column_names if name not in floats],
                use_byte_stream_split=floats,
                write_page_checksum=True,
            )
    write_coflows(folder / "coflows.txt")
    (folder / "README.md").write_text(guide())
    (folder / "RESULTS.md").write_text(result_guide())
    tables = {name: make.__doc__ or "" for name, make in TABLES.items()}
    logs = {
        name: " ".join(filter(None, ((lines.__doc__ or "").splitlines()[0], _published(format_))))
        for format_, (name, lines) in LOGS.items()
    }
    (folder / "SOURCES.md").write_text(sources(tables, logs))


def _published(format_: str) -> str:
    """Where data of a public format is from."""
    source = PROFILES[format_].source
    return f"Data set: {source}." if source else ""


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
