"""``analyze`` on generated Parquet traces, beside Arrow's group_by on the same file for the counts alone."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.studies.bench.fresh import run_fresh
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import peak_rss_bytes

ROWS, LONG_ROWS = 10_000_000, 50_000_000
DISTINCT = 1_000_000
ZIPF = 0.9
TARGET_INTEGERS_S, TARGET_STRINGS_S = 5.0, 8.0
TARGET_BYTES = 1_000_000_000
_BATCHES = 50


def integers(settings: Settings) -> list[Row]:
    """10^7 rows, 10^6 distinct integer ids."""
    return _rows(ROWS, False, TARGET_INTEGERS_S, settings)


def strings(settings: Settings) -> list[Row]:
    """10^7 rows, 10^6 distinct string ids."""
    return _rows(ROWS, True, TARGET_STRINGS_S, settings)


def long(settings: Settings) -> list[Row]:
    """5 10^7 rows, 10^6 distinct integer ids: the memory must not grow with the rows."""
    once = Settings(1, settings.quick, settings.seed)
    return _rows(LONG_ROWS, False, None, once)


def _rows(count: int, text: bool, target_s: float | None, settings: Settings) -> list[Row]:
    shrink = 100 if settings.quick else 1
    count, distinct = count // shrink, DISTINCT // shrink
    found = []
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        trace, small = (str(Path(folder) / name) for name in ("trace.parquet", "small.parquet"))
        make = f"{__name__}:write_trace"
        seed = {"text": text, "seed": settings.seed}
        run_fresh(make, {"path": trace, "count": count, "distinct": distinct, **seed})
        run_fresh(make, {"path": small, "count": 10_000, "distinct": 100, **seed})
        for variant in ("ecjax", "arrow_group_by"):
            arguments = {"trace": trace, "small": small, "out": folder, "repeats": settings.repeats}
            measured = run_fresh(f"{__name__}:by_{variant}", arguments)
            ours = variant == "ecjax" and not settings.quick
            found.append(
                Row(
                    variant=variant,
                    size=f"{count:,} rows, {distinct:,} {'string' if text else 'integer'} ids",
                    rows=count,
                    **measured,
                    target_s=target_s if ours else None,
                    target_bytes=TARGET_BYTES if ours else None,
                    note="all statistics, tables written"
                    if variant == "ecjax"
                    else "count, bytes, first and last only",
                )
            )
    return found


def write_trace(path: str, count: int, distinct: int, text: bool, seed: int) -> None:
    """A Parquet trace of Poisson object accesses, Zipf popularity, every id at least once."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, distinct + 1) ** -ZIPF
    cumulative = np.cumsum(weights) / weights.sum()
    everyone = rng.permutation(distinct)
    names = pa.array([f"bucket-{i % 97}/object-{i:09d}" for i in range(distinct)]) if text else None

    def pieces() -> Iterator[pa.Table]:
        clock, first = 0.0, 0
        for own in np.array_split(everyone, _BATCHES):
            last = first + max(count // _BATCHES, len(own))
            drawn = np.minimum(np.searchsorted(cumulative, rng.random(last - first - len(own))), distinct - 1)
            ids = rng.permutation(np.concatenate([own, drawn]))
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


def by_ecjax(trace: str, small: str, out: str, repeats: int) -> dict[str, Any]:
    """The whole job, tables included, without figures; compile_s is the job on a small trace of the kind."""
    from rich.console import Console

    from ecjax.studies.analyze.options import AnalyzeOptions
    from ecjax.studies.analyze.study import analyze

    quiet = Console(quiet=True)

    def job(path: str) -> float:
        began = time.perf_counter()
        analyze(AnalyzeOptions(trace=path, out=f"{out}/analyze", figures=False, resume=False), quiet)
        return time.perf_counter() - began

    compile_s = job(small)
    times = [job(trace) for _ in range(repeats)]
    return _measured(times) | {"compile_s": compile_s}


def by_arrow_group_by(trace: str, small: str, out: str, repeats: int) -> dict[str, Any]:
    """Counts, bytes, first and last arrival per file by Arrow, the trace in memory."""
    aggregates = [("bytes", "sum"), ("bytes", "count"), ("arrival_s", "min"), ("arrival_s", "max")]

    def job(path: str) -> float:
        began = time.perf_counter()
        pq.read_table(path, columns=["file_id", "op", "bytes", "arrival_s"]).group_by(
            ["file_id", "op"]
        ).aggregate(aggregates)
        return time.perf_counter() - began

    job(small)
    return _measured([job(trace) for _ in range(repeats)])


def _measured(times: list[float]) -> dict[str, Any]:
    return {
        "median_s": sorted(times)[len(times) // 2],
        "min_s": min(times),
        "repeats": len(times),
        "peak_rss_bytes": peak_rss_bytes(),
    }
