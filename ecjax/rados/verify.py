"""What of a plan is in force: sets and entries read back, held against those expected. Exit codes say nothing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ecjax.rados.records import Cluster, Entries


class Expected(NamedTuple):
    """What a plan, or a part of it, should have brought about."""

    fsid: str
    before: Mapping[str, tuple[int, ...]]  # set of every group that changes
    after: Mapping[str, tuple[int, ...]]


class Finding(NamedTuple):
    """A group that is not as expected."""

    group: str
    why: str
    found: tuple[int, ...]


class Progress(NamedTuple):
    """How far the batches of a plan are."""

    in_force: tuple[int, ...]  # batches, from 1, all of whose groups are in their new sets
    begun: tuple[int, ...]  # batches of which a group is, or is about to be
    findings: tuple[
        Finding, ...
    ]  # groups of begun batches not in their new sets, of others neither as before


def progress(expected: Expected, batches: Sequence[Mapping[str, tuple[int, ...]]], now: Cluster) -> Progress:
    """Which batches of a plan were run, and what of these is not as expected; what was not begun is no finding.

    Args:
        expected: of the whole plan.
        batches: the sets that each brings about, in order.
        now: read back.
    """
    held = now.sets

    def arrives(name: str, osds: tuple[int, ...]) -> bool:
        # pg dump lags behind the map
        return held.get(name) == osds or now.entries.upmap.get(name) == osds

    begun = [
        number
        for number, sets in enumerate(batches, 1)
        if any(arrives(name, osds) for name, osds in sets.items())
    ]
    done = {name: osds for number in begun for name, osds in batches[number - 1].items()}
    later = {name: osds for name, osds in expected.before.items() if name not in done}
    wrong = findings(expected._replace(after=done), now) + moved_on(expected._replace(before=later), now)
    named = {each.group for each in wrong}
    in_force = [number for number in begun if named.isdisjoint(batches[number - 1])]
    return Progress(tuple(in_force), tuple(begun), tuple(wrong))


def findings(expected: Expected, now: Cluster) -> list[Finding]:
    """Groups whose set is not the expected one, with the rule that explains it.

    Args:
        expected: of the plan.
        now: read back.
    """
    held = now.sets
    wrong = []
    for name, osds in expected.after.items():
        if name not in held:
            wrong.append(Finding(name, "the group is gone: its pool was removed, split or merged", ()))
        elif held[name] != osds:
            before = expected.before.get(name, ())
            wrong.append(Finding(name, _why(name, held[name], before, now), held[name]))
    return wrong


def _why(name: str, up: tuple[int, ...], before: tuple[int, ...], now: Cluster) -> str:
    entries = now.entries
    out = set(now.osds[~now.usable].tolist())
    if name in entries.upmap:
        if out.intersection(entries.upmap[name]):
            return "its pg_upmap names an OSD that is out or down: ignored until it is back"
        if entries.upmap[name] == up:
            return "its pg_upmap is another one: somebody else has changed it"
        return "its pg_upmap is in the map, and up not yet: pg dump lags, read it again"
    if name in entries.items:
        return "its pg_upmap is not in the map, items are: the command did not arrive, or the balancer came after it"
    if up == before:
        return "it has no entry: the command did not arrive, or the monitor dropped it (failure domain)"
    return "it has no entry and is on CRUSH's own set: the monitor dropped it (a failure domain), or it was removed"


def moved_on(expected: Expected, now: Cluster) -> list[Finding]:
    """Groups that are no longer as a plan found them: to be planned again before anything is applied."""
    held = now.sets
    return [
        Finding(name, "its set is another one than the plan was made for", held.get(name, ()))
        for name, osds in expected.before.items()
        if held.get(name) not in (osds, expected.after.get(name))
    ]


def same_entries(expected: Entries, now: Entries, groups: Iterable[str]) -> list[str]:
    """Groups whose entries differ from those expected."""
    return [
        name
        for name in groups
        if expected.upmap.get(name) != now.upmap.get(name) or expected.items.get(name) != now.items.get(name)
    ]
