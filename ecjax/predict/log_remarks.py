"""What else to know about an estimate under the arrivals of a log: what the log is too short, coarse or broken for."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ecjax.predict.jackknife import UNTOLD
from ecjax.predict.logged import Logged
from ecjax.predict.queues_left import undrained
from ecjax.predict.trace_estimates import LEVELS, TraceEstimate
from ecjax.tables.importers.clock import TIED
from ecjax.tables.statistics.silences import Silences
from ecjax.units import count_text, time_text

_FEW = 1000  # requests below which a log says little
_UNKNOWN = 5.0  # factor of an interval of which a log does not tell a figure
_P99 = 1 + LEVELS.index(0.99)  # place of it among margins
_BORDER = 0.01  # of a tick: times are on its beginning but for their rounding


class Seen(NamedTuple):
    """What of a log an estimate rests on."""

    reads: int
    files: int  # that are read
    length_s: float  # from the first request to the last
    tick_s: float  # of its clock; 0: as good as continuous
    tied: float  # share of the requests at the tick of the one before
    silences: np.ndarray  # (stretches, 2) begin and end of silent ones, s since the first request

    def faster(self, factor: float) -> "Seen":
        """What is seen of the same requests in less time: what is silent is so in the log as it is."""
        return self._replace(
            length_s=self.length_s / factor,
            tick_s=self.tick_s / factor,
            silences=self.silences / factor,
        )


def seen_of(logged: Logged) -> Seen:
    """What an estimate from these requests rests on; those of a tick may be spread over it."""
    times, tick = logged.times_s, logged.tick_s
    files = logged.file if logged.write is None else logged.file[~logged.write]
    tied = (
        float(np.mean(np.diff(np.floor(times / tick + _BORDER)) == 0)) if tick > 0 and len(times) > 1 else 0.0
    )
    silences = Silences()
    silences.add(times)
    return Seen(
        reads=len(files),
        files=int(np.count_nonzero(np.bincount(files))),
        length_s=float(times[-1] - times[0]),
        tick_s=tick,
        tied=tied,
        silences=silences.stretches(tick),
    )


def remarks(estimate: TraceEstimate, seen: Seen, names: Sequence[object], what: str = "the log") -> list[str]:
    """What else to know about an estimate, sentences.

    Args:
        estimate: under the arrivals of a log.
        seen: of that log.
        names: of the nodes.
        what: they are the requests of, with its article.
    """
    begin = what[0].upper() + what[1:]
    words = undrained(estimate.queues, seen.length_s, names, what)
    margin = float(np.nanmax(estimate.log_margins[[0, _P99]], initial=0.0))
    if np.isinf(margin):
        words.append(
            f"All reads of {what}, or nearly all, come in one tenth of their time: it does not tell what another log "
            "of this kind would have."
        )
    elif margin > np.log(_UNKNOWN):
        known = (
            ""
            if margin > np.log(UNTOLD)
            else f"they are known within a factor of {np.exp(margin):,.0f}, so that "
        )
        words.append(
            f"Few bursts make these latencies: {known}{what} hardly tells what another one of its kind would have."
        )
    if seen.reads < _FEW:
        words.append(
            f"{begin} has {count_text(seen.reads, 'read')}: their bursts are seen, the 99 % point and the "
            "interval rest on few of them."
        )
    if seen.tick_s > estimate.service_s and seen.tied > TIED:
        words.append(
            f"Times are known to ticks of {time_text(seen.tick_s)}, longer than a service "
            f"({time_text(estimate.service_s)}): requests of a tick count as spread evenly over it, and waits behind "
            "shorter bursts are missing here, also in the interval; rates, loads and longer bursts are known."
        )
    if estimate.bin_s > estimate.service_s >= seen.tick_s:
        words.append(
            f"{begin} is seen in steps of {time_text(estimate.bin_s)}, longer than a service "
            f"({time_text(estimate.service_s)}), as finer ones are too many: waits behind shorter bursts are missing "
            "here, also in the interval."
        )
    if len(seen.silences):
        words.append(_silent(seen, what))
    if seen.files == 1:
        words.append(
            f"All reads of {what} are of one file: its latencies are known; popularity, what reads of others would add "
            "to the queues, and whether bursts are common or of single files cannot be told."
        )
    return words


def _silent(seen: Seen, what: str) -> str:
    """That nothing comes for long, and which figures depend on whether that was so."""
    length = float(np.sum(seen.silences[:, 1] - seen.silences[:, 0]))
    share, count, text = length / seen.length_s, len(seen.silences), time_text(length)
    where = f"for {text}" if count == 1 else f"in {count} silent stretches, {text} together"
    return (
        f"No request comes {where}, {100 * share:.3g} % of {what}: if it was not recorded then, latencies under its "
        "own arrivals are those of the rest, but mean rates, loads and what assumes Poisson arrivals are "
        f"{1 / (1 - share):.3g} times too low."
    )
