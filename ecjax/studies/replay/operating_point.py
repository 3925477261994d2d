"""What a replay, its bound and its estimate are about: a plan at given rates and sizes, under laws and queues."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from ecjax import planning
from ecjax.planning import placement
from ecjax.planning.problem import NODE_WORK
from ecjax.planning.read_kinds import KindModel
from ecjax.planning.read_kinds.model import small_work
from ecjax.predict.logged import file_reads, time_of_reads
from ecjax.problem import arrays
from ecjax.problem.overload import EVENLY, demand_of, least_overload, overload
from ecjax.problem.planned_kinds import PlannedKinds
from ecjax.problem.service_laws import service_laws
from ecjax.programs import program
from ecjax.simulation import law_fit
from ecjax.simulation.laws import Laws
from ecjax.simulation.run import DIRECT_OR_DEGRADED, STATIC, Queue
from ecjax.studies.replay.inputs import Case
from ecjax.studies.replay.logged_reads import LoggedReads
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import CANCELLING, Plan
from ecjax.validation.service import EMPIRICAL

SMALL_CLASSES = ("small reads, direct", "small reads, degraded")
_EVEN, _PROPORTIONAL = program(placement.even), program(placement.proportional)


@dataclass(frozen=True)
class Point:
    """What a study varies.

    Attributes:
        policy: how the nodes of a read are chosen.
        queue: how nodes serve.
        service: family of the service laws.
        rate_scale: multiplies the rates, those of the plan.
        size_scale: multiplies the file sizes, those of the plan.
        slow: nodes by id and what multiplies their service times; None: as they are.
    """

    policy: str
    queue: str
    service: str
    rate_scale: float
    size_scale: float
    slow: Mapping[str, float] | None = None


@dataclass(frozen=True)
class OperatingPoint:
    """A plan at one point.

    Attributes:
        plan: placement, ids and tables.
        policy: how the nodes of a read are chosen.
        problem: scaled, with the moments of the laws.
        laws: service laws of the nodes.
        probabilities: (R, m) that reads are spread with.
        queue: how nodes serve.
        rate_scale: what the rates were multiplied by, in all.
        kinds: small reads, scaled; None: there are none.
    """

    plan: Plan
    policy: str
    problem: planning.Problem
    laws: Laws
    probabilities: np.ndarray
    queue: Queue
    rate_scale: float
    kinds: PlannedKinds | None = None

    @property
    def class_names(self) -> list[str]:
        """Classes that latencies are reported by: those of full reads, then the kinds of small ones."""
        return [*self.plan.classes.names, *(SMALL_CLASSES if self.kinds is not None else ())]

    @cached_property
    def kind_model(self) -> KindModel | None:
        """Full and small reads together; None where there are no small ones."""
        return None if self.kinds is None else KindModel(self.problem, self.plan.stored, self.kinds.reads)

    @property
    def loaded(self) -> planning.Problem:
        """The problem with small reads as other work of the nodes."""
        if self.kinds is None or self.kind_model is None:
            return self.problem
        nodes = self.problem.nodes
        work = jnp.asarray(small_work(self.kind_model, self.kinds.degraded))
        return replace(self.problem, nodes=replace(nodes, background=nodes.background + work))

    @property
    def static(self) -> bool:
        """Whether the nodes of a read do not depend on the state of the queues, so that loads are known beforehand."""
        return self.policy in STATIC

    @property
    def channels(self) -> np.ndarray:
        """Accesses that every node serves at once, (m,) int64."""
        several = self.problem.nodes.channels
        count = self.problem.nodes.count
        return np.ones(count, np.int64) if several is None else np.asarray(several).round().astype(np.int64)

    @property
    def loads(self) -> np.ndarray:
        """Load rho of every node, (m,), under dispatch that does not depend on the state."""
        stored = jnp.asarray(self.plan.stored, float)
        return np.asarray(NODE_WORK(self.loaded, jnp.asarray(self.probabilities), stored)[0])


def operating_point(case: Case, point: Point, options: ReplayOptions) -> OperatingPoint:
    """The case at a point.

    Raises:
        UserError: a node has no law of this family.
    """
    plan = case.plan if case.reads is None else _at_rates_of(case.reads, case.plan)
    rate_scale, size_scale = point.rate_scale * plan.run.rate_scale, point.size_scale * plan.run.size_scale
    laws = case.log_laws
    if point.service != EMPIRICAL or laws is None:
        family, files = point.service, plan.problem.files
        laws = service_laws(plan.nodes, files, family, plan.size_scaling, size_scale, options.pareto_ratio)
    if point.slow is not None:
        plan, laws = _slowed(plan, laws, point.slow)
    problem = planning.scaled(_with_laws(plan, laws), rate_scale, size_scale)
    probabilities = _spread(plan, point.policy, problem)
    queue = Queue(point.queue, weights_of(options, plan))
    # rates and sizes of small reads are those of the run
    kinds = None if plan.kinds is None else plan.kinds.scaled(point.rate_scale, point.size_scale)
    return OperatingPoint(plan, point.policy, problem, laws, probabilities, queue, rate_scale, kinds)


def at_mean_rates(case: Case, at: OperatingPoint, options: ReplayOptions) -> OperatingPoint:
    """The same at the mean rates of what is replayed, for loads, bound and estimate, where factors vary them.

    Small reads, whose rates no factor of a file changes, stay at theirs, and so does what is beside them.
    """
    problem, factors = at.problem, case.factors
    if factors is None or at.kinds is not None:
        return at
    rate = np.asarray(problem.files.rate)
    length = time_of_reads(rate, factors, options.requests)
    mean = file_reads(rate, factors, length) / length
    files = replace(problem.files, rate=jnp.asarray(mean))
    return replace(at, problem=planning.prepare(problem.nodes, files, problem.row, problem.rows))


def weights_of(options: ReplayOptions, plan: Plan) -> np.ndarray:
    """Shares of the classes at every node, (K, m): those of the options, else the plan's, else equal parts."""
    if options.weights is None and plan.weights is not None:
        return plan.weights
    count = len(plan.classes.names)
    shares = np.full(count, 1 / count) if options.weights is None else np.array(options.weights)
    return np.tile(shares[:, None], len(plan.nodes))


