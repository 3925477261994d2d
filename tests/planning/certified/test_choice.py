"""The cheapest choice of nodes for one row against trying them all."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from ecjax.planning.certified.choice import COLD, HOT, NONE, choose


def choice(hot, cold, k, extra, usable=None, site=None, per_site=0):
    """Cost and kinds (m,) of the choice."""
    m = len(hot)
    nodes = np.arange(m) if usable is None else np.asarray(usable)
    padded = np.zeros(m, np.int64)
    padded[: len(nodes)] = nodes
    kind = np.full(m, 7, np.int8)
    cost = choose(
        np.asarray(hot, float),
        np.asarray(cold, float),
        padded,
        len(nodes),
        k,
        extra,
        np.zeros(m, np.int64) if site is None else np.asarray(site),
        per_site,
        kind,
        np.full((2, m + 2), np.nan),
        np.full((3, m + 2), -9, np.int64),
    )
    return cost, kind


def least(hot, cold, k, extra, usable, site, per_site):
    """The least cost of all choices, infinite where there is none."""
    best = np.inf
    for some in itertools.combinations(usable, k):
        for others in itertools.combinations([j for j in usable if j not in some], extra):
            chosen = list(some + others)
            if per_site and np.bincount(site[chosen]).max() > per_site:
                continue
            best = min(best, hot[list(some)].sum() + cold[list(others)].sum())
    return best


def test_ties_among_large_costs_end_and_are_exact():
    """Differences that are alike but for rounding used to close a path of no length, which was walked for ever."""
    random = np.random.default_rng(0)
    for _ in range(400):
        m = int(random.integers(5, 8))
        scale = 10.0 ** random.integers(-6, 1, 2)
        cold = 1e6 + scale[0] * random.choice([0.1, 0.2, 0.3], m)
        hot = cold + scale[1] * random.choice([0.0, 0.1, 0.2, 0.7], m)
        site = random.integers(0, 5, m)
        row = hot, cold, int(random.integers(1, 4)), int(random.integers(1, 3)), range(m), site, 1
        exact = least(*row)
        cost, kind = choice(*row)
        if np.isinf(exact):
            assert cost == np.inf
            continue
        assert cost == pytest.approx(exact, rel=1e-12)
        assert hot[kind == HOT].sum() + cold[kind == COLD].sum() == pytest.approx(cost, rel=1e-14)
        assert np.bincount(site[kind != NONE]).max() == 1


@st.composite
def rows(draw):
    m = draw(st.integers(1, 7))
    # whole numbers make ties; prices can be negative where an overloaded node is left
    cost = st.integers(0, 5).map(float) if draw(st.booleans()) else st.floats(-2, 10)
    more = st.integers(0, 4).map(float) if draw(st.booleans()) else st.floats(0, 10)
    cold = np.array([draw(cost) for _ in range(m)])
    hot = cold + [draw(more) for _ in range(m)]
    site = np.array([draw(st.integers(0, min(2, m - 1))) for _ in range(m)])
    usable = sorted(draw(st.sets(st.integers(0, m - 1), min_size=1)))
    k, extra = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    return hot, cold, k, extra, usable, site, draw(st.integers(0, 3))


@settings(max_examples=400)
@given(rows())
def test_no_choice_is_cheaper(row):
    hot, cold, k, extra, usable, site, per_site = row
    cost, kind = choice(*row)
    exact = least(*row)
    if np.isinf(exact):
        assert cost == np.inf
        return
    assert cost == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert np.sum(kind == HOT) == k and np.sum(kind == COLD) == extra
    assert set(np.flatnonzero(kind != NONE)) <= set(usable)
    assert hot[kind == HOT].sum() + cold[kind == COLD].sum() == pytest.approx(cost, rel=1e-12, abs=1e-12)
    if per_site:
        assert np.bincount(site[kind != NONE]).max() <= per_site


def test_a_node_that_is_cheap_to_read_may_stay_cold():
    """Node 1 is the cheapest in both roles, and still better cold: node 0 costs nothing more when read."""
    cost, kind = choice([3.0, 2.0, 9.0], [3.0, 0.0, 9.0], 1, 1)
    assert cost == 3.0 and kind.tolist() == [HOT, COLD, NONE]


def test_a_full_site_sends_chunks_elsewhere_and_turns_a_kind():
    """Site 0 takes one chunk only: the two best nodes are both there."""
    cost, kind = choice([1.0, 1.0, 6.0], [0.0, 1.0, 1.0], 1, 1, site=[0, 0, 1], per_site=1)
    assert cost == 2.0
    assert kind[2] == COLD and np.sum(kind[:2] == HOT) == 1 and np.sum(kind[:2] == NONE) == 1


@pytest.mark.parametrize(
    ("k", "extra", "usable", "per_site"),
    [(3, 0, [0, 1], 0), (2, 1, [0, 2], 0), (2, 1, None, 1), (4, 1, None, 0), (1, 1, [0, 1], 1)],
)
def test_infinite_where_there_is_no_choice(k, extra, usable, per_site):
    hot, cold = np.arange(4.0) + 1, np.arange(4.0)
    assert choice(hot, cold, k, extra, usable, [0, 0, 1, 1], per_site)[0] == np.inf


def test_as_many_sites_as_nodes():
    """The scratch arrays have room for a site per node and the two places to need one from."""
    m = 9
    random = np.random.default_rng(0)
    cold = random.random(m)
    hot = cold + random.random(m)
    row = (hot, cold, 4, 3, range(m), random.permutation(m), 1)
    assert choice(*row)[0] == pytest.approx(least(*row), rel=1e-12)
    # one chunk of a node each: as without a limit
    assert choice(hot, cold, 4, 3)[0] == pytest.approx(least(*row), rel=1e-12)


def program(hot, cold, k, extra, site, per_site):
    """The least cost by an integer program."""
    m, one = len(hot), np.ones(len(hot))
    sites = np.tile((site == np.arange(site.max() + 1)[:, None]).astype(float), 2)
    constraints = [
        LinearConstraint(np.concatenate([one, 0 * one])[None], k, k),
        LinearConstraint(np.concatenate([0 * one, one])[None], extra, extra),
        LinearConstraint(np.tile(np.eye(m), 2), 0, 1),
        LinearConstraint(sites, 0, per_site),
    ]
    found = milp(
        np.concatenate([hot, cold]), constraints=constraints, integrality=np.ones(2 * m), bounds=Bounds(0, 1)
    )
    return found.fun


@pytest.mark.parametrize("seed", range(8))
def test_many_nodes_with_ties(seed):
    """Rounding must not make the search for paths go round in circles of length zero."""
    random = np.random.default_rng(seed)
    m = 30
    cold = 0.1 * random.integers(0, 3, m)
    hot = cold + 0.1 * random.integers(0, 3, m)
    site = random.integers(0, 5, m)
    cost, kind = choice(hot, cold, 6, 3, site=site, per_site=2)
    assert cost == pytest.approx(program(hot, cold, 6, 3, site, 2), abs=1e-6)
    assert np.bincount(site[kind != NONE], minlength=5).max() <= 2
    assert (kind == HOT).sum() == 6 and (kind == COLD).sum() == 3
    assert hot[kind == HOT].sum() + cold[kind == COLD].sum() == pytest.approx(cost, abs=1e-12)
