"""Columns of every table that ecjax reads or writes, with units; the single place where they are named.

Input tables are checked against ``INPUTS`` (extra columns are kept). Result datasets have the explicit schema of
``result_schema``, complete from the first row, with the unit and meaning of each column in its field metadata.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

SCHEMA_VERSION = 1

ID = "id"  # integer or string, and comes back as it came
FLOAT = "float64"
INTEGER = "int64"
STRING = "string"
BOOLEAN = "boolean"
TIME = "time"  # seconds as a number, or an Arrow timestamp
IDS = "ids"  # list of ids


@dataclass(frozen=True)
class Column:
    """One column: its kind, unit, meaning and the values that are allowed.

    ``least`` is the smallest allowed value; ``above`` excludes that value itself. ``nullable`` allows empty cells.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    required: bool = False
    nullable: bool = False
    least: float | None = None
    above: bool = False


def _c(name: str, kind: str, unit: str, meaning: str, **more) -> Column:
    return Column(name, kind, unit, meaning, **more)


REQUESTS = (
    _c("request_id", ID, "", "the chunk accesses of one file access share it", required=True),
    _c("arrival_s", TIME, "s", "arrival time, non-decreasing", required=True),
    _c("file_id", ID, "", "file (object, extent) accessed", required=True),
    _c("op", STRING, "", '"read" or "write"', required=True),
    _c("bytes", FLOAT, "B", "bytes asked for by this access", required=True, least=0),
    _c("node_id", ID, "", "node that served the chunk; absent for object accesses"),
    _c("start_s", TIME, "s", "start of service at the node, after queueing", nullable=True),
    _c("finish_s", TIME, "s", "end of service", nullable=True),
    _c("service_class", ID, "", "tenant class"),
    _c("edge", ID, "", "edge site where the request entered"),
)

NODES = (
    _c("node_id", ID, "", "storage node", required=True),
    _c("service_mean_s", FLOAT, "s", "mean service time of a chunk of reference_bytes", least=0, above=True),
    _c("service_second_s2", FLOAT, "s^2", "second raw moment of that service time", least=0, above=True),
    _c("service_third_s3", FLOAT, "s^3", "third raw moment of that service time", least=0, above=True),
    _c("reference_bytes", FLOAT, "B", "chunk size the moments belong to", least=0, above=True),
    _c("delta_s", FLOAT, "s", "affine law: constant part of the fixed delay", least=0),
    _c("delta_s_per_byte", FLOAT, "s/B", "affine law: fixed delay per byte", least=0),
    _c("psi_s", FLOAT, "s", "affine law: constant part of the mean of the exponential delay", least=0),
    _c("psi_s_per_byte", FLOAT, "s/B", "affine law: mean of the exponential delay per byte", least=0),
    _c("cost_per_chunk_dollars", FLOAT, "$/period", "price of keeping one chunk", least=0),
    _c("cost_per_byte_dollars", FLOAT, "$/(B period)", "price of keeping one byte", least=0),
    _c("cost_period_s", FLOAT, "s", "period of the prices (default 30 days)", least=0, above=True),
    _c("site", ID, "", "failure domain"),
    _c("connect_mean_s", FLOAT, "s", "mean connection delay", least=0),
    _c("connect_var_s2", FLOAT, "s^2", "variance of the connection delay", least=0),
    _c("capacity_chunks", FLOAT, "chunks", "chunks the node can hold", least=0),
    _c("bandwidth_bytes_per_s", FLOAT, "B/s", "network bandwidth", least=0, above=True),
    _c("channels", INTEGER, "", "parallel servers (default 1)", least=1),
    _c("background_load", FLOAT, "", "sum of lambda m_1 of other work: added to rho", least=0),
    _c("background_second", FLOAT, "s", "sum of lambda m_2 of other work: added to A_2", least=0),
    _c("background_third", FLOAT, "s^2", "sum of lambda m_3 of other work: added to A_3", least=0),
)

FILES = (
    _c("file_id", ID, "", "file", required=True),
    _c(
        "bytes",
        FLOAT,
        "B",
        "bytes that a read moves; a chunk is bytes / k",
        required=True,
        least=0,
        above=True,
    ),
    _c("k", INTEGER, "", "chunks that rebuild the file", required=True, least=1),
    _c("rate_per_s", FLOAT, "1/s", "read rate", required=True, least=0),
    _c("n", INTEGER, "", "code length", nullable=True, least=1),
    _c("service_class", ID, "", "tenant class"),
    _c("min_extra_chunks", INTEGER, "", "durability floor: n >= k + min_extra_chunks", least=0),
    _c("group", ID, "", "files of a group share n, placement and probabilities", nullable=True),
    _c("write_rate_per_s", FLOAT, "1/s", "write rate; a write loads every chunk of the file", least=0),
    _c("nodes", IDS, "", "current placement", nullable=True),
    _c("stored_bytes", FLOAT, "B", "bytes kept, for prices per byte (default: bytes)", least=0, above=True),
)

