"""What ``ecjax ceph`` does besides planning: collects dumps, says what of a plan is in force, applies it."""

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from ecjax.console import OutputMode, conclude, log, output_mode, say
from ecjax.rados.files import read_dumps
from ecjax.rados.live import apply_batches, cluster_now, cluster_of_groups, collect, health_now
from ecjax.rados.verify import Finding, moved_on, progress
from ecjax.studies.ceph.options import CephOptions
from ecjax.studies.ceph.recommend import NOTHING_GAINED
from ecjax.studies.ceph.scripts import FOLDER, batch_name, read_scripts
from ecjax.studies.spine.as_json import print_object
from ecjax.studies.spine.sentences import word
from ecjax.studies.spine.study import Acted
from ecjax.tables.folder import location
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
    """Say which batches of a plan are in force in dumps taken later, and which is next.

    Returns:
        0 where at least one was run and all that were are in force, else 1.

    Raises:
        UserError: the plan or the dumps cannot be read.
    """
    scripts = read_scripts(str(options.verify), options.plan_run)
    expected = scripts.expected
    now = cluster_of_groups(read_dumps(str(options.dumps)), expected.before)
    if now.fsid != expected.fsid:
        line = f"The dumps are of cluster {now.fsid}, plan {scripts.run_id} is of {expected.fsid}."
        return _ended(console, line, (), 1)
    made = progress(expected, [sets for _, sets in scripts.batches], now)
    moving = len(now.unclean)
    count = len(scripts.batches)
    still = f"; {count_text(moving, 'group is', 'groups are')} not active+clean yet" if moving else ""
    left = [number for number in range(1, count + 1) if number not in made.in_force]
    following = f"{batch_name(left[0])}.sh" if left else None
    facts = {"batches": count, "in_force": list(made.in_force), "next": None if made.findings else following}
    if not made.findings and not left:
        every = count_text(len(expected.after), "group has its new set", "groups have their new sets")
        line = f"{every}, as in plan {scripts.run_id}{still}."
        return _ended(console, line, (), 0, facts)
    named = _batches_text(made.in_force, count)
    verb = "is" if len(made.in_force) == 1 else "are"
    line = f"{named[0].upper()}{named[1:]} of plan {scripts.run_id} {verb} in force{still}"
    if not made.findings:
        when = " when all are" if moving else ""
        return _ended(console, f"{line}; next{when}: {following}.", (), 0 if made.in_force else 1, facts)
    if begun := [number for number in made.begun if number not in made.in_force]:
        line += f"; begun, and not as expected: {_batches_text(begun, count)}"
    if elsewhere := moved_on(expected, now):
        line += f"; {len(elsewhere)} are neither as before nor as planned: plan again"
    return _ended(console, line + ".", made.findings, 1, facts)


def _batches_text(numbers: Sequence[int], count: int) -> str:
    """Batches in words: 0 of 3 batches, batch 2 of 3, batches 1 to 2 of 3, batches 1, 3 of 3."""
    if not numbers:
        return f"0 of {count_text(count, 'batch', 'batches')}"
    if len(numbers) == 1:
        return f"batch {numbers[0]} of {count}"
    in_a_row = len(numbers) == numbers[-1] - numbers[0] + 1
    text = f"{numbers[0]} to {numbers[-1]}" if in_a_row else ", ".join(map(str, numbers))
    return f"batches {text} of {count}"


def apply_plan(options: CephOptions, console: Console) -> int:
    """As ``applied_plan``; returns the exit code.

    Raises:
        UserError: the plan, or the cluster as it is, cannot be read.
    """
    return _printed(applied_plan(options, console))


def applied_plan(options: CephOptions, console: Console) -> Acted:
    """Run the batches of a plan, one after another; exit code: 0 all are in force, 1 it stopped.

    None of them is run of a plan that was not worth its commands, unless it is named: exit code 0.

    Raises:
        UserError: the plan, or the cluster as it is, cannot be read.
    """
    folder = options.verify or options.out
    scripts = read_scripts(folder, options.plan_run)
    if scripts.nothing_gained:
        line = f"Nothing was applied: {NOTHING_GAINED}"
        if scripts.batches:
            line += f" (ecjax ceph verify={word(folder)} plan_run={scripts.run_id} apply=true does it all the same)"
        return _said(console, line + ".", (), 0)
    with tempfile.TemporaryDirectory() as dumps:
        applied = apply_batches(
            partial(cluster_now, Path(dumps), options.ceph, scripts.expected.before),
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
        return _said(console, line, (), 0)
    line = f"Stopped after {applied.batches} of {count} batches: {applied.line}."
    if applied.begun:
        undo = [f"{batch_name(number)}-undo.sh" for number in {applied.begun, 1}]
        line += (
            f" What was begun is taken back by {' to '.join(sorted(undo, reverse=True))} in "
            f"{location(folder) / FOLDER / scripts.run_id}, the last one first."
        )
    return _said(console, line, applied.findings, 1)


def _ended(
    console: Console,
    line: str,
    wrong: tuple[Finding, ...],
    code: int,
    facts: dict[str, object] | None = None,
) -> int:
    """Say how it ended, and which groups are not as they should be; returns the exit code.

    Args:
        console: where to.
        line: how it ended.
        wrong: groups.
        code: exit code.
        facts: that ``--json`` prints besides.
    """
    return _printed(_said(console, line, wrong, code, facts))


def _said(
    console: Console,
    line: str,
    wrong: tuple[Finding, ...],
    code: int,
    facts: dict[str, object] | None = None,
) -> Acted:
    """The same without the object of ``--json``."""
    for each in wrong[:_MOST]:
        sets = f" (found {', '.join(map(str, each.found))})" if each.found else ""
        say(console, f"group {each.group}: {each.why}{sets}", "red")
    if len(wrong) > _MOST:
        say(console, f"and {len(wrong) - _MOST} more", "red")
    conclude(console, line)
    listed = [{"group": each.group, "why": each.why, "found": list(each.found)} for each in wrong]
    return Acted(code, {"line": line, **(facts or {}), "findings": listed})


def _printed(acted: Acted) -> int:
    """Print the object of ``--json``, where it is asked for; returns the exit code."""
    if output_mode() is OutputMode.JSON:
        print_object({"job": "ceph", **acted.said, "exit_code": acted.code})
    return acted.code
