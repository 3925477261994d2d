"""Laws of task delays of ``ecjax adapt``: by name, of a table, of a log, or of one that was analysed."""

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ecjax.adaptation.delays import BUILT_IN, DelayModel
from ecjax.adaptation.measured import LEAST_DELAYS, Measured, exponential_rho, measured
from ecjax.adaptation.proxy import EXPONENTIAL, LOGNORMAL
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.adapt.logs import OPERATIONS, reading_of, task_delays
from ecjax.studies.adapt.options import DELAYS, PATHS, AdaptOptions
from ecjax.studies.spine.logs import open_reading
from ecjax.tables import rules
from ecjax.tables.folder import location
from ecjax.tables.importers.detect import read_head
from ecjax.tables.patterns import log_location
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results, read_run
from ecjax.tables.statistics.affine import SECOND_MISFIT
from ecjax.units import count_text

_KINDS = {rules.EXPONENTIAL: EXPONENTIAL, rules.LOGNORMAL: LOGNORMAL}
_LINES = ("delta_s", "delta_s_per_byte", "psi_s", "psi_s_per_byte")
_MEAN_MISFIT = 0.05  # of which ecjax analyze warns, too


@dataclass(frozen=True)
class Laws:
    """Laws of the delays of tasks of one storage.

    Attributes:
        name: for tables and figures.
        of_op: law of reads and of writes; at least one.
        description: a few words for the user.
    """

    name: str
    of_op: dict[str, DelayModel]
    description: str

    def of(self, op: str) -> DelayModel:
        """The law for "read" or "write"; where there is none, that of the other (a log line says so)."""
        if op in self.of_op:
            return self.of_op[op]
        (other,) = self.of_op
        log.info("delays: %s has none of %ss, which take those of %ss", self.name, op, other)
        return self.of_op[other]


def read_laws(options: AdaptOptions) -> list[Laws]:
    """The laws that ``delays`` names, one after another; a table may have several.

    Raises:
        UserError: a name or path is unknown, what it leads to is malformed or has no delays, or two laws have one name.
    """
    every = [laws for word in options.delays for laws in _read(word, options)]
    names = [laws.name for laws in every]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"delays: found two laws of the name {name!r}; allowed: a name each")
    return every


def fingerprint_of(model: DelayModel) -> dict[str, Any]:
    """What a law is, its name apart; of arrays, hashes."""
    return {
        name: hashlib.sha256(value.tobytes()).hexdigest() if isinstance(value, np.ndarray) else value
        for name, value in model._asdict().items()
        if name != "name"
    }


def _read(word: str, options: AdaptOptions) -> list[Laws]:
    if word in BUILT_IN:
        return [Laws(word, dict.fromkeys(OPERATIONS, BUILT_IN[word]), "built in")]
    path = log_location(word)
    if not path.exists():
        raise UserError(f"delays: found {word!r}; allowed: {', '.join(DELAYS)}, or {PATHS}")
    if (path / "runs").is_dir():
        return [_of_analysis(path)]
    columns = set(read_head(path).columns)
    # columns= may be the trace's
    if {"name", "law"} <= columns and (options.columns is None or {"shift_s", "scale_s"} <= columns):
        return _of_table(word)
    return [_of_log(word, options)]


def _of_table(path: str) -> list[Laws]:
    laws: dict[str, dict[str, DelayModel]] = {}
    for row in read_input(path, "delays").to_pylist():
        model = DelayModel(
            row["name"],
            _KINDS[row["law"]],
            shape=row.get("sigma") or 0.0,
            rho=row.get("rho") or 0.0,
            shift_s=row["shift_s"],
            shift_s_per_byte=row.get("shift_s_per_byte") or 0.0,
            scale_s=row["scale_s"],
            scale_s_per_byte=row.get("scale_s_per_byte") or 0.0,
        )
        ops = [row["op"]] if row.get("op") else OPERATIONS
        laws.setdefault(row["name"], {}).update(dict.fromkeys(ops, model))
    return [Laws(name, of_op, f"delays table {location(path).name}") for name, of_op in laws.items()]


def _of_log(path: str, options: AdaptOptions) -> Laws:
    name, laws, words = log_location(path).name, {}, []
    # extents are those of the trace: logs with service times have none
    trace = open_reading(reading_of(path, replace(options, extent_bytes=None)))
    for op, delays in task_delays(trace, options.seed).items():
        count = len(delays.bytes)
        if count < LEAST_DELAYS:
            log.info("delays: %d %ss of %s are too few for a law (%d)", count, op, name, LEAST_DELAYS)
            continue
        if not delays.seconds.any():
            raise UserError(f"delays={path}: found {op}s whose finish_s is start_s; allowed: delays above 0")
        result = measured(delays, name)
        _log_result(result, op)
        laws[op] = result.model
        words.append(f"{count} {op}s")
    if not laws:
        raise UserError(
            f"delays={path}: found too few accesses with start_s and finish_s; allowed: {LEAST_DELAYS} or more"
        )
    return Laws(name, laws, f"measured: {' and '.join(words)}")


