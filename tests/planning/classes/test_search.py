"""Divisions of the nodes that a search begins with: the one nearest to what was drawn that overloads no node."""

import jax.numpy as jnp
import numpy as np
import pytest
from planning.classes.plain_classes import TINY_CLASSES, class_problem, plain_classes, tiny_case, work

from ecjax.planning import project_hypersimplex
from ecjax.planning.classes.model import other_work
from ecjax.planning.classes.search import _BLENDS, _DIVIDE, _MOST_LOAD


@pytest.mark.parametrize("load", [0.3, 0.6, 0.96])
def test_a_division_is_blended_with_balanced_reads_until_no_node_is_overloaded(load):
    case = tiny_case(0, load)
    plain = plain_classes(case, TINY_CLASSES, "weighted")
    model = class_problem(case, TINY_CLASSES, "weighted")
    nothing = np.zeros((4, 4))
    # every class on half of the nodes; all on one; all alike
    half = np.where(np.arange(4) % 2 == TINY_CLASSES[:, None], np.linspace(0.5, 1, 4), 0.0)
    member = np.stack([half, np.broadcast_to(np.eye(4)[0], (4, 4)), np.ones((4, 4))])
    balanced = np.broadcast_to(case.k[:, None] / 4, (4, 4))
    other = other_work(model, jnp.asarray(nothing, bool))
    reads, fine = _DIVIDE(model, other, jnp.asarray(balanced), jnp.asarray(member))
    for division, owned in enumerate(member):
        alone = np.asarray(project_hypersimplex(4 * owned, case.k.astype(float)))
        blends = [share * alone + (1 - share) * balanced for share in _BLENDS]
        good = [blend for blend in blends if work(plain, blend, nothing)[0].sum(axis=0).max() < _MOST_LOAD]
        assert bool(fine[division]) == bool(good)
        if good:
            np.testing.assert_allclose(reads[division], good[0], atol=1e-12)
