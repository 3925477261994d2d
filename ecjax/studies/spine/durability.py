"""The cluster that durability options describe, what fails in it, and which codes it can keep."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa

from ecjax.durability.assessment import (
    MOST_STATES,
    NEGLIGIBLE_LOAD,
    Failures,
    always_survived,
    assess,
    loss_states,
    nines,
    repair_loads,
)
from ecjax.durability.codes import Code
from ecjax.durability.mds_chain import HOURS_PER_YEAR
from ecjax.durability.parity_checks import MOST_SETS, sets_of_losses
from ecjax.durability.repair_times import RepairCluster
from ecjax.errors import UserError
from ecjax.studies.spine.durability_options import DurabilityOptions

_DOMAINS, _DISKS = 12, 10
WORSE = {
    "nines_double_afr": "twice the afr",
    "nines_double_domain_losses": "twice the domain_losses_per_year",
    "nines_double_repair": "repairs that take twice as long",
}


def sites_of(options: DurabilityOptions, nodes: pa.Table) -> np.ndarray | None:
    """The failure domain of each node, from 0, where that is its site; None: each node is one.

    Raises:
        UserError: the nodes have no sites.
    """
    if options.domain != "site":
        return None
    if "site" not in nodes.column_names:
        raise UserError("domain=site: found no column site in nodes; it names the site of every node")
    return nodes["site"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int32)


def repair_cluster(options: DurabilityOptions, nodes: int | None, site: np.ndarray | None) -> RepairCluster:
    """The cluster that repairs.

    Args:
        options: of the job.
        nodes: rows of its nodes table; None: it reads none.
        site: of each node, from 0, where sites are failure domains.
    """
    domains, disks = options.domains, options.disks
    room = None if site is None else tuple(np.bincount(site).tolist())
    if domains is None:
        domains = _DOMAINS if nodes is None else nodes if site is None else int(site.max()) + 1
    if disks is None:
        disks = _DISKS if nodes is None or site is None else math.ceil(nodes / (int(site.max()) + 1))
    return RepairCluster(
        domains,
        disks,
        options.groups,
        options.user_bytes,
        options.repair_bytes_per_s,
        options.cluster_bytes_per_s,
        options.detect_s,
        room=room if room is not None and len(room) == domains else None,
    )


def failures_of(options: DurabilityOptions) -> Failures:
    """Rates per year of what fails."""
    return Failures(
        -math.log1p(-options.afr),
        options.domain_losses_per_year,
        options.latent_errors_per_year,
        options.scrub_days * 24 / HOURS_PER_YEAR,
        options.bit_error_rate,
    )


def unfit(
    code: Code, cluster: RepairCluster, failures: Failures, options: DurabilityOptions, most: tuple[str, int]
) -> str | None:
    """Why a cluster cannot keep a code, in words that follow its name; None where it can.

    Args:
        code: the code.
        cluster: that would keep it.
        failures: rates per year.
        options: of the job.
        most: chunks of a group that a domain may hold, and the name of the option that says so.
    """
    domains, (name, limit) = cluster.domains, most
    longest = cluster.room_for(limit)
    if code.n > longest:
        return f"{code.n} chunks on domains={domains} with {name}={limit}; allowed: at most {longest} chunks"
    together = cluster.spread(code.n)[0]
    if together > 1 and code.checks:
        return f"with {code.n} chunks on domains={domains}; allowed: a domain for each chunk of codes by parity checks"
    if code.checks and sets_of_losses(code.n, code.k) > MOST_SETS:
        return (
            f"which has {sets_of_losses(code.n, code.k)} sets of up to {code.n - code.k} losses; allowed: at most "
            f"{MOST_SETS}, by fewer chunks"
        )
    survives = always_survived(code)
    if together > survives:
        return (
            f"which survives {survives} losses, on domains={domains}: one holds {together} chunks; allowed: codes that "
            "outlive the loss of a domain"
        )
    states = loss_states(code, cluster)
    if states > MOST_STATES:
        return (
            f"whose groups have {states} states of loss with {together} chunks in a domain; allowed: at most "
            f"{MOST_STATES}, by more domains, or less parity"
        )
    raw, room = options.user_bytes * code.n / code.k, options.disk_bytes * domains * cluster.disks
    if raw > room:
        return (
            f"which needs {raw:.4g} bytes of disk; allowed: at most {room:.4g}, domains * disks * disk_bytes"
        )
    chunk = options.user_bytes / cluster.groups / code.k
    if chunk > options.disk_bytes:
        return (
            f"whose chunks of {chunk:.4g} bytes, user_bytes / groups / k, are larger than a disk; allowed: at most "
            f"disk_bytes={options.disk_bytes:.4g}, by more groups"
        )
    disks, domain_losses = repair_loads(code, cluster, failures)
    if disks + domain_losses >= 1:
        return (
            f"whose repairs never catch up: load {disks + domain_losses:.3g}, {domain_losses:.2g} of it by lost "
            "domains; allowed: below 1, by more repair_bytes_per_s or cluster_bytes_per_s, or less user_bytes"
        )
    return None


def sensitivity(code: Code, cluster: RepairCluster, failures: Failures) -> dict[str, float | None]:
    """Nines under assumptions that are worse by a factor of 2; None where repairs would queue then."""
    worse = {
        "nines_double_afr": assess(code, cluster, failures._replace(disk_rate=2 * failures.disk_rate)),
        "nines_double_domain_losses": assess(
            code, cluster, failures._replace(domain_rate=2 * failures.domain_rate)
        ),
        "nines_double_repair": assess(code, cluster, failures, slower=2),
    }
    return {
        name: None if value is None or value.repair_share > NEGLIGIBLE_LOAD else nines(value.losses)
        for name, value in worse.items()
    }


def matters_most(row: dict[str, object]) -> str:
    """The assumption that, worse by a factor of 2, costs most nines, and how many are left then.

    Args:
        row: with the columns of ``WORSE``.
    """
    unknown = [words for name, words in WORSE.items() if pd.isna(row[name])]
    if unknown:
        return f"with {unknown[0]} repairs queue, so that nines are unknown"
    name = min(WORSE, key=lambda each: float(str(row[each])))
    return f"with {WORSE[name]} it has {row[name]:.1f} nines"
