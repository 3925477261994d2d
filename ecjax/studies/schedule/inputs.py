"""What ``ecjax schedule`` replays: transfers of a trace, reads of an access log or generated ones, and their fabric."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.workload import Fabric, Workload, given_sources
from ecjax.display import without_secrets
from ecjax.errors import UserError
from ecjax.problem.arrays import index_in
from ecjax.studies.schedule.logged_reads import (
    Placement,
    has_k,
    logged_reads,
    placement_in_table,
    placement_of_plan,
)
from ecjax.studies.schedule.options import COFLOW_BENCHMARK, TRANSFERS, ScheduleOptions
from ecjax.studies.schedule.ports import READS, fabric_of
from ecjax.studies.spine.log_options import FORMATS as LOG_FORMATS
from ecjax.studies.spine.logs import BACKGROUND, Reading, log_reading, open_reading
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.importers import FORMATS
from ecjax.tables.importers.coflow_benchmark import HOME, PUBLIC, read_coflow_benchmark, recognises
from ecjax.tables.importers.detect import describe, read_head
from ecjax.tables.patterns import log_location
from ecjax.tables.run_ids import run_id
from ecjax.tables.transfers import COLUMNS, Transfers, read_transfers
from ecjax.units import count_text


@dataclass(frozen=True)
class Case:
    """One point of a sweep: workloads by seed, and the fabric that carries them.

    Attributes:
        fabric: send (S,), receive (D,).
        send_ids: ids of the sending ports, (S,).
        receive_ids: ids of the receiving ports, (D,).
        coflow_ids: (C,), in the order of every workload.
        input_id: names what is read or generated and the fabric, apart from the values of the sweep and the seed.
        description: one line for the user.
        base: the workload of a seed before scaling.
        drawn: whether the workload depends on the seed.
        source_selection: whether sources are chosen, by a rule; otherwise they are given.
        n: chunks stored of each file, of generated reads; None where it does not apply.
        k: chunks that a read takes, of generated reads and of logs of files without k; else None.
        share_at_zero: share of generated reads that arrives at t = 0; else None.
        rate_scale: divides arrival times.
        size_scale: multiplies sizes.
    """

    fabric: Fabric
    send_ids: pa.Array
    receive_ids: pa.Array
    coflow_ids: pa.Array
    input_id: str
    description: str
    base: Callable[[int], Workload]
    drawn: bool
    source_selection: bool
    n: int | None = None
    k: int | None = None
    share_at_zero: float | None = None
    rate_scale: float = 1.0
    size_scale: float = 1.0

    @property
    def random(self) -> bool:
        """Whether a seed changes anything: the workload, or a random choice of sources."""
        return self.drawn or self.source_selection

    def workload(self, seed: int) -> Workload:
        """The workload of a seed; always the same one where it is not drawn."""
        base = self.base(seed)
        return base._replace(arrival_s=base.arrival_s / self.rate_scale, bytes=base.bytes * self.size_scale)


def read_cases(options: ScheduleOptions) -> list[Case]:
    """All points of the sweep over n, k, share_at_zero, rate_scale, size_scale; the last fastest.

    Args:
        options: checked: n, k, share_at_zero, rate_scale and size_scale are lists.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    return [
        replace(case, rate_scale=rate_scale, size_scale=size_scale)
        for case in _unscaled(options)
        for rate_scale in options.rate_scale
        for size_scale in options.size_scale
    ]


def _unscaled(options: ScheduleOptions) -> Iterator[Case]:
    if options.trace is None:
        _check_log_is_meant(options, "no trace")
        say_unused(options, ("clients",), "generated reads, which go to generate.clients")
        yield from _generated(options)
        return
    path = log_location(options.trace)
    if path.name == PUBLIC and not path.exists():
        raise UserError(f"{options.trace}: no such file; Facebook's trace of that name is at {HOME}")
    reading = log_reading(options, inputs=[options.plan, options.files])
    format_ = _format(reading)
    if format_ in LOG_FORMATS:
        say_unused(options, ("n", "share_at_zero", "generate"), "an access log")
        yield from _of_log(options, reading)
        return
    _check_log_is_meant(options, f"a trace of format {format_}")
    of_reads = ("n", "k", "share_at_zero", "generate", "sources", "clients")
    say_unused(options, of_reads, f"a trace of format {format_}")
    read = read_coflow_benchmark if format_ == COFLOW_BENCHMARK else read_transfers
    yield _of_transfers(options, read(options.trace, options.sort))


def _check_log_is_meant(options: ScheduleOptions, instead: str) -> None:
    """Refuse options of access logs where there is none.

    Raises:
        UserError: one is set.
    """
    for name in ("plan", "files", "columns", "extent_bytes"):
        value = getattr(options, name)
        if value is not None:
            raise UserError(f"{name}={value}: found {instead}; allowed: with trace=LOG, an access log")


def _format(reading: Reading) -> str:
    """The format of a trace."""
    format_: str = reading.options["format"]
    if format_ != "auto":
        return format_
    if reading.options["columns"] is not None:
        return "columns"
    head = read_head(log_location(reading.path))
    if recognises(head):
        return COFLOW_BENCHMARK
    if set(COLUMNS) <= set(head.columns):
        return TRANSFERS
    for name, importer in FORMATS.items():
        if importer.recognises(head):
            return name
    raise UserError(
        f"{reading.path}: cannot tell its format; {describe(head)}; give format= "
        f"({', '.join((COFLOW_BENCHMARK, TRANSFERS, *FORMATS))}) or columns="
    )