def _log_result(result: Measured, op: str) -> None:
    """What became of the sizes, and the correlation."""
    sizes = result.model.sizes
    joined = result.least < result.most
    log.info(
        "delays: %s of %ss in %d groups of chunk sizes, %.4g to %.4g bytes%s; correlation of the normal scores of a "
        "request's tasks %s",
        result.model.name,
        op,
        len(sizes),
        sizes[0],
        sizes[-1],
        f", {joined.sum()} of them of several sizes (up to a ratio of {(result.most / result.least).max():.3g})"
        if joined.any()
        else "",
        f"{result.model.rho:.3f} (standard error {result.rho_error:.3f}, {result.requests} requests)"
        if result.requests
        else "unknown, taken as 0: no request has two tasks",
    )
    if len(sizes) == 1:
        log.info("delays: %s of %ss have one chunk size: all sizes take their law", result.model.name, op)


def _of_analysis(folder: Path) -> Laws:
    """The affine laws that ``ecjax analyze`` fitted to the nodes, averaged over their accesses."""
    runs = read_results(folder, "runs")
    runs = runs[runs["job"] == "analyze"]
    if len(runs) != 1:
        raise UserError(f"delays={folder}: found {len(runs)} runs of ecjax analyze; allowed: a folder of one")
    name = str(runs["run_id"].iloc[0])
    service = None
    if (folder / "delays").is_dir():
        delays = read_run(folder, "delays", name).to_pandas()
        service = delays[(delays["quantity"] == "service") & delays["fit_mean_s"].notna()]
    if service is None or service.empty:
        raise UserError(
            f"delays={folder}: found no laws of service times; allowed: results of ecjax analyze (dataset delays) of a "
            "log with service times, start_s to finish_s"
        )
    traces = read_run(folder, "traces", name).to_pylist() if (folder / "traces").is_dir() else []
    rho = 0.0
    if traces and traces[0]["delay_quantity"] == "service" and traces[0]["chunk_correlation"] is not None:
        rho = exponential_rho(traces[0]["chunk_correlation"])
    laws: dict[str, DelayModel] = {}
    nodes: set[object] = set()
    for op, rows in service.groupby("op"):
        used = _with_lines(rows, folder.name)
        laws[str(op)] = _pooled(used, folder.name, rho)
        nodes |= set(used["node_id"])
        _warn_of_misfit(laws[str(op)], used, f"delays={folder}: the affine law of {op}s")
    return Laws(folder.name, laws, f"affine laws of {count_text(len(nodes), 'node')}, averaged")


def _with_lines(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of nodes whose laws tell how delays grow with the size; of one chunk size all rows, without growth."""
    sloped = rows.dropna(subset=list(_LINES))
    if sloped.empty:
        log.info("delays: %s has one chunk size: all sizes take its law", name)
        rows = rows.assign(delta_s=rows["fit_mean_s"] - rows["fit_std_s"], psi_s=rows["fit_std_s"])
        return rows.fillna({"delta_s_per_byte": 0.0, "psi_s_per_byte": 0.0})
    left_out = set(rows["node_id"]) - set(sloped["node_id"])
    if left_out:
        log.info("delays: %s: left out: %s of one chunk size", name, count_text(len(left_out), "node"))
    return sloped


def _pooled(rows: pd.DataFrame, name: str, rho: float) -> DelayModel:
    """The mean of the nodes' laws, weighted by accesses; their spread between nodes is not in it."""
    shift, shift_slope, scale, scale_slope = (
        float(np.average(rows[part], weights=rows["count"])) for part in _LINES
    )
    return DelayModel(name, EXPONENTIAL, 0.0, rho, shift, shift_slope, scale, scale_slope)


def _warn_of_misfit(model: DelayModel, rows: pd.DataFrame, law: str) -> None:
    """Say where a law is far from the delays of rows, with their stalls and the worst 10 % that it is not fitted to.

    Args:
        model: law of a shifted exponential.
        rows: of the dataset ``delays`` of an analysis.
        law: what it is called.
    """
    size, weight = rows["chunk_bytes"], rows["count"] / rows["count"].sum()
    random = model.scale_s + model.scale_s_per_byte * size
    fitted = model.shift_s + model.shift_s_per_byte * size + random
    fitted_square = float((weight * (fitted**2 + random**2)).sum())
    square = float((weight * (rows["mean_s"] ** 2 + rows["std_s"].fillna(0.0) ** 2)).sum())
    if not min(square, fitted_square) > 0:
        return  # refused where sizes are known
    mean, ratio = float((weight * fitted).sum() / (weight * rows["mean_s"]).sum()), square / fitted_square
    if abs(mean - 1) > _MEAN_MISFIT or abs(math.log(ratio)) > math.log(SECOND_MISFIT):
        log.warning(
            "%s misses the delays measured: its mean by %+.0f %%, and their second moment is %.2g times that of the "
            "law. It is fitted without the worst 10 %% and stalls, and averaged over nodes: delays=LOG has the delays "
            "as measured",
            law,
            100 * (mean - 1),
            ratio,
        )
