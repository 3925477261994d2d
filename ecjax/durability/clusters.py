"""From one group to all groups of a cluster: groups that hold the same fatal set of disks are lost together."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class ClusterLoss(NamedTuple):
    """Losses of any of the groups of a cluster.

    Attributes:
        share: share of the groups that hold a given fatal set of disks
        events: events per year in which at least one group is lost
        annual_loss: probability of such an event within a year
        groups_per_event: mean groups that one event takes
    """

    share: float
    events: float
    annual_loss: float
    groups_per_event: float


def fatal_share(
    n: int, domains: int, disks: int, lost_domains: int, lost_disks: int, used: int | None = None
) -> float:
    """Share of the groups that hold given lost domains and given lost disks of other domains.

    prod_{i<h} (n_h-i)/(H-i) prod_{h<=i<h+e} (n_h-i)/(H-i) (n/n_h)/D.

    Args:
        n: chunks of a group
        domains: H, domains of the cluster
        disks: D, disks of a domain
        lost_domains: h
        lost_disks: e
        used: n_h, domains that hold a group; None: as many as can be, min(n, H)
    """
    used = min(n, domains) if used is None else used
    share = 1.0
    for i in range(lost_domains + lost_disks):
        if i >= used:
            return 0.0
        share *= (used - i) / (domains - i)
        if i >= lost_domains:
            share *= n / used / disks
    return share


def lost_share(spread: Sequence[int], domains: int, disks: int, lost_domains: int, fatal: int) -> float:
    """Share of the groups that are lost with given lost domains, and as few given disks of others as that takes.

    Which domains hold more chunks differs between groups: of some groups the lost domains hold the most that any can,
    of others fewer, and these live on.

    Args:
        spread: chunks of a group in each domain that holds any
        domains: H, domains of the cluster
        disks: D, disks of a domain
        lost_domains: h
        fatal: chunks without which a group is lost
    """
    # choices[i][c]: ways to choose i domains that hold c chunks of a group
    choices = [Counter({0: 1})] + [Counter[int]() for _ in range(lost_domains)]
    for chunks in (*spread, *[0] * (domains - len(spread))):
        for i in range(lost_domains, 0, -1):
            for held, ways in choices[i - 1].items():
                choices[i][held + chunks] += ways
    most = sum(sorted(spread, reverse=True)[:lost_domains])
    lost_disks = max(0, fatal - most)
    enough = sum(ways for held, ways in choices[lost_domains].items() if held >= fatal - lost_disks)
    share = enough / math.comb(domains, lost_domains)
    left = len(spread) - lost_domains
    for i in range(lost_disks):
        if i >= left:
            return 0.0
        share *= (left - i) / (domains - lost_domains - i) * (sum(spread) - most) / left / disks
    return share


def cluster_loss(groups: int, group_rate: float, share: float) -> ClusterLoss:
    """Events per year R (1 - (1-p)^P) / p and groups per event P p / (1 - (1-p)^P), p the share.

    The number of groups that hold a fatal set is binomial; x = P p small gives the usual R P (1 - e^{-x}) / x.
    Independent groups, R P, are the limit for small x and an upper bound for any.

    Args:
        groups: P, groups of the cluster
        group_rate: R, losses of a group per year
        share: p, share of the groups that hold a given fatal set (`lost_share`)
    """
    if not 0 < share < 1:
        together = float(groups) if share >= 1 else 1.0
    else:
        together = groups * share / -math.expm1(groups * math.log1p(-share))
    events = group_rate * groups / together
    return ClusterLoss(share, events, -math.expm1(-events), together)


def power_loss(nodes: int, lost_nodes: int, fatal: int, copysets: int) -> float:
    """Probability that nodes lost at once take all copies of something (Cidon et al., Copysets, ATC 2013).

    Pr = 1 - (1 - C(f, r) / C(N, r))^copysets.

    Args:
        nodes: N, nodes of the cluster
        lost_nodes: f, nodes that fail at once
        fatal: r, losses of one set that lose it: m + 1
        copysets: different sets of nodes in use
    """
    hit = math.comb(lost_nodes, fatal) / math.comb(nodes, fatal)
    return 1.0 if hit >= 1 else -math.expm1(copysets * math.log1p(-hit))
