"""``ecjax compare PLAN LOG``: whether a plan still fits, printed and written."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.comparison import Side
from ecjax.console import OUTPUT, OutputMode, conclude, output_mode, say
from ecjax.drift import LOAD, RATE, SERVICE, drift_table, verdict
from ecjax.drift_inputs import Planned, log_of
from ecjax.errors import UserError
from ecjax.studies.spine.as_json import print_object
from ecjax.studies.spine.printed import print_table
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import location, publishing, write_errors
from ecjax.tables.patterns import log_location

_SHOWN = 8  # rows of a quantity, those that changed most


def is_log(text: str) -> bool:
    """Whether a word names an access log, or the folder of an analysis."""
    try:
        place = log_location(text)
    except UserError:
        return False  # a pattern that nothing matches may be meant for a run
    if place.is_file():
        return True
    if not place.is_dir():
        return False
    job = written_by(place)
    if job is not None:
        return job == "analyze"
    # a folder of logs holds files; one above results, folders
    return _holds_a_file(place) and not _above(place)


def _holds_a_file(place: Path) -> bool:
    return any(_holds_a_file(path) if path.is_dir() else path.suffix for path in place.iterdir())


def _above(place: Path) -> bool:
    return any(written_by(path) is not None for path in place.iterdir() if path.is_dir())


def run_drift(side: Side, path: str, words: Mapping[str, str]) -> int:
    """Print what changed between a plan and a log, and whether a new plan is worth it; returns the exit code, 0.

    Args:
        side: the plan.
        path: the log, or the folder of its analysis.
        words: ``format`` and ``write``, where they are set.

    Raises:
        UserError: the first is no plan, or the log does not fit it.
    """
    if side.job != "optimize":
        raise UserError(
            f"compare: {side.out} is of ecjax {side.job}; allowed beside a log: a plan of ecjax optimize"
        )
    planned = Planned(side.out, side.run)
    table = drift_table(planned.plan, log_of(path, words.get("format", "auto"), planned))
    worth, sentence = verdict(table)
    if "write" in words:
        with write_errors(words["write"], "write"), publishing(location(words["write"])) as file:
            pq.write_table(pa.Table.from_pandas(table, preserve_index=False), file)
    if output_mode() is OutputMode.JSON:
        rows = json.loads(_shown(table).to_json(orient="records"))
        names = {"plan": side.out, "run_id": side.run["run_id"], "log": path}
        print_object(
            {
                "job": "compare",
                **names,
                "rows": rows,
                "worth_replanning": worth,
                "sentence": sentence,
                "exit_code": 0,
            }
        )
        return 0
    say(OUTPUT, f"plan: {side.out} {side.run['run_id']}; log: {path}", soft_wrap=True)
    heading = ("quantity", "of", "planned", "log", "95 % interval", "changed")
    cells = [
        (
            *(row["quantity"], row["of"]),
            *(f"{row[name]:.4g}" for name in ("planned", "log")),
            f"{row['low']:.4g} to {row['high']:.4g}",
            "yes" if row["changed"] else "no",
        )
        for row in _shown(table).to_dict("records")
    ]
    print_table(
        OUTPUT, f"the log against the plan, {len(table)} rows", heading, cells, ("quantity", "of", "changed")
    )
    conclude(OUTPUT, sentence)
    return 0


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Rows about the whole, and of each other quantity those that changed most."""
    parts = [table[~table["quantity"].isin((LOAD, RATE, SERVICE))]]
    for quantity in (LOAD, SERVICE, RATE):
        rows = table[table["quantity"] == quantity]
        apart = (rows["log"] - rows["planned"]).abs()
        parts.append(rows.loc[apart.sort_values(ascending=False, kind="stable").index[:_SHOWN]])
    return pd.concat(parts, ignore_index=True)
