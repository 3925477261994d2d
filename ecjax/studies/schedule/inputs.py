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
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.problem.arrays import column, index_in
from ecjax.studies.schedule.logged_reads import Kept, has_k, kept_by_plan, kept_by_table, logged_reads
from ecjax.studies.schedule.options import ScheduleOptions
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.importers import FORMATS, open_trace
from ecjax.tables.importers.coflow_benchmark import read_coflow_benchmark, recognises
from ecjax.tables.importers.detect import describe, read_head
from ecjax.tables.place import Place
from ecjax.tables.read import read_input
from ecjax.tables.store import run_id
from ecjax.tables.transfers import COLUMNS, Transfers, read_transfers

COFLOW_BENCHMARK, TRANSFERS, READS = "coflow_benchmark", "transfers", "reads"
# of every port unless asked otherwise: 8 ms per MB; Table I of the D-Target paper
PORT_BYTES_PER_S = {TRANSFERS: 125e6, READS: 1e9}


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
        chosen: whether sources are chosen, by a rule; otherwise they are given.
        n: chunks kept of each file, of generated reads; None where it does not apply.
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
    chosen: bool
    n: int | None = None
    k: int | None = None
    share_at_zero: float | None = None
    rate_scale: float = 1.0
    size_scale: float = 1.0

    @property
    def random(self) -> bool:
        """Whether a seed changes anything: the workload, or a random choice of sources."""
        return self.drawn or self.chosen

    def workload(self, seed: int) -> Workload:
        """The workload of a seed; always the same one where it is not drawn."""
        base = self.base(seed)
        return base._replace(arrival_s=base.arrival_s / self.rate_scale, bytes=base.bytes * self.size_scale)


