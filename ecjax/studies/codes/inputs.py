"""Candidates and cluster of the options, if they go together."""

import math
from typing import NamedTuple

import numpy as np

from ecjax.console import log
from ecjax.durability.assessment import Failures, always_survived
from ecjax.durability.codes import Code, code_of, range_of
from ecjax.durability.mds_chain import HOURS_PER_YEAR
from ecjax.durability.repair_times import RepairCluster, repair_load
from ecjax.errors import UserError
from ecjax.problem import builtin
from ecjax.problem.described_nodes import read_nodes
from ecjax.studies.codes.code_tables import read_codes
from ecjax.studies.codes.latencies import Traffic
from ecjax.studies.codes.options import CodesOptions
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.read import read_input
from ecjax.tables.run_ids import run_id

_DOMAINS, _DISKS = 12, 10
_MOST_FILES = 20_000  # plans of all codes are made with a row for each


class Case(NamedTuple):
    """What is compared, and where."""

    codes: list[Code]
    cluster: RepairCluster
    failures: Failures
    traffic: Traffic | None  # None: latencies are not asked for
    input_id: str | None


def case_of(options: CodesOptions) -> Case:
    """The candidates in their cluster.

    Raises:
        UserError: a code does not fit into the cluster, or its repairs would never catch up.
    """
    traffic, parts = (None, {}) if not options.latencies else _traffic(options)
    others: dict[str, Code] = {}
    if options.code_table is not None:
        others, table = read_codes(options.code_table)
        parts["code_table"] = fingerprint(table)
    input_id = run_id("inputs", parts, "", None, "") if parts else None
    cluster = RepairCluster(
        _domains(options, traffic),
        _disks(options, traffic),
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
    codes: dict[str, Code] = {}
    for name in options.codes:
        code = code_of(name) or others.get(name)
        if code is None and range_of(name) is None:
            raise UserError(f"codes: found {name}; allowed in code_table: {', '.join(others) or 'none'}")
        found = _fitting(name, cluster, failures, options) if code is None else [code]
        codes |= {each.name: each for each in found}
        if code is not None:
            _check_fits(code, cluster, failures, options)
    return Case(list(codes.values()), cluster, failures, traffic, input_id)


def _traffic(options: CodesOptions) -> tuple[Traffic, dict[str, str]]:
    """What is read, of the tables or the built-in cluster, and fingerprints of the tables."""
    if options.nodes is None:
        nodes = read_input(builtin.nodes(options.cluster), "nodes")
    else:
        nodes = read_nodes(options.nodes)
    files = read_input(
        builtin.files(options.cluster) if options.files is None else options.files,
        "files",
        constants={"k": 1, "min_extra_chunks": 0},
    )
    files = files.drop_columns([name for name in ("d", "group") if name in files.column_names])
    if len(files) > _MOST_FILES:
        raise UserError(
            f"files: found {len(files)}; allowed: at most {_MOST_FILES}, a sample of them; ecjax optimize plans more"
        )
    site = None
    if options.domain == "site":
        if "site" not in nodes.column_names:
            raise UserError("domain=site: found no column site in nodes; it names the site of every node")
        site = nodes["site"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int32)
    parts = {"nodes": fingerprint(nodes, "nodes"), "files": fingerprint(files, "files")}
    traffic = Traffic(
        nodes,
        files,
        site,
        options.chunks_per_domain,
        options.small_bytes,
        options.small_reads,
        options.slow,
        options.repair_io_bytes,
        options.service,
        options.gap,
    )
    return traffic, parts


def _domains(options: CodesOptions, traffic: Traffic | None) -> int:
    if options.domains is not None:
        return options.domains
    if traffic is None:
        return _DOMAINS
    return len(traffic.nodes) if traffic.site is None else int(traffic.site.max()) + 1


def _disks(options: CodesOptions, traffic: Traffic | None) -> int:
    """Disks of a domain; of one that is a site, its nodes are the disks."""
    if options.disks is not None:
        return options.disks
    if traffic is None or traffic.site is None:
        return _DISKS
    return math.ceil(len(traffic.nodes) / (int(traffic.site.max()) + 1))


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
    domains, most = cluster.domains, options.chunks_per_domain
    if code.n > domains * most:
        raise UserError(
            f"codes: found {code.name}, {code.n} chunks on domains={domains} with chunks_per_domain={most}; allowed: "
            f"at most {domains * most} chunks"
        )
    together = math.ceil(code.n / domains)
    if together > 1 and code.checks:
        raise UserError(
            f"codes: found {code.name} with {code.n} chunks on domains={domains}; allowed: a domain for each chunk of "
            "a code by its parity checks"
        )
    survives = always_survived(code)
    if together > survives:
        raise UserError(
            f"codes: found {code.name}, which survives {survives} losses, on domains={domains}: one holds {together} "
            f"chunks; allowed: codes that outlive the loss of a domain"
        )
    raw, room = options.user_bytes * code.n / code.k, options.disk_bytes * domains * cluster.disks
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
