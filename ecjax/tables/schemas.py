"""Columns of every input table, with units; the single place where they are named. Imports nothing heavy.

Input tables are checked against ``INPUTS`` (extra columns are kept). Those of the results are in
``studies/JOB/tables``.
"""

from dataclasses import dataclass

ID = "id"  # integer or string, and comes back as it came
FLOAT = "float64"
INTEGER = "int64"
STRING = "string"
BOOLEAN = "boolean"
TIME = "time"  # seconds as a number, or an Arrow timestamp
IDS = "ids"  # list of ids
BYTES = "bytes"  # a few of them, as bit masks


@dataclass(frozen=True)
class Column:
    """One column: its kind, unit, meaning and the values that are allowed.

    ``least`` is the smallest allowed value; ``above`` excludes that value itself. ``nullable`` allows empty cells.
    No number is larger than ``most``: 1e12 s of a point in time, 2^31 - 1 of an integer, 1e30 of other numbers, whose
    cubes and products are numbers too. One that must be above 0 is at least 1e-30 for the same reason.
    ``infinite`` columns of results may hold infinities, also of runs that are ok; no others may, and none NaN.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    required: bool = False
    nullable: bool = False
    least: float | None = None
    above: bool = False
    infinite: bool = False

    @property
    def most(self) -> float:
        """The largest allowed value; also how far below 0 one may be."""
        return _MOST.get(self.kind, MOST_NUMBER)

    @property
    def smallest(self) -> float | None:
        """The smallest allowed value, as a number that is allowed itself."""
        return self.least if self.least is None or not self.above else max(self.least, 1 / MOST_NUMBER)


MOST_SECONDS, MOST_NUMBER = 1e12, 1e30
_MOST = {TIME: MOST_SECONDS, INTEGER: 2**31 - 1}

REQUESTS = (
    Column("request_id", ID, "", "the chunk accesses of one file access share it", required=True),
    Column("arrival_s", TIME, "s", "arrival time, non-decreasing", required=True),
    Column("file_id", ID, "", "file (object, extent) accessed", required=True),
    Column("op", STRING, "", '"read" or "write"', required=True),
    Column("bytes", FLOAT, "B", "bytes asked for by this access", required=True, least=0),
    Column("node_id", ID, "", "node that served the chunk; absent for object accesses"),
    Column("start_s", TIME, "s", "start of service at the node, after queueing", nullable=True),
    Column("finish_s", TIME, "s", "end of service", nullable=True),
    Column("service_class", ID, "", "tenant class", nullable=True),
    Column("edge", ID, "", "edge site where the request entered"),
)

NODES = (
    Column("node_id", ID, "", "storage node", required=True),
    Column(
        "service_mean_s", FLOAT, "s", "mean service time of a chunk of reference_bytes", least=0, above=True
    ),
    Column("service_second_s2", FLOAT, "s^2", "second raw moment of that service time", least=0, above=True),
    Column("service_third_s3", FLOAT, "s^3", "third raw moment of that service time", least=0, above=True),
    Column("reference_bytes", FLOAT, "B", "chunk size the moments belong to", least=0, above=True),
    Column("service_mean_low_s", FLOAT, "s", "least that service_mean_s can be", least=0, above=True),
    Column("service_mean_high_s", FLOAT, "s", "most that it can be", least=0, above=True),
    Column("service_second_low_s2", FLOAT, "s^2", "the same of service_second_s2", least=0, above=True),
    Column("service_second_high_s2", FLOAT, "s^2", "most that it can be", least=0, above=True),
    Column("service_third_low_s3", FLOAT, "s^3", "the same of service_third_s3", least=0, above=True),
    Column("service_third_high_s3", FLOAT, "s^3", "most that it can be", least=0, above=True),
    Column("delta_s", FLOAT, "s", "affine law: constant part of the fixed delay", least=0),
    Column("delta_s_per_byte", FLOAT, "s/B", "affine law: fixed delay per byte", least=0),
    Column("psi_s", FLOAT, "s", "affine law: constant part of the mean of the exponential delay", least=0),
    Column("psi_s_per_byte", FLOAT, "s/B", "affine law: mean of the exponential delay per byte", least=0),
    Column(
        "stall_probability",
        FLOAT,
        "",
        "affine law: share of chunks that stall, whatever their size",
        least=0,
        nullable=True,
    ),
    Column("stall_s", FLOAT, "s", "affine law: how much longer they take", least=0, nullable=True),
    Column("cost_per_chunk_dollars", FLOAT, "$/period", "price of keeping one chunk", least=0),
    Column("cost_per_byte_dollars", FLOAT, "$/(B period)", "price of keeping one byte", least=0),
    Column("cost_period_s", FLOAT, "s", "period of the prices (default 30 days)", least=0, above=True),
    Column("site", ID, "", "failure domain"),
    Column("connect_mean_s", FLOAT, "s", "mean connection delay", least=0),
    Column("connect_var_s2", FLOAT, "s^2", "variance of the connection delay", least=0),
    Column("capacity_chunks", FLOAT, "chunks", "chunks the node can hold", least=0),
    Column("bandwidth_bytes_per_s", FLOAT, "B/s", "network bandwidth", least=0, above=True),
    Column("channels", INTEGER, "", "requests that the node serves at once (default 1)", least=1),
    Column("background_load", FLOAT, "", "sum of lambda m_1 of other work; rho is this / channels", least=0),
    Column("background_second", FLOAT, "s", "sum of lambda m_2 of other work", least=0),
    Column("background_third", FLOAT, "s^2", "sum of lambda m_3 of other work", least=0),
)

FILES = (
    Column("file_id", ID, "", "file", required=True),
    Column(
        "bytes",
        FLOAT,
        "B",
        "bytes that a read moves, bytes / d from each of d chunks",
        required=True,
        least=0,
        above=True,
    ),
    Column("k", INTEGER, "", "chunks that rebuild the file", required=True, least=1),
    Column(
        "d",
        INTEGER,
        "",
        "chunks that a read takes, bytes / d from each; d >= k, at least so many are stored (default: k)",
        nullable=True,
        least=1,
    ),
    Column("rate_per_s", FLOAT, "1/s", "read rate", required=True, least=0),
    Column("rate_standard_error_per_s", FLOAT, "1/s", "standard error of rate_per_s", nullable=True, least=0),
    Column("n", INTEGER, "", "code length", nullable=True, least=1),
    Column("service_class", ID, "", "tenant class"),
    Column("min_extra_chunks", INTEGER, "", "durability floor: n >= k + min_extra_chunks", least=0),
    Column("group", ID, "", "files of a group share n, placement and probabilities", nullable=True),
    Column(
        "write_rate_per_s",
        FLOAT,
        "1/s",
        "write rate; a write loads every chunk of the file, with bytes / k each, whatever d",
        least=0,
    ),
    Column("nodes", IDS, "", "current placement", nullable=True),
    Column(
        "stored_bytes",
        FLOAT,
        "B",
        "bytes kept, k chunks of stored_bytes / k, for prices per byte (default: bytes)",
        least=0,
        above=True,
    ),
    Column("forbidden_nodes", IDS, "", "nodes that may not hold a chunk of the file", nullable=True),
    Column("client_site", ID, "", "where the file is read from, as in the network table", nullable=True),
    Column(
        "small_rate_per_s",
        FLOAT,
        "1/s",
        "reads of small_bytes, beside rate_per_s: of one data chunk, or of several where they are larger "
        "(stripe_unit_bytes)",
        nullable=True,
        least=0,
    ),
    Column("small_bytes", FLOAT, "B", "what such a read moves", nullable=True, least=0, above=True),
    Column(
        "small_chunk",
        INTEGER,
        "",
        "number, from 0, of the data chunk that they all begin in (default: all k data chunks alike)",
        nullable=True,
        least=0,
    ),
)

CATALOG = (
    Column("file_id", ID, "", "object, by its name in the log", required=True),
    Column("bytes", FLOAT, "B", "its size", required=True, least=0),
    Column("k", INTEGER, "", "chunks that rebuild it", nullable=True, least=1),
)

NETWORK = (
    Column(
        "client_site", ID, "", "where reads come from; empty: anywhere that no other row says", nullable=True
    ),
    Column("node_id", ID, "", "the node they read from; empty: the nodes of node_site", nullable=True),
    Column("node_site", ID, "", "the site of the nodes; both empty: every node", nullable=True),
    Column(
        "dollars_per_byte", FLOAT, "$/B", "price of a byte from that node to there", required=True, least=0
    ),
)

RATES = (
    Column("start_s", FLOAT, "s", "from this time on", required=True, least=0),
    Column("factor", FLOAT, "", "rates are multiplied by this", required=True, least=0),
    Column("file_id", ID, "", "only this file", nullable=True),
    Column("service_class", ID, "", "only this class", nullable=True),
)

OUTAGES = (
    Column("node_id", ID, "", "node that serves nothing for a time", required=True),
    Column("start_s", FLOAT, "s", "from this time on, as the replay counts it", required=True, least=0),
    Column("end_s", FLOAT, "s", "until this time", required=True, least=0),
)

TRANSFERS = (
    Column("coflow_id", ID, "", "coflow", required=True),
    Column("arrival_s", FLOAT, "s", "arrival time", required=True, least=0),
    Column("src", ID, "", "sending port", required=True),
    Column("dst", ID, "", "receiving port", required=True),
    Column("bytes", FLOAT, "B", "size of the flow", required=True, least=0, above=True),
)

PORTS = (
    Column("port_id", ID, "", "port, as in src, dst, node_id or edge", required=True),
    Column(
        "send_bytes_per_s",
        FLOAT,
        "B/s",
        "what it can send (default: as all ports)",
        nullable=True,
        least=0,
        above=True,
    ),
    Column(
        "receive_bytes_per_s",
        FLOAT,
        "B/s",
        "what it can receive (default: as all ports)",
        nullable=True,
        least=0,
        above=True,
    ),
)

DELAYS = (
    Column("name", STRING, "", "what tables call this law of delays", required=True),
    Column("op", STRING, "", '"read" or "write"; empty: both', nullable=True),
    Column("law", STRING, "", '"shifted_exponential" or "shifted_lognormal"', required=True),
    Column(
        "shift_s",
        FLOAT,
        "s",
        "delay = (shift_s + shift_s_per_byte B) + (scale_s + scale_s_per_byte B) U",
        required=True,
        least=0,
    ),
    Column("shift_s_per_byte", FLOAT, "s/B", "B: bytes of the chunk (default 0)", nullable=True, least=0),
    Column(
        "scale_s", FLOAT, "s", "U: exponential of mean 1, or lognormal of median 1", required=True, least=0
    ),
    Column("scale_s_per_byte", FLOAT, "s/B", "(default 0)", nullable=True, least=0),
    Column(
        "sigma",
        FLOAT,
        "",
        "standard deviation of ln U; shifted_lognormal only",
        nullable=True,
        least=0,
        above=True,
    ),
    Column(
        "rho",
        FLOAT,
        "",
        "correlation of the normal scores of two tasks of a request, < 1 (default 0)",
        nullable=True,
        least=0,
    ),
)

CLASSES = (
    Column("name", STRING, "", "what tables call the class (default: its op and size)", nullable=True),
    Column("op", STRING, "", '"read" or "write" (default: read)', nullable=True),
    Column("bytes", FLOAT, "B", "size of its requests", required=True, least=0, above=True),
    Column(
        "share",
        FLOAT,
        "",
        "of all requests; together they need not be 1 (default: equal shares)",
        least=0,
        above=True,
    ),
    Column(
        "k_max", INTEGER, "", "largest code dimension, <= 100 (default: option k_max)", nullable=True, least=1
    ),
    Column(
        "r_max", FLOAT, "", "largest redundancy n / k, <= 100 (default: option r_max)", nullable=True, least=1
    ),
)

EDGES = (
    Column("node_id", ID, "", "storage node", required=True),
    Column("edge", ID, "", "edge site, as in a log (default: all edges)"),
    Column(
        "latency_s",
        FLOAT,
        "s",
        "mean time to fetch a chunk from there to here",
        required=True,
        least=0,
        above=True,
    ),
)

INPUTS: dict[str, tuple[Column, ...]] = {
    "requests": REQUESTS,
    "nodes": NODES,
    "files": FILES,
    "catalog": CATALOG,
    "network": NETWORK,
    "rates": RATES,
    "outages": OUTAGES,
    "transfers": TRANSFERS,
    "ports": PORTS,
    "delays": DELAYS,
    "classes": CLASSES,
    "edges": EDGES,
}
