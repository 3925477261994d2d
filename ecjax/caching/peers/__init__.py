"""Caches of whole items as others have them, each in a file of its own, which is also all that adding one takes.

A file ``NAME.py`` here is the policy ``NAME``. It has a compiled function that goes through the reads of one edge,

    replay_items(reads, room, hit, decided_ns, kept)

    reads: ItemReads of one edge.
    room: most items that the edge keeps.
    hit: (Q,) bool, whether the edge had the item; written.
    decided_ns: (Q,) int64, ``clock.nanoseconds`` when all was decided after the read; written.
    kept: (M,) bool, what the edge keeps at the end; all False before, written.

An item whose read fails (``whole`` is False) is not to be had: nothing may change. All items are of one size, K
chunks. What a read costs, and what follows from outages, is the business of ``item_replay``.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

NAMES = tuple(sorted(module.name for module in iter_modules(__path__)))


def replay_items_of(name: str) -> Callable[..., None]:
    """The function of a policy, as above."""
    function: Callable[..., None] = import_module(f"{__name__}.{name}").replay_items
    return function
