"""Validation on the user's own log: fit on its first half, predict the second, and say how far off that was.

The halves have as many requests each. From the first come service laws by node, rates and dispatch shares. The second
half is then

- ``observed``: as the log has it, from a request's arrival to the last finish of its chunks;
- ``replayed``: its own arrivals, files and nodes with service times drawn from the laws, in first-come first-served
  queues that begin as the first half left them;
- ``trace_estimated``: from the arrivals of the first half as they came, and its shares and laws: the prediction;
- ``estimated`` and ``bound``: from mean rates, shares and moments of the first half alone.

Only reads are reported; writes keep nodes busy. Connection delays are in none of these: a log knows when nodes finish.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ecjax.predict.log_remarks import remarks, seen_of
from ecjax.predict.logged import Logged
from ecjax.predict.trace_estimates import TraceEstimate
from ecjax.simulation.laws import EMPIRICAL_STALLED, FIRST_SAMPLE, KIND, B, Laws
from ecjax.simulation.tally import BINS
from ecjax.tables.requests import Accesses, TraceRequests
from ecjax.units import bytes_text, count_text
from ecjax.validation.halves import Halves, service_times
from ecjax.validation.latencies import Groups, Statistics, histograms, listed, seconds, table, unknown
from ecjax.validation.loads import node_loads
from ecjax.validation.predictions import predictions
from ecjax.validation.servers import check_nodes
from ecjax.validation.service import EMPIRICAL, Samples, ServiceLaws, fit_service, tails_apart

_FEWEST = 4  # replications that tell how far runs differ


@dataclass(frozen=True)
class Validation:
    """What came of it.

    Attributes:
        table: rows of the ``latencies`` dataset without run_id: see ``latencies.table``. Sources that could
            not be had are missing; files have rows where the first half reads them often enough.
        bins: rows of the ``latency_bins`` dataset without run_id, of observed and replayed.
        text: prediction against observation in one line, or why there is none.
        predicted: whether there is one.
        notices: what else to know, sentences.
        own_times_difference_s: s, largest difference between the log's finish times and those that its own service
            times have in first-come first-served queues; None where the log has no begin of service.
        trace: the estimate from the arrivals of the first half, whose intervals are those in which second halves have
            their figures; None where they do not tell.
        loads: rows of the ``node_loads`` dataset without run_id; None where the first half does not tell them.
    """

    table: pa.Table
    bins: pa.Table
    text: str
    predicted: bool
    notices: tuple[str, ...]
    own_times_difference_s: float | None
    trace: TraceEstimate | None = None
    loads: pa.Table | None = None


def validate(
    log: TraceRequests,
    family: str = EMPIRICAL,
    seed: int = 0,
    replications: int = 8,
    classes: list[str] | None = None,
) -> Validation:
    """Predict the second half of a log from the first.

    Args:
        log: requests of a trace.
        family: service laws: "empirical", or one of ``replay.law_fit.FAMILIES`` by moments.
        seed: of the first replication.
        replications: of the replay.
        classes: (r,) class of each file of ``log.file_ids``; default: by chunks read.

    Raises:
        UserError: the family has no law with the moments of a node.
    """
    reason = _why_not(log)
    if reason is not None:
        nothing = Groups([], log.file_ids[:0], log.file_ids[:0])
        sources, bins = {"observed": unknown(1)}, {"observed": np.zeros((1, BINS), np.int64)}
        return _result(nothing, sources, bins, f"no validation: {reason}", [], None)
    assert log.accesses is not None
    halves = Halves(log, log.accesses, classes)
    groups, notices = halves.groups, halves.notices()
    observed, counts = halves.observed()
    sources, bins = {"observed": observed}, {"observed": counts}
    difference = check_nodes(halves, observed.mean[0], notices)
    service = service_times(log.accesses, halves.cut)
    if isinstance(service, str):
        return _result(groups, sources, bins, f"no prediction: {service}", notices, difference)
    laws = _laws(log.accesses, halves, service, family, notices)
    replayed, bins["replayed"] = halves.replayed(laws, seed, replications)
    sources["replayed"] = replayed
    predicted = predictions(halves, laws, notices)
    sources.update(predicted.statistics)
    if "bound" in sources:
        notices.append(
            "The bound is one of Poisson arrivals at the rates, shares and service laws of the first half: it promises "
            "nothing where arrivals of the log are not Poisson."
        )
    if "bound" in sources and observed.mean[0] > sources["bound"].mean[0]:
        notices.append(
            "The mean observed is above the bound: the second half is not as the first, its arrivals are not Poisson, "
            "or it was by chance."
        )
    if replications >= _FEWEST and replayed.mean[0] > 0:
        notices.append(_chance(replayed, replications))
    trace = predicted.trace
    if trace is None:
        text = (
            f"{_text(observed, replayed)}; by a replay of the second half's own arrivals, without an interval"
        )
    else:
        by_service = f"By a replay of the second half's own arrivals: {_text_of_replay(observed, replayed)}."
        text, sentences = _text_of_arrivals(trace, observed, halves)
        notices[:0] = [*sentences, by_service]
    result = _result(groups, sources, bins, text, notices, difference)
    return replace(result, trace=trace, loads=node_loads(halves, laws))


def _result(
    groups: Groups,
    sources: dict[str, Statistics],
    bins: dict[str, np.ndarray],
    text: str,
    notices: list[str],
    difference: float | None,
) -> Validation:
    latencies = table(groups, sources)
    return Validation(
        latencies, histograms(groups, bins), text, "replayed" in sources, tuple(notices), difference
    )


def _why_not(log: TraceRequests) -> str | None:
    """Why a log cannot be validated on, None where it can."""
    accesses = log.accesses
    if accesses is None:
        return "the trace names no nodes (node_id)"
    if accesses.finish is None:
        return "the trace has no finish times (finish_s)"
    if log.count < 2:
        return f"the trace has {log.count} request; at least one in each half is needed"
    half = log.count // 2
    finished = ~np.isnan(accesses.finish[accesses.begin[half] :])
    complete = np.logical_and.reduceat(finished, accesses.begin[half:-1] - accesses.begin[half])
    if not np.any(complete & ~log.write[half:]):
        return "no read of the second half has all its finish times (finish_s)"
    return None


def _laws(accesses: Accesses, halves: Halves, service: np.ndarray, family: str, notices: list[str]) -> Laws:
    """Laws of reads at each node, then of writes: 2 m."""
    names = accesses.node_ids.to_pylist()
    write = halves.log.write[halves.request]
    timed = ~np.isnan(service)
    fitted: dict[str, ServiceLaws] = {}
    for operation, mask in (("reads", ~write), ("writes", write)):
        early = mask[: halves.cut] & timed
        if early.any():
            node, size = (values[: halves.cut][early] for values in (accesses.node, accesses.bytes))
            fitted[operation] = fit_service(
                Samples(node, size, service[early]), names, accesses.bytes[mask], family
            )
    if "reads" not in fitted and np.any(~write):
        notices.append("The first half has no service times of reads: those of writes are taken for them.")
    if "writes" not in fitted and np.any(write):
        notices.append("The first half has no service times of writes: those of reads are taken for them.")
    other = next(iter(fitted.values()))
    reads, writes = fitted.get("reads", other), fitted.get("writes", other)
    if reads.relation is not None:
        notices.append(f"Service times of reads are taken to be {reads.relation}, as in the first half.")
        notices += _tails_apart(reads, names)
    nodes_read = np.unique(accesses.node[halves.cut :][~write[halves.cut :]])
    poor = nodes_read[reads.pooled[nodes_read]]
    if poor.size:
        notices.append(
            f"{count_text(poor.size, 'node has', 'nodes have')} too few service times of reads in the first half for "
            "a law "
            f"({listed(names, poor)}): they have that of all nodes together."
        )
    further = writes.laws.table.copy()
    further[:, FIRST_SAMPLE] += len(reads.laws.samples)
    further[further[:, KIND] == EMPIRICAL_STALLED, B] += len(reads.laws.samples)
    return Laws(
        np.concatenate([reads.laws.table, further]), np.concatenate([reads.laws.samples, writes.laws.samples])
    )


def _tails_apart(reads: ServiceLaws, names: list) -> list[str]:
    """That rare services of some size are not those of the log, where that is so."""
    if reads.misfit is None or not tails_apart(reads.misfit):
        return []
    node, size, measured, law = reads.misfit
    return [
        f"At node {names[node]} 1 % of the services of chunks of {bytes_text(size)} take more than {seconds(measured)} "
        f"in the first half, and by that {seconds(law)}: tails of latencies may be as far off."
    ]


def _text(observed: Statistics, replayed: Statistics) -> str:
    parts = []
    for name, predicted, measured in (
        ("mean", replayed.mean[0], observed.mean[0]),
        ("p99", replayed.quantiles[0, 2], observed.quantiles[0, 2]),
    ):
        off = f" ({100 * (predicted / measured - 1):+.1f} %)" if measured > 0 else ""
        parts.append(f"predicted {name} {seconds(predicted)}, observed {seconds(measured)}{off}")
    return "; ".join(parts)


def _text_of_replay(observed: Statistics, replayed: Statistics) -> str:
    """Mean and 99 % point of the replay, and how far they are off."""
    pairs = (
        ("mean", replayed.mean[0], observed.mean[0]),
        ("p99", replayed.quantiles[0, 2], observed.quantiles[0, 2]),
    )
    parts = []
    for name, predicted, measured in pairs:
        off = f" ({100 * (predicted / measured - 1):+.1f} %)" if measured > 0 else ""
        parts.append(f"{name} {seconds(predicted)}{off}")
    return ", ".join(parts)


def _text_of_arrivals(estimate: TraceEstimate, observed: Statistics, halves: Halves) -> tuple[str, list[str]]:
    """The second half beside what the arrivals of the first say, and how far that may be off."""
    parts, outside = [], []
    for name, predicted, measured, place in (
        ("mean", estimate.mean[0], observed.mean[0], 0),
        ("p99", estimate.quantiles[0, 2], observed.quantiles[0, 2], 3),
    ):
        low, high = estimate.interval(place)
        off = f" ({100 * (predicted / measured - 1):+.1f} %)" if measured > 0 else ""
        end = f"to {seconds(high)}" if np.isfinite(high) else "or more"
        parts.append(
            f"predicted {name} {seconds(predicted)} ({seconds(low)} {end}), observed {seconds(measured)}{off}"
        )
        if not low <= measured <= high:
            outside.append(name)
    sentences = [
        "Predicted from the arrivals of the first half as they came; in brackets where 95 % of second halves lie, by "
        "leaving out tenths of the first; bursts that last as long as a tenth, or that it has few of, make them too "
        "narrow."
    ]
    if outside:
        sentences.append(
            f"Not within those brackets: {' and '.join(outside)}. The halves differ by more than bursts do in the "
            "first, or it was by chance."
        )
    log, early = halves.log, slice(0, halves.half)
    first = Logged(log.on_ticks(log.arrival[early]), log.file[early], log.write[early], log.tick_s)
    return "; ".join(parts), sentences + remarks(
        estimate, seen_of(first), halves.accesses.node_ids.to_pylist(), "the first half"
    )


def _chance(replayed: Statistics, replications: int) -> str:
    margin = replayed.half_width[0] * np.sqrt(replications + 1) / replayed.mean[0]
    return (
        "Of runs with these arrivals and service laws 95 % have a mean within "
        f"{100 * margin:.1f} % of that of the replay."
    )
