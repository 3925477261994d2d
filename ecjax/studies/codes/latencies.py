"""Expected latencies of one code's plan: of full and of small reads, in four states of the cluster."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from jax.typing import ArrayLike

from ecjax.durability.codes import Code
from ecjax.durability.repair_times import RepairCluster, repair_load, repair_time
from ecjax.planning import Problem
from ecjax.planning.certified.certify import Certificate
from ecjax.planning.problem import NODE_WORK, prepare
from ecjax.planning.rescheduling import nearest
from ecjax.predict.plan_estimates import Kinds, arrivals_of, calibrated, kinds_of
from ecjax.predict.workload import ESTIMATE, node_laws
from ecjax.problem.arrays import files_arrays, nodes_arrays, placement_rows
from ecjax.problem.overload import demand_of, least_overload
from ecjax.problem.service_laws import service_laws
from ecjax.queueing.condense import condense
from ecjax.queueing.service_law import ServiceLaw
from ecjax.queueing.workload import Workload
from ecjax.simulation.laws import Laws
from ecjax.status import Status
from ecjax.studies.codes.plans import CodePlan, code_plan, data_plan

BUSIEST = 0.9  # load that repairs leave to a node: faster ones give way to reads
STATES = ("healthy", "down", "slow", "repairing")
_FULL, _DEGRADED = 128, 32  # kinds of reads that stand for all
_STEP = 32  # of the number of kinds of full reads where files are fewer
_TOGETHER = 16  # nodes of one kind of reads of one chunk: estimates are fast where each is of few nodes
_WIDTHS = 16  # reads are computed as if some took a multiple of this: few programs to compile
_UNREAD = 1e-9  # share of the reads that small ones have where the files have none


class Traffic(NamedTuple):
    """What is read, and where from.

    Attributes:
        nodes: checked table
        files: checked table, whose k is not used
        site: (m,) failure domain of each node, from 0; None: each node is one
        per_site: most chunks of a file in a domain
        small_bytes: of a small read, all of it in one data chunk
        small_reads: small reads of a file for each of its full ones
        slow: service times of the slow node as a multiple
        repair_io_bytes: of one read or write of a repair
        service: family of the service laws
        gap: of a plan that is good enough
    """

    nodes: pa.Table
    files: pa.Table
    site: np.ndarray | None
    per_site: int
    small_bytes: float
    small_reads: float
    slow: float
    repair_io_bytes: float
    service: str
    gap: float


class _State(NamedTuple):
    """A cluster in some state, and what is read there: full reads, and small ones."""

    problem: Problem
    laws: Laws
    full: Kinds
    small: list[Kinds]


class Known:
    """What codes of one k have in common, computed once: where their data is, and estimates of equal states.

    Args:
        threads: of each plan, at most.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.data: dict[int | None, Certificate] = {}
        self.samples: dict[bytes, Kinds] = {}
        self.estimates: dict[bytes, list[float | None]] = {}


