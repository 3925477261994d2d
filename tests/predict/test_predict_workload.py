"""What the estimate is told: the laws of the nodes with their moments, and the work beside the reads."""

import jax.numpy as jnp
import numpy as np
import pytest

from ecjax import planning
from ecjax.model import Files, Nodes
from ecjax.predict.workload import node_laws, workload_of
from ecjax.simulation import law_fit
from ecjax.simulation.laws import KINDS, Laws


def row(kind, a=0.0, b=0.0):
    return [0.2, 0.01, 0.5, 0.03, a, b, KINDS.index(kind), 0.0, 0.0]


LAWS = Laws(
    np.array(
        [
            row("deterministic"),
            row("exponential"),
            row("gamma", 2.5),
            row("lognormal", 0.6),
            row("pareto", 2.2, 50.0),
            row("weibull", 1.4),
            row("two_point", 0.25),
            [*row("empirical")[:7], 0.0, 4.0],
        ]
    ),
    np.array([0.5, 1.0, 1.0, 3.0]),
)


def test_laws_have_the_moments_of_the_replay():
    polynomial = law_fit.polynomials(LAWS, 8)
    found = node_laws(LAWS, 8)
    for size in (1.0, 20.0):
        expected = np.einsum("npm,p->nm", polynomial, size ** np.arange(4))
        moments = np.stack(found.moments(jnp.array([[size]])))[:, 0]
        assert moments == pytest.approx(expected, rel=2e-4)


def test_a_rare_value_of_two_is_not_lost():
    """8 of 10,000 services are 30 s longer: moments by hand."""
    rare = np.array([[0.01, 0.0, 30.0, 0.0, 0.0008, 0.0, KINDS.index("two_point"), 0.0, 0.0]])
    found = np.ravel(node_laws(Laws(rare, np.empty(0)), 1).moments(jnp.ones((1, 1))))
    by_hand = [0.9992 * 0.01**n + 0.0008 * 30.01**n for n in (1, 2, 3)]
    assert found == pytest.approx(by_hand, rel=1e-12)


def test_writes_and_background_are_work_beside_the_reads():
    nodes = Nodes(
        service=jnp.asarray(law_fit.polynomials(LAWS, 8)),
        connect_mean=jnp.full(8, 0.1),
        connect_variance=jnp.full(8, 0.01),
        background=jnp.stack([jnp.full(8, 0.05), jnp.full(8, 0.1), jnp.full(8, 0.4)]),
        cost_per_chunk=jnp.zeros(8),
        cost_per_byte=jnp.zeros(8),
    )
    files = Files(
        *(jnp.asarray(v) for v in ([2.0, 5.0], [2.0, 5.0], [2.0, 2.0], [0.0, 0.0], [0.3, 0.2], [0.1, 0.0]))
    )
    problem = planning.prepare(nodes, files)
    stored = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1]], bool)
    found = workload_of(problem, LAWS, stored)
    # writes of the first file load its chunks; nothing writes the second
    moments = np.einsum("npm,p->nm", law_fit.polynomials(LAWS, 8), 2.0 ** np.arange(4))
    expected = np.asarray(nodes.background) + 0.1 * moments * stored[0]
    assert np.asarray(found.background) == pytest.approx(expected, rel=1e-12)
    assert np.asarray(found.rate) == pytest.approx([0.3, 0.2])
