"""What a replay takes from a log: its reads and writes as they came, and services of the nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.planning import Problem
from ecjax.problem.arrays import index_in
from ecjax.simulation.laws import Laws
from ecjax.studies.replay.plans import Plan
from ecjax.tables.importers.clock import TIED
from ecjax.tables.requests import TraceRequests
from ecjax.units import bytes_text, time_text
from ecjax.validation.halves import service_times
from ecjax.validation.service import EMPIRICAL, Samples, ServiceLaws, fit_service, tails_apart

_ROUNDED = 1e-3  # relative difference of chunk sizes that are alike but for whole bytes


@dataclass(frozen=True)
class LoggedReads:
    """Reads of a log, or writes, in order of arrival, n of them."""

    times: np.ndarray  # (n,) s since the log's first arrival
    files: np.ndarray  # (n,) int64
    tick_s: float = 0.0  # resolution of the clock; 0: continuous
    writes: "LoggedReads | None" = None  # those of the same log; None: at the rates of the files table

    @property
    def span_s(self) -> float:
        """From the first to the last, of reads and writes."""
        parts = [self.times] if self.writes is None else [self.times, self.writes.times]
        return float(max(part[-1] for part in parts) - min(part[0] for part in parts))


def logged_reads(logged: TraceRequests, name: str, problem: Problem) -> LoggedReads:
    """The reads and writes of a log, those of a coarse clock spread over its ticks.

    Args:
        logged: requests.
        name: of the log, for messages.
        problem: of the plan; where its files are not written, writes of the log do not count.

    Raises:
        UserError: there are no reads, or at one time only.
    """
    read = ~logged.write
    if not read.any():
        raise UserError(f"trace={name}: found no reads; allowed: a log with reads to replay")
    written = not read.all() and problem.writes is not None
    if not read.all() and not written:
        log.info("trace: %d writes are left aside: the files of the plan have none", np.sum(~read))
    arrival, tick_s = logged.on_ticks(logged.arrival), logged.tick_s
    times = arrival[read]
    # arrivals that are coarse ends less fine durations lie between the ticks: times that differ may share one
    ties = np.count_nonzero(np.diff(np.rint(times / tick_s)) == 0) if tick_s > 0 else 0
    spread = ties > TIED * len(times)
    if spread:
        log.info(
            "trace: its clock ticks every %s: %d reads share a tick with the one before, and all are spread evenly "
            "over their ticks",
            time_text(tick_s),
            ties,
        )

    def taken(which: np.ndarray, seed: int, writes: LoggedReads | None = None) -> LoggedReads:
        times, files = arrival[which], logged.file[which]
        if spread:
            times, files = _spread_over_ticks(times, files, tick_s, seed)
        return LoggedReads(times, files, tick_s, writes)

    reads = taken(read, 0, taken(~read, 1) if written else None)
    if reads.times[-1] <= reads.times[0]:
        raise UserError(f"trace={name}: found reads at one time only; allowed: a log that lasts")
    return reads


def _spread_over_ticks(
    times: np.ndarray, files: np.ndarray, tick_s: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Requests where Poisson arrivals of these ticks may have been, the same at every call."""
    spread = times + tick_s * np.random.default_rng(seed).random(len(times))
    order = np.argsort(spread)
    return spread[order], files[order]


def logged_laws(logged: TraceRequests, plan: Plan, name: str, sizes: np.ndarray) -> Laws:
    """Empirical laws of the plan's nodes from the service times of a log's reads.

    Args:
        logged: requests.
        plan: whose nodes need laws; its ``size_scaling`` says how services go with the size where the log has one only.
        name: of the log, for messages.
        sizes: B, chunk sizes that services are drawn for.

    Raises:
        UserError: the log has no service times, or none at one of the nodes.
    """
    accesses = logged.accesses
    if accesses is None:
        raise UserError(
            f"service=empirical: trace={name} names no nodes (node_id), so that it has no service times"
        )
    service = service_times(accesses, len(accesses.node))
    if isinstance(service, str):
        raise UserError(f"service=empirical: trace={name}: {service}")
    measured = ~np.isnan(service) & ~logged.write[accesses.request]
    place = index_in(pa.chunked_array([plan.names.nodes]), accesses.node_ids)
    observed = np.isin(place, np.unique(accesses.node[measured]))
    if not observed.all():
        lacking = plan.names.nodes[int(np.argmin(observed))].as_py()
        raise UserError(f"service=empirical: trace={name} has no service times of reads at node {lacking}")
    samples = Samples(accesses.node[measured], accesses.bytes[measured], service[measured])
    names = accesses.node_ids.to_pylist()
    drawn = samples.bytes if plan.size_scaling == "none" else sizes
    fit = fit_service(samples, names, drawn, EMPIRICAL)
    if fit.relation is not None:
        _say_relation(fit, names)
        _say_single_size(fit, samples, drawn)
    return Laws(fit.laws.table[place], fit.laws.samples)


def _say_single_size(fit: ServiceLaws, samples: Samples, sizes: np.ndarray) -> None:
    """Say that nothing tells how long chunks of other sizes take, where that is so."""
    size = float(samples.bytes[0])
    if np.all(samples.bytes == size) and not np.allclose(sizes, size, rtol=_ROUNDED, atol=0.0):
        log.warning(
            "service=empirical: all chunks of the log are of %s: services of others are taken to be %s "
            "(size_scaling=none: the same)",
            bytes_text(size),
            fit.relation,
        )


def _say_relation(fit: ServiceLaws, names: list[Any]) -> None:
    """Say how services depend on the size by the laws, and how far their tails are from those of the log."""
    log.info("service=empirical: services of all sizes are drawn together, as %s", fit.relation)
    if fit.misfit is not None and tails_apart(fit.misfit):
        node, size, measured, law = fit.misfit
        log.warning(
            "service=empirical: at node %s 1 %% of the services of chunks of %s take more than %s in the log, and by "
            "that %s: tails of latencies may be as far off",
            names[node],
            bytes_text(size),
            time_text(measured),
            time_text(law),
        )
