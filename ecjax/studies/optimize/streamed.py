"""``ecjax optimize stream=true``: plans of files that are read in pieces, and their rows."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax import programs
from ecjax.cores import available_cores
from ecjax.engine import Worker
from ecjax.errors import UserError
from ecjax.options import identifying
from ecjax.planning.certified import Settings
from ecjax.planning.streamed.placing import Figures, Masks, Placing
from ecjax.planning.streamed.relaxation import Lane, relaxed
from ecjax.problem.overload import demand_of, overload
from ecjax.progress import detail
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.optimize.batches import Item, Way
from ecjax.studies.optimize.inputs import sweep, with_thetas_that_matter
from ecjax.studies.optimize.loads import Loads, loads_of, refuse_overload, warn_of_overload
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.streamed_inputs import StreamedCase, say_what_is_left_aside, streamed_cases
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine.batches import Batch, Solved
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, unfinished
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.ids import canonical_ids, id_types
from ecjax.tables.place import Place
from ecjax.tables.read import ahead, open_batches

_WAY = Way("certified", "fcfs")
_WHOLE = "in the streamed plan, where a file is read from the same nodes always (plans in memory share out its reads)"


def streamed_work(options: OptimizeOptions) -> Work:
    """What a study with ``stream=true`` computes.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    programs.use_compilation_cache()
    say_unused(options, ("memory_bytes",), "stream=true")
    cases = streamed_cases(options)
    options = with_thetas_that_matter(options, [cases[0].nodes])
    say_what_is_left_aside(str(options.files))
    loads = [_loads(options, case) for case in cases]
    refuse_overload(loads)
    warn_of_overload(loads)
    batches = [Batch(case, {item.run.run_id: item}) for case in cases for item in _items(options, case)]
    first = pa.Table.from_batches([next(iter(open_batches(str(options.files), ["file_id"]).batches))])
    ids = canonical_ids(first["file_id"], "file_id", Place(first, "files", str(options.files), 0))
    return Work(
        run_ids=[run_id for batch in batches for run_id in batch.items],
        batches=unfinished(batches),
        solve=partial(_solve, options),
        id_types=id_types(cases[0].nodes, pa.table({"file_id": ids})),
        verb="planning",
        inputs=lambda case: (case.input_id, {"nodes": case.nodes}),
        at_once=1,
        divisible=False,
        all_unstable_is_wrong=True,
    )


def _loads(options: OptimizeOptions, case: StreamedCase) -> Loads:
    nodes = case.nodes["node_id"].combine_chunks()
    return loads_of(demand_of(case.problem), options.rate_scale, options.size_scale, nodes)


def _items(options: OptimizeOptions, case: StreamedCase) -> list[Item]:
    """The runs of a case, one for each lane."""
    items = []
    for number, point in enumerate(sweep(options)):
        columns = point._asdict() | {
            "method": _WAY.method,
            "queue": _WAY.queue,
            "k": case.overrides.k,
            "d": case.overrides.d,
            "theta_per": options.theta_per,
            "file_count": case.counts.files,
            "node_count": case.nodes.num_rows,
        }
        parameters = identifying(options) | point._asdict() | _WAY._asdict()
        remarks = {"inputs": case.places}
        items.append(
            Item(
                Run(TABLES.job, parameters, case.input_id, options.seed, columns, remarks=remarks),
                _WAY,
                number,
            )
        )
    return items


def _solve(options: OptimizeOptions, case: StreamedCase, items: dict[str, Item], worker: Worker) -> Solved:
    """One run: the row, and its datasets, of which placements are written as the files are read once more."""
    (item,) = items.values()
    point = sweep(options)[item.lane]
    per_file = case.counts.files if options.theta_per == "total" else 1
    lane = Lane(point.theta * per_file, point.rate_scale, point.size_scale)
    threads = available_cores()
    settings = Settings(gap=options.gap, seed=options.seed)
    with Stopwatch(of_process=True) as stopwatch:
        answer = relaxed(case.counts, case.problem, lane, settings, threads)
        placing = Placing(case.counts, answer, lane, case.sites, threads)
        masks = list(_counted_aloud(placing.place(case.pieces()), case.counts.files))
        placing.place_again(answer.lower_bound + options.gap * abs(answer.lower_bound))
        figures = placing.figures()
    row = item.run.row() | {
        "solve_s": stopwatch.own_s,
        "compile_s": stopwatch.compile_s,
        "iterations": answer.turns,
    }
    if not figures.load.max() < 1:
        nodes = case.nodes["node_id"].combine_chunks()
        background = np.asarray(case.problem.nodes.background[0])
        error = overload(figures.load, background, lane.rate_scale, nodes, _WHOLE)
        unstable = {"status": str(Status.UNSTABLE), "error": error, "max_load": float(figures.load.max())}
        return [row | unstable], {}
    row |= _columns(case, figures, answer.lower_bound)
    datasets: Mapping[str, Iterator[pa.Table]] = {
        "placement_masks": _mask_tables(item.run.run_id, case, masks),
        "node_loads": iter([_node_loads(item.run.run_id, case, placing, figures)]),
        "history": iter(()),
        "scenarios": iter(()),
    }
    return [row], datasets


