"""Divisions of the nodes that a search begins with: the one nearest to what was drawn that overloads no node."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from planning.classes.plain_classes import TINY_CLASSES, class_problem, plain_classes, tiny_case, work
from problems import Case

from ecjax.planning import project_hypersimplex
from ecjax.planning.classes import search
from ecjax.planning.classes.model import other_work
from ecjax.planning.classes.relief import Start
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


def test_a_search_that_overloads_a_node_gives_way_to_a_balanced_start(monkeypatch):
    """Loads of whole files on two nodes that take 1 s: only {.6, .35} and {.5, .4} keep both below 1."""
    nodes = pd.DataFrame({"node_id": [0, 1], "service_mean_s": 1.0, "service_second_s2": 2.0})
    nodes = nodes.assign(service_third_s3=6.0, reference_bytes=1e6)
    rate = np.array([0.6, 0.5, 0.35, 0.4])
    files = pd.DataFrame({"file_id": np.arange(4), "bytes": 1e6, "k": 1, "rate_per_s": rate})
    model = class_problem(Case(nodes, files.assign(min_extra_chunks=0)), np.array([0, 0, 1, 1]), "weighted")
    stored = jnp.asarray([[True, False], [False, True], [True, False], [False, True]])
    balanced = Start(stored.astype(float), stored)
    # any division will do, as only how files are drawn for it matters
    monkeypatch.setattr(search, "_divided", lambda _, reads, rng: search._Valley(0.0, reads))
    for seed in range(10):
        found = search.search_start(model, balanced, (1.0, 1.0), 0.0, seed)
        assert (rate @ np.asarray(found.probabilities)).max() < 1
