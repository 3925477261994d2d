"""The projection against exact rational solutions, SciPy, optimality conditions and finite differences."""

import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ecjax.planning.projection import UNROLL_NODES, project_hypersimplex
from ecjax.programs import program


def exact_projection(y, k, upper, weights) -> list[Fraction]:
    """The optimum in rational arithmetic: of all 3^m choices of 0, u or free, the best feasible point."""
    m = len(y)
    best, best_value = None, None
    for choice in itertools.product("0uf", repeat=m):
        free = [j for j in range(m) if choice[j] == "f"]
        p = [upper[j] if choice[j] == "u" else Fraction(0) for j in range(m)]
        if free:
            excess = sum(y[j] for j in free) + sum(p) - k
            tau = excess / sum(1 / weights[j] for j in free)
            for j in free:
                p[j] = y[j] - tau / weights[j]
        if sum(p) != k or any(not 0 <= p[j] <= upper[j] for j in range(m)):
            continue
        value = sum(w * (a - b) ** 2 for w, a, b in zip(weights, p, y, strict=True))
        if best_value is None or value < best_value:
            best, best_value = p, value
    assert best is not None
    return best


def assert_optimal(p, y, k, upper=1.0, weights=1.0, sum_tolerance=1e-12, tolerance=1e-9):
    """Feasible, and w (y - p) of what can grow is at most that of what can shrink: necessary and sufficient."""
    p, y, k = np.asarray(p), np.asarray(y), np.broadcast_to(np.asarray(k, float), np.shape(p)[:-1])
    upper, weights = np.broadcast_to(np.asarray(upper, float), p.shape), np.broadcast_to(weights, p.shape)
    assert np.all(p >= 0) and np.all(p <= upper)
    assert np.max(np.abs(p.sum(-1) - k), initial=0) <= sum_tolerance
    force = weights * (y - p)
    grow = np.where(p < upper, force, -np.inf).max(-1)
    shrink = np.where(p > 0, force, np.inf).min(-1)
    assert np.all(grow - shrink <= tolerance * (1 + np.abs(weights * y).max(-1)))


GRID = st.integers(-6, 10).map(lambda i: Fraction(i, 4))


@st.composite
def small_problems(draw):
    m = draw(st.integers(1, 5))
    y = [draw(GRID) for _ in range(m)]  # a coarse grid: ties and points exactly on the bounds are frequent
    upper = [draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)])) for _ in range(m)]
    weights = [draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)])) for _ in range(m)]
    k = draw(st.integers(0, 8)) * sum(upper) / 8
    return y, k, upper, weights


@given(small_problems())
def test_exact_on_small_problems(problem):
    y, k, upper, weights = problem
    expected = np.array([float(v) for v in exact_projection(y, k, upper, weights)])
    found = project_hypersimplex(
        *(np.array([float(v) for v in a]) if isinstance(a, list) else float(a) for a in problem)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-15)
    # what is at a bound is there exactly
    assert np.array_equal(np.asarray(found)[expected == 0], expected[expected == 0])
    at_upper = expected == np.array([float(u) for u in upper])
    assert np.array_equal(np.asarray(found)[at_upper], expected[at_upper])


@pytest.mark.parametrize("weighted", [False, True])
def test_against_slsqp(weighted):
    rng = np.random.default_rng(3)
    for k in (0.7, 2.0, 4.4):
        y, weights = rng.normal(0.4, 1.0, 6), rng.uniform(0.5, 2.0, 6) if weighted else np.ones(6)
        reference = minimize(
            lambda p, y=y, weights=weights: 0.5 * np.sum(weights * (p - y) ** 2),
            np.full(6, k / 6),
            jac=lambda p, y=y, weights=weights: weights * (p - y),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda p, k=k: p.sum() - k, "jac": lambda p: np.ones(6)},
            method="SLSQP",
            options={"ftol": 1e-15},
        )
        found = project_hypersimplex(y, k, weights=weights if weighted else None)
        np.testing.assert_allclose(found, reference.x, atol=1e-6)


@pytest.mark.parametrize("m", [1, 2, 12, UNROLL_NODES + 1])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e3, 1e8])
def test_optimal_at_every_size_and_scale(m, scale):
    rng = np.random.default_rng(m)
    y = rng.normal(0, scale, (300, m))
    y[::3] = scale + rng.normal(0, 1, (100, m))  # close together, far from 0
    y[::7] = y[::7, :1]  # all equal
    whole = rng.integers(0, m + 1, 300).astype(float)
    k = np.where(rng.random(300) < 0.5, whole, rng.uniform(0, m, 300))
    assert_optimal(project_hypersimplex(y, k), y, k)
    upper = np.where(rng.random((300, m)) < 0.3, 0.0, rng.uniform(0, 1, (300, m)))
    k = upper.sum(-1) * np.where(rng.random(300) < 0.2, 1.0, rng.random(300))
    weights = 10 ** rng.uniform(-3, 3, (300, m))
    assert_optimal(project_hypersimplex(y, k, upper), y, k, upper)
    assert_optimal(project_hypersimplex(y, k, upper, weights), y, k, upper, weights)