def latency_columns(
    code: Code, traffic: Traffic, cluster: RepairCluster, disk_rate: float, known: Known
) -> dict[str, Any]:
    """Columns of a code's plan; those of a state in which reads do not end are null.

    Plans are made with what repairs do on average, over the year, as other work. In the state ``repairing`` every disk
    reads and writes for a repair, at the share ``repair_pace`` of its bandwidth for repairs that leaves no node above a
    load of ``BUSIEST``; ``down`` and ``slow`` is the busiest node, or the domain that it is in.

    Args:
        code: what all files are kept in
        traffic: files and nodes
        cluster: whose repairs are the other work
        disk_rate: failures of a disk per year
        known: of codes with the same k
    """
    if _most_at_site(code, traffic) is None:
        return {
            "status": str(Status.INFEASIBLE),
            "error": f"{code.name}: {code.n} chunks on {len(traffic.nodes)} nodes; allowed: one a node"
            + ("" if traffic.site is None else f", {traffic.per_site} a site"),
        }
    idle = _problem(code, traffic)
    work = _repair_work(idle, code, traffic, cluster)
    share = min(1.0, repair_load(cluster, code.n, code.k, code.repair_chunks, disk_rate))
    small = _spread_evenly(idle, traffic)
    busy = _beside(idle, share * work + small)
    # plans of what no plan can serve take long
    over = least_overload(demand_of(busy))
    if over is not None:
        return _unstable(code) | {"max_load": float(over.max())}
    plan = _plan(code, _beside(idle, small), busy, traffic.gap, known)
    if plan is None:
        return _unstable(code)
    rate = traffic.small_reads or _UNREAD
    load = _loads(idle, plan, rate, traffic)
    if load.max() >= 1:
        return _unstable(code) | {"max_load": float(load.max())}
    busiest = int(load.argmax())
    columns: dict[str, Any] = {
        "status": str(Status.OK),
        "gap": plan.gap,
        "max_load": float(load.max()),
        "busiest_node": str(traffic.nodes["node_id"][busiest].as_py()),
    }
    pace = float(np.clip(((BUSIEST - load) / work[0]).min(), 0.0, 1.0))
    columns["repair_pace"] = pace
    laws = service_laws(traffic.nodes, idle.files, traffic.service, "proportional")
    for name, state in _states(code, traffic, plan, _Idle(idle, laws, pace * work, busiest, rate)):
        columns |= {
            f"{kind}{name}_{what}_s": value
            for (kind, what), value in zip(_KINDS, _estimated(state, plan.stored, known), strict=True)
        }
    return columns | (_no_room(code, traffic, busiest) if pace == 0 else {})


def _plan(code: Code, without: Problem, busy: Problem, gap: float, known: Known) -> CodePlan | None:
    """The plan that all codes of this k have without repairs, unless these need another."""
    place = without.per_site
    if place not in known.data:
        known.data[place] = data_plan(without, gap, 0, known.threads)
    plan = code_plan(busy, code.n, gap, 0, known.data[place])
    if plan is None or plan.gap > gap:
        other = code_plan(busy, code.n, gap, 0, data_plan(busy, gap, 0, known.threads))
        return plan if other is None else other
    return plan


def _no_room(code: Code, traffic: Traffic, busiest: int) -> dict[str, Any]:
    """Status of a code whose reads leave a node nothing for repairs."""
    node = traffic.nodes["node_id"][busiest].as_py()
    return {
        "status": str(Status.UNSTABLE),
        "error": f"{code.name}: reads alone bring node {node} to a load of {BUSIEST:g}, which leaves nothing for "
        "repairs; allowed: lower rates, or more nodes",
    }


_KINDS = (("", "mean"), ("", "p99"), ("small_", "mean"), ("small_", "p99"))


class _Idle(NamedTuple):
    """A cluster where nothing is wrong; the node that most is read from; small reads for each full one."""

    problem: Problem
    laws: Laws
    repair: np.ndarray
    busiest: int
    small: float


def _unstable(code: Code) -> dict[str, Any]:
    return {
        "status": str(Status.UNSTABLE),
        "error": f"{code.name}: reads and repairs overload a node; allowed: lower rates, or more nodes",
    }


def _problem(code: Code, traffic: Traffic) -> Problem:
    """The problem of all files in this code."""
    table = traffic.files
    files = files_arrays(
        table.set_column(table.column_names.index("k"), "k", pa.array([code.k] * len(table)))
    )
    rows = placement_rows(table)
    problem = prepare(nodes_arrays(traffic.nodes), files, rows.of_file, rows.count)
    if traffic.site is None:
        return problem
    return replace(problem, site=jnp.asarray(traffic.site, jnp.int32), per_site=_most_at_site(code, traffic))


def _most_at_site(code: Code, traffic: Traffic) -> int | None:
    """Chunks of a file at a site when they are spread as evenly as nodes allow; None where they do not fit."""
    if traffic.site is None:
        return 1 if code.n <= len(traffic.nodes) else None
    nodes = np.bincount(traffic.site)
    return next(
        (most for most in range(1, traffic.per_site + 1) if np.minimum(nodes, most).sum() >= code.n), None
    )


