"""What a plan was made for and what a newer log has, as ``drift`` compares them."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ecjax.console import log
from ecjax.drift import Log, Plan
from ecjax.errors import UserError
from ecjax.problem.arrays import files_arrays, nodes_arrays
from ecjax.studies.analyze.file_rates import counted
from ecjax.studies.analyze.node_rows import node_table
from ecjax.studies.analyze.rows import file_table
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.logs import TRACES, analyses_behind, background_behind, open_log
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import location
from ecjax.tables.patterns import log_location
from ecjax.tables.read import read_input
from ecjax.tables.results import find_runs, read_results, read_run
from ecjax.tables.statistics.scan import scan


class Planned:
    """A plan with the service law of its nodes."""

    def __init__(self, out: str, run: dict[str, Any]) -> None:
        """Read what a finished run of ``ecjax optimize`` was made for.

        Args:
            out: folder of its results.
            run: its row of ``runs``.

        Raises:
            UserError: its inputs, placements or loads were not written, or its rates are none that a log has as a mean.
        """
        folder, run_id = location(out), run["run_id"]
        nodes, files = (
            read_input(folder / "inputs" / name / f"{run['input_id']}.parquet", name)
            for name in ("nodes", "files")
        )
        parameters = json.loads(run.get("params") or "{}")
        _check_rates(out, parameters, files)
        model = nodes_arrays(nodes, parameters.get("size_scaling", "proportional"))
        self._service, work = np.asarray(model.service[0]), np.asarray(model.work[0])
        # tables and folders that it was made of; nodes may be described rather than named
        self.places = [place for place in parameters.get("inputs", {}).values() if isinstance(place, str)]
        self.nodes = pd.Index(_texts(nodes["node_id"]))
        arrays = files_arrays(files)
        ids = _texts(files["file_id"])
        # the files kept have the rates of class_rate_scale already
        rates = np.asarray(arrays.rate) * (run.get("rate_scale") or 1.0)
        sizes = pd.Series(np.asarray(arrays.chunk_bytes) * (run.get("size_scale") or 1.0), ids)
        rows = _of_files(read_run(folder, "placements", run_id), files)
        chunk_s = self._means(work, rows["node_id"], sizes.reindex(rows["file_id"]).to_numpy())
        rows["service_s"] = (
            rows.pop("chunks") * chunk_s
        )  # those that a node keeps of a file are served together
        loads = read_run(folder, "node_loads", run_id).to_pandas()
        self.plan = Plan(
            pd.Series(rates, ids), rows, pd.Series(loads["load"].to_numpy(), _texts(loads["node_id"]))
        )

    def service_s(self, node_ids: pd.Index, chunk_bytes: np.ndarray) -> np.ndarray:
        """Mean service times of chunks of these sizes at these nodes, (r,) s, each on a channel of its node."""
        return self._means(self._service, node_ids, chunk_bytes)

    def _means(self, law: np.ndarray, node_ids: pd.Series | pd.Index, chunk_bytes: np.ndarray) -> np.ndarray:
        """Mean times (r,), s, of a law (4, m), of chunks of these sizes at these nodes."""
        law = law[:, self.nodes.get_indexer(node_ids)]
        return (law * np.asarray(chunk_bytes) ** np.arange(len(law))[:, None]).sum(axis=0)


def _check_rates(out: str, parameters: dict[str, Any], files: pa.Table) -> None:
    """Refuse plans whose rates a log does not tell: those of a peak, and of small reads apart from the others.

    Args:
        out: folder of the plan.
        parameters: of its run.
        files: that it was made for.

    Raises:
        UserError: the plan is one of these.
    """
    inputs = parameters.get("inputs", {})
    if parameters.get("rate") == "peak" or ("trace" not in inputs and _is_of_peak(inputs.get("files"))):
        raise UserError(
            f"compare: {out}: found rates of a peak (rate=peak), where a log is held against a plan by its mean rates; "
            "allowed: a plan for mean rates"
        )
    small = files["small_rate_per_s"] if "small_rate_per_s" in files.column_names else None
    if small is not None and any(value for value in small.to_pylist()):
        raise UserError(
            f"compare: {out}: found files with small reads (small_rate_per_s), which a log does not tell from others; "
            "allowed: a plan of files without them"
        )


def _is_of_peak(path: str | None) -> bool:
    """Whether a table of files is that of an analysis at its peak, as far as the analysis is still there.

    Of a folder that has analyses of both kinds by now it cannot be told, which a line says.
    """
    rates = set() if path is None else _rates_behind(path)
    if len(rates) > 1:
        log.warning(
            "compare: %s: is of a folder with analyses at the mean (rate=mean) and at a peak (rate=peak); the plan is "
            "taken for one of mean rates",
            path,
        )
    return rates == {"peak"}


def _rates_behind(path: str) -> set[str]:
    """Which rates analyses have that a table of files may come from: ``mean``, ``peak``."""
    for folder, batch in analyses_behind(path):
        with suppress(UserError, OSError):
            traces = read_results(folder, TRACES)
            if batch is not None:
                runs = read_results(folder, "runs")
                own = runs.loc[runs["batch_id"] == batch, "run_id"]
                traces = traces[traces["run_id"].isin(own)]
            # results of versions that knew means only have no such column
            return set(traces.get("rate", ()))
    return set()


def _of_files(placements: pa.Table, files: pa.Table) -> pd.DataFrame:
    """Placements with a row for every file of a group; ids are words."""
    columns = ("file_id", "group", "node_id", "probability", "chunks")
    rows = pd.DataFrame({name: _words(placements, name) for name in columns})
    in_group = placements["group"].is_valid().to_numpy()
    parts = [rows[~in_group]]
    if in_group.any():
        members = pd.DataFrame({name: _words(files, name) for name in ("file_id", "group")}).dropna()
        parts.append(rows[in_group].drop(columns="file_id").merge(members, on="group"))
    return pd.concat(parts, ignore_index=True).drop(columns="group")


def _words(table: pa.Table, name: str) -> list:
    """Values of a column, ids and groups as words: pandas takes integers beside empty cells for floats."""
    values = table[name].to_pylist()
    if name in ("probability", "chunks"):
        return values
    return [None if value is None else str(value) for value in values]


def log_of(path: str, form: str, planned: Planned) -> Log:
    """What a log has of the numbers that a plan was made for.

    Args:
        path: the log, or the folder of its analysis.
        form: its format.
        planned: the plan.

    Raises:
        UserError: the log cannot be read, tells no rates, or names no file of the plan.
    """
    files, nodes, span_s = _analysed(path, form, planned.places)
    if span_s is None or not span_s > 0:
        raise UserError(f"compare: {path}: all requests arrive at one time; allowed: a log that tells rates")
    reads = pd.Series(files["reads"].to_numpy(), _texts(files["file_id"]))
    if not reads.sum():
        raise UserError(f"compare: {path}: reads no file; allowed: a log with reads")
    if not reads.index.isin(planned.plan.files.index).any():
        raise UserError(
            f"compare: {path}: names no file of the plan; allowed: a log of the same files, both read with "
            "keep_ids=true"
        )
    return Log(reads, span_s, _service(nodes, planned))


def _analysed(path: str, form: str, places: list[str]) -> tuple[pa.Table, pa.Table | None, float | None]:
    """The files and nodes tables of a log, and its span (s).

    The log of the analysis that the plan was made of (``places``) is read as it was there.
    """
    place = log_location(path)
    if place.is_dir() and written_by(place) == "analyze":
        runs = find_runs(path, None, "analyze")
        if len(runs) > 1:
            raise UserError(
                f"compare: {path}: found {len(runs)} analyses; allowed: a log, or the folder of one analysis"
            )
        run_id = runs[0]["run_id"]
        tables = [read_run(path, name, run_id) for name in ("files", "traces")]
        try:
            nodes = read_run(path, "nodes", run_id)
        except UserError:
            nodes = None  # the log names none
        return tables[0], nodes, tables[1]["span_s"][0].as_py()
    # names of the plan are compared, and no others printed
    trace = open_log(LogOptions(trace=path, format=form, keep_ids=True), inputs=places)
    background = background_behind(places)
    if background and not trace.background:
        log.warning(
            "compare: %s: what the plan takes for background work (%s) counts as requests here; compare with the "
            "folder of an analysis of this log with background=%s to leave it out",
            path,
            ", ".join(background),
            ",".join(background),
        )
    statistics = scan(trace)
    notices: list[str] = []  # those of an analysis
    # services that follow from finishes alone need all that nodes did
    timed = not trace.background or "start_s" in trace.schema.names
    if not timed:
        log.info("compare: %s: service times of nodes need start_s where background work is left out", path)
    return (
        file_table(statistics, trace, None, counted(statistics, trace, None, notices), notices),
        node_table(statistics, None, notices) if timed else None,
        statistics.arrivals.span_s,
    )


def _service(nodes: pa.Table | None, planned: Planned) -> pd.DataFrame:
    columns = ["planned_s", "mean_s", "error_s"]
    if nodes is None or not nodes.num_rows:
        return pd.DataFrame(columns=columns, dtype=float)
    ids = _texts(nodes["node_id"])
    names = ["mean_chunk_bytes", "observed_mean_s", "observed_mean_error_s"]
    table = pd.DataFrame({name: nodes[name].to_pandas().to_numpy() for name in names}, ids)
    table = table[table.index.isin(planned.nodes)].dropna()
    law = planned.service_s(table.index, table["mean_chunk_bytes"].to_numpy())
    values = (law, table["observed_mean_s"], table["observed_mean_error_s"])
    return pd.DataFrame(dict(zip(columns, values, strict=True)), table.index)


def _texts(values: pd.Series | pa.ChunkedArray) -> list[str]:
    """Ids as words, so that those of a plan and a log of another type are equal."""
    return [str(value) for value in (values.to_pylist() if isinstance(values, pa.ChunkedArray) else values)]
