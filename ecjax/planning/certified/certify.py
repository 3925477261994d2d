"""One problem, one theta: a plan and a lower bound on every plan."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ecjax.planning.certified import one_size_plan
from ecjax.planning.certified.apart import kept_apart
from ecjax.planning.certified.bound import lower_bound
from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.certified.data import has_one_size
from ecjax.planning.certified.few_rows import bound_by_sets, branches_first, few_rows
from ecjax.planning.certified.relax import Passes, groups_of, relax, respond
from ecjax.planning.certified.rounding import keeps_capacity, rank, round_off, spare_chunks, worth
from ecjax.planning.certified.smooth import Bins
from ecjax.planning.certified.solvers import Device, HostSolver, Solver
from ecjax.planning.certified.splits import Split
from ecjax.planning.certified.waits import best_z

_START_SWEEPS = 6
_MIXED_TOL = 5e-5
_MIXED_PASSES = 50
_MANY_NODES = 24
_ROUNDINGS = 8  # tries, on problems of up to _FEW rows times nodes
_FEW = 200_000
_MOST_SPARE = 10**6  # rows times nodes up to which chunks more for some rows are worth their time
_HOPELESS = 1.2  # times the objective: what best responses do not mend
_MOST_BASINS = 4  # times that the search for z may find a better region


@dataclass(frozen=True)
class Settings:
    """When the certified method ends.

    Attributes:
        gap: relative gap between objective and lower bound that is good enough.
        passes: limit of passes over the files for the relaxation, and again for the bound.
        seed: of the order in which rows respond.
        device: where relaxations of files with one chunk size are solved: ``host``, on its processors; ``jax``, on
            JAX's device; ``auto``, there if it is no processor and has enough to do.
    """

    gap: float = 1e-4
    passes: int = 200
    seed: int = 0
    device: Device = "auto"


@dataclass(frozen=True)
class Certificate:
    """Whole choices with what is proved about them."""

    kinds: np.ndarray  # (R, m) int8: 2 where all reads of a row go, 1 a cold chunk, 0 none
    z: float  # s
    lower_bound: float  # s; minus infinity where none was found
    passes: int
    spare: tuple[
        np.ndarray, np.ndarray
    ]  # rows and nodes where one chunk more may help, best first; few or none
    placements: np.ndarray  # (C, R, m) bool, others to try; none where rows are many
    split: Split | None = None  # a better plan, in which reads of some rows are shared out

    @property
    def hot(self) -> np.ndarray:
        """(R, m) bool, nodes that all reads of a row use."""
        return self.kinds == HOT

    @property
    def stored(self) -> np.ndarray:
        """(R, m) bool, nodes with a chunk."""
        return self.kinds != NONE

    @property
    def probabilities(self) -> np.ndarray:
        """(R, m) 0.0 or 1.0, of a read of the row to use the node."""
        return self.hot.astype(float)


def certify(
    passes: Passes, settings: Settings, start: np.ndarray | None = None, solver: Solver | None = None
) -> Certificate:
    """A plan of whole choices (every read of a row uses the same k nodes) and a lower bound on all plans.

    Args:
        passes: the rows, with theta set.
        settings: when to end.
        start: (R, m) choices to start from (2 where reads go, 1 cold chunk, 0 none; a row of zeros is new), or None.
        solver: of the relaxation of files with one chunk size; it is left once that is done.
    """
    service, rows = passes.service, passes.rows
    m = len(rows.chunk_price)
    if start is None and branches_first(service, rows, partial(passes.share_out_bins, least=1)):
        return _of_few_rows(passes, settings)
    known: one_size_plan.Plan | None = None
    split: Split | None = None
    least = -np.inf
    if has_one_size(service, rows):
        known, least, turns, split = _one_size(passes, settings, start, solver or HostSolver())
        enough = False, least + settings.gap * abs(least)
        if _order(passes, known) <= enough or not few_rows(service, rows):
            return _certificate(passes, settings, *known, least, turns, split=split)
        # of few rows mixtures of choices may be far below any choice: those are proved as of several sizes
        start = None
    # passes get dearer and more with the nodes
    tol = (0.05 if m <= _MANY_NODES else 0.25) * settings.gap
    # the gap stays open, and passes are dear
    tol = max(tol, _MIXED_TOL)
    settings = replace(settings, passes=min(settings.passes, _MIXED_PASSES))
    candidates: list[tuple[np.ndarray, float, float]] = []
    if start is not None:
        certificate, candidates = _placed_anew(passes, settings, start)
        if certificate is not None:
            return certificate
    kinds = np.zeros((rows.number, m), np.int8) if start is None else start.copy()
    z, _ = respond(passes, kinds, None, np.zeros(m), _START_SWEEPS, 1e-3, settings.seed)
    group = groups_of(service, rows)
    relaxed = relax(passes, group, kinds, z, tol, settings.passes)
    count = relaxed.passes
    value = least
    for basin in range(1, _MOST_BASINS + 1):
        last = basin == _MOST_BASINS
        bound = lower_bound(passes, relaxed, 0.1 * settings.gap, settings.passes, last=last)
        value = max(value, bound.value)
        count += bound.passes
        if bound.better is None:
            break
        relaxed = relax(passes, group, relaxed.kinds, bound.better.z, tol, settings.passes)
        count += relaxed.passes
    target = value + settings.gap * abs(value)
    for earlier in candidates:
        # what a few passes could not prove of the earlier plan
        if earlier[2] <= target:
            return _certificate(passes, settings, *earlier, value, count)
    best = round_off(passes, relaxed, 1e-3 * settings.gap, settings.seed)
    for again in range(1, _ROUNDINGS if kinds.size <= _FEW else 1):
        if _order(passes, best) <= (False, target):
            break
        # the order in which rows are decided is chance: another may end lower
        other = round_off(passes, relaxed, 1e-3 * settings.gap, settings.seed + again, shuffled=True)
        best = min(best, other, key=partial(_order, passes))
    tried = [best, *candidates] if known is None else [best, known]
    best = min(tried, key=partial(_order, passes))
    if _order(passes, best) > (False, target) and kinds.size <= _FEW:
        for apart, reached in kept_apart(passes, relaxed.mixture.chunk_price, settings.seed):
            if reached > _HOPELESS * best[2] and keeps_capacity(passes, best[0]):
                continue
            end = respond(
                passes,
                apart,
                None,
                relaxed.mixture.chunk_price,
                _START_SWEEPS,
                1e-3 * settings.gap,
                settings.seed,
            )
            best = min(best, (apart, *end), key=partial(_order, passes))
    kinds, z, objective = best
    breaks, _ = _order(passes, best)
    placements = None
    if (breaks, objective) > (False, target) and few_rows(service, rows):
        by_sets = bound_by_sets(
            service,
            rows,
            relaxed.mixture.loads,
            relaxed.z,
            np.inf if breaks else objective,
            0.3 * settings.gap,
            partial(passes.share_out_bins, least=1),
        )
        value, placements = max(value, by_sets.bound), by_sets.placements
    if split is not None and (breaks, objective) < (False, split.objective):
        split = None
    return _certificate(passes, settings, kinds, z, objective, value, count, placements, split)


def _order(passes: Passes, plan: tuple[np.ndarray, float, float]) -> tuple[bool, float]:
    """Of choices, their z and objective: see ``rank``."""
    return rank(passes, plan[0], plan[2])


def _of_few_rows(passes: Passes, settings: Settings) -> Certificate:
    """By branches over the sets of rows that nodes keep: what rows respond to each other is where they start."""
    service, rows = passes.service, passes.rows
    kinds = np.zeros((rows.number, len(rows.chunk_price)), np.int8)
    z, objective = respond(passes, kinds, None, np.zeros(kinds.shape[1]), _START_SWEEPS, 1e-3, settings.seed)
    # prices to start from are those where all nodes have the same load: whole choices may overload one
    hot = np.repeat(rows.hot, np.diff(rows.start)) * rows.read
    speed = 1 / (service.moments[0][:, rows.grid] @ hot)
    loads = np.outer(speed / speed.sum(), np.bincount(rows.grid, hot, len(service.size)))
    share_out = partial(passes.share_out_bins, least=1)
    start = best_z(service, loads)
    reached = objective if keeps_capacity(passes, kinds) else np.inf
    by_sets = bound_by_sets(service, rows, loads, start, reached, 0.3 * settings.gap, share_out)
    return _certificate(
        passes, settings, kinds, z, objective, by_sets.bound, _START_SWEEPS, by_sets.placements
    )


def _one_size(
    passes: Passes, settings: Settings, start: np.ndarray | None, solver: Solver
) -> tuple[one_size_plan.Plan, float, int, Split | None]:
    """A plan of files with one chunk size, a lower bound (s) on all, the passes that they took, and a split plan.

    There is a split plan where the other one leaves a gap.
    """
    tried: list[one_size_plan.Plan] = []
    try:
        bins = Bins(passes, 0.2 * settings.gap, solver)
        if start is not None:
            tried, plan, bound = one_size_plan.placed_anew(bins, start, settings.gap, settings.seed)
            if plan is not None:
                return plan, bound, len(tried), None
        relaxation, bound, turns = one_size_plan.prove(bins, settings.gap, settings.passes)
    finally:
        solver.leave()
    target = bound + settings.gap * abs(bound)
    for earlier in tried:
        # what its own loads could not prove of the earlier plan
        if earlier.objective <= target:
            return earlier, bound, turns, None
    plan = one_size_plan.round_off(bins, relaxation, target, 1e-3 * settings.gap, settings.seed)
    if tried and not keeps_capacity(passes, plan.kinds):
        # these all do
        plan = min(tried, key=lambda earlier: earlier.objective)
    split = None
    if _order(passes, plan) > (False, target) and plan.kinds.size <= _MOST_SPARE:
        split = one_size_plan.split_off(bins, relaxation, plan, target, settings.seed)
        # an earlier plan stays that is hardly worse: moving chunks gains nothing
        enough = min(plan.objective, split.objective) + settings.gap * abs(bound)
        for earlier in tried:
            same = one_size_plan.shared_out(bins, relaxation, earlier, target)
            if same.objective <= enough:
                return earlier, bound, turns, same
        split = split if np.isfinite(split.objective) else None
    return plan, bound, turns, split


def _placed_anew(
    passes: Passes, settings: Settings, start: np.ndarray
) -> tuple[Certificate | None, list[tuple[np.ndarray, float, float]]]:
    """An earlier plan with its new rows placed, if that is good enough already: a few passes instead of many.

    Also the plans that were tried, the least changed first: choices, z, objective.
    """
    rows = passes.rows
    kinds = start.copy()
    nothing = np.zeros(len(rows.chunk_price))
    new = np.flatnonzero(~(kinds == HOT).any(axis=1))
    count, tried = 0, []
    for which in (new, None):
        if which is None or len(which):
            respond(passes, kinds, None, nothing, 1, settings.gap, settings.seed, which)
        z, objective = worth(passes, kinds)
        if not keeps_capacity(passes, kinds):
            continue
        tried.append((kinds.copy(), z, objective))
        relaxed = relax(passes, groups_of(passes.service, rows), kinds, z, np.inf, 1)
        bound = lower_bound(passes, relaxed, 0.3 * settings.gap, 10)
        count += 1 + bound.passes
        if objective <= bound.value + settings.gap * abs(bound.value):
            return _certificate(passes, settings, kinds, z, objective, bound.value, count), tried
    return None, tried


def _certificate(
    passes: Passes,
    settings: Settings,
    kinds: np.ndarray,
    z: float,
    objective: float,
    bound: float,
    count: int,
    placements: np.ndarray | None = None,
    split: Split | None = None,
) -> Certificate:
    spare = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if split is None and objective > bound + settings.gap * abs(bound) and kinds.size <= _MOST_SPARE:
        spare = spare_chunks(passes, kinds, z, 2 * kinds.shape[1])
    others = np.zeros((0, *kinds.shape), bool) if placements is None else placements
    return Certificate(kinds, z, bound, count, spare, others, split)
