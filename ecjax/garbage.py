"""How often Python looks for garbage. Imports nothing heavy."""

import gc

_COLLECTIONS = 10_000, 20, 20  # objects between two collections, of those to one of the next generation


def collect_seldom() -> None:
    """What a command imports and compiles stays: looking for garbage in it is a tenth of the time of a first run."""
    gc.set_threshold(*_COLLECTIONS)
