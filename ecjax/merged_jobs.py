"""The jobs of a sweep as few commands: values of one key, with all else alike, are a list in one of them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

Listing = Callable[[str], tuple[str, list[Any]] | None]


@dataclass
class Group:
    """Jobs that one command stands for.

    Attributes:
        overrides: of the first of them, as Hydra writes them.
        lists: instead of what these say: the values by key, in the order of the sweep.
        jobs: their numbers in the sweep, ascending.
    """

    overrides: list[str]
    lists: dict[str, list[Any]] = field(default_factory=dict)
    jobs: list[int] = field(default_factory=list)


def merged(jobs: Sequence[Sequence[str]], listing: Listing) -> list[Group]:
    """The fewest commands that are found by joining lists key by key; of all combinations of values that is one.

    Args:
        jobs: overrides of each.
        listing: the key of an override and the values of its list, where its values are runs of their own; else None.
    """
    groups, fixed = [], []
    for number, overrides in enumerate(jobs):
        pairs = [(text, listing(text)) for text in overrides]
        lists = dict(pair for _, pair in pairs if pair is not None)
        groups.append(Group(list(overrides), lists, [number]))
        fixed.append(tuple(text for text, pair in pairs if pair is None))
    keys = list(dict.fromkeys(key for group in groups for key in group.lists))
    for key in (None, *reversed(keys)):  # None: jobs that are the same
        joined: dict[Hashable, int] = {}
        kept: list[Group] = []
        kept_fixed: list[tuple[str, ...]] = []
        for group, rest in zip(groups, fixed, strict=True):
            others = tuple((name, tuple(values)) for name, values in group.lists.items() if name != key)
            alike = (rest, others, key in group.lists)
            if alike not in joined:
                joined[alike] = len(kept)
                kept.append(group)
                kept_fixed.append(rest)
                continue
            first = kept[joined[alike]]
            first.jobs += group.jobs
            if key is not None and key in group.lists:
                first.lists[key] = list(dict.fromkeys([*first.lists[key], *group.lists[key]]))
        groups, fixed = kept, kept_fixed
    return [Group(group.overrides, group.lists, sorted(group.jobs)) for group in groups]
