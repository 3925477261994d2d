"""The lanes of a batch by the certified method: the host plans them side by side, JAX polishes and evaluates."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.cores import available_cores, one_blas_thread
from ecjax.planning import limits
from ecjax.planning.certified.certify import Certificate, Settings, certify
from ecjax.planning.certified.choice import COLD
from ecjax.planning.certified.collapse import Gathered
from ecjax.planning.certified.data import Rows, Service, flatten, has_one_size
from ecjax.planning.certified.relax import Passes
from ecjax.planning.certified.smooth import fine_bins
from ecjax.planning.certified.solvers import HOST, HostSolver, SharedSolver, Solver, on_jax
from ecjax.planning.certified.whole_plan import evaluate_whole
from ecjax.planning.descent import Stopping
from ecjax.planning.jlcm import Solution
from ecjax.planning.problem import EVALUATE, Problem, reading_prices, scaled
from ecjax.planning.rescheduling import reschedule
from ecjax.precision import device_name
from ecjax.programs import program

_TIE = 1e-9  # of the shortest service, that dollars count where they have no price
_NOTHING: Any = np.zeros(0)
_NODES_FOR_ALL_CORES = 3000  # from which on linear algebra takes all cores
_MOST_AT_ONCE = 8  # lanes whose relaxations a device solves that compute besides
_MOST_FINISHED_AT_ONCE = 4  # plans of lanes that are evaluated, each with arrays of all rows and nodes


def plan_lanes(
    problem: Problem,
    theta: np.ndarray,
    rate_scale: np.ndarray,
    size_scale: np.ndarray,
    settings: Settings,
    start: np.ndarray | None = None,
) -> tuple[Solution, np.ndarray, str]:
    """Plans of all lanes, with a leading lane axis, their lower bounds (L,) s, and the device of their relaxations.

    Args:
        problem: before scaling.
        theta: (L,) s per dollar of mean cost per file.
        rate_scale: (L,) what rates are multiplied by.
        size_scale: (L,) what sizes are multiplied by.
        settings: when to end.
        start: (R, m) choices of an earlier plan to start from, or None.
    """
    flat: dict[tuple[float, float], tuple[Service, Rows, Problem, Gathered]] = {}
    for key in dict.fromkeys(zip(rate_scale.tolist(), size_scale.tolist(), strict=True)):
        lane_problem = scaled(problem, *key)
        service, rows = flatten(lane_problem)
        flat[key] = service, rows, lane_problem, Gathered(rows)
    lanes = list(zip(theta.tolist(), rate_scale.tolist(), size_scale.tolist(), strict=True))
    distinct = list(dict.fromkeys(lanes))
    solver = _solver(flat.values(), len(distinct), settings)
    cores = available_cores()
    # lanes that are solved together all have to ask before any gets an answer
    at_once = min(len(distinct), cores) if isinstance(solver, HostSolver) else len(distinct)

    def one(lane: tuple[float, float, float]) -> Certificate:
        service, rows, lane_problem, gathered = flat[lane[1:]]
        passes = Passes(service, rows, max(1, cores // at_once), gathered)
        # without a price dollars decide between plans of equal latency
        least = _TIE * float(np.min(service.mean)) if lane[0] == 0 else 0.0
        per_dollar = lane[0] / problem.files.count if lane[0] else least / _most_dollars(lane_problem, rows)
        passes.with_theta(per_dollar)
        try:
            with solver.working():
                certificate = certify(passes, settings, start, solver)
            return replace(certificate, lower_bound=certificate.lower_bound - least)
        finally:
            passes.close()

    # Lanes are what threads share where matrices are small. Sums must not depend on how many lanes there are, so that
    # the nodes alone decide. The limit is that of the process: set once, around all threads.
    few = problem.nodes.count < _NODES_FOR_ALL_CORES
    with one_blas_thread() if few else nullcontext(), ThreadPoolExecutor(at_once) as pool:
        certificates = dict(zip(distinct, pool.map(one, distinct), strict=True))
    bounds = [certificates[lane].lower_bound for lane in lanes]

    # every lane writes its part: what is large is not copied once more
    shape = (len(lanes), *certificates[lanes[0]].kinds.shape)
    probabilities: Any = np.empty(shape)
    stored: Any = np.empty(shape, bool)

    def whole(number: int) -> Solution:
        lane = lanes[number]
        plan = finished(flat[lane[1:]][2], lane[0], certificates[lane], settings.gap, probabilities[number])
        stored[number] = plan.stored
        return plan._replace(probabilities=_NOTHING, stored=_NOTHING)

    plans = [whole(0)]  # alone: what it compiles serves the others
    with ThreadPoolExecutor(min(cores, _MOST_FINISHED_AT_ONCE)) as pool:
        plans += pool.map(whole, range(1, len(lanes)))
    device = HOST if isinstance(solver, HostSolver) else device_name()
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *plans)
    return stacked._replace(probabilities=probabilities, stored=stored), np.array(bounds), device


def _most_dollars(problem: Problem, rows: Rows) -> float:
    """What chunks of all files on all nodes would cost, above 0."""
    nodes, files = problem.nodes, problem.files
    chunks = files.count * float(np.sum(nodes.cost_per_chunk))
    stored = float(np.sum(files.stored_chunk_bytes)) * float(np.sum(nodes.cost_per_byte))
    return max(chunks + stored + float(rows.surcharge.sum() + rows.reading.sum()), np.finfo(float).tiny)


def _solver(
    flat: Iterable[tuple[Service, Rows, Problem, Gathered]], lanes: int, settings: Settings
) -> Solver:
    """On the host, or one that all lanes share."""
    service, rows, problem, _ = next(iter(flat))
    nodes = problem.nodes.count
    bins = min(rows.number, fine_bins(nodes))
    if has_one_size(service, rows) and on_jax(settings.device, bins, nodes, lanes):
        # threads that hand the interpreter to each other for every array are slower than a few that do not
        return SharedSolver(lanes, min(available_cores(), _MOST_AT_ONCE))
    return HostSolver()


def finished(
    problem: Problem, theta: float, certificate: Certificate, gap: float, out: np.ndarray | None = None
) -> Solution:
    """The plan of a certificate, evaluated with true sizes.

    It is the split one, if there is one. Else, where the gap is not closed, reads are rescheduled over the chunks that
    rows have beyond k, and over spare ones. Other placements are tried, if it has any. One that keeps all limits is
    better than one that does not, whatever they cost.

    Args:
        problem: the problem.
        theta: s per dollar of mean cost per file.
        certificate: of the plan.
        gap: relative, that is good enough.
        out: (R, m) array for the probabilities; default: a new one.
    """
    price, by_reading = jnp.asarray(theta), reading_prices(problem)
    toll = None if by_reading is None else theta / problem.files.count * by_reading
    probabilities: Any
    stored: Any
    if certificate.split is None:
        probabilities, stored = np.multiply(certificate.hot, 1.0, out=out), certificate.stored
        evaluation = evaluate_whole(problem, certificate.kinds, theta)
    else:
        probabilities, stored, _ = certificate.split
        evaluation = EVALUATE(problem, probabilities, stored, price)
    rows, nodes = certificate.spare
    breaks = _breaks(problem, stored)
    target = certificate.lower_bound + gap * abs(certificate.lower_bound)
    proven = not breaks and bool(evaluation.objective <= target)
    # flows between nodes have done already for split plans what rescheduling does
    cold = certificate.split is None and not proven and np.any(certificate.kinds == COLD)
    tries = [0] if cold else []
    tries += [len(rows) // 4, len(rows) // 2, len(rows)] if len(rows) else []
    whole, placed = probabilities, stored
    for count in dict.fromkeys(tries):
        more = placed.copy()
        more[rows[:count], nodes[:count]] = True
        polished = _RESCHEDULE(problem, whole, more, toll=toll).point
        worth = EVALUATE(problem, polished, more, price)
        if worth.objective < evaluation.objective:
            probabilities, stored, evaluation = polished, more, worth
    for other in () if proven else certificate.placements:
        kept = jnp.asarray(other, float)
        even = kept * (jnp.asarray(problem.k) / kept.sum(axis=1))[:, None]
        spread = _RESCHEDULE(problem, even, jnp.asarray(other), toll=toll).point
        worth = EVALUATE(problem, spread, jnp.asarray(other), price)
        broken = _breaks(problem, other)
        if np.isfinite(worth.objective) and (broken, worth.objective) < (breaks, evaluation.objective):
            probabilities, stored, evaluation, breaks = spread, other, worth, broken
    solution = Solution(
        probabilities=probabilities,
        stored=stored,
        evaluation=evaluation,
        iterations=jnp.asarray(certificate.passes, jnp.int32),
        converged=jnp.isfinite(evaluation.objective),
        history=evaluation.objective[None],
    )
    host: Solution = jax.tree.map(np.asarray, solution)
    if out is None or host.probabilities is out:
        return host
    out[:] = host.probabilities
    written: Any = out
    return host._replace(probabilities=written)


def _breaks(problem: Problem, stored: np.ndarray) -> bool:
    """Whether a node holds more chunks than it can; the other limits are kept by all certified plans."""
    return problem.capacity is not None and not limits.keeps(problem, stored)


_POLISHING = Stopping(eps=1e-7, max_iterations=100)
_RESCHEDULE = program(partial(reschedule, stopping=_POLISHING), quick=True)
