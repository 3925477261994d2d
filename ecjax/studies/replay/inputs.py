"""What a replay reads besides the plan: factors of the rates, bursts, outages, and the arrivals of a trace."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.problem import arrays
from ecjax.replay.laws import Laws
from ecjax.replay.run import Outages
from ecjax.streams.arrivals import Bursts, Factors
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import PlanCase
from ecjax.studies.replay.system import positions
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.importers import open_trace
from ecjax.tables.read import read_input
from ecjax.tables.requests import TraceRequests, requests
from ecjax.validation.halves import service_times
from ecjax.validation.service import EMPIRICAL, Samples, fit_service


@dataclass(frozen=True)
class Inputs:
    """Arrivals and outages, with what names them."""

    factors: Factors | None
    bursts: Bursts | None
    outages: Outages | None
    times: np.ndarray | None  # (n,) s, arrivals of a trace
    files: np.ndarray | None  # (n,) int64
    count: int  # files, r
    log_laws: Laws | None  # service laws of the nodes from a log
    fingerprints: dict[str, str]

    @property
    def requests(self) -> int | None:
        """Reads of the trace that is replayed; None without one."""
        return None if self.times is None else len(self.times)


def read_inputs(options: ReplayOptions, case: PlanCase) -> Inputs:
    """Read the tables that the options name.

    Raises:
        UserError: a table is malformed or names an unknown node, file or class.
    """
    prints = {}
    factors = outages = None
    if options.rates is not None:
        table = read_input(options.rates, "rates")
        prints["rates"] = fingerprint(table, "rates")
        factors = _factors(table, case)
    if options.outages is not None:
        table = read_input(options.outages, "outages")
        prints["outages"] = fingerprint(table, "outages")
        outages = _outages(table, case)
    bursts = None
    if options.arrivals == "bursts":
        bursts = Bursts(options.burst_factor, options.burst_share, options.burst_mean_s)
    times = files = log_laws = None
    if options.arrivals == "trace" or "empirical" in (options.service or []):
        trace = open_trace(
            str(options.trace), options.format, options.columns, options.extent_bytes, options.sort
        )
        prints["trace"] = trace.fingerprint
        found = requests(trace, case.names.files)
    if "empirical" in (options.service or []):
        log_laws = _logged_laws(found, case, str(options.trace))
    if options.arrivals == "trace":
        reads = ~found.write
        if not reads.any():
            raise UserError(f"trace={options.trace}: found no reads; allowed: a log with reads to replay")
        if not reads.all():
            log.info("trace: %d writes are left aside; writes come at the files' write rates", np.sum(~reads))
        times, files = found.arrival[reads], found.file[reads]
        if times[-1] <= times[0]:
            raise UserError(f"trace={options.trace}: found reads at one time only; allowed: a log that lasts")
    return Inputs(factors, bursts, outages, times, files, len(case.files), log_laws, prints)


def _logged_laws(found: TraceRequests, case: PlanCase, name: str) -> Laws:
    """Empirical laws of the case's nodes from the service times of a log's reads."""
    accesses = found.accesses
    if accesses is None:
        raise UserError(
            f"service=empirical: trace={name} names no nodes (node_id), so that it has no service times"
        )
    service = service_times(accesses, len(accesses.node))
    if isinstance(service, str):
        raise UserError(f"service=empirical: trace={name}: {service}")
    here = ~np.isnan(service) & ~found.write[accesses.request]
    place = arrays.index_in(pa.chunked_array([case.names.nodes]), accesses.node_ids)
    seen = np.isin(place, np.unique(accesses.node[here]))
    if not seen.all():
        lacking = case.names.nodes[int(np.argmin(seen))].as_py()
        raise UserError(f"service=empirical: trace={name} has no service times of reads at node {lacking}")
    samples = Samples(accesses.node[here], accesses.bytes[here], service[here])
    laws = fit_service(samples, accesses.node_ids.to_pylist(), accesses.bytes[here], EMPIRICAL).laws
    return Laws(laws.table[place], laws.samples)


def _factors(table: pa.Table, case: PlanCase) -> Factors:
    table = table.sort_by("start_s")
    chosen: list[np.ndarray | None] = [None] * len(table)
    if "file_id" in table.column_names:
        for row, file in enumerate(positions(table, "file_id", case.names.files, "rates")):
            if file >= 0:
                chosen[row] = np.array([file])
    if "service_class" in table.column_names:
        values = case.names.classes
        for row, number in enumerate(positions(table, "service_class", values.dictionary, "rates")):
            if number >= 0:
                chosen[row] = np.flatnonzero(values.indices.to_numpy() == number)
    return Factors(table["start_s"].to_numpy(), table["factor"].to_numpy(), chosen)


def _outages(table: pa.Table, case: PlanCase) -> Outages:
    """Intervals of each node, those that overlap joined."""
    node = positions(table, "node_id", case.names.nodes, "outages")
    start, end = table["start_s"].to_numpy(), table["end_s"].to_numpy()
    joined: list[list[float]] = []
    for row in np.lexsort((start, node)):
        if joined and joined[-1][0] == node[row] and start[row] <= joined[-1][2]:
            joined[-1][2] = max(joined[-1][2], end[row])
        else:
            joined.append([node[row], start[row], end[row]])
    columns = np.array(joined)
    return Outages(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2])
