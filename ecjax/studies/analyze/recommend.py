"""What to do next with a log that was analysed."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.studies.analyze.burst_summary import burstier_scale, busiest_text
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.spine.sentences import word
from ecjax.tables.recommendation import Recommendation
from ecjax.units import count_text

_BUSY = 0.9
_K, _EXTRA = 4, 2  # of the code that is planned where the log tells none
_NODES, _PER_RACK = 12, 4  # nodes that are described where the log has none to plan on; more for longer codes


def recommend(
    runs: pd.DataFrame, tables: dict[str, pa.Table], options: AnalyzeOptions, several: bool = False
) -> Recommendation | None:
    """The next command for this log, and what its nodes show; None where it was not analysed.

    Args:
        runs: the row of the ``runs`` dataset.
        tables: result tables by name.
        options: of the study.
        several: whether ``out`` holds more logs than this, so that files of it are to be named.
    """
    traces = tables["traces"].to_pylist() if "traces" in tables else []
    if not traces or "files" not in tables:
        return None
    nodes, run = tables.get("nodes"), str(runs["run_id"].iloc[0])
    if options.write is not None and not {"files", "nodes"} <= set(options.write):
        return Recommendation(f"{_known(nodes)}{_bursts(tables)}", run, "")
    if hindrance := _hindrance(tables["files"]):
        return Recommendation(f"{_known(nodes)}{_bursts(tables)} {hindrance}", run, "")
    advised = (("k", f" k={_K}"), ("min_extra_chunks", f" min_extra_chunks={_EXTRA}"))
    more = "".join(words for name, words in advised if _lacks(tables["files"], name))
    bursty = burstier_scale(tables) is not None
    name = f"/{runs['batch_id'].iloc[0]}.parquet" if several else ""
    files, here = f" files={word(f'{options.out}/files{name}')}", f" {word(options.out)}"
    # a log of fewer nodes than a file needs, as that of one disk, is planned on others
    least = _least_nodes(tables["files"])
    others = nodes is None or len(nodes) < least
    log = options.trace if several else options.out
    by_log = f" objective=trace trace={word(log)}"
    if several:
        inputs = files + (by_log if bursty else "")
        inputs += "" if others else f" nodes={word(f'{options.out}/nodes{name}')}"
    elif others:
        inputs = by_log if bursty else files
    else:
        inputs = by_log if bursty else here
    described = f" nodes='{_description(least)}'" if others else ""
    sentence = f"{_known(nodes)}{_bursts(tables)} Next: ecjax optimize{inputs}{described}{more}"
    return Recommendation(sentence, run, "")


def _hindrance(files: pa.Table) -> str:
    """Why no command can plan these files, a sentence; empty where one can."""
    if not len(files):
        return "There is no file to plan for."
    if files["rate_per_s"].null_count:
        return "All requests come at one time: there are no rates to plan for."
    if not pc.sum(files["rate_per_s"]).as_py():
        return "There are no reads to plan for."
    lacking = files.filter(pc.is_null(files["k"]))
    if 0 < len(lacking) < len(files):
        never = pc.equal(pc.add(lacking["reads"], lacking["writes"]), 0)
        catalog = ", or with k in the catalog" if pc.all(never).as_py() else ""
        return (
            f"{count_text(len(lacking), 'file has', 'files have')} no k to plan with: analyze the log again with k=, "
            f"which is that of all files then{catalog}."
        )
    return ""


def _known(nodes: pa.Table | None) -> str:
    if nodes is None:
        return "The log says what is read, not how fast the nodes are: describe yours."
    return _busiest(nodes.to_pylist())


def _least_nodes(files: pa.Table) -> int:
    """Chunks of the longest code that the next command plans with; there is a file."""
    parts = (("k", _K), ("min_extra_chunks", _EXTRA))
    return sum(least if _lacks(files, name) else int(pc.max(files[name]).as_py()) for name, least in parts)


def _description(least: int) -> str:
    """Nodes in racks, at least so many of them, for option ``nodes``."""
    count = max(_NODES, -(-least // _PER_RACK) * _PER_RACK)
    return f"{{count: {count}, per_rack: {_PER_RACK}, seek_ms: 8, MBps: 180, dollars_per_TB: 20}}"


def _lacks(files: pa.Table, name: str) -> bool:
    """Whether any file has no value in a column."""
    return name not in files.column_names or files[name].null_count > 0


def _bursts(tables: dict[str, pa.Table]) -> str:
    """That plans by mean rates fall short of this log, where its reads are burstier than Poisson."""
    if burstier_scale(tables) is None:
        return ""
    peak = busiest_text(tables)
    return f" Reads come in bursts{f' ({peak})' if peak else ''}: plan for its own arrivals."


def _busiest(nodes: list[dict[str, Any]]) -> str:
    loads = [node for node in nodes if node["load"] is not None]
    if not loads:
        return f"{count_text(len(nodes), 'node')}."
    first = max(loads, key=lambda node: node["load"])
    mean = sum(node["load"] for node in loads) / len(loads)
    text = f"Of {len(nodes)} nodes {first['node_id']} is the busiest: load {first['load']:.2f}, {mean:.2f} on average."
    if len(nodes) == 1:
        text = f"The load of {first['node_id']}, the only node, is {mean:.2f}."
    return text + (
        " Near 1 waits grow without limit: move reads away from it." if first["load"] > _BUSY else ""
    )
