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
from ecjax.planning.certified.relax import Passes, groups_of, relax, relieve, respond, worth
from ecjax.planning.certified.rounding import Plan, rank, round_off, spare_chunks
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
    known: Plan | None = None
    split: Split | None = None
    least = -np.inf
    if has_one_size(service, rows):
        known, least, turns, split = _one_size(passes, settings, start, solver or HostSolver())
        enough = False, least + settings.gap * abs(least)
        if rank(known) <= enough or not few_rows(service, rows):
            return _certificate(passes, settings, known, least, turns, split=split)
        # of few rows mixtures of choices may be far below any choice: those are proved as of several sizes
        start = None
    # passes get dearer and more with the nodes
    tol = (0.05 if m <= _MANY_NODES else 0.25) * settings.gap
    # the gap stays open, and passes are dear
    tol = max(tol, _MIXED_TOL)
    settings = replace(settings, passes=min(settings.passes, _MIXED_PASSES))
    candidates: list[Plan] = []
    if start is not None:
        certificate, candidates = _placed_anew(passes, settings, start)
        if certificate is not None:
            return certificate
    kinds = np.zeros((rows.number, m), np.int8) if start is None else start.copy()
    z = respond(passes, kinds, None, np.zeros(m), _START_SWEEPS, 1e-3, settings.seed).z
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
        if earlier.objective <= target:
            return _certificate(passes, settings, earlier, value, count)
    best = round_off(passes, relaxed, 1e-3 * settings.gap, settings.seed)
    for again in range(1, _ROUNDINGS if kinds.size <= _FEW else 1):
        if rank(best) <= (False, target):
            break
        # the order in which rows are decided is chance: another may end lower
        other = round_off(passes, relaxed, 1e-3 * settings.gap, settings.seed + again, shuffled=True)
        best = min(best, other, key=rank)
    tried = [best, *candidates] if known is None else [best, known]
    best = min(tried, key=rank)
    if rank(best) > (False, target) and kinds.size <= _FEW:
        for apart, reached in kept_apart(passes, relaxed.mixture.chunk_price, settings.seed):
            if reached > _HOPELESS * best.objective and best.kept:
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
            best = min(best, Plan(apart, *end), key=rank)
    best = _relieved(passes, best, relaxed.mixture.chunk_price, settings.seed)
    placements = None
    if rank(best) > (False, target) and few_rows(service, rows):
        by_sets = bound_by_sets(
            service,
            rows,
            relaxed.mixture.loads,
            relaxed.z,
            best.objective if best.kept else np.inf,
            0.3 * settings.gap,
            partial(passes.share_out_bins, least=1),
        )
        value, placements = max(value, by_sets.bound), by_sets.placements
    if split is not None and rank(best) < (False, split.objective):
        split = None
    return _certificate(passes, settings, best, value, count, placements, split)


def _relieved(passes: Passes, plan: Plan, chunk_price: np.ndarray, seed: int) -> Plan:
    """The plan; where it breaks a limit of a node one in which rows have left what is overloaded, if that keeps all."""
    if plan.kept:
        return plan
    kinds = plan.kinds.copy()
    return min(plan, Plan(kinds, *relieve(passes, kinds, chunk_price, seed)), key=rank)


def _of_few_rows(passes: Passes, settings: Settings) -> Certificate:
    """By branches over the sets of rows that nodes keep: what rows respond to each other is where they start."""
    service, rows = passes.service, passes.rows
    kinds = np.zeros((rows.number, len(rows.chunk_price)), np.int8)
    nothing = np.zeros(kinds.shape[1])
    plan = Plan(kinds, *respond(passes, kinds, None, nothing, _START_SWEEPS, 1e-3, settings.seed))
    # prices to start from are those where all nodes have the same load: whole choices may overload one
    hot = np.repeat(rows.hot, np.diff(rows.start)) * rows.read
    speed = 1 / (service.moments[0][:, rows.grid] @ hot)
    loads = np.outer(speed / speed.sum(), np.bincount(rows.grid, hot, len(service.size)))
    share_out = partial(passes.share_out_bins, least=1)
    start = best_z(service, loads)
    reached = plan.objective if plan.kept else np.inf
    by_sets = bound_by_sets(service, rows, loads, start, reached, 0.3 * settings.gap, share_out)
    return _certificate(passes, settings, plan, by_sets.bound, _START_SWEEPS, by_sets.placements)


def _one_size(
    passes: Passes, settings: Settings, start: np.ndarray | None, solver: Solver
) -> tuple[Plan, float, int, Split | None]:
    """A plan of files with one chunk size, a lower bound (s) on all, the passes that they took, and a split plan.

    There is a split plan where the other one leaves a gap.
    """
    tried: list[Plan] = []
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
    # of those that were tried all keep the limits of nodes
    plan = min([plan, *tried], key=rank) if not plan.kept else plan
    split = None
    if rank(plan) > (False, target) and plan.kinds.size <= _MOST_SPARE:
        split = one_size_plan.split_off(bins, relaxation, plan, target, settings.seed)
        # an earlier plan stays that is hardly worse: moving chunks gains nothing
        enough = min(plan.objective if plan.kept else np.inf, split.objective) + settings.gap * abs(bound)
        for earlier in tried:
            same = one_size_plan.shared_out(bins, relaxation, earlier, target)
            if same.objective <= enough:
                return earlier, bound, turns, same
        split = split if np.isfinite(split.objective) else None
    # flows of shared reads even out loads, too: only then
    plan = _relieved(passes, plan, np.zeros(plan.kinds.shape[1]), settings.seed)
    if split is not None and rank(plan) < (False, split.objective):
        split = None
    return plan, bound, turns, split


def _placed_anew(
    passes: Passes, settings: Settings, start: np.ndarray
) -> tuple[Certificate | None, list[Plan]]:
    """An earlier plan with its new rows placed, if that is good enough already: a few passes instead of many.

    Also the plans that were tried, the least changed first.
    """
    rows = passes.rows
    kinds = start.copy()
    nothing = np.zeros(len(rows.chunk_price))
    new = np.flatnonzero(~(kinds == HOT).any(axis=1))
    count, tried = 0, list[Plan]()
    for which in (new, None):
        if which is None or len(which):
            respond(passes, kinds, None, nothing, 1, settings.gap, settings.seed, which)
        plan = Plan(kinds.copy(), *worth(passes, kinds))
        if not plan.kept:
            continue
        tried.append(plan)
        relaxed = relax(passes, groups_of(passes.service, rows), kinds, plan.z, np.inf, 1)
        bound = lower_bound(passes, relaxed, 0.3 * settings.gap, 10)
        count += 1 + bound.passes
        if plan.objective <= bound.value + settings.gap * abs(bound.value):
            return _certificate(passes, settings, plan, bound.value, count), tried
    return None, tried


def _certificate(
    passes: Passes,
    settings: Settings,
    plan: Plan,
    bound: float,
    count: int,
    placements: np.ndarray | None = None,
    split: Split | None = None,
) -> Certificate:
    kinds, z = plan.kinds, plan.z
    spare = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if split is None and plan.objective > bound + settings.gap * abs(bound) and kinds.size <= _MOST_SPARE:
        spare = spare_chunks(passes, kinds, z, 2 * kinds.shape[1])
    others = np.zeros((0, *kinds.shape), bool) if placements is None else placements
    return Certificate(kinds, z, bound, count, spare, others, split)
