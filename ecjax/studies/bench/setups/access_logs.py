"""``analyze`` on generated access logs, beside DuckDB and Polars reading the same files.

They split every line into fields and add up the bytes of each object, which is a part of what ``analyze`` does.
"""

import gzip
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ecjax.studies.bench.fresh import run_fresh
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Runner, clocked
from ecjax.studies.bench.setups.access_log_lines import FORMS, Access

ZIPF = 0.8
_SMALL = {"count": 2000, "objects": 100}  # for what is compiled
_BATCH = 100_000
_BEGIN = datetime(2026, 11, 2, tzinfo=UTC)
_SPAN_S = 30 * 86400
_MIB = 2.0**20


RIVALS = ("duckdb", "polars")


def beside_engines(runner: Runner, form: str, rows: int, objects: int) -> Iterator[Row]:
    """A log of so many lines, gzip, by jobs in processes of their own.

    Args:
        runner: times them.
        form: of ``FORMS``.
        rows: lines.
        objects: that are read or written.
    """
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        log, small = (str(Path(folder) / name) for name in ("log.gz", "small.gz"))
        written = 0
        for path, counts in ((small, _SMALL), (log, {"count": rows, "objects": objects})):
            arguments = {"path": path, "form": form, "seed": runner.seed, **counts}
            written = run_fresh(f"{__name__}:write_log", arguments)
        packed = Path(log).stat().st_size
        size = f"{form}: {rows:,} lines, {written / _MIB:,.0f} MiB ({packed / _MIB:,.0f} gzip)"
        out = f"{folder}/analyze"
        jobs = {"ecjax": ("access_logs:by_ecjax", {"out": out})}
        jobs |= {name: (f"access_logs:by_{name}", {"form": form}) for name in RIVALS if find_spec(name)}
        absent = [name for name in RIVALS if not find_spec(name)]
        for name, (job, others) in jobs.items():
            outcome = runner.alone(job, {"log": small, **others}, {"log": log, **others})
            note = f"{written / _MIB / outcome.timing.min_s:,.0f} MiB/s of text"
            if name == "ecjax":
                note += "; all statistics, tables written"
                note += "".join(f"; {each} is not installed: nothing to compare with" for each in absent)
            else:
                note += f"; {name} {version(name)}, bytes by object only"
            peak = outcome.peak_rss_bytes
            yield Row(name, size, *outcome.timing, rows=rows, peak_rss_bytes=peak, note=note)


def write_log(path: str, form: str, count: int, objects: int, seed: int) -> int:
    """A month of accesses, Zipf popularity, one in twelve a write; the bytes of its text."""
    random = np.random.default_rng(seed)
    cumulative = np.cumsum(np.arange(1, objects + 1) ** -ZIPF)
    line, header = FORMS[form].line, FORMS[form].header
    with gzip.open(path, "wb", compresslevel=4) as file:
        text_bytes = file.write(f"{header}\n".encode()) if header else 0
        for begin in range(0, count, _BATCH):
            rows = min(_BATCH, count - begin)
            seconds = _SPAN_S * (begin + np.sort(random.random(rows)) * rows) / count
            items = np.searchsorted(cumulative, random.random(rows) * cumulative[-1])
            writes = random.random(rows) < 1 / 12
            sizes = 4096 + items * 7919 % 1_000_003
            times = 5 + random.exponential(40, rows).astype(int)
            accesses = zip(*(each.tolist() for each in (seconds, writes, items, sizes, times)), strict=True)
            text = "".join(
                line(Access(number, _BEGIN + timedelta(seconds=second), write, item, size, ms)) + "\n"
                for number, (second, write, item, size, ms) in enumerate(accesses, begin)
            ).encode()
            text_bytes += len(text)
            file.write(text)
    return text_bytes


def by_ecjax(log: str, out: str) -> Clocked:
    """The whole job, tables included, without figures; its imports are not timed."""
    from rich.console import Console

    from ecjax.studies.analyze.options import AnalyzeOptions
    from ecjax.studies.analyze.study import analyze_study

    options = AnalyzeOptions(trace=log, k=4, out=out, figures=False, resume=False)
    return clocked(partial(analyze_study, options, Console(quiet=True)))


def by_duckdb(log: str, form: str) -> Clocked:
    """Reads and bytes of each object by DuckDB, which is not timed as it is imported."""
    duckdb: Any = import_module("duckdb")
    shape = FORMS[form]
    if shape.separator:
        quote = '"' if shape.quoted else ""
        source = f"read_csv(?, delim='{shape.separator}', quote='{quote}', escape='', header=false, "
        source += f"skip={int(bool(shape.header))}, all_varchar=true)"
        columns = duckdb.sql(
            f"SELECT * FROM {source} LIMIT 0", params=[log]
        ).columns  # numbered, with zeros before
        key, size = (columns[place] for place in shape.places)
    else:
        source = "read_json(?, format='newline_delimited')"
        key, size = (".".join(path) for path in shape.paths)
    # a comma ends some words
    query = f"SELECT {key}, count(*), sum(try_cast(rtrim({size}::VARCHAR, ',') AS BIGINT)) FROM {source} GROUP BY 1"
    return clocked(lambda: duckdb.sql(query, params=[log]).fetchall())


def by_polars(log: str, form: str) -> Clocked:
    """The same by Polars."""
    polars: Any = import_module("polars")
    shape = FORMS[form]

    def column(path: tuple[str, ...]) -> Any:
        value = polars.col(path[0])
        for name in path[1:]:
            value = value.struct.field(name)
        return value

    def read() -> Any:
        if shape.separator:
            frame = polars.scan_csv(
                log,
                separator=shape.separator,
                quote_char='"' if shape.quoted else None,
                has_header=False,
                skip_rows=int(bool(shape.header)),
                infer_schema=False,
            )
            names = frame.collect_schema().names()  # numbered from 0 or 1
            key, size = (polars.col(names[place]) for place in shape.places)
            size = size.str.strip_chars_end(",")
        else:
            frame = polars.scan_ndjson(log)
            key, size = (column(path) for path in shape.paths)
        sums = [polars.len(), size.cast(polars.Int64, strict=False).sum()]
        return frame.group_by(key.alias("key")).agg(sums).collect(engine="streaming")

    return clocked(read)
