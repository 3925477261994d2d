"""Files of a plan: shell scripts of its batches and of what undoes them, expected sets, the plan as CSV and JSON."""

import csv
import io
import json
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ecjax.errors import UserError
from ecjax.rados.commands import preparing
from ecjax.rados.verify import Expected
from ecjax.studies.ceph.recommend import NOTHING_GAINED
from ecjax.studies.ceph.stored import rows_of
from ecjax.tables.checksums import CHECKSUMS, checksums
from ecjax.tables.folder import location, make_folder, publishing, write_errors
from ecjax.tables.recommendation import Recommendation, read_recommendation
from ecjax.tables.results import read_results
from ecjax.units import bytes_text, count_text

FOLDER = "scripts"
_HEAD = "#!/bin/sh\nset -e\n"
_UNDO_ALL = (
    "# takes back all batches at once, the last one first, whatever max_misplaced and max_bytes allow\n"
    "# only after all of them were run: else batch-NNN-undo.sh of those that were, the last one first, each when all\n"
    "# groups are active+clean again\n"
)
_UNDO_ONE = "# takes back this batch: after all later ones that were run, when all groups are active+clean\n"


class Scripts(NamedTuple):
    """A plan that was written."""

    run_id: str
    expected: Expected
    batches: tuple[tuple[list[str], dict[str, tuple[int, ...]]], ...]  # commands, sets afterwards
    nothing_gained: bool  # the command that made it said so, and the run was not asked for by name


def write_scripts(out: str, run: pd.Series) -> Path | None:
    """Write the files of one run; their folder, or None where its datasets were not written.

    Args:
        out: folder of the results.
        run: its row of ``runs``.

    Raises:
        UserError: the folder cannot be written.
    """
    path = location(out)
    commands, plan, batches = (rows_of(path, name, run["run_id"]) for name in ("commands", "plan", "batches"))
    if commands.empty or plan.empty or batches.empty:
        return None
    folder = path / FOLDER / str(run["run_id"])
    texts = {
        "plan.csv": _csv(plan),
        "plan.json": json.dumps(plan.drop(columns="run_id").to_dict("records"), indent=1) + "\n",
        "undo.sh": _HEAD + _UNDO_ALL + _undo(commands),
    }
    min_client = run.get("min_client")  # rows of earlier versions have none
    first = preparing(min_client if isinstance(min_client, str) else "")
    for number, rows in commands.groupby("batch"):
        about = batches[batches["batch"] == number].iloc[0]
        name = batch_name(number)
        texts[f"{name}.sh"] = _HEAD + _about(about, run) + "\n".join([*first, *rows["command"]]) + "\n"
        texts[f"{name}-undo.sh"] = _HEAD + _UNDO_ONE + _undo(rows)
        sets = {group: json.loads(osds) for group, osds in zip(rows["group"], rows["expected"], strict=True)}
        texts[f"{name}-expected.json"] = json.dumps(sets, indent=1) + "\n"
    texts[CHECKSUMS] = checksums(texts)
    with write_errors(path):
        make_folder(folder)
        for name, text in texts.items():
            with publishing(folder / name) as file:
                file.write_text(text)
        # what the same run had before, where it had more batches
        for old in [each for each in folder.iterdir() if each.name.startswith("batch-")]:
            if old.name not in texts:
                old.unlink(missing_ok=True)
    return folder


def batch_name(number: int) -> str:
    """Name of the files of a batch, from 1, before what tells them apart."""
    return f"batch-{number:03d}"


def _about(batch: pd.Series, run: pd.Series) -> str:
    lines = [
        f"cluster {run['fsid']}, map epoch {int(run['epoch'])}, plan {run['run_id']}",
        f"batch {batch['batch']}: {count_text(batch['changed_groups'], 'group')}, "
        f"{count_text(batch['moved_chunks'], 'shard')}, "
        f"{bytes_text(batch['moved_bytes'])}, {batch['misplaced_share']:.1%} of the shards of a pool at most",
        f"busiest OSD afterwards: {batch['max_over_mean']:.3f} times the mean load before all batches",
    ]
    if pd.notna(batch["estimated_mean_s"]):
        lines.append(
            f"expected latency afterwards: mean {1e3 * batch['estimated_mean_s']:.3g} ms, p99 "
            f"{1e3 * batch['estimated_p99_s']:.3g} ms"
        )
    lines += [
        "start the next batch only when all groups are active+clean and ecjax ceph DUMPS verify= of later dumps says "
        "that this one is in force;",
        "exit codes of these commands say nothing: the monitor may drop what it has accepted",
    ]
    return "".join(f"# {line}\n" for line in lines)


def _undo(commands: pd.DataFrame) -> str:
    return "\n".join(commands["undo"][::-1]) + "\n"


def _csv(plan: pd.DataFrame) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["group", "position", "osd", "before"])
    writer.writerows(plan[["group", "position", "osd", "before"]].itertuples(index=False, name=None))
    return text.getvalue()


def read_scripts(out: str, run_id: str | None) -> Scripts:
    """The plan that an earlier command wrote to a folder of results.

    Args:
        out: the folder.
        run_id: which run; None: the recommended one, or the only one.

    Raises:
        UserError: there is no such folder or run, or its datasets were not written.
    """
    path = location(out)
    runs = read_results(path, "runs")
    if "fsid" not in runs.columns:
        raise UserError(
            f"verify={out}: found results of another job; allowed: a folder that ecjax ceph wrote"
        )
    recommended = read_recommendation(path) if run_id is None else None
    chosen = run_id or _run_id(path, runs, recommended)
    rows = runs[runs["run_id"] == chosen]
    if rows.empty:
        raise UserError(
            f"plan_run={chosen}: found no such run in {out}; allowed: {', '.join(runs['run_id'])}"
        )
    commands, plan = (rows_of(path, name, chosen) for name in ("commands", "plan"))
    if rows.iloc[0]["batch_count"] and (commands.empty or plan.empty):
        raise UserError(f"verify={out}: found no datasets plan and commands; allowed: results that have them")
    before, after = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    for group, positions in plan.groupby("group", sort=False) if len(plan) else ():
        ordered = positions.sort_values("position")
        before[str(group)] = tuple(ordered["before"].tolist())
        after[str(group)] = tuple(ordered["osd"].tolist())
    batches = tuple(
        (
            [line for text in rows["command"] for line in text.splitlines()],
            {
                group: tuple(json.loads(osds))
                for group, osds in zip(rows["group"], rows["expected"], strict=True)
            },
        )
        for _, rows in (commands.groupby("batch") if len(commands) else ())
    )
    nothing_gained = (
        recommended is not None and recommended.run_id == chosen and recommended.among == NOTHING_GAINED
    )
    return Scripts(chosen, Expected(str(rows.iloc[0]["fsid"]), before, after), batches, nothing_gained)


def _run_id(path: Path, runs: pd.DataFrame, recommended: Recommendation | None) -> str:
    if len(runs) == 1:
        return str(runs["run_id"].iloc[0])
    if recommended is None or recommended.run_id is None:
        raise UserError(f"verify={path}: found {len(runs)} runs; allowed: plan_run= one of them")
    return recommended.run_id
