"""The log that plans are made for with objective=trace: its arrivals, and the rates of the files that it shows."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.planning.trace.steady import Steady, steady
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.logs import ANALYZE, open_log
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import location
from ecjax.tables.requests import requests
from ecjax.traffic.bins import BinnedReads, bin_arrivals, bin_width

MOST_STEPS = 2**16  # of the recursion, which a plan runs through some hundred times
_FEW = 1000  # requests from which a log says little


@dataclass(frozen=True, eq=False)
class LoggedArrivals:
    """Requests of a log, n of them.

    Attributes:
        name: of the log, for messages.
        fingerprint: of the log.
        tick_s: step of its clock; 0: as good as continuous.
        times: (n,) s, in order.
        file: (n,) place in the files table.
        write: (n,) bool.
        files: number of files.
    """

    name: str
    fingerprint: str
    tick_s: float
    times: np.ndarray
    file: np.ndarray
    write: np.ndarray
    files: int

    @property
    def span_s(self) -> float:
        """From the first arrival to the last, and the tick that this one is spread over."""
        return float(self.times[-1] - self.times[0]) + self.tick_s

    def binned(self, service_mean_s: float, rate_scale: float = 1.0) -> tuple[BinnedReads, BinnedReads]:
        """Reads and writes by bins of the clock's tick or a mean service.

        Args:
            service_mean_s: of a chunk.
            rate_scale: what counts are multiplied by.
        """
        width = bin_width(self.span_s, service_mean_s, self.tick_s)
        reads, writes = bin_arrivals(self.times, self.file, self.files, width, self.write)
        return reads._replace(reads=rate_scale * reads.reads), writes._replace(
            reads=rate_scale * writes.reads
        )

    def steady(self, service_mean_s: float) -> Steady:
        """Reads and writes by blocks of constant rates, and the steps of the recursion.

        Bins of the clock's tick or a mean service; longer ones where steps are too many.

        Args:
            service_mean_s: of a chunk.
        """
        width = bin_width(self.span_s, service_mean_s, self.tick_s)
        while True:
            seen = steady(*bin_arrivals(self.times, self.file, self.files, width, self.write))
            if len(seen.bins.width) <= MOST_STEPS:
                return seen
            width *= 2
            log.info("trace: plans see the log in steps of %.3g s", width)


def tables_of_analysis(options: OptimizeOptions) -> OptimizeOptions:
    """The options with the nodes and files of the analysis that ``trace`` names, where none are set."""
    if (
        options.trace is None
        or not (place := location(options.trace)).is_dir()
        or written_by(place) != ANALYZE
    ):
        return options
    folder = options.trace.rstrip("/")
    if options.nodes is None and (place / "nodes").is_dir():
        options = replace(options, nodes=f"{folder}/nodes")
    if options.files is None and (place / "files").is_dir():
        options = replace(options, files=f"{folder}/files")
    return options


def logged_arrivals(options: OptimizeOptions, files: pa.Array) -> LoggedArrivals:
    """The requests of the log.

    Args:
        options: checked.
        files: (r,) ids of the files table.

    Raises:
        UserError: the log cannot be read, reads nothing, does not last, or reads files that the table lacks.
    """
    places = [place for place in (options.files, options.nodes) if isinstance(place, str)]
    trace = open_log(options, inputs=places)
    logged = requests(trace, files)
    if not len(logged.write) or logged.write.all():
        raise UserError(f"trace={options.trace}: found no reads; allowed: a log with reads to plan for")
    arrivals = LoggedArrivals(
        trace.name,
        trace.fingerprint,
        logged.clock_resolution_s,
        logged.arrival,
        logged.file,
        logged.write,
        len(files),
    )
    if logged.arrival[-1] <= logged.arrival[0]:
        raise UserError(f"trace={options.trace}: found requests at one time only; allowed: a log that lasts")
    if logged.count < _FEW:
        log.warning(
            "trace: found %d requests; a plan for so few fits what they happened to be: a longer log tells more",
            logged.count,
        )
    return arrivals


def with_logged_rates(files: pa.Table, arrivals: LoggedArrivals) -> pa.Table:
    """The files table with the mean rates of the log, reads and writes."""
    for name, chosen in (("rate_per_s", ~arrivals.write), ("write_rate_per_s", arrivals.write)):
        if not chosen.any() and name not in files.column_names:
            continue
        rate = np.bincount(arrivals.file[chosen], minlength=arrivals.files) / arrivals.span_s
        values = pa.array(rate)
        if name in files.column_names:
            files = files.set_column(files.column_names.index(name), name, values)
        else:
            files = files.append_column(name, values)
    return files