def _counted_aloud(masks: Iterable[Masks], files: int) -> Iterator[Masks]:
    placed = 0
    for each in masks:
        placed += len(each.read)
        detail(f"{placed:,} of {files:,} files are placed")
        yield each


def _columns(case: StreamedCase, figures: Figures, lower_bound: float) -> dict[str, Any]:
    """Columns of ``runs`` that a stable plan tells."""
    counts = case.counts
    size = np.bincount(counts.code, counts.size)
    by_k: dict[int, tuple[float, float]] = {}
    for code, files in zip(counts.codes, size, strict=True):
        before = by_k.get(code.k, (0.0, 0.0))
        by_k[code.k] = before[0] + files, before[1] + files * code.length
    chunks = sum(length for _, length in by_k.values())
    bare = sum(files for code, files in zip(counts.codes, size, strict=True) if code.length <= code.k)
    return {
        "status": str(Status.OK),
        "objective": figures.objective,
        "latency_s": figures.latency,
        "latency_shared_z_s": figures.latency_shared_z,
        "z_s": figures.z,
        "cost_dollars_per_period": figures.cost,
        "max_load": float(figures.load.max()),
        "mean_n": chunks / counts.files,
        "mean_n_by_class": json.dumps({str(k): length / files for k, (files, length) in by_k.items()}),
        "files_without_redundancy": int(bare),
        "lower_bound": lower_bound,
        "gap": (figures.objective - lower_bound) / abs(lower_bound),
    }


def _mask_tables(run_id: str, case: StreamedCase, masks: list[Masks]) -> Iterator[pa.Table]:
    """Rows of ``placement_masks``, piece by piece; the ids are read again."""
    ids, done = open_batches(case.source, ["file_id"]).batches, 0
    codes = case.counts.codes
    k, n = np.array([code.k for code in codes]), np.array([code.length for code in codes])
    for batch, mask in _with_masks(ahead(ids), masks, case.source):
        table = pa.Table.from_batches([batch])
        place = Place(table, "files", case.source, done)
        done += len(table)
        detail(f"{done:,} of {case.counts.files:,} placements are written")
        columns = {
            "run_id": pa.repeat(pa.scalar(run_id, pa.string()), len(table)),
            "file_id": canonical_ids(table["file_id"], "file_id", place),
            "k": k[mask.code],
            "n": n[mask.code],
            "read_nodes": _binary(mask.read),
            "stored_nodes": _binary(mask.stored),
        }
        yield pa.table(columns)


def _with_masks(
    batches: Iterable[pa.RecordBatch], masks: Iterable[Masks], source: str
) -> Iterator[tuple[pa.RecordBatch, Masks]]:
    """Batches of ids with the masks of their files: a column by itself may come in other batches than several.

    Raises:
        UserError: there are not as many ids as masks.
    """
    left = iter(masks)
    current, at = next(left, None), 0
    for batch in batches:
        parts, missing = [], batch.num_rows
        while missing and current is not None:
            part = Masks(*(column[at : at + missing] for column in current))
            parts.append(part)
            at, missing = at + len(part.code), missing - len(part.code)
            if at == len(current.code):
                current, at = next(left, None), 0
        if missing:
            current = None
            break
        if parts:
            yield (
                batch,
                parts[0] if len(parts) == 1 else Masks(*map(np.concatenate, zip(*parts, strict=True))),
            )
    else:
        if current is None:
            return
    raise UserError(f"{source}: found another number of files than a minute ago; allowed: a table that stays")


def _binary(masks: np.ndarray) -> pa.Array:
    number, width = masks.shape
    whole = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), number, [None, pa.py_buffer(np.ascontiguousarray(masks))]
    )
    return whole.cast(pa.binary())


def _node_loads(run_id: str, case: StreamedCase, placing: Placing, figures: Figures) -> pa.Table:
    loads = placing.totals.loads
    return pa.table(
        {
            "run_id": pa.repeat(pa.scalar(run_id, pa.string()), len(loads)),
            "node_id": case.nodes["node_id"],
            "load": figures.load,
            "read_share": loads / loads.sum(),
            "chunks": placing.totals.chunks.sum(axis=0),
            "bytes_stored": figures.bytes_stored,
            "cost_dollars_per_period": figures.node_cost,
        }
    )
