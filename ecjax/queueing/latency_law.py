"""Laws of the latency of files from the laws of nodes, whose queues may be of several classes of files."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.class_queues import ClassQueues
from ecjax.queueing.condense import Condensed
from ecjax.queueing.dependence import factor_points, loadings
from ecjax.queueing.sojourn_law import common_points, cumulative_at, served_law, service_at, waits_given
from ecjax.queueing.subsets import drawing_probabilities, subset_product
from ecjax.queueing.workload import Workload, size_position

_SERVICE_POINTS = 2048
_POINTS = 128
_LOADINGS = 5  # node laws are linear between so many loadings on the factor
_BATCH = 64


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Curves:
    """Pr(T_i <= x) of the files at the points of their class and the sizes next to theirs."""

    points: jax.Array  # (K C, X) s
    index: (
        jax.Array
    )  # (r, H) row of ``points``; H = 1 where all sizes are computed, else the two next to the file's
    weight: jax.Array  # (r, H)
    value: jax.Array  # (r, H, X)
    finite: jax.Array  # (r,) bool


def latency_curves(
    probabilities: jax.Array, load: Workload, queues: ClassQueues, condensed: Condensed
) -> Curves:
    """Laws of all files.

    Args:
        probabilities: pi, (r, m).
        load: files and nodes.
        queues: what the files' classes meet at the nodes, whose waits are those of the laws of ``condensed``.
        condensed: laws of the nodes.
    """
    factor, weight = factor_points()
    index, part = size_position(load)
    neighbours = _neighbours(index, part, load.exact)
    of_file, sizes = queues.of_file.astype(index.dtype), load.sizes.shape[0]
    loading, joined = lax.map(
        lambda arguments: loadings(arguments[0], queues.correlation[arguments[1]]),
        (probabilities, of_file),
        batch_size=_BATCH,
    )

    service = load.service.taken(condensed.like)
    connect = jax.tree.map(lambda part: part[condensed.like], load.connect)

    def of_class(arguments):
        number, wait, slowness = arguments
        member = of_file == number
        served = served_law(
            load.sizes, service.slowed(slowness[condensed.like]), connect, wait, _SERVICE_POINTS
        )
        reads = lax.stop_gradient(jnp.where(member, load.rate, 0)[:, None] * probabilities)
        by_node = jnp.zeros((sizes, load.service.nodes))
        for place, share in neighbours:
            by_node = by_node.at[place].add(reads * share[:, None])
        by_size = jnp.zeros((sizes, service.nodes)).at[:, condensed.of_node].add(by_node)
        points = common_points(wait, served, by_size, _POINTS)
        levels = _levels(loading, member[:, None] & (probabilities > 0))
        conditional = lax.map(
            lambda a: cumulative_at(points, *waits_given(wait, a, factor), wait, served), levels
        )
        return points, levels, conditional, service_at(points, served)

    count = queues.slowness.shape[0]
    points, levels, conditional, alone = lax.map(
        of_class, (jnp.arange(count, dtype=index.dtype), queues.waits, queues.slowness)
    )

    def law_of_file(arguments):
        marginals, own_drawing, own_loading, nodes, own_joined, number, index, part = arguments
        low, share = _between(levels[number], own_loading)

        def law(place):
            lower, upper = conditional[number, low, place, nodes], conditional[number, low + 1, place, nodes]
            at_loading = lower + share[:, None, None] * (upper - lower)
            idle, served = queues.waits.idle[number, nodes], alone[number, place, nodes]
            return _file_law(marginals, own_drawing, at_loading, weight, idle, served, own_joined, load.most)

        return jnp.stack([law(place) for place, _ in _neighbours(index, part, load.exact)])

    read, nodes = probabilities, jnp.broadcast_to(condensed.of_node, probabilities.shape)
    if condensed.spread < load.service.nodes:
        read, most_read = lax.top_k(probabilities, condensed.spread)
        nodes, loading = condensed.of_node[most_read], jnp.take_along_axis(loading, most_read, axis=1)
    drawing = lax.map(lambda marginals: drawing_probabilities(marginals, load.most), read, batch_size=_BATCH)
    # derivatives take the products of a file again: they would be r times as large
    value = lax.map(
        jax.checkpoint(law_of_file), (read, drawing, loading, nodes, joined, of_file, index, part)
    )
    return Curves(
        points.reshape(count * sizes, _POINTS),
        jnp.stack([of_file * sizes + place for place, _ in neighbours], axis=1),
        jnp.stack([share for _, share in neighbours], axis=1),
        value,
        ~jnp.any((probabilities > 0) & ~queues.waits.stable[of_file][:, condensed.of_node], axis=1),
    )


def _levels(loading, read):
    """Loadings that node laws are computed at, (L,): even steps over those of the files."""
    least = jnp.min(jnp.where(read, loading, 1))
    most = jnp.maximum(jnp.max(jnp.where(read, loading, 0)), least + 1e-3)
    return lax.stop_gradient(least + (most - least) * jnp.linspace(0, 1, _LOADINGS))


def _between(levels, loading):
    """The level below each loading, and how far it is to the next."""
    place = (loading - levels[0]) / (levels[1] - levels[0])
    low = jnp.clip(jnp.floor(lax.stop_gradient(place)), 0, _LOADINGS - 2)
    return low.astype(int), jnp.clip(place - low, 0, 1)


def _neighbours(index, part, exact):
    """Sizes that stand for a file's, with their weights."""
    if exact:
        return [(index, jnp.ones_like(part))]
    return [(index, 1 - part), (index + 1, part)]


def _file_law(marginals, drawing, conditional, weight, idle, alone, joined, most):
    """Pr(T <= x), (X,), from node laws given the factor (m, Y, X) and those of the services alone (m, X)."""
    k = jnp.round(marginals.sum())
    apart = jnp.sum(weight[:, None] * subset_product(drawing, k, conditional, most), axis=0)
    # Waits that are the same: all at 0 together, where the services still differ; else the slowest node decides.
    late = jnp.sum(weight[None, :, None] * conditional, axis=1) + idle[:, None] * (1 - alone)
    slowest = _largest(marginals[:, None] * (1 - late))
    empty = jnp.min(jnp.where(marginals > 0, idle, 1))
    together = 1 - slowest - empty * (1 - subset_product(drawing, k, alone, most))
    return jnp.clip(apart + joined * (together - apart), 0, 1)


def _largest(values):
    """Largest along the first axis; what are equal but for rounding share its derivative.

    That of ``jnp.max`` goes to what equals the result, to none of them (0 / 0) where a compiler takes the values twice
    and rounds them differently, as one does that contracts a product and a sum only once.
    """
    held = lax.stop_gradient(values)
    top = jnp.max(held, axis=0, keepdims=True)
    near = jnp.where(held >= top - 1e-12, 1.0, 0.0)
    share = near / jnp.sum(near, axis=0, keepdims=True)
    return top[0] + jnp.sum(share * (values - held), axis=0)
