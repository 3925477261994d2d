"""A running cluster: dumps collected, batches applied one after another. The only module that runs commands."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ecjax.ceph.files import COMMANDS, read_dumps
from ecjax.ceph.read import EQUAL, Reading, read_cluster
from ecjax.ceph.records import Cluster
from ecjax.ceph.verify import Expected, Finding, findings, moved_on
from ecjax.errors import UserError

_POLL_S = 2.0
_TIMEOUT_S, _TRIES = 120, 3
_LAST = "pg_dump.1.json"


class Applied(NamedTuple):
    """How far a plan was brought."""

    batches: int  # that are in force, read back
    findings: tuple[Finding, ...]  # why it stopped; empty: it did not
    line: str  # the same in words


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
        json.loads(text)
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
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(
                f"ceph={words[0]}: found {error}; allowed: a command that reaches the cluster"
            ) from error
        if not done.returncode:
            return done.stdout
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
    raise UserError(f"{' '.join(words)}: found {said}; allowed: a command that the cluster accepts")


def cluster_now(folder: Path, command: str, pools: tuple[str, ...]) -> Cluster:
    """The sets and entries of a running cluster; its dumps go into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in COMMANDS.items():
        if name != _LAST:
            (folder / name).write_text(_asked(command, words.split()))
    return read_cluster(read_dumps(folder), Reading(EQUAL, pools, moving=True))


def apply_batches(
    look: Callable[[], Cluster],
    command: str,
    plan: Expected,
    batches: Sequence[tuple[Sequence[str], Mapping[str, tuple[int, ...]]]],
    wait_s: float,
    say: Callable[[str], None],
) -> Applied:
    """Apply batches one by one; stop where the cluster is not as it should be.

    Before anything is done, the planned groups must be as the plan found them. After each batch, first the sets are
    awaited, then active+clean with up = acting on all groups; the next one begins only then.

    Args:
        look: reads the cluster.
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
    if not now.groups.movable.all():
        return Applied(0, (), "not all groups are active+clean: wait, then apply again")
    for place, (commands, sets) in enumerate(batches):
        say(f"batch {place + 1} of {len(batches)}: {len(commands)} commands")
        for line in commands:
            words = shlex.split(line)
            _run([*shlex.split(command), *words[1:]])
        stopped = _awaited(look, Expected(plan.fsid, plan.before, sets), wait_s)
        if stopped is not None:
            return Applied(
                place, tuple(stopped), f"batch {place + 1} did not take effect within {wait_s:g} s"
            )
    return Applied(len(batches), (), "")


def _awaited(look: Callable[[], Cluster], expected: Expected, wait_s: float) -> list[Finding] | None:
    """Wait until sets are as expected and clean; what is not, where the time is over."""
    end = time.monotonic() + wait_s
    while True:
        now = look()
        wrong = findings(expected, now)
        if not wrong and now.groups.movable.all():
            return None
        if time.monotonic() >= end:
            return wrong
        time.sleep(_POLL_S)
