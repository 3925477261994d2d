"""``analyze`` on generated Parquet traces, beside Arrow's group_by on the same file for the counts alone."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.studies.bench.fresh import run_fresh
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Runner, clocked

ZIPF = 0.9
_SMALL = {"count": 10_000, "distinct": 100}  # for what is compiled
_BATCHES = 50


def generated(runner: Runner, rows: int, distinct: int, text: bool) -> Iterator[Row]:
    """A trace with so many distinct ids, integers or strings, by jobs in processes of their own."""
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        trace, small = (str(Path(folder) / name) for name in ("trace.parquet", "small.parquet"))
        for path, counts in ((trace, {"count": rows, "distinct": distinct}), (small, _SMALL)):
            run_fresh(f"{__name__}:write_trace", {"path": path, "text": text, "seed": runner.seed, **counts})
        size = f"{rows:,} rows, {distinct:,} {'string' if text else 'integer'} ids"
        out = f"{folder}/analyze"
        ours = runner.alone("analyze:by_ecjax", {"trace": small, "out": out}, {"trace": trace, "out": out})
        yield Row(
            "ecjax",
            size,
            *ours.timing,
            rows=rows,
            compile_s=ours.first.seconds,
            peak_rss_bytes=ours.peak_rss_bytes,
            note="all statistics, tables written",
        )
        arrow = runner.alone("analyze:by_arrow_group_by", {"trace": small}, {"trace": trace})
        yield Row(
            "arrow_group_by",
            size,
            *arrow.timing,
            rows=rows,
            peak_rss_bytes=arrow.peak_rss_bytes,
            note="count, bytes, first and last only",
        )


def write_trace(path: str, count: int, distinct: int, text: bool, seed: int) -> None:
    """A Parquet trace of Poisson object accesses, Zipf popularity, every id at least once."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, distinct + 1) ** -ZIPF
    cumulative = np.cumsum(weights) / weights.sum()
    all_ids = rng.permutation(distinct)
    names = pa.array([f"bucket-{i % 97}/object-{i:09d}" for i in range(distinct)]) if text else None

    def pieces() -> Iterator[pa.Table]:
        clock, first = 0.0, 0
        for once in np.array_split(all_ids, _BATCHES):
            last = first + max(count // _BATCHES, len(once))
            drawn = np.minimum(
                np.searchsorted(cumulative, rng.random(last - first - len(once))), distinct - 1
            )
            ids = rng.permutation(np.concatenate([once, drawn]))
            arrivals = clock + np.cumsum(rng.exponential(1e-3, last - first))
            yield pa.table(
                {
                    "request_id": np.arange(first, last),
                    "arrival_s": arrivals,
                    "file_id": ids if names is None else names.take(pa.array(ids)),
                    "op": np.where(rng.random(last - first) < 0.9, "read", "write"),
                    "bytes": rng.integers(1, 1 << 20, last - first).astype(float),
                }
            )
            clock, first = float(arrivals[-1]), last

    writer = None
    for piece in pieces():
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


def by_ecjax(trace: str, out: str) -> Clocked:
    """The whole job, tables included, without figures; its imports are not timed."""
    from rich.console import Console

    from ecjax.studies.analyze.options import AnalyzeOptions
    from ecjax.studies.analyze.study import analyze_study

    options = AnalyzeOptions(trace=trace, out=out, figures=False, resume=False)
    return clocked(partial(analyze_study, options, Console(quiet=True)))


def by_arrow_group_by(trace: str) -> None:
    """Counts, bytes, first and last arrival per file by Arrow, the trace in memory."""
    aggregates = [("bytes", "sum"), ("bytes", "count"), ("arrival_s", "min"), ("arrival_s", "max")]
    table = pq.read_table(trace, columns=["file_id", "op", "bytes", "arrival_s"])
    table.group_by(["file_id", "op"]).aggregate(aggregates)
