"""One code in one cluster: how often objects and anything at all are lost, how long and how much is repaired."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecjax.durability import parity_checks
from ecjax.durability.clusters import cluster_loss, lost_share
from ecjax.durability.codes import Code
from ecjax.durability.domain_chain import Chain, chain_loss_rates, mds_survives, state_count
from ecjax.durability.elimination import Rates
from ecjax.durability.lrc import decodable_shares
from ecjax.durability.lrc_domains import lrc_chain_loss_rates
from ecjax.durability.mds_chain import HOURS_PER_YEAR
from ecjax.durability.outages import unavailable_rate
from ecjax.durability.repair_times import RepairCluster, repair_load, repair_time

_S_PER_YEAR = HOURS_PER_YEAR * 3600
_DAYS_PER_YEAR = HOURS_PER_YEAR / 24
_MOST_LABELLED = (
    4  # parities of an LRC up to which states tell local groups apart: with more they are too many
)
MOST_STATES = 4000  # of a chain of losses: seconds each time that a code is judged
MOST_NINES = 323.0  # that floats hold: of fewer losses so many, or more
NEGLIGIBLE_LOAD = 0.3  # of repairs: above it their queue is longer than these formulas take it for


class Failures(NamedTuple):
    """What fails.

    Attributes:
        disk_rate: lambda, failures of a disk per year
        domain_rate: losses of a domain with all its disks, per year
        latent_rate: sectors that go bad per disk and year, until a scrub finds them
        scrub_years: between two scrubs
        bit_error_rate: of reading
    """

    disk_rate: float
    domain_rate: float
    latent_rate: float
    scrub_years: float
    bit_error_rate: float


class Assessment(NamedTuple):
    """What a code is worth in a cluster.

    Attributes:
        overhead: n / k
        most_per_domain: chunks of a group that one domain holds at most
        losses: R, losses of a group, and so of an object, per year
        domain_share: share of them in which a whole domain is lost
        any_losses: events per year that lose at least one group
        latent_losses: stripes per year that a latent error loses while their group has no redundancy left
        repair_s: until a group that a disk's failure concerns is whole, mean
        repair_bytes_per_day: read and written
        repair_load: u, share of the time in which a lost disk is under repair
        domain_repair_load: share of it in which a lost domain is
    """

    overhead: float
    most_per_domain: int
    losses: float
    domain_share: float
    any_losses: float
    latent_losses: float
    repair_s: float
    repair_bytes_per_day: float
    repair_load: float
    domain_repair_load: float

    @property
    def repair_share(self) -> float:
        """Share of the time in which a lost disk or a lost domain is under repair; above 1 repairs never end."""
        return self.repair_load + self.domain_repair_load

    @property
    def any_loss_rate(self) -> float:
        """Events per year that lose a group, or a stripe."""
        return self.any_losses + self.latent_losses

    @property
    def any_loss_probability(self) -> float:
        """Probability that anything is lost within a year."""
        return -math.expm1(-self.any_loss_rate)


def nines(rate: float) -> float:
    """-log10 of losses per year: 11 for 1e-11; at most ``MOST_NINES``."""
    return min(MOST_NINES, -math.log10(rate)) if rate > 0 else MOST_NINES


def assess(code: Code, cluster: RepairCluster, failures: Failures, slower: float = 1.0) -> Assessment | None:
    """Durability and repair of a code; None where repairs of disks and domains never catch up.

    Args:
        code: the code
        cluster: domains, disks, groups and bandwidths
        failures: rates per year
        slower: factor on every time of repair
    """
    n, k = code.n, code.k
    load, domain_load = (each * slower for each in repair_loads(code, cluster, failures))
    if load + domain_load >= 1:
        return None
    spread = cluster.spread(n)
    most = spread[0]
    shares = _survives(code)
    fatal = len(shares)  # losses that no group outlives
    times = _times(code, cluster, load, slower)
    chunk = cluster.user_bytes / (cluster.groups * k)
    used_bytes = cluster.user_bytes * n / k / (cluster.domains * cluster.disks)
    bad = chunk / used_bytes * failures.latent_rate * failures.scrub_years / 2
    # without latent errors, and with them
    latent = np.array([0.0, -math.expm1(-bad - 8 * chunk * failures.bit_error_rate)])
    disk_rate, domain_rate = (np.full(2, rate) for rate in (failures.disk_rate, failures.domain_rate))
    chain = Chain(spread, shares, disk_rate, domain_rate, times, latent)
    labelled = code.local_groups and most > 1 and n - k <= _MOST_LABELLED
    by_domains = (
        lrc_chain_loss_rates((k, code.local_groups, code.parity), chain)
        if labelled
        else chain_loss_rates(chain)
    )
    groups = {lost: float(rates[0]) for lost, rates in by_domains.items()}
    losses = math.fsum(groups.values())
    with_latent = math.fsum(float(rates[1]) for rates in by_domains.values())
    latent_losses = max(0.0, with_latent - losses) * cluster.groups
    lost = failures.disk_rate + failures.domain_rate
    return Assessment(
        n / k,
        most,
        losses,
        math.fsum(rate for lost, rate in groups.items() if lost) / losses if losses else 0.0,
        _any_losses(code, cluster, groups, fatal),
        latent_losses,
        1 / float(times(1, 0, 1)) * _S_PER_YEAR,
        lost * cluster.user_bytes * n / k * (code.repair_chunks + 1) / _DAYS_PER_YEAR,
        load,
        domain_load,
    )


def repair_loads(code: Code, cluster: RepairCluster, failures: Failures) -> tuple[float, float]:
    """Shares of the time in which a lost disk, and in which a lost domain, is under repair."""
    n, k, read = code.n, code.k, code.repair_chunks
    domain = repair_time(cluster, n, k, read, 1, 0)
    # of all chunks that a group has in a domain
    seconds = (domain.all_s - cluster.detect_s) * n / len(cluster.spread(n))
    losses = cluster.domains * failures.domain_rate
    return repair_load(cluster, n, k, read, failures.disk_rate), losses * seconds / _S_PER_YEAR


def unavailable(
    code: Code, cluster: RepairCluster, failures: Failures, outages_per_year: float, outage_years: float
) -> float | None:
    """Times per year that a group cannot be read: planned outages of domains, and disks and domains lost.

    Each chunk is in a domain of its own, whose losses count as those of a disk; repairs take as long as those of disks.

    Args:
        code: the code
        cluster: domains, disks, groups and bandwidths
        failures: rates per year
        outages_per_year: of each domain
        outage_years: mean length of one

    Returns:
        None where the chain does not hold: codes that are not MDS, several chunks in a domain, repairs that never
        catch up.
    """
    load = repair_load(cluster, code.n, code.k, code.repair_chunks, failures.disk_rate)
    if code.local_groups or code.checks or code.n > cluster.domains or load >= 1:
        return None
    times = _times(code, cluster, load, 1.0)
    repairs = [float(times(lost, 0, lost)) for lost in range(1, code.parity + 1)]
    lost = failures.disk_rate + failures.domain_rate
    return unavailable_rate(code.n, lost, repairs, outages_per_year, outage_years)


def _survives(code: Code) -> tuple[float, ...]:
    """Shares of the sets of 0, 1, ... losses that the code decodes, up to the last that is not 0."""
    if code.checks:
        return tuple(share for share in parity_checks.decodable_shares(code.n, code.k, code.checks) if share)
    if not code.local_groups:
        return mds_survives(code.parity)
    return tuple(share for share in decodable_shares(code.k, code.local_groups, code.parity) if share)


def loss_states(code: Code, cluster: RepairCluster) -> int:
    """States of the chain of a group's losses, local groups not told apart."""
    return state_count(cluster.spread(code.n), len(_survives(code)))


