"""What a log is too short, too coarse or too broken for, and what its bursts mean for figures that assume Poisson."""

import numpy as np

from ecjax.studies.analyze.burst_words import burstier_from, burstiness_text, scale_text
from ecjax.tables.statistics.poisson import too_coarse
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.tables.statistics.ticks import TickCounts
from ecjax.traffic.burstiness import Dispersion, dispersion, verdicts
from ecjax.units import count_text, time_text

_FEW = 1000  # requests
_PARTIAL = 4.0  # standard errors below its neighbour, that a tick is a part of one
_ROUNDING = 4 * np.finfo(float).eps  # of times by ticks


def _whole_ticks(counts: TickCounts) -> tuple[int, int]:
    """Ticks from and to (not included) without a first or last one that the log holds but a part of.

    With a thousand arrivals per tick of a coarse clock such a one alone would look like a burst. It is told by a count
    far below that of its neighbour.
    """
    begin, end = 0, counts.length
    if len(counts.tick) > 2:
        sizes = counts.arrivals[[0, 1, -2, -1]].astype(float)
        partial = (sizes[[1, 2]] - sizes[[0, 3]]) > _PARTIAL * np.sqrt(sizes[[1, 2]] + sizes[[0, 3]])
        begin += int(partial[0] and counts.tick[1] == 1)
        end -= int(partial[1] and counts.tick[-2] == end - 2)
    return begin, end


def whole_dispersion(counts: TickCounts) -> Dispersion:
    """Dispersion at every scale, of all ticks that the log holds as a whole."""
    return dispersion(counts, [_whole_ticks(counts)])


def burst_notices(statistics: TraceStatistics) -> list[str]:
    """What a log is too short, too coarse or too broken for, and what is known nevertheless; a sentence each."""
    times, arrivals = statistics.times, statistics.arrivals
    sentences = []
    if statistics.requests < _FEW and arrivals.span_s > 0:
        error = 100 / np.sqrt(statistics.requests)
        sentences.append(
            f"{count_text(statistics.requests, 'request is', 'requests are')} few: the rate is known to ± {error:.0f} "
            "% if they are Poisson; at "
            "scales where burstiness says that it cannot tell, nothing is known of bursts."
        )
    if len(statistics.file_ids) == 1 and statistics.requests > 1:
        sentences.append(
            "All requests are for one file: its rates, delays and bursts are known; popularity, and whether bursts are "
            "common or of single files, cannot be told."
        )
    if times.class_count and not times.classes and times.reads is not None:
        sentences.append(
            f"{times.class_count:,} service classes are too many to be told apart: burstiness and rates are those of "
            "all reads."
        )
    step = times.step_s
    if arrivals.span_s > 0 and too_coarse(step, arrivals.ties, statistics.requests, arrivals.span_s):
        sentences.append(
            f"The clock ticks every {scale_text(step)}: nothing is known of shorter bursts, and of the waits that they "
            f"cause; rates, popularity, and burstiness from {scale_text(step)} on, are."
        )
    if len(times.silences):
        sentences.append(_silence(statistics))
    bursty = _burstier(times.reads)
    if bursty is not None:
        included = ", silent stretches included" if len(times.silences) else ""
        sentences.append(
            f"Reads are burstier than Poisson at scales above {scale_text(bursty)}{included}: bounds and estimates of "
            "latency at mean rates, as those of ecjax optimize, assume Poisson arrivals and are too low for this log; "
            "replay its own arrivals (ecjax replay plan=OUT trace=LOG arrivals=trace)."
        )
    return sentences


def _burstier(counts: TickCounts | None) -> float | None:
    if counts is None:
        return None
    table = whole_dispersion(counts)
    return burstier_from(table.scale_s.tolist(), verdicts(table))


def _silence(statistics: TraceStatistics) -> str:
    """That nothing arrives for long, and what the rest of the log says by itself."""
    silences, span = statistics.times.silences, statistics.arrivals.span_s
    lengths = silences[:, 1] - silences[:, 0]
    longest = int(np.argmax(lengths))
    share = f"{100 * lengths.sum() / span:.3g} % of the log"
    where = f"{time_text(lengths[longest])} from {time_text(silences[longest, 0])} on"
    text = f"No request comes for {where}: {share}. If it was not recorded then"
    if len(silences) > 1:
        text = (
            f"No request comes in {len(silences)} silent stretches, the longest {where}: {share}. If it was not "
            "recorded then"
        )
    counts = statistics.times.reads or statistics.times.writes
    assert counts is not None
    table = dispersion(counts, _segments(counts, silences))
    rate = counts.arrivals.sum() / (span - lengths.sum())
    kind = "reads" if statistics.times.reads is not None else "writes"
    words = burstiness_text(table.scale_s.tolist(), verdicts(table))
    return f"{text}, {kind} come at {rate:.4g} per s and are, in between, {words}."


def _segments(counts: TickCounts, silences: np.ndarray) -> list[tuple[int, int]]:
    """Ticks between silent stretches, from and to (not included)."""
    ticks = np.floor(silences / counts.tick_s * (1 + _ROUNDING)).astype(np.int64)
    first, last = _whole_ticks(counts)
    begins, ends = [first, *ticks[:, 1].tolist()], [*(ticks[:, 0] + 1).tolist(), last]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if end > begin]