def read_cases(options: ScheduleOptions) -> list[Case]:
    """All points of the sweep that the options ask for: n, k, share_at_zero, rate_scale, size_scale; the last fastest.

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
    format_ = _format(options)
    if format_ not in (None, COFLOW_BENCHMARK, TRANSFERS):
        yield from _of_log(options)
        return
    for name in ("plan", "files", "columns", "extent_bytes"):
        value = getattr(options, name)
        if value is not None:
            found = "no trace" if format_ is None else f"a trace of format {format_}"
            raise UserError(f"{name}={value}: found {found}; allowed: with trace=LOG, an access log")
    if format_ is None:
        yield from _generated(options)
        return
    read = read_coflow_benchmark if format_ == COFLOW_BENCHMARK else read_transfers
    yield _of_transfers(options, read(str(options.trace), options.sort))


def _format(options: ScheduleOptions) -> str | None:
    """The format of the trace; None where there is no trace."""
    if options.trace is None:
        return None
    allowed = (COFLOW_BENCHMARK, TRANSFERS, *FORMATS)
    if options.format != "auto":
        if options.format not in allowed:
            raise UserError(f"format: found {options.format!r}; allowed: auto, {', '.join(allowed)}")
        return options.format
    head = read_head(Path(options.trace))
    if options.columns is not None:
        return "columns"
    if recognises(head):
        return COFLOW_BENCHMARK
    if set(COLUMNS) <= set(head.columns):
        return TRANSFERS
    if not any(importer.recognises(head) for importer in FORMATS.values()):
        raise UserError(
            f"{options.trace}: cannot tell its format; {describe(head)}; give format= ({', '.join(allowed)}) or "
            "columns="
        )
    return "auto"


def _generated(options: ScheduleOptions) -> Iterator[Case]:
    given = options.generate
    codes = [(n, k) for n in options.n for k in options.k]
    if given.k_range is not None:
        if len(codes) > 1:
            raise UserError(
                f"generate.k_range={given.k_range}: found n={options.n} and k={options.k}; allowed: one n and one k "
                "(neither is used, as every file draws its own)"
            )
        codes = [(None, None)]
    for n, k in codes:
        for share in options.share_at_zero:
            code = {} if n is None else {"n": n, "k": k}
            settings = ReadSettings(**vars(given), **code, share_at_zero=share)
            try:
                settings.check()
            except UserError as error:
                prefix = "generate." if str(error).split(":")[0] in vars(given) else ""
                raise UserError(f"{prefix}{error}") from None
            yield _case(
                options,
                READS,
                (pa.array(np.arange(given.servers)), pa.array(np.arange(given.clients))),
                pa.array(np.arange(given.requests)),
                {"generated": vars(given)},
                description=f"{given.requests} generated reads",
                base=partial(generate, settings),
                drawn=True,
                chosen=True,
                n=n,
                k=k,
                share_at_zero=share,
            )


def _of_transfers(options: ScheduleOptions, found: Transfers) -> Case:
    table, ids = found.table, found.coflow_ids
    source, destination = (index_in(table[name], found.ports).astype(np.int64) for name in ("src", "dst"))
    workload = given_sources(
        found.arrival_s, found.first_flow, source, destination, table["bytes"].to_numpy()
    )
    return _case(
        options,
        TRANSFERS,
        (found.ports, found.ports),
        ids,
        {"transfers": fingerprint(table, "transfers"), "count": len(found.ports)},
        description=f"{len(ids)} coflows, {len(table)} flows of {Path(str(options.trace)).name}",
        base=partial(_same, workload),
        drawn=False,
        chosen=False,
    )


def _of_log(options: ScheduleOptions) -> Iterator[Case]:
    if (options.plan is None) == (options.files is None):
        given = "neither" if options.plan is None else "both"
        raise UserError(
            f"trace={options.trace}: found {given} of plan= and files=; allowed: one of them, as an access log does "
            "not say where files are kept (plan=FOLDER of an ecjax optimize, or files=TABLE with a column nodes)"
        )
    trace = open_trace(
        str(options.trace), options.format, options.columns, options.extent_bytes, options.sort
    )
    for k, kept in _kept(options):
        found = logged_reads(trace, kept, options.clients, options.sort)
        names = {"trace": trace.fingerprint, "kept": kept.input_id, "clients": len(found.client_ids)}
        names |= {"columns": dict(options.columns or {}), "extent_bytes": options.extent_bytes}
        yield _case(
            options,
            READS,
            (kept.node_ids, found.client_ids),
            found.ids,
            names,
            description=f"{len(found.ids)} reads of {Path(trace.name).name}, chunks as in {kept.what}",
            base=partial(_same, found.workload),
            drawn=False,
            chosen=True,
            k=k,
        )


def _kept(options: ScheduleOptions) -> Iterator[tuple[int | None, Kept]]:
    """Where files are kept, for every k to be tried; None where files have their own."""
    if options.plan is not None:
        yield None, kept_by_plan(options.plan, options.plan_run, options.plan_where)
    elif has_k(str(options.files)):
        yield None, kept_by_table(str(options.files), None)
    else:
        for k in options.k:
            yield k, kept_by_table(str(options.files), k)


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
        kind: TRANSFERS or READS, which differ in the usual capacity.
        ports: ids of the sending and of the receiving ports.
        coflow_ids: (C,).
        names: what names the input; the capacities are added.
        description: of the workload.
        parts: other fields of the case.
    """
    usual = options.port_bytes_per_s or PORT_BYTES_PER_S[kind]
    capacity = [np.full(len(ids), float(usual)) for ids in ports]
    names = names | {"port_bytes_per_s": float(usual)}
    if options.ports is not None:
        table = read_input(options.ports, "ports")
        names["ports"] = fingerprint(table, "ports")
        _set_capacities(table, Place(table, "ports", options.ports), ports, capacity)
    text = f"{description}; {len(ports[0])} sending and {len(ports[1])} receiving ports"
    return Case(Fabric(*capacity), *ports, coflow_ids, run_id("inputs", names, "", None, ""), text, **parts)


def _set_capacities(
    table: pa.Table, place: Place, ports: tuple[pa.Array, pa.Array], capacity: list[np.ndarray]
) -> None:
    """Change the capacities of the ports that a ports table names.

    Raises:
        UserError: it has no capacities, or names no port that is there.
    """
    columns = ("send_bytes_per_s", "receive_bytes_per_s")
    if not set(columns) & set(table.column_names):
        raise place.error(f"found no capacities; allowed: {' or '.join(columns)}")
    known = np.zeros(len(table), bool)
    for name, ids, values in zip(columns, ports, capacity, strict=True):
        port = index_in(table["port_id"], ids)
        known |= port >= 0
        if name in table.column_names:
            given = column(table, name, np.nan)
            here = (port >= 0) & np.isfinite(given)
            values[port[here]] = given[here]
    if not known.any():
        found, there = table["port_id"][0].as_py(), [ids[0].as_py() for ids in ports]
        raise place.error(
            f"found {found!r} and no other port that sends or receives here; allowed: ports such as "
            f"{there[0]!r} (sends) and {there[1]!r} (receives)",
            column="port_id",
        )
    if not known.all():
        log.info("ports: %d ports that neither send nor receive here are left aside", np.sum(~known))
