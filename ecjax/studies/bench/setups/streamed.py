"""Certified plans of files that are read in pieces: from one Parquet table to another, whatever the number of files."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups.certified import LOAD, THETA
from ecjax.studies.bench.setups.random_problem import CHUNK_BYTES, CODES, least_largest_load, random_problem
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import planned as planned_runs

_PIECE = 10**6  # files of a row group
_NAMES = {"ecjax streamed, beside writing": ["runs"], "ecjax streamed": ["placement_masks"]}


def planned(runner: Runner, files: int, nodes: int, gap: float) -> Iterator[Row]:
    """One theta: the files read twice and placed, without and with the placements written."""
    with TemporaryDirectory() as folder:
        tables = {"nodes": Path(folder) / "nodes.parquet", "files": Path(folder) / "files.parquet"}
        write_tables(tables, files, nodes, runner.seed)
        outs = (Path(folder) / f"out-{number}" for number in count())
        calls = {name: partial(_plan, tables, outs, write, gap) for name, write in _NAMES.items()}
        for name, outcome in runner.race(calls).items():
            yield Row(
                name,
                f"{files:,} files x {nodes}, load {LOAD:g}",
                *outcome.timing,
                rows=files,
                node_count=nodes,
                lanes=1,
                dtype="float64",
                objective=outcome.value["objective"],
                lower_bound=outcome.value["lower_bound"],
                note=f"planning {outcome.value['solve_s']:.3g} s of it, the rest counts the files and writes",
            )


def _plan(tables: dict[str, Path], outs: Iterator[Path], write: list[str], gap: float) -> dict[str, Any]:
    """The row of ``runs`` of a plan in a folder of its own."""
    options = OptimizeOptions(
        nodes=str(tables["nodes"]),
        files=str(tables["files"]),
        out=str(next(outs)),
        stream=True,
        theta=[THETA],
        gap=gap,
        write=write,
        figures=[],
    )
    row: dict[str, Any] = planned_runs(options, []).iloc[0].to_dict()
    return row


def write_tables(paths: dict[str, Path], files: int, nodes: int, seed: int) -> None:
    """A nodes table as that of ``random_problem``, and files with lognormal rates, chunks all alike, in row groups.

    Args:
        paths: where to, by name of the table.
        files: how many.
        nodes: how many.
        seed: of what is drawn.
    """
    of_nodes = random_problem(max(CODES), nodes, LOAD, False, seed).nodes
    service = np.asarray(of_nodes.service)
    moments = [service[power, power + 1] * CHUNK_BYTES ** (power + 1) for power in range(3)]
    columns = dict(zip(("service_mean_s", "service_second_s2", "service_third_s3"), moments, strict=True))
    columns |= {"reference_bytes": np.full(nodes, CHUNK_BYTES)}
    columns |= {"cost_per_chunk_dollars": np.asarray(of_nodes.cost_per_chunk)}
    pq.write_table(pa.table({"node_id": np.arange(nodes), **columns}), paths["nodes"])

    traffic: dict[int, float] = dict.fromkeys(CODES, 0.0)
    for k, rate in _drawn(files, seed):
        for each in traffic:
            traffic[each] += float(rate[k == each].sum()) * CHUNK_BYTES
    widths, amounts = np.array(list(traffic), float), np.array(list(traffic.values()))
    scale = LOAD / least_largest_load(moments[0] / CHUNK_BYTES, widths, amounts)
    schema = pa.schema(
        {"file_id": pa.int64(), "bytes": pa.float64(), "k": pa.int64(), "rate_per_s": pa.float64()}
    )
    with pq.ParquetWriter(paths["files"], schema) as writer:
        first = 0
        for k, rate in _drawn(files, seed):
            ids = np.arange(first, first + len(k))
            piece = [ids, k * CHUNK_BYTES, k, rate * scale]
            writer.write_table(pa.table(piece, schema))
            first += len(k)


def _drawn(files: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """K and rates before scaling, piece by piece; the same whenever they are drawn."""
    for number, first in enumerate(range(0, files, _PIECE)):
        random = np.random.default_rng((seed, number))
        size = min(_PIECE, files - first)
        yield random.choice(CODES, size), random.lognormal(0, 1, size)
