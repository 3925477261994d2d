"""A running cluster: dumps collected, batches applied one after another. The only module that runs commands."""

import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ecjax.errors import UserError
from ecjax.rados.commands import preparing
from ecjax.rados.files import COMMANDS, Dumps, parsed, read_dumps
from ecjax.rados.read import EQUAL, Reading, read_cluster
from ecjax.rados.records import Cluster, Entries
from ecjax.rados.verify import Expected, Finding, findings, moved_on, same_entries

_POLL_S = 2.0
_TIMEOUT_S, _TRIES = 120, 3
_LAST = "pg_dump.1.json"
# what health says while data moves as it should, and right after a new map
_OF_MOVING = frozenset(
    ("OBJECT_MISPLACED", "PG_DEGRADED", "PG_AVAILABILITY", "PG_NOT_SCRUBBED", "PG_NOT_DEEP_SCRUBBED")
)
# flags under which no data moves
_STOPPED = ("nobackfill", "norebalance", "norecover", "pause")
_FLAGS, _ERROR = "OSDMAP_FLAGS", "HEALTH_ERR"
_NAMED = 3  # groups of a line


class Applied(NamedTuple):
    """How far a plan was brought."""

    batches: int  # that were made, and read back once each was done
    findings: tuple[Finding, ...]  # groups that are not as expected
    line: str  # why it stopped; empty: all batches are in force
    begun: int = 0  # batches of which commands were run


class _Stopped(NamedTuple):
    """Why the wait for a batch ended without it."""

    findings: list[Finding]  # groups that are not as expected
    why: str  # health has become worse, or the time is over


def collect_script(folder: str, seconds: float, command: str) -> str:
    """The commands that write a folder of dumps, as a shell script."""
    lines = ["#!/bin/sh", "set -e", f"mkdir -p {shlex.quote(folder)}"]
    for name, words in COMMANDS.items():
        if name == _LAST:
            lines.append(f"sleep {seconds:g}")
        lines.append(f"{command} {words} -f json > {shlex.quote(folder)}/{name}")
    return "\n".join(lines) + "\n"


def collect(folder: Path, seconds: float, command: str) -> None:
    """Run them: six commands that change nothing.

    Raises:
        UserError: one fails, or prints no JSON.
    """
    texts = {}
    for name, words in COMMANDS.items():
        if name == _LAST:
            time.sleep(seconds)
        texts[name] = _asked(command, words.split())
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def _asked(command: str, words: Sequence[str]) -> str:
    """What a ceph command prints as JSON."""
    text = _run([*shlex.split(command), *words, "-f", "json"])
    try:
        parsed(text.encode())
    except ValueError:
        raise UserError(
            f"ceph={command}: found no JSON of {' '.join(words)}; allowed: ceph's output"
        ) from None
    return text


def _run(words: Sequence[str]) -> str:
    """What a command prints; tried again where it fails, as monitors may be electing: all of them may be repeated.

    Raises:
        UserError: it fails each time.
    """
    said = ""
    for trial in range(_TRIES):
        if trial:
            time.sleep(_POLL_S)
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            said = f"no answer within {_TIMEOUT_S} s"
            continue
        except OSError as error:
            raise UserError(
                f"ceph={words[0]}: found {error}; allowed: a command that reaches the cluster"
            ) from error
        if not done.returncode:
            return done.stdout
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
    raise UserError(f"{' '.join(words)}: found {said}; allowed: a command that the cluster accepts")