def always_survived(code: Code) -> int:
    """Losses that every set of so many chunks of a group leaves decodable: one below its minimum distance."""
    return sum(share == 1.0 for share in _survives(code)) - 1


def _times(
    code: Code, cluster: RepairCluster, load: float, slower: float
) -> Callable[[int, int, int], Rates]:
    """Repairs per year by missing chunks, lost domains and lost disks: single losses wait behind others."""

    def rate(missing: int, lost_domains: int, lost_disks: int) -> Rates:
        read = code.repair_chunks if missing == 1 else float(code.k)
        time = repair_time(cluster, code.n, code.k, read, lost_domains, lost_disks)
        work = time.work_s / (1 - load) if missing == 1 else time.work_s
        return np.array(_S_PER_YEAR / ((cluster.detect_s + work) * slower))

    return rate


def _any_losses(code: Code, cluster: RepairCluster, groups: dict[int, float], fatal: int) -> float:
    """Events per year that lose any group, from those of one group by the domains that are lost with it.

    Groups that hold the same fatal set are lost together.
    """
    events, spread = 0.0, cluster.spread(code.n)
    for lost_domains, rate in groups.items():
        share = lost_share(spread, cluster.domains, cluster.disks, lost_domains, fatal)
        events += cluster_loss(cluster.groups, rate, share).events
    return events
