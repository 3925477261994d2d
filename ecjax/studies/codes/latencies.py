"""Expected latencies of a plan: of full and of small reads, in four states of the cluster."""

import hashlib
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.durability.assessment import Failures
from ecjax.durability.repair_times import RepairCluster
from ecjax.planning import Problem
from ecjax.planning.certified.certify import Certificate
from ecjax.planning.problem import NODE_WORK
from ecjax.predict.common_writes import problem_writes
from ecjax.predict.plan_estimates import Kinds, arrivals_of, calibrated_sample
from ecjax.predict.workload import ESTIMATE, connection_of, node_laws
from ecjax.problem.overload import demand_of, least_overload
from ecjax.problem.service_laws import service_laws
from ecjax.queueing.condense import condense
from ecjax.queueing.service_law import ServiceLaw
from ecjax.queueing.workload import Workload
from ecjax.status import Status
from ecjax.studies.codes.layouts import Layout
from ecjax.studies.codes.plans import CodePlan, code_plan, data_plan
from ecjax.studies.codes.states import (
    SOME,
    TOGETHER,
    Idle,
    State,
    direct_reads,
    drawn,
    joined,
    states,
)
from ecjax.studies.codes.tables import BUSIEST
from ecjax.studies.codes.traffic import (
    ChunkRates,
    Traffic,
    beside,
    most_at_site,
    problem_of,
    repair_work,
    small_reads,
    spread_evenly,
    work_of_small,
)

_FULL = 128  # kinds of full reads that stand for all
_STEP = 32  # of the number of kinds of full reads where files are fewer
_WIDTHS = 16  # reads are computed as if some took a multiple of this: few programs to compile
_KINDS = (("", "mean"), ("", "p99"), ("small_", "mean"), ("small_", "p99"))
_BY_CLASS = ("healthy", "down")  # states in which reads of classes are told apart
APART = tuple(f"class_{kind}{state}" for kind in ("", "small_") for state in _BY_CLASS)

Latencies = list[tuple[float | None, float | None]]  # mean and 99 % quantile of groups of reads, s


class Known:
    """What codes of one k have in common, computed once: where their data is, and estimates of equal states.

    Args:
        threads: of each plan, at most.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.data: dict[tuple[bytes, int | None], Certificate] = {}
        self.samples: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        self.estimates: dict[bytes, Latencies] = {}


def latency_columns(
    layout: Layout, traffic: Traffic, cluster: RepairCluster, failures: Failures, known: Known
) -> dict[str, Any]:
    """Columns of a plan; those of a state in which reads do not end are null.

    Plans are made with what repairs do on average, over the year, as other work. In the state ``repairing`` every disk
    reads and writes for a repair, at the share ``repair_pace`` of its bandwidth for repairs that leaves no node above a
    load of ``BUSIEST``; ``down`` and ``slow`` is the busiest node, or the domain that it is in.

    Args:
        layout: what files are kept in
        traffic: files and nodes
        cluster: whose repairs are the other work
        failures: rates per year
        known: of layouts with the same k's

    Returns:
        columns of a row; where classes are told apart, ``class_STATE`` and ``class_small_STATE``: mean and 99 %
        quantile of the full and the small reads of each
    """
    if most_at_site(layout, traffic) is None:
        return {
            "status": str(Status.INFEASIBLE),
            "error": f"{layout.name}: {layout.longest} chunks on {len(traffic.nodes)} nodes; allowed: one a node"
            + ("" if traffic.site is None else f", {traffic.per_site} a site"),
        }
    idle = problem_of(layout, traffic)
    work = repair_work(idle, layout, traffic, cluster)
    reads = small_reads(layout, traffic)
    small = spread_evenly(idle, reads)
    busy = beside(idle, layout.repair_share(cluster, failures) * work + small)
    # plans of what no plan can serve take long
    over = least_overload(demand_of(busy))
    if over is not None:
        return _unstable(layout) | {"max_load": float(over.max())}
    plan = _plan(layout, beside(idle, small), busy, traffic.gap, known)
    if plan is None:
        return _unstable(layout)
    load = _loads(idle, plan, reads)
    if load.max() >= 1:
        return _unstable(layout) | {"max_load": float(load.max())}
    busiest = int(load.argmax())
    columns: dict[str, Any] = {
        "status": str(Status.OK),
        "gap": plan.gap,
        "max_load": float(load.max()),
        "busiest_node": str(traffic.nodes["node_id"][busiest].as_py()),
        "busiest_site": None if traffic.site is None else str(traffic.nodes["site"][busiest].as_py()),
    }
    pace = float(np.clip(((BUSIEST - load) / work[0]).min(), 0.0, 1.0))
    columns["repair_pace"] = pace
    laws = service_laws(traffic.nodes, idle.files, traffic.service, "proportional")
    for name, state in states(layout, traffic, plan, Idle(idle, laws, pace * work, busiest, reads)):
        full, tiny = _estimated(state, plan.stored, known)
        columns |= {
            f"{kind}{name}_{what}_s": value
            for (kind, what), value in zip(_KINDS, (*full, *tiny), strict=True)
        }
        if layout.groups > 1 and name in _BY_CLASS:
            pairs = [_estimated(state, plan.stored, known, group) for group in range(layout.groups)]
            columns[f"class_{name}"], columns[f"class_small_{name}"] = map(list, zip(*pairs, strict=True))
    return columns | (_no_room(layout, traffic, busiest) if pace == 0 else {})


def _plan(layout: Layout, without: Problem, busy: Problem, gap: float, known: Known) -> CodePlan | None:
    """The plan that all layouts of these k's have without repairs, unless these need another."""
    place = _digest(layout.k), without.per_site
    if place not in known.data:
        known.data[place] = data_plan(without, gap, 0, known.threads)
    data = known.data[place]
    plan = code_plan(busy, layout.n, gap, 0, data)
    if plan is not None and plan.gap <= gap:
        return plan
    alone = code_plan(without, layout.n, gap, 0, data)
    if plan is not None and (alone is None or alone.gap > gap):
        return plan  # repairs are not to blame
    other = code_plan(busy, layout.n, gap, 0, data_plan(busy, gap, 0, known.threads))
    plans = [each for each in (plan, other) if each is not None]
    return min(plans, key=lambda each: each.gap, default=None)


