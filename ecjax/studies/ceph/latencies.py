"""Expected latencies of client reads of a cluster, where service times are known: the estimate of every other job."""

from typing import NamedTuple

import numpy as np

from ecjax.predict.plan_estimates import Kinds, PlanEstimate, kinds_estimate
from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.rados.files import as_printed
from ecjax.rados.records import Cluster, is_read
from ecjax.rados.times import Times, service_times
from ecjax.studies.ceph.inputs import Case
from ecjax.studies.ceph.options import CephOptions

_LEVELS = np.linspace(0, 1, 600)  # of the times at which curves are taken
_QUANTILE = 0.99
_LEAST = 20  # samples of an OSD from which they are a law of its own


class Service(NamedTuple):
    """Service times of shard reads at the OSDs."""

    units: tuple[UnitLaw, ...]  # (m,) laws of U; a time is scale U
    scale: np.ndarray  # (m,) s
    moments: np.ndarray  # (3, m) s, s^2, s^3
    source: str
    notes: tuple[str, ...]

    @property
    def unit_values(self) -> np.ndarray:
        """(m, n) values of U at which its laws are tabulated."""
        return np.stack([np.asarray(unit.value) for unit in self.units])

    @property
    def unit_levels(self) -> np.ndarray:
        """(m, n) Pr(U <= value)."""
        return np.stack([np.asarray(unit.level) for unit in self.units])

    def law(self, slower: np.ndarray) -> ServiceLaw:
        """The laws with every OSD so many times slower, (m,)."""
        return ServiceLaw.of_nodes(self.units, scale=self.scale * slower)


def service_of(case: Case, options: CephOptions) -> Service | None:
    """Service times by the options, else by the dumps; None where neither says anything."""
    service = _known(case, options)
    fast = [pool.name for pool in case.cluster.pools if pool.fast_read]
    if service is None or not fast:
        return service
    note = f"pools {', '.join(fast)}: latencies of their reads, the first k of n with fast_read, are not estimated"
    return service._replace(notes=(*service.notes, note))


def with_service(case: Case, options: CephOptions) -> tuple[Case, Service | None]:
    """A case and its service times; where there are none, with notes on what of its dumps was refused as such."""
    service = service_of(case, options)
    if service is not None:
        return case, service
    refused = service_times(case.dumps.operations, case.dumps.counters).notes
    return case._replace(notes=(*case.notes, *refused)), None


def _known(case: Case, options: CephOptions) -> Service | None:
    speed = case.demand.speed
    if options.service_s is not None:
        return _named(options.service_s / speed, options.service_cv, "service_s", ())
    with as_printed(case.dumps.source, case.cluster.release):
        times = service_times(case.dumps.operations, case.dumps.counters)
    if times.samples:
        return _sampled(case.cluster, times)
    if times.means:
        pooled = float(np.mean(list(times.means.values())))
        osds = case.cluster.osds.tolist()
        means = np.array([times.means.get(osd, pooled) for osd in osds])
        note = f"service times: means of bluestore.read_lat, service_cv={options.service_cv:g} is assumed"
        missing = sum(osd not in times.means for osd in osds)
        if missing:
            note += (
                f"; {missing} of {len(osds)} OSDs have no two perf dumps with reads between them: they count as the "
                "mean of the others"
            )
        return _named(means, options.service_cv, "perf dump", (*times.notes, note))
    return None


def _named(mean: np.ndarray, cv: float, source: str, notes: tuple[str, ...]) -> Service:
    """Gamma laws."""
    shape = cv**-2.0
    unit, scale = UnitLaw.named("gamma", shape=shape), mean / shape
    orders = [shape, shape * (shape + 1), shape * (shape + 1) * (shape + 2)]
    moments = np.stack([order * scale**power for power, order in enumerate(orders, 1)])
    return Service((unit,) * len(mean), scale, moments, source, notes)


def _sampled(cluster: Cluster, times: Times) -> Service:
    """Laws of the samples of each OSD; of all together where an OSD has few."""
    pooled = np.concatenate([np.asarray(each) for each in times.samples.values()])
    every = UnitLaw.empirical(pooled)
    units, rows, few = [], [], 0
    for osd in cluster.osds.tolist():
        samples = np.asarray(times.samples.get(osd, ()))
        enough = len(samples) >= _LEAST
        few += not enough
        units.append(UnitLaw.empirical(samples) if enough else every)
        rows.append([float(((samples if enough else pooled) ** power).mean()) for power in (1, 2, 3)])
    notes = [f"service times: {len(pooled)} shard reads of dump_historic_ops"]
    if few:
        notes.append(
            f"{few} OSDs have fewer than {_LEAST} shard reads there: they count as the others together"
        )
    return Service(
        tuple(units), np.ones(len(units)), np.array(rows).T, "dump_historic_ops", (*times.notes, *notes)
    )


