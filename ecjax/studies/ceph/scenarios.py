"""What if: an OSD or host down, an OSD slower, a pool with fast_read or another k+m, data that moves."""

from typing import NamedTuple

import numpy as np

from ecjax.errors import UserError
from ecjax.rados.batches import Batch
from ecjax.rados.crush import broken, has_room
from ecjax.rados.plan import BYTES, READS, Plan, mean_read_bytes, plan_of, role_load, with_sets
from ecjax.rados.rates import other_reads
from ecjax.rados.records import Cluster, Domains, shard_bytes
from ecjax.rados.shared import shared_demand
from ecjax.studies.ceph.inputs import Case
from ecjax.studies.ceph.latencies import Service, estimate
from ecjax.studies.ceph.rows import ratio
from ecjax.studies.spine.batches import Rows

_TRIES = 200
BEFORE, PLAN = "before", "plan"


class Served(NamedTuple):
    """Which OSDs serve the reads of each group."""

    takes: np.ndarray  # (G, m) 1 where a client read takes a shard
    leads: np.ndarray  # (G, m) 1 where the primary is, the first OSD of the set that is up
    lost: np.ndarray  # (G,) bool: fewer than k or min_size shards are up, so that reads wait


class Reads(NamedTuple):
    """Who serves what in a scenario."""

    case: Case
    served: Served
    slower: np.ndarray  # (m,) factor of the times
    extra: np.ndarray  # (m,) shard reads/s besides, of the mean size
    up: np.ndarray  # (m,) bool
    note: str | None = None
    all_answer: bool = True  # whether a read waits for all that it takes


def scenario_rows(
    case: Case, plan: Plan, batches: list[Batch], names: list[str], service: Service | None, within: float
) -> Rows:
    """Loads and latencies in every scenario, as it is and by the plan.

    Args:
        case: the cluster.
        plan: for it.
        batches: of the plan.
        names: of scenarios, as the option ``what_if`` has them.
        service: times of shard reads; None: they are not known.
        within: of the plan, for pools that get another code.

    Raises:
        UserError: a scenario names what the cluster has not.
    """
    cluster = case.cluster
    sets = {BEFORE: cluster.groups.osd, PLAN: with_sets(cluster, plan.sets)}
    usual = float(role_load(cluster, case.demand, {}).max())
    rows: Rows = []
    for name in names:
        for placement, osd in sets.items():
            reads = _scenario(case, name, placement, osd, batches, within)
            rows.append({"scenario": name, "placement": placement} | _row(reads, usual, service))
    return rows


def check_scenarios(cluster: Cluster, names: list[str]) -> None:
    """Refuse scenarios that name what the cluster has not.

    Raises:
        UserError: one does.
    """
    for name in names:
        kind, _, rest = name.partition(":")
        if kind.startswith("osd.") or kind == "slow":
            _osd(cluster, kind if kind.startswith("osd.") else rest.partition(":")[0])
        elif kind == "host":
            _host(cluster, rest)
        elif kind in ("fast_read", "code"):
            _pool(cluster, name, rest.partition(":")[0])


def _row(reads: Reads, usual: float, service: Service | None) -> dict[str, float | str | None]:
    case, rate = reads.case, reads.case.cluster.groups.rate
    demand, served = case.demand, reads.served
    work = np.where(served.lost, 0.0, demand.work)
    each = 1.0 if demand.unit == READS else mean_read_bytes(case.cluster) or 0.0
    load = demand.base + each * reads.extra + work @ (served.takes + demand.primary * served.leads)
    load *= reads.slower / demand.speed
    up = load[reads.up]
    row: dict[str, float | str | None] = {
        "max_over_mean": ratio(up) if len(up) else None,
        "load_ratio": float(up.max()) / usual if len(up) and usual > 0 else None,
        # the first row names the columns of all
        "estimated_mean_s": None,
        "estimated_p99_s": None,
        "unavailable_share": float(rate[served.lost].sum() / rate.sum()),
        "note": reads.note,
    }
    if service is not None and reads.all_answer:
        takes = np.where(served.lost[:, None], 0.0, served.takes)
        latency = estimate(case, service, takes, reads.slower, reads.extra)
        if latency is not None:
            row |= {"estimated_mean_s": latency.mean, "estimated_p99_s": latency.p99}
    return row


