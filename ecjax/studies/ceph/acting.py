"""What ``ecjax ceph`` does besides planning: collects dumps, says what of a plan is in force, applies it."""

import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from ecjax.console import OutputMode, conclude, log, output_mode, say
from ecjax.rados.files import read_dumps
from ecjax.rados.live import apply_batches, cluster_now, collect, health_now
from ecjax.rados.read import EQUAL, Reading, read_cluster
from ecjax.rados.verify import Finding, findings, moved_on
from ecjax.studies.ceph.options import CephOptions
from ecjax.studies.ceph.recommend import NOTHING_GAINED
from ecjax.studies.ceph.scripts import read_scripts
from ecjax.studies.spine.as_json import print_object
from ecjax.studies.spine.sentences import word
from ecjax.units import count_text

_MOST = 20  # groups that are named


def collect_dumps(options: CephOptions, console: Console) -> int:
    """Write a folder of dumps; returns the exit code.

    Raises:
        UserError: the cluster cannot be reached.
    """
    folder = Path(str(options.collect))
    log.info("six commands that change nothing, %g s between the two pg dumps", options.wait_s)
    collect(folder, options.wait_s, options.ceph)
    return _ended(console, f"Dumps are in {folder}: ecjax ceph {folder}", (), 0)


def verify_plan(options: CephOptions, console: Console) -> int:
    """Say what of a plan is in force in dumps taken later; returns the exit code: 0 all of it, 1 not.

    Raises:
        UserError: the plan or the dumps cannot be read.
    """
    scripts = read_scripts(str(options.verify), options.plan_run)
    now = read_cluster(read_dumps(str(options.dumps)), Reading(EQUAL, moving=True))
    expected = scripts.expected
    if now.fsid != expected.fsid:
        line = f"The dumps are of cluster {now.fsid}, plan {scripts.run_id} is of {expected.fsid}."
        return _ended(console, line, (), 1)
    wrong = findings(expected, now)
    moving = int((~now.groups.movable).sum())
    still = f"; {count_text(moving, 'group is', 'groups are')} not active+clean yet" if moving else ""
    if not wrong:
        every = count_text(len(expected.after), "group has its new set", "groups have their new sets")
        line = f"{every}, as in plan {scripts.run_id}{still}."
        return _ended(console, line, (), 0)
    elsewhere = moved_on(expected, now)
    done = len(expected.after) - len(wrong)
    line = f"{done} of {count_text(len(expected.after), 'group')} of plan {scripts.run_id} in the new sets{still}"
    if elsewhere:
        line += f"; {len(elsewhere)} are neither as before nor as planned: plan again"
    return _ended(console, line + ".", tuple(wrong), 1)


def apply_plan(options: CephOptions, console: Console) -> int:
    """Run the batches of a plan, one after another; returns the exit code: 0 all are in force, 1 it stopped.

    None of them is run of a plan that was not worth its commands, unless it is named: exit code 0.

    Raises:
        UserError: the plan cannot be read, or a command is refused.
    """
    folder = options.verify or options.out
    scripts = read_scripts(folder, options.plan_run)
    if scripts.nothing_gained:
        line = f"Nothing was applied: {NOTHING_GAINED}"
        if scripts.batches:
            line += f" (ecjax ceph verify={word(folder)} plan_run={scripts.run_id} apply=true does it all the same)"
        return _ended(console, line + ".", (), 0)
    with tempfile.TemporaryDirectory() as dumps:
        applied = apply_batches(
            partial(cluster_now, Path(dumps), options.ceph, ()),
            partial(health_now, options.ceph),
            options.ceph,
            scripts.expected,
            scripts.batches,
            options.apply_wait_s,
            lambda line: log.info("%s", line),
        )
    count = len(scripts.batches)
    if not applied.line:
        every = "The only batch" if count == 1 else f"All {count} batches"
        line = f"{every} of plan {scripts.run_id} {'is' if count == 1 else 'are'} in force, read back."
        return _ended(console, line, (), 0)
    line = f"Stopped after {applied.batches} of {count} batches: {applied.line}."
    return _ended(console, line, applied.findings, 1)


def _ended(console: Console, line: str, wrong: tuple[Finding, ...], code: int) -> int:
    """Say how it ended, and which groups are not as they should be."""
    for each in wrong[:_MOST]:
        sets = f" (found {', '.join(map(str, each.found))})" if each.found else ""
        say(console, f"group {each.group}: {each.why}{sets}", "red")
    if len(wrong) > _MOST:
        say(console, f"and {len(wrong) - _MOST} more", "red")
    conclude(console, line)
    if output_mode() is OutputMode.JSON:
        listed = [{"group": each.group, "why": each.why, "found": list(each.found)} for each in wrong]
        print_object({"job": "ceph", "line": line, "findings": listed, "exit_code": code})
    return code