def estimate(
    case: Case,
    service: Service,
    probabilities: np.ndarray,
    slower: np.ndarray | None = None,
    extra: np.ndarray | None = None,
) -> PlanEstimate | None:
    """Expected latency of client reads; a read ends with the last of its shards.

    Reads of pools with ``fast_read`` end with the k-th of n: they are not estimated, and are work beside the others.

    Args:
        case: rates of its groups count, and other reads of its OSDs.
        service: times at its OSDs.
        probabilities: (G, m) 1 where a read of the group takes a shard.
        slower: (m,) factor of the times; default: 1.
        extra: (m,) shard reads/s besides; default: none.

    Returns:
        None where there are no reads to be estimated.
    """
    groups = case.cluster.groups
    slower = np.ones(probabilities.shape[1]) if slower is None else slower
    other = case.cluster.background + (0.0 if extra is None else extra)
    powers = np.arange(1, 4)[:, None]
    estimated = is_estimated(case.cluster)
    other = other + groups.rate[~estimated] @ probabilities[~estimated]
    served = np.flatnonzero(estimated & (probabilities.sum(axis=1) > 0))
    if not len(served):
        return None
    kinds = Kinds(
        probabilities[served],
        groups.rate[served],
        np.ones(len(served)),
        probabilities[served].sum(axis=1),
    )
    return kinds_estimate(kinds, service.law(slower), beside=other * service.moments * slower**powers)


def is_estimated(cluster: Cluster) -> np.ndarray:
    """(G,) bool: groups of whose reads latencies are estimated: those that are read, of pools without ``fast_read``."""
    fast = np.array([pool.fast_read for pool in cluster.pools])[cluster.groups.pool]
    return (cluster.groups.rate > 0) & ~fast


def least_latency(case: Case, service: Service, roles_only: bool) -> PlanEstimate | None:
    """What no plan is faster than: every read takes the k fastest OSDs that it could, and never waits.

    Pr(a read ends by t) is at most the product of the k largest Pr(X_j <= t) of its candidates, as shards are served
    independently of each other; the curve is bounded from above between its points, so that both are bounds.

    Args:
        case: rates of its groups count.
        service: times at its OSDs.
        roles_only: whether a group's candidates are its own OSDs; else all that are usable.

    Returns:
        None where there are no reads to be estimated.
    """
    cluster, groups = case.cluster, case.cluster.groups
    times = np.unique(np.quantile(service.unit_values * service.scale[:, None], _LEVELS))
    ends = np.stack(
        [
            np.interp(times / scale, value, level, left=0.0)
            for value, level, scale in zip(
                service.unit_values, service.unit_levels, service.scale, strict=True
            )
        ],
        axis=1,
    )  # (T, m)
    by_end, read = np.zeros(len(times)), is_read(cluster)
    estimated = is_estimated(cluster)
    if not estimated.any():
        return None
    for group in np.flatnonzero(estimated).tolist():
        inside = slice(groups.first[group], groups.first[group + 1])
        osd, k = groups.osd[inside], cluster.pools[int(groups.pool[group])].k
        if not groups.movable[group]:
            osd = osd[read[inside]]
        elif not roles_only:
            osd = np.flatnonzero(cluster.usable)
        fastest = np.sort(ends[:, osd[osd >= 0]], axis=1)[:, -k:]
        by_end += groups.rate[group] * fastest.prod(axis=1)
    by_end /= groups.rate[estimated].sum()
    mean = float((np.diff(times, prepend=0.0) * (1 - by_end)).sum())
    later = np.flatnonzero(by_end < _QUANTILE)
    return PlanEstimate(mean, float(times[later[-1]]) if len(later) else 0.0)


def read_probabilities(cluster: Cluster, osd: np.ndarray) -> np.ndarray:
    """(G, m) 1 where an OSD holds a position that is read, (N,) places of the OSDs by position."""
    groups = cluster.groups
    table = np.zeros((len(groups.ids), len(cluster.osds)))
    use = is_read(cluster) & (osd >= 0)
    table[np.repeat(np.arange(len(groups.ids)), np.diff(groups.first))[use], osd[use]] = 1.0
    return table