RATES = (
    _c("start_s", FLOAT, "s", "from this time on", required=True, least=0),
    _c("factor", FLOAT, "", "rates are multiplied by this", required=True, least=0),
    _c("file_id", ID, "", "only this file"),
    _c("service_class", ID, "", "only this class"),
)

TRANSFERS = (
    _c("coflow_id", ID, "", "coflow", required=True),
    _c("arrival_s", FLOAT, "s", "arrival time", required=True, least=0),
    _c("src", ID, "", "sending port", required=True),
    _c("dst", ID, "", "receiving port", required=True),
    _c("bytes", FLOAT, "B", "size of the flow", required=True, least=0, above=True),
)

INPUTS: dict[str, tuple[Column, ...]] = {
    "requests": REQUESTS,
    "nodes": NODES,
    "files": FILES,
    "rates": RATES,
    "transfers": TRANSFERS,
}

_RUN = _c("run_id", STRING, "", "first 16 hex digits of the hash of what was computed", required=True)

RESULTS: dict[str, tuple[Column, ...]] = {
    "runs": (
        _RUN,
        _c("job", STRING, "", "analyze, optimize, ..."),
        _c("status", STRING, "", "ok, not_converged, unstable, infeasible or failed"),
        _c("error", STRING, "", "what went wrong, for a failed run"),
        _c("method", STRING, "", "algorithm or baseline"),
        _c("theta", FLOAT, "s/$", "price of latency: objective = latency_shared_z_s + theta cost"),
        _c("theta_per", STRING, "", "file: theta multiplies cost / files; total: the whole cost"),
        _c("objective", FLOAT, "s", "latency_shared_z_s + theta * cost (per file or total)"),
        _c("latency_s", FLOAT, "s", "mean latency bound, one z per file, weighted by read rates"),
        _c("latency_shared_z_s", FLOAT, "s", "mean latency bound with one z for all files"),
        _c("z_s", FLOAT, "s", "the shared z"),
        _c("cost", FLOAT, "$/period", "storage cost of the plan, all files"),
        _c("lower_bound", FLOAT, "s", "no plan has a smaller objective"),
        _c("gap", FLOAT, "", "(objective - lower_bound) / lower_bound"),
        _c("max_load", FLOAT, "", "largest node load rho"),
        _c("mean_n", FLOAT, "", "mean code length"),
        _c("mean_n_by_class", STRING, "", "JSON: mean code length by service class, else by k"),
        _c("files", INTEGER, "", "files planned"),
        _c("files_without_redundancy", INTEGER, "", "files with n = k: the loss of any node loses them"),
        _c("nodes", INTEGER, "", "nodes"),
        _c("iterations", INTEGER, "", "iterations done"),
        _c("input_id", STRING, "", "names the tables in inputs/"),
        _c("rate_scale", FLOAT, "", "rates were multiplied by this"),
        _c("size_scale", FLOAT, "", "bytes were multiplied by this"),
        _c("batch_id", STRING, "", "runs computed and written together"),
        _c("batch_runs", INTEGER, "", "how many those are"),
        _c("solve_s", FLOAT, "s", "batch time / runs, compilation apart"),
        _c("compile_s", FLOAT, "s", "batch compilation time / runs"),
        _c("device", STRING, "", "where it ran"),
        _c("version", STRING, "", "ecjax version"),
        _c("seed", INTEGER, "", "random seed"),
        _c("params", STRING, "", "JSON of everything else that was set"),
    ),
    "placements": (
        _RUN,
        _c("file_id", ID, "", "file; null where the row is a group's"),
        _c("group", ID, "", "group of files that share the placement; null otherwise"),
        _c("node_id", ID, "", "node that keeps a chunk"),
        _c("probability", FLOAT, "", "share of reads that use the node; 0 for a cold chunk"),
        _c("chunks", INTEGER, "", "chunks kept there"),
    ),
    "file_plans": (
        _RUN,
        _c("file_id", ID, "", "file"),
        _c("n", INTEGER, "", "code length"),
        _c("k", INTEGER, "", "chunks that rebuild the file"),
        _c("latency_s", FLOAT, "s", "latency bound with the file's own z"),
        _c("cost", FLOAT, "$/period", "storage cost"),
    ),
    "history": (
        _RUN,
        _c("iteration", INTEGER, "", "iteration"),
        _c("objective", FLOAT, "s", "latency + theta * log surrogate of the cost (what descends)"),
    ),
    "nodes": (
        _RUN,
        *NODES,
        _c("service_source", STRING, "", "logged, or inferred from first-come first-served finish times"),
        _c("service_samples", INTEGER, "", "service times behind the moments: of reads where there are any"),
        _c("mean_chunk_bytes", FLOAT, "B", "mean size of those chunks"),
        _c("observed_mean_s", FLOAT, "s", "mean of those service times, all chunk sizes together"),
        _c("observed_mean_error_s", FLOAT, "s", "its standard error"),
        _c("observed_second_s2", FLOAT, "s^2", "their second raw moment"),
        _c("observed_second_error_s2", FLOAT, "s^2", "its standard error"),
        _c("observed_third_s3", FLOAT, "s^3", "their third raw moment"),
        _c("observed_third_error_s3", FLOAT, "s^3", "its standard error"),
        _c("exponential_distance", FLOAT, "", "Kolmogorov distance to an exponential law of the same mean"),
        _c("chunk_reads", INTEGER, "", "chunks read"),
        _c("chunk_writes", INTEGER, "", "chunks written"),
        _c("load", FLOAT, "", "rho: service time of reads and writes / span of the trace"),
        _c("concurrency", FLOAT, "", "mean number of accesses at the node: their sojourn times / span"),
        _c("mean_sojourn_s", FLOAT, "s", "mean time from arrival to finish"),
    ),
    "files": (
        _RUN,
        *(replace(column, required=column.name == "file_id") for column in FILES),  # a trace may lack k
        _c("reads", INTEGER, "", "reads in the trace"),
        _c("writes", INTEGER, "", "writes in the trace"),
        _c("first_arrival_s", FLOAT, "s", "first access, as the trace counts time"),
        _c("last_arrival_s", FLOAT, "s", "last access"),
        _c(
            "interarrival_cv", FLOAT, "", "coefficient of variation of the gaps between accesses, as recorded"
        ),
    ),
    "delays": (
        _RUN,
        _c("quantity", STRING, "", "service (start to finish) or sojourn (arrival to finish)"),
        _c("node_id", ID, "", "node; null where the trace has none"),
        _c("op", STRING, "", "read or write"),
        _c("chunk_bytes", FLOAT, "B", "mean size of the chunks of this size class (4.4 % wide)"),
        _c("count", INTEGER, "", "delays"),
        _c("mean_s", FLOAT, "s", "their mean"),
        _c("std_s", FLOAT, "s", "their standard deviation"),
        _c("kept_mean_s", FLOAT, "s", "mean without the worst 10 %"),
        _c("kept_std_s", FLOAT, "s", "standard deviation without the worst 10 %"),
        _c("delta_s", FLOAT, "s", "affine law of the node: constant part of the fixed delay"),
        _c("delta_s_per_byte", FLOAT, "s/B", "fixed delay per byte; null: one chunk size does not tell it"),
        _c("psi_s", FLOAT, "s", "constant part of the mean of the exponential delay"),
        _c("psi_s_per_byte", FLOAT, "s/B", "mean of the exponential delay per byte; null as above"),
        _c("fit_mean_s", FLOAT, "s", "mean of the affine law at this size"),
        _c("fit_std_s", FLOAT, "s", "standard deviation of the affine law at this size"),
    ),
    "delay_bins": (
        _RUN,
        _c("quantity", STRING, "", "service or sojourn"),
        _c("node_id", ID, "", "node; null where the trace has none"),
        _c("op", STRING, "", "read or write"),
        _c("lower_s", FLOAT, "s", "lower edge of the bin (2.2 % wide)"),
        _c("upper_s", FLOAT, "s", "upper edge, not itself in the bin; 0 for the bin of zeros"),
        _c("count", INTEGER, "", "delays in the bin, all chunk sizes"),
    ),
    "arrivals": (
        _RUN,
        _c("start_s", FLOAT, "s", "start of the interval, since the first arrival"),
        _c("duration_s", FLOAT, "s", "length of the interval"),
        _c("reads", INTEGER, "", "requests that read"),
        _c("writes", INTEGER, "", "requests that write"),
        _c("bytes", FLOAT, "B", "bytes asked for"),
    ),
    "traces": (
        _RUN,
        _c("trace", STRING, "", "name of the file or folder"),
        _c("format", STRING, "", "importer that read it"),
        _c("provides", STRING, "", "which of rates, sojourn, service it tells"),
        _c("loses", STRING, "", "what it lacks and what was decided in reading, a sentence per line"),
        _c("notices", STRING, "", "what the analysis found missing or doubtful, a sentence per line"),
        _c("rows", INTEGER, "", "rows"),
        _c("requests", INTEGER, "", "requests, of one or more rows each"),
        _c("reads", INTEGER, "", "requests that read"),
        _c("writes", INTEGER, "", "requests that write"),
        _c("bytes", FLOAT, "B", "bytes asked for"),
        _c("files", INTEGER, "", "distinct files"),
        _c("nodes", INTEGER, "", "distinct nodes; null where the trace has none"),
        _c("span_s", FLOAT, "s", "from the first arrival to the last"),
        _c("read_rate_per_s", FLOAT, "1/s", "reads / span"),
        _c("write_rate_per_s", FLOAT, "1/s", "writes / span"),
        _c("clock_resolution_s", FLOAT, "s", "step of the clock; 0: as good as continuous"),
        _c("ties", INTEGER, "", "requests that arrived at the same time as the one before"),
        _c(
            "interarrival_cv",
            FLOAT,
            "",
            "coefficient of variation of the gaps, ties spread over the clock's step",
        ),
        _c("poisson_blocks", INTEGER, "", "blocks of 128 gaps in the test of Poisson arrivals"),
        _c("poisson_p", FLOAT, "", "p-value of all blocks together"),
        _c("poisson_rejected_share", FLOAT, "", "blocks rejected at the 5 % level; 0.05 is Poisson"),
        _c("zipf_exponent", FLOAT, "", "popularity of the rank-r file read goes with r^-exponent"),
        _c("zipf_error", FLOAT, "", "its standard error"),
        _c("delay_quantity", STRING, "", "what the next four are about: service or sojourn"),
        _c("chunk_correlation", FLOAT, "", "correlation between the chunk delays of one request"),
        _c("chunk_correlation_error", FLOAT, "", "its standard error"),
        _c("chunk_correlation_requests", INTEGER, "", "requests that it was taken from"),
        _c("mean_delay_s", FLOAT, "s", "mean delay of reads, all nodes and sizes"),
        _c("concurrency", FLOAT, "", "mean number of accesses in the system: sojourn times / span"),
    ),
    "bench": (
        _RUN,
        _c("case", STRING, "", "benchmark"),
        _c("variant", STRING, "", "what was timed: ecjax in one of its forms, or an alternative"),
        _c("size", STRING, "", "size of the problem in words"),
        _c("rows", INTEGER, "", "files, requests or rows of it"),
        _c("nodes", INTEGER, "", "nodes"),
        _c("lanes", INTEGER, "", "problems solved as one program"),
        _c("dtype", STRING, "", "number type"),
        _c(
            "median_s",
            FLOAT,
            "s",
            "median wall time of the repeats, without compilation where compile_s is given",
        ),
        _c("min_s", FLOAT, "s", "least of them"),
        _c("repeats", INTEGER, "", "timed runs"),
        _c("compile_s", FLOAT, "s", "time to compile"),
        _c("peak_rss_bytes", INTEGER, "B", "largest resident memory of a process that did only this"),
        _c("objective", FLOAT, "s", "what was minimised, at the solution"),
        _c("iterations", INTEGER, "", "iterations of the method"),
        _c("target_s", FLOAT, "s", "min_s should be at most this"),
        _c("target_bytes", INTEGER, "B", "peak_rss_bytes should be at most this"),
        _c("met", BOOLEAN, "", "whether the targets are met; null without one"),
        _c("device", STRING, "", "where it ran"),
        _c("cores", INTEGER, "", "processor cores that it could use"),
        _c("note", STRING, "", "what else to know"),
    ),
}


