"""Candidates and cluster of the options, if they go together."""

import math
from typing import NamedTuple

from ecjax.durability.assessment import Failures
from ecjax.durability.codes import Code, code_of
from ecjax.durability.mds_chain import HOURS_PER_YEAR
from ecjax.durability.repair_times import RepairCluster, repair_load
from ecjax.errors import UserError
from ecjax.studies.codes.options import CodesOptions


class Case(NamedTuple):
    """What is compared, and where."""

    codes: list[Code]
    cluster: RepairCluster
    failures: Failures


def case_of(options: CodesOptions) -> Case:
    """The candidates in their cluster.

    Raises:
        UserError: a code does not fit into the cluster, or its repairs would never catch up.
    """
    cluster = RepairCluster(
        options.domains,
        options.disks,
        options.groups,
        options.user_bytes,
        options.repair_bytes_per_s,
        options.cluster_bytes_per_s,
        options.detect_s,
    )
    failures = Failures(
        -math.log1p(-options.afr),
        options.domain_losses_per_year,
        options.latent_errors_per_year,
        options.scrub_days * 24 / HOURS_PER_YEAR,
        options.bit_error_rate,
    )
    codes = [code for code in map(code_of, options.codes) if code is not None]
    for code in codes:
        _check_fits(code, options)
        load = repair_load(cluster, code.n, code.k, code.repair_chunks, failures.disk_rate)
        if load >= 1:
            raise UserError(
                f"codes: found {code.name}, whose repairs never catch up: load {load:.3g}; allowed: below 1, by more "
                "repair_bytes_per_s or cluster_bytes_per_s, or less user_bytes"
            )
    return Case(codes, cluster, failures)


def _check_fits(code: Code, options: CodesOptions) -> None:
    domains, most = options.domains, options.chunks_per_domain
    if code.n > domains * most:
        raise UserError(
            f"codes: found {code.name}, {code.n} chunks on domains={domains} with chunks_per_domain={most}; allowed: "
            f"at most {domains * most} chunks"
        )
    together = math.ceil(code.n / domains)
    survives = code.parity + (code.local_groups > 0)
    if together > survives:
        raise UserError(
            f"codes: found {code.name}, which survives {survives} losses, on domains={domains}: one holds {together} "
            f"chunks; allowed: codes that outlive the loss of a domain"
        )
    raw, room = options.user_bytes * code.n / code.k, options.disk_bytes * domains * options.disks
    if raw > room:
        raise UserError(
            f"codes: found {code.name}, which needs {raw:.4g} bytes of disk; allowed: at most {room:.4g}, "
            "domains * disks * disk_bytes"
        )
