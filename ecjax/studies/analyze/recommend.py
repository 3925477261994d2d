"""What to do next with a log that was analysed."""

from typing import Any

import pandas as pd
import pyarrow as pa

from ecjax.studies.analyze.burst_summary import burstier_scale, busiest_text
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.spine.sentences import word
from ecjax.tables.recommendation import Recommendation

_BUSY = 0.9
_DESCRIBED = "{count: 12, per_rack: 4, seek_ms: 8, MBps: 180, dollars_per_TB: 20}"


def recommend(
    runs: pd.DataFrame, tables: dict[str, pa.Table], options: AnalyzeOptions
) -> Recommendation | None:
    """The next command for this log, and what its nodes show; None where it was not analysed.

    Args:
        runs: the row of the ``runs`` dataset.
        tables: result tables by name.
        options: of the study.
    """
    traces = tables["traces"].to_pylist() if "traces" in tables else []
    if not traces or "files" not in tables:
        return None
    next_, nodes = word(options.out), tables.get("nodes")
    advised = (("k", " k=4"), ("min_extra_chunks", " min_extra_chunks=2"))
    more = "".join(words for name, words in advised if _lacks(tables["files"], name))
    bursty = burstier_scale(tables) is not None
    by_log = f" objective=trace trace={next_}"
    if nodes is None:
        files = by_log if bursty else f" files={word(f'{options.out}/files')}"
        command = f"ecjax optimize{files} nodes='{_DESCRIBED}'{more}"
        known = "The log says what is read, not how fast the nodes are: describe yours."
        sentence = f"{known}{_bursts(tables)} Next: {command}"
    else:
        command = f"ecjax optimize{by_log if bursty else f' {next_}'}{more}"
        sentence = f"{_busiest(nodes.to_pylist())}{_bursts(tables)} Next: {command}"
    return Recommendation(sentence, runs["run_id"].iloc[0], "")


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
        return f"{len(nodes)} nodes."
    first = max(loads, key=lambda node: node["load"])
    mean = sum(node["load"] for node in loads) / len(loads)
    text = f"Of {len(nodes)} nodes {first['node_id']} is the busiest: load {first['load']:.2f}, {mean:.2f} on average."
    return text + (
        " Near 1 waits grow without limit: move reads away from it." if first["load"] > _BUSY else ""
    )