def arrow_type(kind: str, id_type: pa.DataType) -> pa.DataType:
    """Arrow type of a column kind; ``id_type`` is the type the ids of this column came with."""
    types = {
        FLOAT: pa.float64(),
        INTEGER: pa.int64(),
        STRING: pa.string(),
        BOOLEAN: pa.bool_(),
        TIME: pa.float64(),
    }
    if kind == ID:
        return id_type
    return pa.list_(id_type) if kind == IDS else types[kind]


def result_schema(dataset: str, id_types: dict[str, pa.DataType] | None = None) -> pa.Schema:
    """Schema of a result dataset.

    Args:
        dataset: a key of ``RESULTS``.
        id_types: Arrow type by id column name (``file_id``, ``node_id``, ``group``, ...), string where absent;
            ``nodes`` takes the type of ``node_id``.
    """
    known = id_types or {}
    fields = []
    for column in RESULTS[dataset]:
        source = "node_id" if column.name == "nodes" else column.name
        kind = arrow_type(column.kind, known.get(source, pa.string()))
        metadata = {"unit": column.unit, "meaning": column.meaning}
        fields.append(pa.field(column.name, kind, nullable=not column.required, metadata=metadata))
    return pa.schema(fields, metadata={"ecjax_schema_version": str(SCHEMA_VERSION)})
