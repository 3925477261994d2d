"""Columns of the result datasets of ``ecjax analyze``, with units. Imports nothing heavy."""

from dataclasses import replace

from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import FILES, FLOAT, ID, INTEGER, NODES, STRING, Column

_RATES = (
    Column("start_s", FLOAT, "s", "start of the interval, since the first arrival"),
    Column("factor", FLOAT, "", "its read rate to that of the whole log"),
    Column("duration_s", FLOAT, "s", "length of the interval"),
    Column("reads", INTEGER, "", "requests that read"),
)

TABLES = job_tables(
    "analyze",
    runs=(
        Column("input_id", STRING, "", "fingerprint of the trace"),
        Column("format", STRING, "", "importer that read the trace"),
        Column("max_load", FLOAT, "", "largest node load rho"),
        Column("file_count", INTEGER, "", "files, with those of the catalog that were never read"),
        Column("node_count", INTEGER, "", "distinct nodes; null where the trace has none"),
    ),
    traces=(
        Column("trace", STRING, "", "name of the file or folder"),
        Column("path", STRING, "", "where it was"),
        Column(
            "reading",
            STRING,
            "",
            "JSON: format, columns, extent_bytes, sort and the like, as they were set",
        ),
        Column("format", STRING, "", "importer that read it"),
        Column("provides", STRING, "", "which of rates, sojourn, service, placement it tells"),
        Column("loses", STRING, "", "what it lacks and what was decided in reading, a sentence per line"),
        Column("notices", STRING, "", "what the analysis found missing or doubtful, a sentence per line"),
        Column("rows", INTEGER, "", "rows"),
        Column("requests", INTEGER, "", "requests, of one or more rows each"),
        Column("reads", INTEGER, "", "requests that read"),
        Column("writes", INTEGER, "", "requests that write"),
        Column("bytes", FLOAT, "B", "bytes asked for"),
        Column("file_count", INTEGER, "", "distinct files"),
        Column("node_count", INTEGER, "", "distinct nodes; null where the trace has none"),
        Column("span_s", FLOAT, "s", "from the first arrival to the last"),
        Column("rate", STRING, "", "rates of files: mean over the log, or peak: in its busiest window"),
        Column("window_s", FLOAT, "s", "length of that window, or of the log"),
        Column("window_start_s", FLOAT, "s", "where it begins, since the first arrival"),
        Column("read_rate_per_s", FLOAT, "1/s", "reads / span"),
        Column("write_rate_per_s", FLOAT, "1/s", "writes / span"),
        Column("clock_resolution_s", FLOAT, "s", "step of the clock; 0: as good as continuous"),
        Column("ties", INTEGER, "", "requests that arrived at the same time as the one before"),
        Column(
            "interarrival_cv",
            FLOAT,
            "",
            "coefficient of variation of the gaps, ties spread over the clock's step",
        ),
        Column(
            "poisson_blocks",
            INTEGER,
            "",
            "blocks of 128 gaps in the test of Poisson arrivals; 0: too few, or the clock is too coarse",
        ),
        Column("poisson_p", FLOAT, "", "p-value of all blocks together"),
        Column("poisson_rejected_share", FLOAT, "", "blocks rejected at the 5 % level; 0.05 is Poisson"),
        Column("zipf_exponent", FLOAT, "", "popularity of the rank-r file read goes with r^-exponent"),
        Column("zipf_error", FLOAT, "", "its standard error"),
        Column("delay_quantity", STRING, "", "what the next four are about: service or sojourn"),
        Column("chunk_correlation", FLOAT, "", "correlation between the chunk delays of one request"),
        Column("chunk_correlation_error", FLOAT, "", "its standard error"),
        Column("chunk_correlation_requests", INTEGER, "", "requests that it was taken from"),
        Column("mean_delay_s", FLOAT, "s", "mean delay of reads, all nodes and sizes"),
        Column("concurrency", FLOAT, "", "mean number of accesses in the system: sojourn times / span"),
    ),
    files=(
        *(replace(column, required=column.name == "file_id") for column in FILES),  # a trace may lack k
        Column("reads", INTEGER, "", "reads in the trace"),
        Column("writes", INTEGER, "", "writes in the trace"),
        Column("first_arrival_s", FLOAT, "s", "first access, as the trace counts time"),
        Column("last_arrival_s", FLOAT, "s", "last access"),
        Column(
            "interarrival_cv", FLOAT, "", "coefficient of variation of the gaps between accesses, as recorded"
        ),
    ),
    nodes=(
        *NODES,
        Column("service_source", STRING, "", "logged, or inferred from first-come first-served finish times"),
        Column(
            "service_samples", INTEGER, "", "service times behind the moments: of reads where there are any"
        ),
        Column("mean_chunk_bytes", FLOAT, "B", "mean size of those chunks"),
        Column("observed_mean_s", FLOAT, "s", "mean of those service times, all chunk sizes together"),
        Column("observed_mean_error_s", FLOAT, "s", "its standard error"),
        Column("observed_second_s2", FLOAT, "s^2", "their second raw moment"),
        Column("observed_second_error_s2", FLOAT, "s^2", "its standard error"),
        Column("observed_third_s3", FLOAT, "s^3", "their third raw moment"),
        Column("observed_third_error_s3", FLOAT, "s^3", "its standard error"),
        Column(
            "law_mean_s", FLOAT, "s", "mean of the affine law for the chunks that were read; null without one"
        ),
        Column("law_second_s2", FLOAT, "s^2", "its second raw moment for them"),
        Column(
            "exponential_distance", FLOAT, "", "Kolmogorov distance to an exponential law of the same mean"
        ),
        Column("chunk_reads", INTEGER, "", "chunks read"),
        Column("chunk_writes", INTEGER, "", "chunks written"),
        Column("load", FLOAT, "", "rho: service time of reads and writes / (span of the trace * channels)"),
        Column("concurrency", FLOAT, "", "mean number of accesses at the node: their sojourn times / span"),
        Column("mean_sojourn_s", FLOAT, "s", "mean time from arrival to finish"),
    ),
    delays=(
        Column("quantity", STRING, "", "service (start to finish) or sojourn (arrival to finish)"),
        Column("node_id", ID, "", "node; null where the trace has none"),
        Column("op", STRING, "", "read or write"),
        Column("chunk_bytes", FLOAT, "B", "mean size of the chunks of this size class (4.4 % wide)"),
        Column("count", INTEGER, "", "delays"),
        Column("mean_s", FLOAT, "s", "their mean"),
        Column("std_s", FLOAT, "s", "their standard deviation"),
        Column("kept_mean_s", FLOAT, "s", "mean without the worst 10 %"),
        Column("kept_std_s", FLOAT, "s", "standard deviation without the worst 10 %"),
        Column("delta_s", FLOAT, "s", "affine law of the node: constant part of the fixed delay"),
        Column(
            "delta_s_per_byte", FLOAT, "s/B", "fixed delay per byte; null: one chunk size does not tell it"
        ),
        Column("psi_s", FLOAT, "s", "constant part of the mean of the exponential delay"),
        Column("psi_s_per_byte", FLOAT, "s/B", "mean of the exponential delay per byte; null as above"),
        Column("fit_mean_s", FLOAT, "s", "mean of the affine law at this size"),
        Column("fit_std_s", FLOAT, "s", "standard deviation of the affine law at this size"),
    ),
    delay_bins=(
        Column("quantity", STRING, "", "service or sojourn"),
        Column("node_id", ID, "", "node; null where the trace has none"),
        Column("op", STRING, "", "read or write"),
        Column("lower_s", FLOAT, "s", "lower edge of the bin (2.2 % wide)"),
        Column("upper_s", FLOAT, "s", "upper edge, not itself in the bin; 0 for the bin of zeros"),
        Column("count", INTEGER, "", "delays in the bin, all chunk sizes"),
    ),
    rejects=(
        Column("file", STRING, "", "file of the log, below its folder"),
        Column("line", INTEGER, "", "malformed line, from 1; the first hundred of each reason"),
        Column("reason", STRING, "", "what is wrong: the field that cannot be read, or the whole line"),
        Column("lines", INTEGER, "", "lines with this reason in the whole log"),
        Column("text", STRING, "", "the line; null unless keep_ids=true"),
    ),
    arrivals=(
        Column("start_s", FLOAT, "s", "start of the interval, since the first arrival"),
        Column("duration_s", FLOAT, "s", "length of the interval"),
        Column("reads", INTEGER, "", "requests that read"),
        Column("writes", INTEGER, "", "requests that write"),
        Column("bytes", FLOAT, "B", "bytes asked for"),
    ),
    burstiness=(
        Column("op", STRING, "", "read or write"),
        Column("service_class", ID, "", "class of the reads; null: all"),
        Column("scale_s", FLOAT, "s", "length of the windows compared; the shortest is a tick of the clock"),
        Column(
            "dispersion",
            FLOAT,
            "",
            "I: squared differences of the counts of neighbouring windows, over the counts; 1 is Poisson",
        ),
        Column(
            "standard_error", FLOAT, "", "of I where arrivals are Poisson, however slowly their rate drifts"
        ),
        Column("pairs", FLOAT, "", "windows of equal counts that would tell as much, in pairs"),
        Column(
            "verdict", STRING, "", "burstier, more regular, as Poisson or cannot tell; 1 % for all scales"
        ),
    ),
    busiest=(
        Column("op", STRING, "", "read or write"),
        Column("service_class", ID, "", "class of the reads; null: all"),
        Column("window_s", FLOAT, "s", "length of the window: a second, a minute, an hour, a day"),
        Column("start_s", FLOAT, "s", "where the busiest one begins, since the first arrival"),
        Column("requests", INTEGER, "", "requests in it"),
        Column("mean_ratio", FLOAT, "", "to the mean number in so long a time"),
    ),
    rates=_RATES,
    class_rates=(Column("service_class", ID, "", "class of the reads"), *_RATES),
)