def _scenario(
    case: Case, name: str, placement: str, osd: np.ndarray, batches: list[Batch], within: float
) -> Reads:
    cluster = case.cluster
    kind, _, rest = name.partition(":")
    m, groups = len(cluster.osds), len(cluster.groups.ids)
    usual = Reads(
        case,
        # what is degraded now counts as served
        _served(cluster, osd, np.ones(m, bool))._replace(lost=np.zeros(groups, bool)),
        np.ones(m),
        np.zeros(m),
        np.ones(m, bool),
    )
    if kind.startswith("osd."):
        return _down(usual, osd, cluster.osds == _osd(cluster, kind))
    if kind == "host":
        return _down(usual, osd, _host(cluster, rest))
    if kind == "slow":
        which, _, times = rest.partition(":")
        slower = np.where(cluster.osds == _osd(cluster, which), float(times), 1.0)
        return usual._replace(slower=slower)
    if kind == "fast_read":
        return _fast(usual, osd, _pool(cluster, name, rest))
    if kind == "code":
        pool, _, code = rest.partition(":")
        k, m_parity = map(int, code.split("+"))
        return _coded(usual, _pool(cluster, name, pool), (k, k + m_parity), placement, within)
    return _moving(usual, batches, float(rest))


def _osd(cluster: Cluster, name: str) -> int:
    number = int(name.removeprefix("osd."))
    if number not in cluster.osds:
        raise UserError(f"what_if: found {name}; allowed: OSDs of the cluster")
    return number


def _host(cluster: Cluster, name: str) -> np.ndarray:
    """(m,) bool: OSDs of a host."""
    inside = np.array([host == name for host in cluster.host])
    if not inside.any():
        hosts = ", ".join(sorted(set(cluster.host)))
        raise UserError(f"what_if=host:{name}: found no such host; allowed: {hosts}")
    return inside


def _pool(cluster: Cluster, scenario: str, name: str) -> int:
    names = [pool.name for pool in cluster.pools]
    if name not in names:
        raise UserError(f"what_if={scenario}: found no such pool; allowed: {', '.join(names)}")
    return names.index(name)


def _served(cluster: Cluster, osd: np.ndarray, up: np.ndarray) -> Served:
    """Who serves reads with some OSDs up, (m,): the first k shards that are (all with fast_read)."""
    groups = cluster.groups
    count = np.diff(groups.first)
    there = (osd >= 0) & up[osd]
    place = np.cumsum(there) - there
    rank = place - np.repeat(place[groups.first[:-1]], count)
    width = np.array([pool.n if pool.fast_read else pool.k for pool in cluster.pools])[groups.pool]
    use = there & (rank < np.repeat(width, count))
    group = np.repeat(np.arange(len(groups.ids)), count)
    takes, leads = np.zeros((2, len(groups.ids), len(cluster.osds)))
    takes[group[use], osd[use]] = 1.0
    first = there & (rank == 0)
    leads[group[first], osd[first]] = 1.0
    least = np.array([max(pool.k, pool.min_size) for pool in cluster.pools])[groups.pool]
    return Served(takes, leads, np.add.reduceat(there, groups.first[:-1]) < least)


def _down(usual: Reads, osd: np.ndarray, down: np.ndarray) -> Reads:
    case = usual.case
    served = _served(case.cluster, osd, ~down)
    note = (
        "down: reads take the first k shards that are up, in pools that are not planned, too; groups with fewer than "
        "min_size serve none; nothing is rebuilt yet"
    )
    return usual._replace(case=_others_down(case, down), served=served, up=~down, note=note)


def _others_down(case: Case, down: np.ndarray) -> Case:
    """A case whose pools that are not planned are served by other OSDs than those that are down, (m,) bool."""
    cluster = case.cluster
    if not cluster.background.any():
        return case
    planned = {pool.pool_id for pool in cluster.pools}
    reads, size = other_reads(case.dumps, planned, cluster.osds, set(cluster.osds[down].tolist()))
    return case._replace(
        cluster=cluster._replace(background=reads, background_bytes=size),
        demand=case.demand._replace(base=size if case.demand.unit == BYTES else reads),
    )


