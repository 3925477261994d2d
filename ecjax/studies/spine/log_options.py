"""Options of every job that reads an access log. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any

from ecjax.options import Mapping, Number, Whole, Words, option

ACCESS_LOGS = (
    *("swift_object", "swift_proxy", "hdfs", "warp", "minio_drives"),
    *("s3", "nginx", "minio", "rgw", "s3_json", "nginx_json", "cloudfront"),
    *("thesios", "tectonic", "twitter", "wikimedia", "tencent_photo", "ibm_cos", "alibaba_block"),
)
FORMATS = ("table", "columns", "cloudphysics", "msr", *ACCESS_LOGS, "oracle_general")  # of logs
COLUMNS = Mapping("a mapping like {arrival_s: ts, file_id: key}")


@dataclass(frozen=True)
class LogOptions:
    """How an access log is read."""

    trace: str | None = option(
        None,
        "access log: a file, a folder of files or a pattern ('logs/*.gz'); or the folder of an ecjax analyze: the log "
        "that it read",
    )
    format: str = option("auto", "of the log; auto: told by its content", Words("auto", *FORMATS))
    columns: dict[str, Any] | None = option(
        None,
        "of the log: mapping for any CSV or Parquet, {arrival_s: ts_ms, arrival_s_scale: 0.001, ...}",
        COLUMNS,
    )
    extent_bytes: int | None = option(
        None, "of the log: size of the extents that stand for files in a block trace", Whole(1, 2**62)
    )
    sort: bool = option(False, "sort the log by arrival, in memory, instead of refusing an unsorted one")
    keep_ids: bool = option(
        False, "leave names of objects in access logs as they are, instead of hashing them"
    )
    max_rejects: float = option(
        0.1,
        "malformed lines of an access log that are allowed: a share if below 1, else a number",
        Number(least=0),
    )


def at_peak(options: "RatedLogOptions") -> bool:
    """Whether rates are those of the busiest window."""
    return options.rate == "peak"


def shrinking(options: "RatedLogOptions") -> bool:
    """Whether rates are estimated from those of all files."""
    return options.shrink == "gamma"


@dataclass(frozen=True)
class RatedLogOptions(LogOptions):
    """How an access log is read, and which rates of files it gives."""

    rate: str = option(
        "mean",
        "rates of the files: mean over the log; or peak, those of the window_s with the most reads of all files",
        Words("mean", "peak"),
        identifies=at_peak,
    )
    window_s: float = option(60.0, "length of the window of rate=peak", Number(above=0), identifies=at_peak)
    shrink: str = option(
        "none",
        "gamma: rates of files that are read seldom are estimated from those of all files; none: as counted",
        Words("none", "gamma"),
        identifies=shrinking,
    )
