"""Options of ``ecjax analyze``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any

from ecjax.engine import EngineOptions
from ecjax.studies.spine.option import option


@dataclass
class AnalyzeOptions:
    """Everything that ``ecjax analyze`` can be told."""

    trace: str | None = option(None, "access log: a file, or a folder of Parquet files")
    out: str = option("results/analyze", "folder of the result tables and figures")
    format: str = option("auto", "auto, table, columns, cloudphysics, msr or oracle_general")
    columns: Any = option(
        None, "mapping for any CSV or Parquet, {arrival_s: ts_ms, arrival_s_scale: 0.001, ...}"
    )
    extent_bytes: int | None = option(None, "size of the extents that stand for files in a block trace")
    k: int | None = option(None, "chunks that rebuild a file; overrides what chunk accesses tell")
    sort: bool = option(False, "sort rows by arrival, in memory, instead of refusing unsorted ones")
    reference_bytes: float | None = option(
        None, "give node moments for a chunk of this size, instead of an affine law where sizes vary"
    )
    seed: int = option(0, "seed of the spreading of ties and of the sample of requests")
    figures: bool = option(True, "draw figures in out/figures")
    engine: EngineOptions = field(
        default_factory=EngineOptions, metadata={"help": "where it runs: engine=serial, engine=ray"}
    )
    resume: bool = option(True, "keep a finished analysis of the same trace in out")
    write: Any = option(None, "datasets to write besides runs; default: all")