def _generated(options: ScheduleOptions) -> Iterator[Case]:
    drawn = options.generate
    codes: list[tuple[int | None, int | None]] = [(n, k) for n in options.n for k in options.k]
    if drawn.k_range is not None:
        if len(codes) > 1:
            raise UserError(
                f"generate.k_range={list(drawn.k_range)}: found n={options.n} and k={options.k}; allowed: one n "
                "and one k (neither is used, as every file draws its own)"
            )
        say_unused(options, ("n", "k"), f"generate.k_range={list(drawn.k_range)}")
        codes = [(None, None)]
    for n, k in codes:
        for share in options.share_at_zero:
            code: dict[str, Any] = {} if n is None else {"n": n, "k": k}
            settings = ReadSettings(**vars(drawn), **code, share_at_zero=share)
            try:
                settings.check()
            except UserError as error:
                prefix = "generate." if str(error).split(":")[0] in vars(drawn) else ""
                raise UserError(f"{prefix}{error}") from None
            yield _case(
                options,
                READS,
                (
                    pa.array(np.arange(drawn.servers)),
                    pa.array(np.arange(drawn.clients)),
                ),
                pa.array(np.arange(drawn.requests)),
                {"generated": vars(drawn)},
                description=f"{drawn.requests} generated reads",
                base=partial(generate, settings),
                drawn=True,
                source_selection=True,
                n=n,
                k=k,
                share_at_zero=share,
            )


def _of_transfers(options: ScheduleOptions, transfers: Transfers) -> Case:
    table, ids = transfers.table, transfers.coflow_ids
    source, destination = (index_in(table[name], transfers.ports).astype(np.int64) for name in ("src", "dst"))
    workload = given_sources(
        transfers.arrival_s, transfers.first_flow, source, destination, table["bytes"].to_numpy()
    )
    return _case(
        options,
        TRANSFERS,
        (transfers.ports, transfers.ports),
        ids,
        {"transfers": fingerprint(table, "transfers"), "count": len(transfers.ports)},
        description=f"{len(ids)} coflows, {len(table)} flows of {Path(without_secrets(str(options.trace))).name}",
        base=partial(_same, workload),
        drawn=False,
        source_selection=False,
    )


def _of_log(options: ScheduleOptions, reading: Reading) -> Iterator[Case]:
    if (options.plan is None) == (options.files is None):
        neither_or_both = "neither" if options.plan is None else "both"
        raise UserError(
            f"trace={options.trace}: found {neither_or_both} of plan= and files=; allowed: one of them, as an access "
            "log does not say where files are kept (plan=FOLDER of an ecjax optimize, or files=TABLE with a column "
            "nodes)"
        )
    trace, how = open_reading(reading), reading.options
    for place, (k, placement) in enumerate(_placements(options)):
        reads = logged_reads(trace, placement, options.clients, how["sort"])
        if reads.named and not place:
            say_unused(options, ("clients",), "the column edge of the log")
        names = {"trace": trace.fingerprint, "kept": placement.input_id, "clients": len(reads.client_ids)}
        names |= {"columns": dict(how["columns"] or {}), "extent_bytes": how["extent_bytes"]}
        names |= {BACKGROUND: how[BACKGROUND]} if BACKGROUND in how else {}
        yield _case(
            options,
            READS,
            (placement.node_ids, reads.client_ids),
            reads.ids,
            names,
            description=f"{count_text(len(reads.ids), 'read')} of {Path(trace.name).name}, "
            f"chunks as in {placement.source}",
            base=partial(_same, reads.workload),
            drawn=False,
            source_selection=True,
            k=k,
        )


def _placements(options: ScheduleOptions) -> Iterator[tuple[int | None, Placement]]:
    """Where the chunks of files are, for every k to be tried; None where files have k in their table."""
    if options.plan is not None:
        say_unused(options, ("k",), f"plan={options.plan}")
        yield None, placement_of_plan(options.plan, options.plan_run, options.plan_where)
    elif has_k(str(options.files)):
        say_unused(options, ("k",), "files with a column k")
        yield None, placement_in_table(str(options.files), None)
    else:
        for k in options.k:
            yield k, placement_in_table(str(options.files), k)


def _same(workload: Workload, seed: int) -> Workload:
    """A workload that no seed changes."""
    return workload


def _case(
    options: ScheduleOptions,
    kind: str,
    ports: tuple[pa.Array, pa.Array],
    coflow_ids: pa.Array,
    names: dict[str, Any],
    *,
    description: str,
    **parts: Any,
) -> Case:
    """A case with its fabric.

    Args:
        options: capacities.
        kind: TRANSFERS or READS.
        ports: ids of the sending and of the receiving ports.
        coflow_ids: (C,).
        names: what names the input; the capacities are added.
        description: of the workload.
        parts: other fields of the case.
    """
    fabric, capacities = fabric_of(options, kind, ports)
    text = f"{description}; {len(ports[0])} sending and {len(ports[1])} receiving ports"
    input_id = run_id("inputs", names | capacities, "", None, "")
    return Case(fabric, *ports, coflow_ids, input_id, text, **parts)