def _fast(usual: Reads, osd: np.ndarray, pool: int) -> Reads:
    cluster = usual.case.cluster
    pools = list(cluster.pools)
    pools[pool] = pools[pool]._replace(fast_read=True)
    faster = cluster._replace(pools=tuple(pools))
    served = _served(faster, osd, np.ones(len(cluster.osds), bool))
    note = "fast_read: all n shards are read, the first k answers count; latencies are not estimated"
    return usual._replace(served=served, note=note, all_answer=False)


def _coded(usual: Reads, pool: int, code: tuple[int, int], placement: str, within: float) -> Reads:
    """Another k+m: sets drawn by weight under the rule, as nobody knows which CRUSH would take."""
    case, cluster, (k, n) = usual.case, usual.case.cluster, code
    pools = list(cluster.pools)
    domains = cluster.domains[pool]
    if domains is None:
        raise UserError(
            f"what_if: found a rule of pool {pools[pool].name} that is not known; allowed: others"
        )
    old = pools[pool]
    # min_size as Ceph gives it to a new pool
    pools[pool] = old._replace(k=k, n=n, min_size=k + min(1, n - k - 1))
    groups = cluster.groups
    draw = np.random.default_rng(0)
    sets = [
        _drawn(cluster, domains, n, draw)
        if groups.pool[place] == pool
        else groups.osd[groups.first[place] : groups.first[place + 1]]
        for place in range(len(groups.ids))
    ]
    other = cluster._replace(
        pools=tuple(pools),
        groups=groups._replace(
            osd=np.concatenate(sets),
            first=np.concatenate([[0], np.cumsum([len(each) for each in sets])]).astype(np.int64),
        ),
    )
    demand = case.demand
    if demand.unit == BYTES:
        # a shard of an object has 1/k of it
        demand = demand._replace(work=np.where(groups.pool == pool, demand.work * old.k / k, demand.work))
    changed = case._replace(cluster=other, demand=demand)
    osd = other.groups.osd
    if placement == PLAN:
        osd = with_sets(other, plan_of(other, shared_demand(other, demand, None).demand, within).sets)
    served = _served(other, osd, np.ones(len(cluster.osds), bool))
    note = "code: sets are drawn by weight under the rule; a shard read takes as long as now, whatever k is"
    return usual._replace(case=changed, served=served, note=note)


def _drawn(cluster: Cluster, domains: Domains, n: int, draw: np.random.Generator) -> np.ndarray:
    """(n,) places of OSDs of a set under a rule, drawn by weight."""
    allowed = np.isin(cluster.osds, list(domains.allowed)) & cluster.usable
    weight = np.where(allowed, cluster.weight, 0.0)
    for _ in range(_TRIES):
        chosen: list[int] = []
        left = weight.copy()
        while len(chosen) < n and left.sum() > 0:
            place = int(draw.choice(len(left), p=left / left.sum()))
            left[place] = 0.0
            osd, others = int(cluster.osds[place]), cluster.osds[chosen].tolist()
            roomy = all(has_room(level, osd, others) for level in domains.levels)
            if roomy and broken(domains, (*others, osd)) is None:
                chosen.append(place)
        if len(chosen) == n:
            return np.array(chosen)
    raise UserError(
        f"what_if: found a code of {n} shards, for which the rule has too few domains; allowed: fewer"
    )


def _moving(usual: Reads, batches: list[Batch], bytes_per_s: float) -> Reads:
    """The largest batch under way: k old shards are read for every one that is written."""
    cluster = usual.case.cluster
    extra = np.zeros(len(cluster.osds))
    size = mean_read_bytes(cluster)
    if not batches or not size:
        return usual._replace(note="backfill: nothing moves, or sizes of reads are not known")
    batch = max(batches, key=lambda each: each.bytes)
    place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
    total = np.zeros(len(cluster.osds))
    parts = []
    for change in batch.changes:
        place = place_of[change.group]
        for before, after in zip(change.before, change.after, strict=True):
            if before != after:
                taker = int(np.searchsorted(cluster.osds, after))
                total[taker] += shard_bytes(cluster, place)
                parts.append((place, taker, shard_bytes(cluster, place)))
    rate = bytes_per_s / size
    for place, taker, amount in parts:
        share = rate * amount / max(total[taker], 1.0)
        extra += share * usual.served.takes[place]
        extra[taker] += share
    note = (
        "backfill: the largest batch, each OSD that receives is written to at the rate told, and k shards are read for "
        "each (assumed); reads still take the old positions"
    )
    return usual._replace(extra=extra, note=note)