@given(
    st.lists(st.floats(-1e9, 1e9) | st.sampled_from([0.0, 0.5, 1e8, 1e-12]), min_size=6, max_size=6),
    # XLA takes subnormal numbers for 0
    st.lists(st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.0, 1.0]), min_size=6, max_size=6),
    st.floats(0, 1),
)
def test_optimal_for_arbitrary_floats(y, upper, share):
    k = share * float(np.sum(upper))
    assert_optimal(project_hypersimplex(np.array(y), k, np.array(upper)), y, k, upper)
    assert_optimal(project_hypersimplex(np.array(y), 6 * share), y, 6 * share)


def test_sums_at_the_ends_are_exact():
    y = np.array([[0.3, -2.0, 1e8, 0.1], [0.7, 0.7, 0.7, 0.7]])
    mask = np.array([[True, True, False, True], [True, False, True, True]])
    np.testing.assert_array_equal(project_hypersimplex(y, 0, mask), np.zeros((2, 4)))
    np.testing.assert_array_equal(project_hypersimplex(y, 3, mask), mask.astype(float))
    np.testing.assert_array_equal(project_hypersimplex(y, np.array([4, 0])), [[1, 1, 1, 1], [0, 0, 0, 0]])
    upper = np.array([0.1, 0.2, 0.3, 0.7])
    np.testing.assert_array_equal(project_hypersimplex(y[0], upper.sum(), upper), upper)
    np.testing.assert_array_equal(project_hypersimplex(np.array([-5.0]), 0.25), [0.25])


def test_vertices_are_met_exactly():
    y = np.array([10.3, -4.1, 7.7, 0.2, 3.3])
    np.testing.assert_array_equal(project_hypersimplex(y, 3), [1, 0, 1, 0, 1])


def test_ties_share_equally():
    np.testing.assert_array_equal(project_hypersimplex(np.full(4, 0.1), 1), np.full(4, 0.25))
    np.testing.assert_array_equal(project_hypersimplex(np.array([9.0, 2.0, 2.0]), 2), [1, 0.5, 0.5])
    tiny = project_hypersimplex(np.full(5, 1e8), 1e-9)
    np.testing.assert_allclose(tiny, np.full(5, 2e-10), rtol=0, atol=1e-16)


@pytest.mark.parametrize("m", [5, UNROLL_NODES + 3])
def test_invariances(m):
    rng = np.random.default_rng(1)
    y, other = rng.normal(0.3, 1, (2, 50, m))
    k = rng.uniform(0, m, 50)
    p, q = project_hypersimplex(y, k), project_hypersimplex(other, k)
    np.testing.assert_allclose(project_hypersimplex(y + rng.normal(size=(50, 1)), k), p, atol=1e-14)
    order = rng.permutation(m)
    np.testing.assert_allclose(project_hypersimplex(y[:, order], k), p[:, order], atol=1e-14)
    np.testing.assert_allclose(project_hypersimplex(p, k), p, atol=1e-14)
    moved, apart = np.linalg.norm(p - q, axis=-1), np.linalg.norm(y - other, axis=-1)
    assert np.all(moved <= apart + 1e-14)


@pytest.mark.parametrize("m", [12, UNROLL_NODES + 1])
def test_single_precision(m):
    rng = np.random.default_rng(5)
    y = rng.normal(0.3, 2, (200, m)).astype(np.float32)
    k = rng.integers(0, m + 1, 200)
    p = project_hypersimplex(y, k)
    assert p.dtype == jnp.float32
    assert_optimal(p, y, k, sum_tolerance=1e-5, tolerance=1e-5)


def test_whole_numbers_become_floats():
    p = project_hypersimplex(np.array([3, 1, 1]), 2)
    assert p.dtype == jnp.float64
    np.testing.assert_array_equal(p, [1, 0.5, 0.5])


