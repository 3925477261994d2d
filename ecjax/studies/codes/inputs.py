"""Candidates and cluster of the options, if they go together."""

import math
from typing import NamedTuple

from ecjax.console import log
from ecjax.durability.assessment import Failures
from ecjax.durability.codes import Code, code_of, range_of
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
    codes = {}
    for name in options.codes:
        code = code_of(name)
        found = _fitting(name, cluster, failures, options) if code is None else [code]
        codes |= {each.name: each for each in found}
        if code is not None:
            _check_fits(code, cluster, failures, options)
    return Case(list(codes.values()), cluster, failures)


def _fitting(name: str, cluster: RepairCluster, failures: Failures, options: CodesOptions) -> list[Code]:
    """The codes of a range that fit the cluster; the others are said."""
    fitting, others = [], []
    reason = ""
    for code in range_of(name) or []:
        try:
            _check_fits(code, cluster, failures, options)
            fitting.append(code)
        except UserError as error:
            others.append(code.name)
            reason = reason or str(error)
    if not fitting:
        raise UserError(f"codes={name}: none of its {len(others)} codes fits; the first: {reason}")
    if others:
        log.info("codes=%s: %d do not fit and are left out: %s", name, len(others), ", ".join(others))
    return fitting


def _check_fits(code: Code, cluster: RepairCluster, failures: Failures, options: CodesOptions) -> None:
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
    load = repair_load(cluster, code.n, code.k, code.repair_chunks, failures.disk_rate)
    if load >= 1:
        raise UserError(
            f"codes: found {code.name}, whose repairs never catch up: load {load:.3g}; allowed: below 1, by more "
            "repair_bytes_per_s or cluster_bytes_per_s, or less user_bytes"
        )
