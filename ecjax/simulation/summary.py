"""Means, quantiles and confidence intervals of replays, without their warm-up.

Intervals come from batch means (each replication gives its own), with batches merged until neighbours no longer
correlate. Where the mean changes with time in every replication alike (outages, rates, a log), what batches differ by
from those of the other replications counts, not from each other; of one replication, which cannot tell, all does. The
warm-up is cut where MSER (White, "An effective truncation heuristic", Simulation 69, 1997) puts it, at the next
segment of the tally; one that reaches into the second half, or halves that differ, mark a run as not stationary.
Intervals of quantiles come from the replications, which are independent, by Student's law; so do those of the means of
files, which have no batches, and of groups with too few requests for batches.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from ecjax.simulation import tally
from ecjax.simulation.tally import BATCHES, SEGMENTS, Tally

LEVELS = (0.5, 0.9, 0.99, 0.999)
_FEWEST_BATCHES = 8
_HALF = 16  # batches of each half in the test for drift
_MOST_BATCHES = 64
_FEWEST_REPLICATIONS = 3  # for intervals by what they differ by
_FEWEST_FILLED = 3 * BATCHES // 4  # of fewer requests, one each, batches do not tell how long these correlate
_FEWEST_BEYOND = 10  # requests above a quantile, in every replication, for its interval
_SIGNIFICANCE = 1e-3
_UNLIKE = 0.01  # a beginning that differs from the rest by more than this chance is warm-up
_ALIKE = 3  # blocks of its length in the rest that it takes to tell


@dataclass(frozen=True)
class Summary:
    """Statistics of every group of a tally; G groups, R replications."""

    count: np.ndarray  # (G,) requests, or chunk accesses of nodes
    mean: np.ndarray  # (G,) s; nan where nothing was counted
    deviation: np.ndarray  # (G,) s
    half_width: np.ndarray  # (G,) s, of the 95 % interval of the mean; nan where it is not known
    quantiles: np.ndarray  # (G, len(LEVELS)) s; nan for groups without histograms
    quantile_half_width: np.ndarray  # the same of their 95 % intervals, from what replications differ by
    bins: np.ndarray  # (C, BINS) histograms of the classes
    all: "Summary | None"  # the same of all reads together, G = 1
    warm_up: float  # share of the run that was dropped
    stationary: bool  # or not expected to be
    utilisation: np.ndarray  # (m,) share of time that nodes gave service


class Batches(NamedTuple):
    """Sums of the batches of each replication, (G, b, 2) each.

    Attributes:
        each: of the replications.
        alike: whether the mean changes with time, in all replications alike.
        kept: how many of them, from the first on, tell how far the mean varies; 0: too few requests came.
    """

    each: list[np.ndarray]
    alike: bool
    kept: int

    def half_width(self, group: int) -> float:
        """Half width of the 95 % interval of the mean of a group, s; nan where they are too few."""
        of_group = [batches[group] for batches in self.each]
        if self.alike:
            return interval_beside_others(of_group)
        return interval([batches[: self.kept] for batches in of_group]) if self.kept else math.nan


def summarise(tallies: list[Tally], spans: list[float], varying: bool = False) -> Summary:
    """Statistics over replications of one replay.

    Args:
        tallies: of the replications, alike in shape.
        spans: s, time of the last arrival of each.
        varying: arrivals are those of a log, or rates or nodes change with time: all reads count, as there is no steady
            state of which the beginning is not yet part.
    """
    classes = int(tallies[0].classes[0])
    dropped = max(_warm_up(t.batches[:classes].sum(axis=0)) for t in tallies)
    # fewer requests than batches fill the first batches only: of these, too, a quarter is kept
    filled = min(_filled(t, classes) for t in tallies)
    possible = [batch for batch in SEGMENTS[1:] if batch <= 0.75 * filled] or [0]
    # nodes start empty: the first segment always goes
    first = 0 if varying else next((batch for batch in possible if batch >= dropped), None)
    stationary = first is not None
    start = first if first is not None else possible[-1]
    segment = SEGMENTS.index(start)
    sums = np.stack([t.sums[segment:].sum(axis=0) for t in tallies])
    histograms = np.stack([t.bins[segment:].sum(axis=0, dtype=np.int64) for t in tallies])
    alike = varying and len(tallies) > 1
    kept = filled - start if filled >= _FEWEST_FILLED else 0
    batches = [t.batches[:, start:] for t in tallies]
    together = [b[:classes].sum(axis=0, keepdims=True) for b in batches]
    of_files = np.stack([t.file_bins[segment:].sum(axis=0, dtype=np.int64) for t in tallies])
    bins = histograms.sum(axis=0)
    of_all = histograms[:, None, :classes].sum(axis=2)
    of_reads = sums[:, :classes].sum(axis=1, keepdims=True)
    return Summary(
        **_statistics(sums, histograms, Batches(batches, alike, kept), of_files),
        all=Summary(
            **_statistics(of_reads, of_all, Batches(together, alike, kept)),
            bins=bins[:classes],
            all=None,
            warm_up=start / max(filled, 1),
            stationary=stationary,
            utilisation=np.empty(0),
        ),
        bins=bins[:classes],
        warm_up=start / max(filled, 1),
        stationary=varying or (stationary and not _drifts([b[0] for b in together])),
        utilisation=_utilisation(tallies, spans, segment, start),
    )


def quantiles(bins: np.ndarray) -> np.ndarray:
    """Quantiles of histograms (G, bins) at LEVELS, linear within a bin: (G, Q) s, nan where a histogram is empty."""
    edges = tally.bin_edges(bins.shape[1])
    values = np.full((len(bins), len(LEVELS)), np.nan)
    held = np.flatnonzero(bins.any(axis=1))
    counts, group = bins[held], np.arange(len(held))
    below = np.concatenate([np.zeros((len(held), 1), counts.dtype), np.cumsum(counts, axis=1)], axis=1)
    first = np.argmax(counts > 0, axis=1)
    for column, level in enumerate(LEVELS):
        rank = level * below[:, -1]
        place = np.minimum(np.sum(below < rank[:, None], axis=1), counts.shape[1]) - 1
        place = np.maximum(place, first)
        inside = counts[group, place]
        share = np.where(inside > 0, (rank - below[group, place]) / np.maximum(inside, 1), 0.0)
        values[held, column] = edges[place] + share * (edges[place + 1] - edges[place])
    return values


def quantile_half_widths(replications: np.ndarray) -> np.ndarray:
    """Half widths of the 95 % intervals of quantiles at LEVELS, (G, Q) s, from histograms (R, G, bins).

    By Student's law from the quantiles of the R replications; nan where these are fewer than three, or where one of
    them has fewer than ten requests above the quantile.
    """
    number, groups = replications.shape[:2]
    half_width = np.full((groups, len(LEVELS)), np.nan)
    beyond = replications.sum(axis=2).min(axis=0)[:, None] * (1 - np.array(LEVELS))
    known = beyond >= _FEWEST_BEYOND * (1 - 1e-9)
    some = known.any(axis=1)
    if number < _FEWEST_REPLICATIONS or not some.any():
        return half_width
    each = np.stack([quantiles(histograms[some]) for histograms in replications])
    half_width[some] = special.stdtrit(number - 1, 0.975) * each.std(axis=0, ddof=1) / math.sqrt(number)
    return np.where(known, half_width, np.nan)


def _half_widths_of_means(sums: np.ndarray) -> np.ndarray:
    """Half widths of the 95 % intervals of means, (G,) s, by what replications differ by: sums (R, G, 3).

    Nan where these are fewer than three, or one of them counted nothing.
    """
    number = len(sums)
    if number < _FEWEST_REPLICATIONS:
        return np.full(sums.shape[1], np.nan)
    with np.errstate(invalid="ignore"):
        each = sums[..., 1] / sums[..., 0]
    return np.asarray(special.stdtrit(number - 1, 0.975) * each.std(axis=0, ddof=1) / math.sqrt(number))


def _statistics(
    sums: np.ndarray, bins: np.ndarray, batches: Batches, file_bins: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sums (R, G, 3); histograms (R, G', bins) of the first G' groups, and (R, r, bins) of the last ones, the files."""
    count, total, square = sums.sum(axis=0).T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        deviation = np.sqrt(np.maximum(square / count - mean**2, 0.0))
    half_width = _half_widths_of_means(sums)
    levels, half_widths = np.full((2, len(count), len(LEVELS)), np.nan)
    first = bins.shape[1]
    levels[:first], half_widths[:first] = quantiles(bins.sum(axis=0)), quantile_half_widths(bins)
    if file_bins is not None and file_bins.shape[1]:
        levels[first:] = quantiles(file_bins.sum(axis=0))
        half_widths[first:] = quantile_half_widths(file_bins)
    for group in range(len(batches.each[0])):
        of_batches = batches.half_width(group)
        if not math.isnan(of_batches):
            half_width[group] = of_batches
    return {
        "count": count,
        "mean": mean,
        "deviation": deviation,
        "half_width": half_width,
        "quantiles": levels,
        "quantile_half_width": half_widths,
    }


