"""Candidates and cluster of the options, if they go together."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.durability.assessment import Failures
from ecjax.durability.codes import Code, code_of, range_of
from ecjax.durability.repair_times import RepairCluster
from ecjax.errors import UserError
from ecjax.problem import builtin
from ecjax.problem.arrays import column
from ecjax.problem.described_nodes import read_nodes
from ecjax.problem.small_reads import RATE
from ecjax.studies.codes.code_tables import read_codes
from ecjax.studies.codes.layouts import classes_of
from ecjax.studies.codes.options import CodesOptions
from ecjax.studies.codes.traffic import SmallRates, Traffic
from ecjax.studies.spine.durability import failures_of, repair_cluster, sites_of, unfit
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.read import read_input
from ecjax.tables.rules import LOW_MOMENTS
from ecjax.tables.run_ids import run_id

_MOST_FILES = 20_000  # plans of all codes are made with a row for each
_UNREAD = 1e-9  # small reads for each full one where there are none: their latency, without their load


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
    nodes = _nodes(options) if options.reads_nodes else None
    parts = {} if nodes is None else {"nodes": fingerprint(nodes, "nodes")}
    site = None if nodes is None else sites_of(options, nodes)
    traffic = None
    if nodes is not None and options.latencies:
        traffic, parts["files"] = _traffic(options, nodes, site)
    others: dict[str, Code] = {}
    if options.code_table is not None:
        others, table = read_codes(options.code_table)
        parts["code_table"] = fingerprint(table)
    input_id = run_id("inputs", parts, "", None, "") if parts else None
    cluster = repair_cluster(options, None if nodes is None else nodes.num_rows, site)
    failures = failures_of(options)
    codes: dict[str, Code] = {}
    for name in options.codes:
        code = code_of(name) or others.get(name)
        if code is None and range_of(name) is None:
            raise UserError(f"codes: found {name}; allowed in code_table: {', '.join(others) or 'none'}")
        fitting = _fitting(name, cluster, failures, options) if code is None else [code]
        codes |= {each.name: each for each in fitting}
        if code is not None:
            _check_fits(code, cluster, failures, options)
    return Case(list(codes.values()), cluster, failures, traffic, input_id)


def _nodes(options: CodesOptions) -> pa.Table:
    """The nodes table, or that of the built-in cluster."""
    if options.nodes is None:
        return read_input(builtin.nodes(options.cluster), "nodes")
    return read_nodes(options.nodes)


def _traffic(options: CodesOptions, nodes: pa.Table, site: np.ndarray | None) -> tuple[Traffic, str]:
    """What is read from the nodes, and the fingerprint of its files, of a table or the built-in ones."""
    if LOW_MOMENTS[0] in nodes.column_names:
        log.info("nodes: moments of service are intervals; latencies are those of the largest moments")
    files = read_input(
        builtin.files(options.cluster) if options.files is None else options.files,
        "files",
        constants={"k": 1, "min_extra_chunks": 0},
    )
    small = _small_reads(options, files)
    files = files.drop_columns([name for name in ("d", "group") if name in files.column_names])
    if len(files) > _MOST_FILES:
        raise UserError(
            f"files: found {len(files)}; allowed: at most {_MOST_FILES}, as a sample with rates as much higher as it "
            "has fewer files; ecjax optimize plans more"
        )
    classes = None
    if options.classes:
        classes = classes_of(files, options.classes, options.hot_share, options.size_bounds)
    traffic = Traffic(
        nodes,
        files,
        site,
        options.chunks_per_domain,
        small,
        options.slow,
        options.repair_io_bytes,
        options.service,
        options.gap,
        classes,
    )
    return traffic, fingerprint(files, "files")


def _small_reads(options: CodesOptions, files: pa.Table) -> SmallRates:
    """Those of the files table, or so many for each full one."""
    full, small_rate = column(files, "rate_per_s"), column(files, RATE)
    unit = options.stripe_unit_bytes
    if not small_rate.any():
        rate = (options.small_reads or _UNREAD) * full
        return SmallRates(np.full(len(full), options.small_bytes), rate, unit)
    if options.small_reads:
        raise UserError(
            f"small_reads: found {options.small_reads:g} with files that have small reads of their own ({RATE}); "
            "allowed: either"
        )
    if not full.any():
        raise UserError(
            "files: column rate_per_s: found rates that sum to 0; allowed: some reads of whole files beside the small "
            f"ones ({RATE}), as codes are planned for these"
        )
    size = column(files, "small_bytes")
    return SmallRates(np.where(small_rate > 0, size, size[small_rate > 0].min()), small_rate, unit)


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
    most = "chunks_per_domain", options.chunks_per_domain
    reason = unfit(code, cluster, failures, options, most)
    if reason is not None:
        raise UserError(f"codes: found {code.name}, {reason}")