@pytest.mark.parametrize(
    "arguments",
    [
        {"y": np.zeros((2, 3, 4)), "k": 1},
        {"y": np.zeros((2, 0)), "k": 0},
        {"y": 1.0, "k": 1},
        {"y": np.zeros((2, 3)), "k": np.ones(3)},
        {"y": np.zeros((2, 3)), "k": 1, "mask": np.ones(2)},
        {"y": np.zeros(3), "k": 1, "mask": np.ones((1, 3))},
        {"y": np.zeros((2, 3)), "k": 1, "weights": np.ones((3, 3))},
    ],
)
def test_shapes_that_do_not_fit(arguments):
    with pytest.raises(ValueError, match="has shape"):
        project_hypersimplex(**arguments)


@pytest.mark.parametrize("m", [4, UNROLL_NODES + 1])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"k": -0.5}, "k = -0.5 is not within"),
        ({"k": 4.5}, "k = 4.5 is not within"),
        ({"k": np.nan}, "k = nan is not within"),
        ({"y": np.nan}, "y .* not finite"),
        ({"y": -np.inf}, "y .* not finite"),
        ({"mask": 1.5}, "mask must be"),
        ({"mask": np.nan}, "mask must be"),
        ({"weights": 0.0}, "weights must be"),
        ({"weights": -1.0}, "weights must be"),
    ],
)
def test_bad_rows_are_named_or_marked(m, change, found):
    active = np.arange(m) < 4
    arguments = {
        "y": np.zeros((5, m)),
        "k": np.full(5, 2.0),
        "mask": np.where(active, np.ones((5, m)), 0.0),
        "weights": np.ones((5, m)),
    }
    good = project_hypersimplex(**arguments)
    for name, value in change.items():
        arguments[name][3, ...] = np.where(active, value, arguments[name][3]) if name != "k" else value
    with pytest.raises(ValueError, match=f"row 3: {found}"):
        project_hypersimplex(**arguments)
    marked = jax.jit(lambda a: project_hypersimplex(**a))(arguments)
    assert np.all(np.isnan(marked[3]))
    others = np.array([0, 1, 2, 4])
    np.testing.assert_array_equal(marked[others], good[others])


def test_no_rows():
    assert project_hypersimplex(np.zeros((0, 4)), 1).shape == (0, 4)


def test_under_transformations():
    rng, m = np.random.default_rng(2), 5
    y, weights = rng.normal(0.3, 1, (3, 4, m)), rng.uniform(0.5, 2, (4, m))
    k, mask = rng.uniform(0, 3, (3, 4)), np.arange(m) != 2
    expected = np.stack([project_hypersimplex(y[i], k[i], mask, weights) for i in range(3)])

    def by_lane(y, k):
        return project_hypersimplex(y, k, mask, weights)

    def by_row(y, k, weights):
        return project_hypersimplex(y, k, mask, weights)

    rows = jax.vmap(jax.vmap(by_row), in_axes=(0, 0, None))
    for found in (jax.vmap(by_lane)(y, k), jax.jit(jax.vmap(by_lane))(y, k), rows(y, k, weights)):
        np.testing.assert_allclose(found, expected, atol=1e-15)
        np.testing.assert_array_equal(found == 0, expected == 0)
    shared = jax.vmap(lambda k: project_hypersimplex(y[0], k))(k)
    np.testing.assert_allclose(shared[1], project_hypersimplex(y[0], k[1]), atol=1e-15)
    looped = jax.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, by_lane(c[1], jnp.asarray(k[0]))), (0, jnp.asarray(y[0]))
    )[1]
    np.testing.assert_allclose(looped, expected[0], atol=1e-14)


def closed_form_jacobian(p):
    """dp/dy with unit weights: I - 1 1^T / |F| on the free coordinates, 0 elsewhere; dp/dk = 1 / |F|."""
    free = (p > 0) & (p < 1)
    share = free / free.sum()
    return np.diag(free * 1.0) - np.outer(free, share), share


def test_derivative_closed_form():
    y = np.array([0.9, 2.5, -1.0, 0.4, 0.2])
    p = np.asarray(project_hypersimplex(y, 2.3))
    by_y, by_k = jax.jit(jax.jacobian(project_hypersimplex, (0, 1)))(y, np.asarray(2.3))
    expected_y, expected_k = closed_form_jacobian(p)
    np.testing.assert_allclose(by_y, expected_y, atol=1e-15)
    np.testing.assert_allclose(by_k, expected_k, atol=1e-15)


@program
def along(point, tangent):
    return jax.jvp(project_hypersimplex, point, tangent)