def cluster_now(folder: Path, command: str, groups: Collection[str]) -> Cluster:
    """The sets and entries of a running cluster; its dumps go into a folder.

    Args:
        folder: for the dumps.
        command: that is ``ceph``.
        groups: of which pools are read: others may be created, split or removed meanwhile; empty: all pools.

    Raises:
        UserError: a command fails, or dumps cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in COMMANDS.items():
        if name != _LAST:
            (folder / name).write_text(_asked(command, words.split()))
    return cluster_of_groups(read_dumps(folder), groups)


def cluster_of_groups(dumps: Dumps, groups: Collection[str]) -> Cluster:
    """The pools of some groups, of dumps whose groups may move; empty: all pools.

    Raises:
        UserError: dumps cannot be read, or no pool of these groups is there.
    """
    ids = {name.split(".")[0] for name in groups}
    pools = tuple(each["pool_name"] for each in dumps.osd["pools"] if str(each["pool"]) in ids)
    if ids and not pools:
        raise UserError(f"{dumps.source}: found no pool of the plan's groups; allowed: dumps of its cluster")
    return read_cluster(dumps, Reading(EQUAL, pools, moving=True))


class Check(NamedTuple):
    """What ``ceph health -f json`` says of one code."""

    message: str
    error: bool = False  # HEALTH_ERR
    number: int = 0  # of what is ill; 0: not told


class Health(NamedTuple):
    """What ``ceph health -f json`` says."""

    error: bool  # HEALTH_ERR
    checks: Mapping[str, Check]  # by code


def health_now(command: str) -> Health:
    """Health of a running cluster.

    Raises:
        UserError: the command fails, or what it prints has no status.
    """
    said = parsed(_asked(command, ["health"]).encode())
    try:
        checks = {
            code: Check(
                str(each["summary"]["message"]),
                each.get("severity") == _ERROR,
                int(each["summary"].get("count", 0)),
            )
            for code, each in said.get("checks", {}).items()
        }
        return Health(said["status"] == _ERROR, checks)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{command} health: found no {error}; allowed: ceph's output") from error


def _unfit(health: Health) -> str:
    """Why nothing is to be applied to a cluster, in words; empty: it may be."""
    if health.error:
        return f"health is HEALTH_ERR ({_named(health.checks)}): mend that first"
    stopped = [flag for flag in sorted(_flags(health)) if flag.startswith(_STOPPED)]
    return f"{stopped[0]} is set, no data would move: unset it first" if stopped else ""


def _worse(before: Health, now: Health) -> str:
    """What is new in health that moving data does not explain, in words; empty: nothing."""
    worse = {
        code: check
        for code, check in now.checks.items()
        if code not in _OF_MOVING and _is_worse(code, before.checks.get(code), check)
    }
    if _flags(now) - _flags(before):
        worse |= {_FLAGS: now.checks[_FLAGS]}
    if now.error or worse:
        return f"health has become worse ({_named(worse or now.checks)})"
    return ""


def _is_worse(code: str, before: Check | None, now: Check) -> bool:
    """Whether a check is new, or one of OSDs is graver or of more of them; counts of others come and go."""
    if before is None:
        return True
    of_osds = code.startswith("OSD_") and "SLOW_PING" not in code
    return of_osds and ((now.error and not before.error) or now.number > before.number)


def _flags(health: Health) -> set[str]:
    """Flags of the map, as "noout,nobackfill flag(s) set" names them."""
    check = health.checks.get(_FLAGS)
    return set() if check is None else set(check.message.partition(" ")[0].split(","))


def _named(checks: Mapping[str, Check]) -> str:
    return (
        "; ".join(f"{code}: {check.message}" for code, check in sorted(checks.items())) or "no check is named"
    )


def apply_batches(
    look: Callable[[], Cluster],
    health: Callable[[], Health],
    command: str,
    plan: Expected,
    batches: Sequence[tuple[Sequence[str], Mapping[str, tuple[int, ...]]]],
    wait_s: float,
    say: Callable[[str], None],
) -> Applied:
    """Apply batches one by one; stop where the cluster is not as it should be.

    Before anything is done, the planned groups must be as the plan found them and health no error. After each batch,
    first the sets are awaited, then active+clean with up = acting on all groups of all pools; the next one begins only
    then, only while health says nothing that it did not say before and that moving data does not explain, and only
    where nobody else has changed groups of the plan: those of earlier batches are in their new sets, those of later
    ones are as they were. After the last batch all of them are looked at, too.

    Args:
        look: reads the cluster.
        health: reads its health.
        command: that is ``ceph``.
        plan: all of it.
        batches: commands, and sets expected after them.
        wait_s: longest wait for one batch.
        say: is told each step.
    """
    now = look()
    if now.fsid != plan.fsid:
        line = f"the cluster is {now.fsid}, the plan is of {plan.fsid}"
        return Applied(0, (), line)
    if wrong := moved_on(plan, now):
        return Applied(0, tuple(wrong), "groups are not as the plan found them: plan again")
    if still := _unclean(now):
        return Applied(0, (), f"{still}: wait, then apply again")
    first = health()
    if unfit := _unfit(first):
        return Applied(0, (), unfit)
    for line in preparing(now.min_client) if batches else ():
        _run([*shlex.split(command), *shlex.split(line)[1:]])
    entries, done = now.entries, dict[str, tuple[int, ...]]()
    for number, (commands, sets) in enumerate(batches, 1):
        say(f"batch {number} of {len(batches)}: {len(commands)} commands")
        made = number - 1
        try:
            for line in commands:
                _run([*shlex.split(command), *shlex.split(line)[1:]])
            expected = Expected(plan.fsid, plan.before, sets)
            accepted = _awaited(look, lambda: _worse(first, health()), expected, wait_s, say)
            if isinstance(accepted, _Stopped):
                return Applied(made, tuple(accepted.findings), f"batch {number}: {accepted.why}", number)
            made, done = number, {**done, **sets}
            # as it was read when it was waited for: another look might fail where nothing is wrong
            wrong = _changed_by_others(plan, done, entries, accepted)
        except UserError as error:
            # how far it came is what matters most now
            return Applied(made, (), f"batch {number}: {error}", number)
        if wrong:
            line = (
                "groups of the plan are no longer as its batches left them, or as it found them: plan again"
            )
            return Applied(made, tuple(wrong), line, number)
    return Applied(len(batches), (), "", len(batches))


def _changed_by_others(
    plan: Expected, done: Mapping[str, tuple[int, ...]], entries: Entries, now: Cluster
) -> list[Finding]:
    """Groups that are no longer in the set that a batch gave them, or not as they were before their batch.

    Args:
        plan: all of it.
        done: sets of the batches that were made.
        entries: of the map before the first of them; commands of later ones are made for these.
        now: read back.
    """
    left = {name: osds for name, osds in plan.before.items() if name not in done}
    wrong = findings(plan._replace(after=done), now) + moved_on(plan._replace(before=left), now)
    named, held = {each.group for each in wrong}, now.sets
    others = [name for name in same_entries(entries, now.entries, left) if name not in named]
    return wrong + [Finding(name, "its upmap entries are others than before", held[name]) for name in others]


def _unclean(now: Cluster) -> str:
    """That groups are not active+clean, or not where they should be, in words; empty: all are."""
    if not now.unclean:
        return ""
    more = ", ..." if len(now.unclean) > _NAMED else ""
    return f"not all groups are active+clean ({', '.join(now.unclean[:_NAMED])}{more})"


def _awaited(
    look: Callable[[], Cluster],
    worse: Callable[[], str],
    expected: Expected,
    wait_s: float,
    say: Callable[[str], None],
) -> Cluster | _Stopped:
    """Wait until sets are as expected and clean; where the cluster cannot be read, it is asked again.

    Returns:
        The cluster when it was so, or what is not as expected and why the wait ended.
    """
    end, unread = time.monotonic() + wait_s, ""
    while True:
        wrong: list[Finding] = []
        late = "it did not take effect"
        try:
            if why := worse():
                return _Stopped([], why)
            now = look()
            wrong, unread = findings(expected, now), ""
            if not wrong:
                late = _unclean(now)
            if not late:
                return now
        except UserError as error:
            if not unread:
                say(f"{error}; the cluster is asked again")
            unread = f" ({error})"
        if time.monotonic() >= end:
            return _Stopped(wrong, f"{late} within {wait_s:g} s{unread}")
        time.sleep(_POLL_S)
