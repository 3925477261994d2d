"""Which nodes a request reads, drawn by systematic sampling in a random order of the nodes."""

from ecjax.machine_code import njit
from ecjax.simulation.system import UNIT
from ecjax.streams import streams


@njit(inline="always")
def shuffle(order, count, state):
    """Numbers 0, ..., count - 1 in random order into ``order``; returns a further state."""
    for i in range(count):
        order[i] = i
    for i in range(count - 1, 0, -1):
        state = streams.advance(state)
        j = int(streams.uniform(state) * (i + 1))
        order[i], order[j] = order[j], order[i]
    return streams.advance(state)


@njit(inline="always")
def draw(units, begin, end, order, selection, state):
    """Entries begin <= e < end that a request reads, each with probability units[e] / 2^40, into ``selection``.

    Exactly as many are drawn as the units sum to. ``order`` and ``selection`` are room for as many as a row has.
    Returns how many.
    """
    state = shuffle(order, end - begin, state)
    place = int(streams.uniform(state) * UNIT)
    count = 0
    for i in range(end - begin):
        entry = begin + order[i]
        place += units[entry]
        if place >= UNIT:
            place -= UNIT
            selection[count] = entry
            count += 1
    return count