def test_derivative_in_every_argument():
    rng, m = np.random.default_rng(11), 6
    y = jnp.asarray(rng.normal(0.3, 0.8, (3, m)))
    k = jnp.asarray([1.3, 2.0, 3.1])
    upper = jnp.asarray(rng.uniform(0.3, 0.9, (3, m)))
    weights = jnp.asarray(rng.uniform(0.5, 2, (3, m)))
    point = (y, k, upper, weights)
    tangent = tuple(jnp.asarray(rng.normal(size=a.shape)) for a in point)
    _, forward = along(point, tangent)
    step = 1e-6
    ahead, behind = (
        project_hypersimplex(*(a + s * t for a, t in zip(point, tangent, strict=True))) for s in (step, -step)
    )
    np.testing.assert_allclose(forward, (ahead - behind) / (2 * step), atol=1e-7)
    cotangent = jnp.asarray(rng.normal(size=y.shape))
    pulled = jax.jit(lambda point, by: jax.vjp(project_hypersimplex, *point)[1](by))(point, cotangent)
    backward = sum(np.vdot(a, b) for a, b in zip(pulled, tangent, strict=True))
    np.testing.assert_allclose(np.vdot(forward, cotangent), backward, rtol=1e-12)


def test_second_derivative_with_weights():
    rng = np.random.default_rng(4)
    y, weights = jnp.asarray(rng.normal(0.3, 0.8, 5)), jnp.asarray(rng.uniform(0.5, 2, 5))

    def solve(weights):
        return project_hypersimplex(y, 2.2, weights=weights)

    direction, step = jnp.asarray(rng.normal(size=5)), 1e-6

    @jax.jit
    def slope(weights):
        return jax.jvp(solve, (weights,), (direction,))[1]

    _, curvature = jax.jvp(slope, (weights,), (direction,))
    difference = (slope(weights + step * direction) - slope(weights - step * direction)) / (2 * step)
    np.testing.assert_allclose(curvature, difference, atol=1e-7)
    assert np.any(np.abs(curvature) > 1e-3)


@given(
    st.lists(st.floats(-2, 2), min_size=5, max_size=5),
    st.floats(0.1, 4.9),
    st.lists(st.floats(-1, 1), min_size=5, max_size=5),
)
def test_derivative_by_difference(y, k, direction):
    y, direction, step = np.array(y), np.array(direction), 1e-6
    p = np.asarray(project_hypersimplex(y, k))
    tau = (y - p)[(p > 0) & (p < 1)]
    assume(tau.size > 0)
    # both sides in one linear piece: no coordinate within the step of a breakpoint
    assume(np.min(np.abs(np.concatenate([y - tau[0], y - 1 - tau[0]]))) > 10 * step)
    _, slope = along((y, np.asarray(k)), (direction, np.asarray(0.0)))
    ahead, behind = (project_hypersimplex(y + s * direction, k) for s in (step, -step))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), atol=1e-8)


def test_derivative_at_the_ends_and_for_bad_rows():
    y = jnp.asarray([[0.2, 0.7, 0.1]] * 3)
    mask = jnp.asarray([True, True, False])
    k = jnp.asarray([0.0, 2.0, 2.5])  # nothing, everything, too much
    p, change = jax.jit(
        lambda y: jax.jvp(lambda a: project_hypersimplex(a, k, mask), (y,), (jnp.ones_like(y),))
    )(y)
    assert np.all(np.isnan(p[2]))
    np.testing.assert_array_equal(change, np.zeros((3, 3)))
    gradient = jax.jit(jax.vmap(jax.grad(lambda a: project_hypersimplex(a, 1.2, mask)[0])))(y)
    np.testing.assert_allclose(gradient, [[0.5, -0.5, 0]] * 3)


def test_many_nodes_whose_breakpoints_are_neighbouring_numbers():
    """The middle of two neighbours is one of them: a search that takes it for a new guess never ends."""
    random = np.random.default_rng(0)
    y = (
        -6.066894763497553
        + np.spacing(6.0) * random.integers(-3, 4, (500, 40))
        + random.integers(0, 2, (500, 40))
    )
    mask = random.random((500, 40)) < 0.3
    k = np.minimum(random.integers(1, 8, 500), mask.sum(axis=1)).astype(float)
    p = np.asarray(project_hypersimplex(y, k, mask=mask))
    np.testing.assert_allclose(p.sum(axis=1), k, atol=1e-12)
    assert p.min() >= 0 and np.all(p <= mask)
    # no row does better by moving between two nodes: what lies higher, by more than rounding, is full first
    gain = np.where(mask & (p < 1 - 1e-9), y - p, -np.inf).max(axis=1)
    loss = np.where(mask & (p > 1e-9), y - p, np.inf).min(axis=1)
    assert np.all(gain <= loss + 1e-9)