def _repair_work(problem: Problem, code: Code, traffic: Traffic, cluster: RepairCluster) -> np.ndarray:
    """Load, A_2, A_3 of every node while a disk is repaired, (3, m): that of each of its disks."""
    time = repair_time(cluster, code.n, code.k, code.repair_chunks, 0, 1)
    disks = cluster.disks * (cluster.domains - 1)
    return _moments(problem, time.bytes_per_s / disks / traffic.repair_io_bytes, traffic.repair_io_bytes)


def _moments(problem: Problem, rate: float | np.ndarray, size: float) -> np.ndarray:
    """Rate m_1, rate m_2, rate m_3 of each node, (3, m)."""
    return rate * np.einsum("npm,p->nm", np.asarray(problem.nodes.service), size ** np.arange(4.0))


def _spread_evenly(problem: Problem, traffic: Traffic) -> np.ndarray:
    """Small reads as other work, as many at every node: what a plan for full reads knows of them."""
    rate = traffic.small_reads * float(np.asarray(problem.files.rate).sum()) / problem.nodes.count
    return _moments(problem, rate, traffic.small_bytes)


def _beside(problem: Problem, work: np.ndarray) -> Problem:
    """The problem with more work beside its reads, (3, m)."""
    return replace(
        problem, nodes=replace(problem.nodes, background=problem.nodes.background + jnp.asarray(work))
    )


def _loads(problem: Problem, plan: CodePlan, small: float, traffic: Traffic) -> np.ndarray:
    """Load of every node by all reads, (m,)."""
    full = np.asarray(NODE_WORK(problem, jnp.asarray(plan.probabilities), jnp.asarray(plan.stored, float)))[0]
    direct = small * (_row_rates(problem) @ plan.data) / _k(problem)
    return full + _moments(problem, direct, traffic.small_bytes)[0]


def _k(problem: Problem) -> float:
    return float(problem.k[0])


def _row_rates(problem: Problem) -> np.ndarray:
    return np.asarray(problem.reads[0])


def _states(code: Code, traffic: Traffic, plan: CodePlan, idle: _Idle) -> Iterable[tuple[str, _State]]:
    """The states of ``STATES`` in which all files can be read."""
    problem, laws = idle.problem, idle.laws
    full = kinds_of(problem, plan.probabilities)
    direct = idle.small * _row_rates(problem)[:, None] * plan.data / _k(problem)
    small = [_direct(direct.sum(axis=0), traffic.small_bytes)]
    healthy = _State(problem, laws, full, small)
    yield "healthy", healthy
    at = np.arange(problem.nodes.count) == idle.busiest
    down = at if traffic.site is None else traffic.site == traffic.site[idle.busiest]
    survivors = plan.stored & ~down
    if np.all(survivors.sum(axis=1) >= code.k):
        moved = np.asarray(nearest(problem, jnp.asarray(plan.probabilities), jnp.asarray(survivors)))
        left = [_direct(np.where(down, 0.0, direct.sum(axis=0)), traffic.small_bytes)]
        away = direct[:, down].sum(axis=1)
        left += [_degraded(moved * (code.degraded_chunks / code.k), away, code, traffic.small_bytes)]
        yield "down", _State(problem, laws, kinds_of(problem, moved), left)
    factor = np.where(down, traffic.slow, 1.0)
    service = problem.nodes.service * jnp.asarray(factor[None] ** np.arange(1, 4)[:, None])[:, None]
    slowed = replace(problem, nodes=replace(problem.nodes, service=service))
    yield "slow", _State(slowed, laws.slowed(factor), full, small)
    yield "repairing", healthy._replace(problem=_beside(problem, idle.repair))


def _direct(rate: np.ndarray, size: float) -> Kinds:
    """Small reads of one chunk each, by the nodes they take it from: few kinds, as it matters not whose they are."""
    part = np.arange(len(rate)) // _TOGETHER
    reads = np.where(part == np.arange(part[-1] + 1)[:, None], rate, 0.0)
    reads = reads[reads.sum(axis=1) > 0]
    total = reads.sum(axis=1)
    return Kinds(reads / total[:, None], total, np.full(len(total), size), np.ones(len(total)))