def _at_rates_of(reads: LoggedReads, plan: Plan) -> Plan:
    """The plan with the mean rates of a log's reads, and of its writes, for loads, bound and estimate."""
    problem = plan.problem
    counts = np.bincount(reads.files, minlength=problem.files.count)
    files = replace(problem.files, rate=jnp.asarray(counts / reads.span_s))
    if reads.writes is not None:
        counts = np.bincount(reads.writes.files, minlength=problem.files.count)
        files = replace(files, write_rate=jnp.asarray(counts / reads.span_s))
    return replace(
        plan,
        problem=planning.prepare(problem.nodes, files, problem.row, problem.rows),
        run=replace(plan.run, rate_scale=1.0),
    )


def _slowed(plan: Plan, laws: Laws, slow: Mapping[str, float]) -> tuple[Plan, Laws]:
    """The plan and its laws with all services of some nodes, other work too, longer by a factor."""
    factor = np.array([slow.get(str(name), 1.0) for name in plan.names.nodes.to_pylist()])
    nodes = plan.problem.nodes
    work = nodes.background * jnp.asarray(factor ** np.arange(1, 4)[:, None])
    problem = replace(plan.problem, nodes=replace(nodes, background=work))
    return replace(plan, problem=problem), laws.slowed(factor)


def _with_laws(plan: Plan, laws: Laws) -> planning.Problem:
    """The plan's problem with the moments of these laws."""
    nodes = replace(plan.problem.nodes, service=jnp.asarray(law_fit.polynomials(laws, len(plan.nodes))))
    if plan.per_node > 1:
        single = arrays.nodes_arrays(plan.nodes, plan.size_scaling)
        single = replace(single, service=nodes.service, background=nodes.background)
        nodes, _ = arrays.several_per_node(single, arrays.files_arrays(plan.files), plan.per_node)
    return replace(plan.problem, nodes=nodes)


def _spread(plan: Plan, policy: str, problem: planning.Problem) -> np.ndarray:
    """Probabilities (R, m) that a policy reads with: the plan's, all chunks alike, or proportional to service rates."""
    stored = jnp.asarray(plan.stored)
    if policy in ("probabilistic", "hedged", DIRECT_OR_DEGRADED):
        return plan.probabilities
    if policy == "proportional":
        return np.asarray(_PROPORTIONAL(problem, stored))
    return np.asarray(_EVEN(problem, stored))


def why_unstable(at: OperatingPoint) -> str | None:
    """Which node, or class at a node, has more to do than it can, in one line; None where that is not known."""
    background, nodes = np.asarray(at.problem.nodes.background)[0], at.plan.names.nodes
    if not at.static:
        least = None if at.policy in CANCELLING else least_overload(demand_of(at.problem))
        return None if least is None else overload(least, background, at.rate_scale, nodes, EVENLY)
    load = at.loads
    if load.max() >= 1:
        return overload(load, background, at.rate_scale, nodes, f"with policy={at.policy}")
    return _overfull_class(at) if at.queue.name == "partitioned" else None


def _overfull_class(at: OperatingPoint) -> str | None:
    """Which class asks more of a node than its part of a strict partition gives; None where none does.

    Other work of a node is asked for by the last class.
    """
    problem, classes, weights = at.problem, at.plan.classes, np.asarray(at.queue.weights)
    files, first = problem.files, np.asarray(problem.nodes.service)[0]
    reads, writes = (
        np.asarray(planning.of_files(problem, jnp.asarray(rows)))
        for rows in (at.probabilities, at.plan.stored)
    )
    powers, written = (
        np.asarray(size)[:, None] ** np.arange(4) for size in (files.chunk_bytes, files.write_bytes)
    )
    worst, words = 1.0, None
    for number, name in enumerate(classes.names):
        member = classes.of_file == number
        work = (np.asarray(files.rate)[member, None] * powers[member]).T @ reads[member]
        if problem.writes is not None:
            work = work + (np.asarray(files.write_rate)[member, None] * written[member]).T @ writes[member]
        load = np.sum(first * work, axis=0)
        if number == len(classes.names) - 1:
            load = load + np.asarray(problem.nodes.background[0])
        full = load / weights[number]
        node = int(np.argmax(full))
        if full[node] >= worst:
            worst = full[node]
            words = (
                f"queue=partitioned: class {name} asks for {load[node]:.3g} of node "
                f"{at.plan.names.nodes[node].as_py()}, its part is {weights[number, node]:.3g}; allowed: weights above "
                "what every class asks for, or lower rates"
            )
    return words
