"""What branches of ``set_program`` allow, what prices prove of them, and what a search of them leads to."""

from typing import NamedTuple

import numpy as np

WHOLE = 1e-6  # of a node, that a program's solution may be off a whole one


class Prices(NamedTuple):
    """Prices at the Q ends of an interval of z.

    Attributes:
        reads: (Q, E) mu, s per 1/s.
        chunks: (Q, R) s, worth of a chunk of a row; negative where fewer are better.
        site: (Q, R, K) s, what one costs more at the site of a kind of nodes.
        sites: (Q,) s, what all that sites may keep costs more.
    """

    reads: np.ndarray
    chunks: np.ndarray
    site: np.ndarray
    sites: np.ndarray


class Proof(NamedTuple):
    """What prices prove.

    Attributes:
        prices: at the ends.
        low: (Q, K, S) s, the least of a node of every kind with every set, without dollars.
    """

    prices: Prices
    low: np.ndarray


class Outcome(NamedTuple):
    """What a search led to.

    Attributes:
        bound: s, on all plans; infinite where there is none.
        cost: s, about, of the best plan that was met.
        sets: (m,) set of every node in it; None where none was met.
        loads: (m, E) 1/s there.
        bent: whether a shorter interval would prove more of that plan.
    """

    bound: float
    cost: float = np.inf
    sets: np.ndarray | None = None
    loads: np.ndarray | None = None
    bent: bool = False


class Numbers(NamedTuple):
    """What a branch allows: nodes of every kind with every set, (K, S), and chunks of every row, (R,)."""

    least: np.ndarray
    most: np.ndarray
    shortest: np.ndarray
    longest: np.ndarray


def branches_of(numbers: Numbers, nodes: np.ndarray, chunks: np.ndarray) -> list[Numbers]:
    """Two that share out what a branch allows, less a solution: (K, S) nodes, (R,) chunks; none where it is whole.

    How long a code is comes first: it is what storage costs.
    """
    apart = np.abs(chunks - np.round(chunks))
    if apart.max() > WHOLE:
        row = int(apart.argmax())
        shorter, longer = numbers.longest.copy(), numbers.shortest.copy()
        shorter[row], longer[row] = np.floor(chunks[row]), np.ceil(chunks[row])
        return [numbers._replace(longest=shorter), numbers._replace(shortest=longer)]
    apart = np.abs(nodes - np.round(nodes))
    if apart.max() <= WHOLE:
        return []
    where = np.unravel_index(np.argmax(apart), apart.shape)
    fewer, more = numbers.most.copy(), numbers.least.copy()
    fewer[where], more[where] = np.floor(nodes[where]), np.ceil(nodes[where])
    return [numbers._replace(most=fewer), numbers._replace(least=more)]
