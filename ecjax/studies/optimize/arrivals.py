"""The log that option ``trace`` names: its arrivals, and the rates of the files that it shows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.planning.trace.steady import Steady, steady
from ecjax.predict.log_remarks import Seen, seen_of
from ecjax.predict.logged import Logged
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.logs import ANALYZE, log_reading, open_reading, options_in_command
from ecjax.studies.spine.sentences import word
from ecjax.tables.datasets import written_by
from ecjax.tables.patterns import log_location
from ecjax.tables.requests import requests
from ecjax.tables.statistics.shrinkage import poisson_error, shrinkage_sentence, shrunk_rates
from ecjax.traffic.bins import bin_arrivals, bin_width
from ecjax.traffic.peak import window_of_requests

MOST_STEPS = 2**16  # of the recursion, which a plan runs through some hundred times
_FEW = 1000  # requests from which a log says little
_WRITES, _ERROR = "write_rate_per_s", "rate_standard_error_per_s"  # columns of files


@dataclass(frozen=True, eq=False)
class LoggedArrivals:
    """The requests of a log.

    Attributes:
        fingerprint: of the log.
        reading: options that it is read with, where they were set.
        logged: its requests, of the files of the files table.
        files: number of files.
    """

    fingerprint: str
    reading: dict[str, Any]
    logged: Logged
    files: int

    @cached_property
    def seen(self) -> Seen:
        """What estimates rest on, for all plans."""
        return seen_of(self.logged)

    @property
    def span_s(self) -> float:
        """From the first arrival to the last, and the tick that this one is spread over."""
        times = self.logged.times_s
        return float(times[-1] - times[0]) + self.logged.tick_s

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Reads and writes of every file, (r,) each."""
        write, file = self.logged.write, self.logged.file
        assert write is not None
        reads, writes = (np.bincount(file[chosen], minlength=self.files) for chosen in (~write, write))
        return reads, writes

    def steady(self, service_mean_s: float, rate_scale: float) -> Steady:
        """Reads and writes by blocks of constant rates, and the steps of the recursion.

        Bins of the clock's tick or a mean service; longer ones where steps are too many.

        Args:
            service_mean_s: of a chunk.
            rate_scale: the requests come in so many times less time.
        """
        logged = self.logged.faster(rate_scale)
        width = bin_width(self.span_s / rate_scale, service_mean_s, logged.tick_s)
        while True:
            reads, writes = bin_arrivals(
                logged.times_s, logged.file, self.files, width, logged.write, tick_s=logged.tick_s
            )
            seen = steady(reads, writes)
            if len(seen.bins.width) <= MOST_STEPS:
                return seen
            width *= 2
            log.info("trace: plans see the log in steps of %.3g s", width)


def tables_of_analysis(options: OptimizeOptions) -> OptimizeOptions:
    """The options with the nodes and files of the analysis that ``trace`` names, where none are set.

    Raises:
        UserError: it is a log, and no files are.
    """
    if options.trace is None:
        return options
    if not (place := log_location(options.trace)).is_dir() or written_by(place) != ANALYZE:
        if options.files is None and place.exists():  # a log that is missing is told when it is opened
            raise UserError(
                f"trace={options.trace}: files=TABLE is missing, the files that the log reads; "
                f"ecjax analyze {word(options.trace)}{options_in_command(options)} out=OUT learns it, then trace=OUT "
                "has both"
            )
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
    reading = log_reading(options, inputs=places)
    trace = open_reading(reading)
    logged = requests(trace, files)
    if not len(logged.write) or logged.write.all():
        raise UserError(f"trace={options.trace}: found no reads; allowed: a log with reads to plan for")
    requested = Logged(logged.on_ticks(logged.arrival), logged.file, logged.write, logged.tick_s)
    if logged.arrival[-1] <= logged.arrival[0]:
        raise UserError(f"trace={options.trace}: found requests at one time only; allowed: a log that lasts")
    if logged.count < _FEW:
        log.warning(
            "trace: found %d requests; a plan for so few fits what they happened to be: a longer log tells more",
            logged.count,
        )
    return LoggedArrivals(trace.fingerprint, reading.identity(), requested, len(files))


def with_logged_rates(
    files: pa.Table, arrivals: LoggedArrivals, window_s: float | None, shrink: bool
) -> pa.Table:
    """The files table with the rates of the log, reads and writes.

    Args:
        files: table.
        arrivals: of the log.
        window_s: length of the busiest window (s) that has these rates; None: they are means over the log.
        shrink: whether rates of reads are those that all files together make likely.

    Raises:
        UserError: the log has no such window.
    """
    logged, duration_s = arrivals.logged, arrivals.span_s
    write, file = logged.write, logged.file
    assert write is not None
    if window_s is not None:
        window, inside = window_of_requests(logged.times_s, write, logged.tick_s, window_s)
        write, file, duration_s = write[inside], file[inside], window.length_s
        log.info(
            "trace: plans are made for the rates of the busiest %g s, %.6g s after the first arrival: %.3g times the "
            "mean; this holds for peaks that read the same files",
            window.length_s,
            window.start_s,
            window.ratio,
        )
    counts = [np.bincount(file[chosen], minlength=arrivals.files) for chosen in (~write, write)]
    columns = {"rate_per_s": counts[0] / duration_s}
    if counts[1].any() or _WRITES in files.column_names:
        columns[_WRITES] = counts[1] / duration_s
    if shrink:
        shrunk = shrunk_rates(counts[0], duration_s, truncated=False)
        log.info("trace: %s", shrinkage_sentence(shrunk))
        columns |= {"rate_per_s": shrunk.rate, _ERROR: shrunk.error}
    elif _ERROR in files.column_names:
        columns[_ERROR] = poisson_error(counts[0], duration_s)
    for name, values in columns.items():
        if name in files.column_names:
            files = files.set_column(files.column_names.index(name), name, pa.array(values))
        else:
            files = files.append_column(name, pa.array(values))
    return files