def _series(batches: np.ndarray) -> np.ndarray:
    """Means of the batches (b, 2) that hold anything."""
    held = batches[batches[:, 0] > 0]
    return held[:, 1] / held[:, 0]


def _filled(counts: Tally, classes: int) -> int:
    """How many batches there are up to the last that holds a read; all, of as many requests."""
    if counts.per_request[0] < 1:
        return BATCHES
    held = np.flatnonzero(counts.batches[:classes, :, 0].sum(axis=0))
    return int(held[-1]) + 1 if len(held) else 0


def _warm_up(batches: np.ndarray) -> int:
    """Batches (b, 2) that MSER drops: the truncation that makes the interval of what remains shortest.

    Nothing is dropped where the beginning is like the rest: of queues that are nearly full MSER cuts whatever happens
    to be high, and what remains is too low, and looks surer than it is.
    """
    held = np.flatnonzero(batches[:, 0] > 0)
    if len(held) < 8:
        return 0
    series = _series(batches)
    number = np.arange(1, len(series) + 1)
    mean = np.cumsum(series[::-1]) / number
    spread = np.cumsum(series[::-1] ** 2) / number - mean**2
    error = (np.maximum(spread, 0.0) / number)[::-1]
    # the very last batches agree by chance: no more than three quarters are ever cut
    cut = int(np.argmin(error[: max(1, 3 * len(held) // 4)]))
    alike = (len(series) - cut) // cut if cut else 0
    if alike >= _ALIKE:
        blocks = series[cut : cut + alike * cut].reshape(alike, cut).mean(axis=1)
        reach = special.stdtrit(alike - 1, 1 - _UNLIKE / 2) * math.sqrt(1 + 1 / alike) * blocks.std(ddof=1)
        if abs(series[:cut].mean() - blocks.mean()) <= reach:
            return 0
    return int(held[cut])


def _merged(batches: np.ndarray, number: int) -> np.ndarray:
    """Sums (b, 2) of neighbouring batches, merged into so many."""
    edges = np.linspace(0, len(batches), number + 1).astype(int)[:-1]
    return np.add.reduceat(batches, edges, axis=0)


def interval(replications: list[np.ndarray]) -> float:
    """Half width of the 95 % interval of the mean, from batches (b, 2) of each replication; nan if too few."""
    number = _MOST_BATCHES
    while True:
        merged = [_merged(part, number) for part in replications]
        series = [_series(part) for part in merged]
        if any(len(part) < number for part in series):  # empty batches: too few requests for so many
            if number <= 4:
                return math.nan
            number //= 2
            continue
        if number <= _FEWEST_BATCHES or not _correlated(series):
            break
        number //= 2
    values = np.concatenate(series)
    spread = sum(((part - part.mean()) ** 2).sum() for part in series)
    freedom = len(values) - len(series)
    if len(series) > 1:
        # between replications too: they began alike, and a rare event may fall into one of them only
        spread = ((values - values.mean()) ** 2).sum()
        freedom = len(values) - 1
    # what correlation is left adds to the variance of the mean as in an autoregressive series
    correlation = min(max(_correlation(series)[0], 0.0), 0.9)
    variance = spread / freedom / len(values) * (1 + correlation) / (1 - correlation)
    return float(special.stdtrit(freedom, 0.975) * math.sqrt(variance))


def interval_beside_others(replications: list[np.ndarray]) -> float:
    """Half width of the 95 % interval of the mean where it changes with time in all replications alike; nan if too few.

    Args:
        replications: batches (b, 2) of each, two or more; those in the same place are of the same time.
    """
    count, total = np.sum(replications, axis=(0, 1))
    if count < 2:
        return math.nan
    # enough replications tell by their own sums; of fewer, batches do
    number = _MOST_BATCHES if len(replications) < _FEWEST_BATCHES else 1
    while True:
        merged = np.stack([_merged(part, number) for part in replications])
        over = merged[:, :, 1] - total / count * merged[:, :, 0]
        apart = list(over - over.mean(axis=0))
        if number <= _FEWEST_BATCHES or not _correlated(apart):
            break
        number //= 2
    spread = np.sum(np.square(apart), axis=0)
    if not spread.any():
        return 0.0
    # as Welch and Satterthwaite have it: few batches, as those of an outage, may have most of the spread. Without what
    # chance adds to the squares it is R - 1 where one batch has all
    freedom = (len(apart) + 1) * float(spread.sum() ** 2 / np.sum(spread**2)) - 2
    correlation = 0.0
    if number > 1:
        correlation = min(max(_correlation(apart)[0], 0.0), 0.9)
    variance = float(spread.sum()) * len(apart) / (len(apart) - 1)
    variance *= (1 + correlation) / (1 - correlation)
    return float(special.stdtrit(freedom, 0.975) * math.sqrt(variance) / count)


def _correlation(series: list[np.ndarray]) -> tuple[float, int]:
    """Correlation of neighbouring batches, and how many pairs it was taken from."""
    above = sum(float((part[1:] - part.mean()) @ (part[:-1] - part.mean())) for part in series)
    spread = sum(float(((part - part.mean()) ** 2).sum()) for part in series)
    return above / spread if spread > 0 else 0.0, sum(len(part) - 1 for part in series)


def _correlated(series: list[np.ndarray]) -> bool:
    """Whether neighbouring batches seem to correlate (one-sided, at 30 %: too few batches do less harm than that)."""
    correlation, pairs = _correlation(series)
    return correlation > special.ndtri(0.7) / math.sqrt(pairs)


def _drifts(replications: list[np.ndarray]) -> bool:
    """Whether the first and the second half of the batches differ by more than chance."""
    from scipy.stats import ttest_ind  # takes 0.3 s, and is not for every command

    series = [_series(_merged(part, 2 * _HALF)) for part in replications]
    if any(len(part) < 2 * _HALF for part in series):
        return False
    early = np.concatenate([part[:_HALF] for part in series])
    late = np.concatenate([part[_HALF:] for part in series])
    if early.std() == 0 and late.std() == 0:
        return bool(early[0] != late[0])
    return bool(ttest_ind(early, late, equal_var=False).pvalue < _SIGNIFICANCE)


def _utilisation(tallies: list[Tally], spans: list[float], segment: int, start: int) -> np.ndarray:
    busy = sum(t.busy[segment:].sum(axis=0) for t in tallies)
    began = [t.began[start:] for t in tallies]
    length = sum(
        span - (begin[~np.isnan(begin)][0] if np.any(~np.isnan(begin)) else 0.0)
        for begin, span in zip(began, spans, strict=True)
    )
    return busy / length if length > 0 else np.zeros_like(busy)