def _degraded(probabilities: np.ndarray, rate: np.ndarray, code: Code, size: float) -> Kinds:
    """Small reads whose chunk is away: so many other chunks each."""
    some = rate > 0
    each = np.ones(some.sum())
    return Kinds(probabilities[some], rate[some], each * size, each * code.degraded_chunks)


def _joined(parts: Sequence[Kinds]) -> Kinds:
    return Kinds(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _drawn(kinds: Kinds) -> Kinds:
    """Few in steps of equal rate."""
    total = kinds.rate.sum()
    if len(kinds.rate) <= _DEGRADED:
        return kinds
    drawn = np.searchsorted(np.cumsum(kinds.rate) / total, (np.arange(_DEGRADED) + 0.5) / _DEGRADED)
    few = Kinds(*(each[np.minimum(drawn, len(kinds.rate) - 1)] for each in kinds))
    return few._replace(rate=np.full(_DEGRADED, total / _DEGRADED))


def _estimated(state: _State, stored: np.ndarray, known: Known) -> list[float | None]:
    """Mean and 99 % quantile of full and of small reads, s; None where they are not finite."""
    nodes = state.problem.nodes
    service = node_laws(state.laws, nodes.count)
    holds = jnp.asarray(stored, float)
    beside = NODE_WORK(state.problem, jnp.zeros_like(holds), holds)
    reads = _digest(state.full, state.laws.table, state.laws.samples)
    name = _digest(reads, *state.small, beside)
    if name not in known.estimates:
        if reads not in known.samples:
            known.samples[reads] = calibrated(state.full, service, _FULL)
        known.estimates[name] = _estimate(state, known.samples[reads], service, beside)
    return known.estimates[name]


def _digest(*parts: bytes | ArrayLike | Kinds) -> bytes:
    """The same for the same numbers, and for no others."""
    digest = hashlib.sha256()
    for part in parts:
        for each in part if isinstance(part, Kinds) else (part,):
            digest.update(each if isinstance(each, bytes) else np.ascontiguousarray(each).tobytes())
            digest.update(str(np.shape(each)).encode())
    return digest.digest()


def _estimate(state: _State, full: Kinds, service: ServiceLaw, beside: ArrayLike) -> list[float | None]:
    nodes = state.problem.nodes
    direct, *degraded = state.small
    every = _joined([full, direct, *map(_drawn, degraded)])
    group = np.repeat([0, 1], [len(full.rate), len(every.rate) - len(full.rate)])
    # one program for all states, and few for all numbers of files
    most = min(_FULL, _STEP * -(-state.problem.files.count // _STEP))
    rows = most - (-nodes.count // _TOGETHER) + _DEGRADED
    place = np.minimum(np.arange(rows), len(group) - 1)
    kinds, group = Kinds(*(part[place] for part in every)), group[place]
    kinds.rate[len(every.rate) :] = 0.0
    widest = min(nodes.count, _WIDTHS * -(-int(kinds.k.max()) // _WIDTHS))
    load = Workload.of(
        kinds.rate,
        kinds.chunk_bytes,
        np.append(kinds.k[:-1], widest),
        service,
        (nodes.connect_mean, nodes.connect_variance),
        beside,
    )
    load = replace(load, arrivals=arrivals_of(_joined([state.full, *state.small]), service))
    estimate = ESTIMATE(
        jnp.asarray(kinds.probabilities),
        load,
        levels=(0.99,),
        groups=jnp.asarray(group),
        group_count=2,
        condensed=condense(kinds.probabilities, load),
    )
    mean, tail = np.asarray(estimate.group_mean), np.asarray(estimate.group_quantiles)[:, 0]
    values = [mean[0], tail[0], mean[1], tail[1]]
    return [float(value) if np.isfinite(value) else None for value in values]