def _no_room(layout: Layout, traffic: Traffic, busiest: int) -> dict[str, Any]:
    """Status of a code whose reads leave a node nothing for repairs."""
    node = traffic.nodes["node_id"][busiest].as_py()
    return {
        "status": str(Status.UNSTABLE),
        "error": f"{layout.name}: reads alone bring node {node} to a load of {BUSIEST:g}, which leaves nothing for "
        "repairs; allowed: lower rates, or more nodes",
    }


def _unstable(layout: Layout) -> dict[str, Any]:
    return {
        "status": str(Status.UNSTABLE),
        "error": f"{layout.name}: reads and repairs overload a node; allowed: lower rates, or more nodes",
    }


def _loads(problem: Problem, plan: CodePlan, small: ChunkRates) -> np.ndarray:
    """Load of every node by all reads, (m,)."""
    full = np.asarray(NODE_WORK(problem, jnp.asarray(plan.probabilities), jnp.asarray(plan.stored, float)))[0]
    return full + work_of_small(problem, small, direct_reads(plan, small))[0]


def _estimated(state: State, stored: np.ndarray, known: Known, group: int | None = None) -> Latencies:
    """Of full reads and of small ones, of one class or all; None where they are not finite."""
    nodes = state.problem.nodes
    service = node_laws(state.laws, nodes.count)
    holds = jnp.asarray(stored, float)
    other = NODE_WORK(state.problem, jnp.zeros_like(holds), holds)
    common = problem_writes(state.problem, stored, service)
    reads = _digest(*state.full, state.laws.table, state.laws.samples)
    written = () if common is None else (common,)
    name = _digest(reads, *state.small, other, *written, np.array(-1 if group is None else group))
    if name not in known.estimates:
        if reads not in known.samples:
            known.samples[reads] = calibrated_sample(joined(state.full), service, _FULL)
        known.estimates[name] = _estimate(state, known.samples[reads], service, (other, common), group)
    return known.estimates[name]


def _digest(*parts: bytes | ArrayLike | Kinds) -> bytes:
    """The same for the same numbers, and for no others."""
    digest = hashlib.sha256()
    for part in parts:
        for each in part if isinstance(part, Kinds) else (part,):
            digest.update(each if isinstance(each, bytes) else np.ascontiguousarray(each).tobytes())
            digest.update(str(np.shape(each)).encode())
    return digest.digest()


def _estimate(
    state: State,
    sample: tuple[np.ndarray, np.ndarray],
    service: ServiceLaw,
    other: tuple[ArrayLike, jax.Array | None],
    which: int | None,
) -> Latencies:
    nodes = state.problem.nodes
    every_full = joined(state.full)
    place, rate = sample
    full = Kinds(*(each[place] for each in every_full))._replace(rate=rate)
    of_class = np.repeat(np.arange(len(state.full)), [len(part.rate) for part in state.full])[place]
    small, counted = state.small, state.small if which is None else state.small_by_class[which]
    every = joined([full, counted.direct, drawn(counted.wide), drawn(counted.degraded)])
    # full reads of other classes are of neither group
    group = np.ones(len(every.rate), int)
    group[: len(full.rate)] = 0 if which is None else np.where(of_class == which, 0, 2)
    # one program for all states and classes, and few for all numbers of files
    most = min(_FULL, _STEP * -(-state.problem.files.count // _STEP))
    parts = -(-nodes.count // TOGETHER)
    rows = (
        most + parts * max(1, -(-len(small.direct.rate) // parts)) + (2 if len(small.wide.rate) else 1) * SOME
    )
    place = np.minimum(np.arange(rows), len(group) - 1)
    kinds, group = Kinds(*(part[place] for part in every)), group[place]
    kinds.rate[len(every.rate) :] = 0.0
    widest = min(nodes.count, _WIDTHS * -(-int(kinds.k.max()) // _WIDTHS))
    load = Workload.of(
        kinds.rate,
        kinds.chunk_bytes,
        np.append(kinds.k[:-1], widest),
        service,
        connection_of(nodes.connect_mean, nodes.connect_variance),
        other[0],
        nodes.channels,
    )
    arrivals = arrivals_of(joined([every_full, *state.small]), service)
    load = replace(load, arrivals=arrivals, common_writes=other[1])
    estimate = ESTIMATE(
        jnp.asarray(kinds.probabilities),
        load,
        levels=(0.99,),
        groups=jnp.asarray(group),
        group_count=2,
        condensed=condense(kinds.probabilities, load),
    )
    pairs = zip(np.asarray(estimate.group_mean), np.asarray(estimate.group_quantiles)[:, 0], strict=True)
    return [(_finite(mean), _finite(tail)) for mean, tail in pairs]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
