"""Plans from some or all partitions of a cache: the SampleX paper's optimal scheme, SampleX and its rivals.

Each scheme clears the market (``ecjax.caching.clearing``) of the partitions it looks at and takes the best. Algorithm 1
of the paper is mended (errata): as printed it draws x_k up to floor(C / k) whatever is left, so that x_1 < 0 in nearly
all draws; mended in the obvious way its draws are far from uniform, so partitions are drawn by rank here; it never ends
when more samples are wanted than there are partitions, and then all are taken; it does not see that there may be fewer
items than slots.

All schemes fill the cache, sum_m lambda_m = C, unless the chunks of all items are fewer: then all are kept.
"""

import random
from collections.abc import Callable

import numpy as np

from ecjax.caching.clearing import Market
from ecjax.caching.partitions import Partitions
from ecjax.caching.valuation import checked_valuation, checked_whole
from ecjax.errors import UserError

LIMIT = 2_000_000  # partitions that a study goes through: some 10 us each


def samplex(tau, capacity: int, samples: int = 5, seed: int = 0) -> np.ndarray:
    """Offline SampleX: the best of the last partition and S - 1 others drawn at random (Algorithm 1, mended).

    The last partition alone has at least 1 / K of the best value, and K items whose first chunk is worth as much as all
    K show that it can be no more (the paper's Theorem 1 says 1 / (K + 1)).

    Args:
        tau: (M, K + 1), s/s, rows begin with 0 and do not descend.
        capacity: C, chunks.
        samples: S, at least 1.
        seed: of the draws.

    Returns:
        lambda, (M,) int64, chunks to keep of each item.

    Raises:
        UserError: ``tau`` is not as said, or a number not whole or too small.
    """
    return sampled_plan(tau, capacity, "samplex", samples, seed)


def sampled_plan(tau, capacity: int, scheme: str, samples: int, seed: int = 0) -> np.ndarray:
    """The best plan of the partitions that a scheme of ``SCHEMES`` draws; arguments and errors as ``samplex``."""
    tau = checked_valuation(tau)
    partitions = drawn_partitions(_partitions(tau, capacity), scheme, samples, seed)
    return Market(tau, max(int(one.sum()) for one in partitions)).best(partitions)[1]


def drawn_partitions(chi: Partitions, scheme: str, samples: int, seed: int) -> list[np.ndarray]:
    """The partitions that a scheme of ``SCHEMES`` looks at, distinct, at most ``samples``.

    Raises:
        UserError: there is no such scheme, ``samples`` is below 1, ``seed`` below 0, or chi is empty.
    """
    if scheme not in SCHEMES:
        raise UserError(f"scheme: found {scheme!r}; allowed: {', '.join(SCHEMES)}")
    samples, seed = checked_whole("samples", samples, 1), checked_whole("seed", seed)
    if not chi.count:
        chi.last()  # says why there are none
    return SCHEMES[scheme](chi, samples, random.Random(seed))


def _samplex(chi: Partitions, samples: int, draws: random.Random) -> list[np.ndarray]:
    """The last partition and others at random."""
    return [chi.last(), *chi.sample(samples - 1, draws, range(chi.count - 1))]


def _rands(chi: Partitions, samples: int, draws: random.Random) -> list[np.ndarray]:
    """RandS: at random."""
    return chi.sample(samples, draws)


def _clus(chi: Partitions, samples: int, draws: random.Random) -> list[np.ndarray]:
    """CluS: at random among those with the same x_K, itself at random.

    Too few items leave some x_K without partitions; those are not drawn (the paper has items enough).
    """
    return chi.sample(samples, draws, draws.choice(_clusters(chi)))


def _probs(chi: Partitions, samples: int, draws: random.Random) -> list[np.ndarray]:
    """ProbS: as CluS, x_K with a probability proportional to floor(C / K) + 1 - x_K (equation 15)."""
    clusters = _clusters(chi)
    highest = chi.capacity // chi.k
    # x_K without partitions are the lowest
    weights = [highest + 1 - whole for whole in range(highest + 1)][-len(clusters) :]
    return chi.sample(samples, draws, draws.choices(clusters, weights)[0])


def _syss(chi: Partitions, samples: int, draws: random.Random) -> list[np.ndarray]:
    """SysS: the last of each of S intervals of equal length; nothing is random."""
    samples = min(samples, chi.count)
    return [chi.unrank(chi.count * i // samples - 1) for i in range(1, samples + 1)]


SCHEMES: dict[str, Callable[[Partitions, int, random.Random], list[np.ndarray]]] = {
    "samplex": _samplex,
    "rands": _rands,
    "clus": _clus,
    "probs": _probs,
    "syss": _syss,
}


def _clusters(chi: Partitions) -> list[range]:
    """Ranks of the partitions with each x_K that any has, ascending."""
    ranks = (chi.ranks_with_whole(whole) for whole in range(chi.capacity // chi.k + 1))
    return [cluster for cluster in ranks if cluster.stop > cluster.start]


def _partitions(tau: np.ndarray, capacity: int) -> Partitions:
    """Partitions of a capacity, or of all chunks where they are fewer."""
    items, k = tau.shape[0], tau.shape[1] - 1
    return Partitions(min(checked_whole("capacity", capacity), items * k), k, items)
