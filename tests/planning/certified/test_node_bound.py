"""The least Lagrangian of a node against sampling, global search, linear programs, and its own special cases."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import differential_evolution, linprog, minimize_scalar

from ecjax.planning.certified.data import Service
from ecjax.planning.certified.node_bound import Coefficients, cell_minima, node_minima
from ecjax.planning.certified.node_bound_cell import Columns, Terms, delay_terms
from ecjax.planning.certified.node_bound_lp import solve

SEEDS = st.integers(0, 10**6)


def laws(rng, count):
    """Coefficients (3, 4, m) of affine shifted exponential laws: shift d + e B, exponential mean p + g B."""
    d, e, p, g = rng.uniform(0.002, 0.02, (4, count))
    coefficients = np.zeros((3, 4, count))
    coefficients[0, :2] = d + p, e + g
    coefficients[1, :3] = (
        d**2 + 2 * d * p + 2 * p**2,
        2 * (d * e + d * g + e * p) + 4 * p * g,
        e**2 + 2 * e * g + 2 * g**2,
    )
    shift, mean = np.polynomial.Polynomial, np.polynomial.Polynomial
    for j in range(count):
        s, t = shift([d[j], e[j]]), mean([p[j], g[j]])
        coefficients[2, :, j] = (s**3 + 3 * s**2 * t + 6 * s * t**2 + 6 * t**3).coef
    return coefficients


def moments_at(coefficients, size):
    return np.einsum("npm,pc->nmc", coefficients, np.stack([size**p for p in range(4)]))


def service_of(coefficients, size, background, connect, rate, alone=False):
    moments = moments_at(coefficients, size)
    return Service(
        size=size,
        moments=moments,
        mean=moments[0] + connect[0][:, None],
        variance=moments[1] - moments[0] ** 2 + connect[1][:, None],
        background=np.ascontiguousarray(background),
        rate=rate,
        alone=alone,
        penalty=0.0,
    )


def value(service, j, reads, writes, price, write_price, z):
    """The node's Lagrangian at rates (..., C); infinite where the node is full."""
    rates = reads + writes
    work = service.background[j] + np.einsum("...c,pc->...p", rates, service.moments[:, j])
    room = np.where(work[..., 0] < 1, 1 - work[..., 0], np.nan)
    w, q = work[..., 1] / (2 * room), work[..., 2] / (3 * room)
    mean, variance = w[..., None] + service.mean[j], (q + w**2)[..., None] + service.variance[j]
    if service.alone:
        phi = mean
    else:
        phi = 0.5 * (mean - z + np.sqrt((mean - z) ** 2 + variance))
    total = (
        (reads * phi).sum(-1) / service.rate - (reads * price[j]).sum(-1) - (writes * write_price[j]).sum(-1)
    )
    return np.where(np.isnan(total), np.inf, total)


class Case:
    """A random node or two with prices near those of an optimum, up to ``dear`` times as high."""

    def __init__(self, seed, count, nodes=2, written=False, other=False, dear=1.0, alone=False, spread=20.0):
        rng = np.random.default_rng(seed)
        size = np.sort(np.exp(rng.uniform(0, np.log(spread), count)))
        self.coefficients = laws(rng, nodes)
        moments = moments_at(self.coefficients, size)
        background = np.zeros((nodes, 3))
        if other:
            background = moments[:, :, -1].T * (rng.uniform(0.05, 0.4, nodes) / moments[0, :, -1])[:, None]
        connect = rng.uniform(0, 0.02, nodes), rng.uniform(0, 1e-4, nodes)
        usual = rng.dirichlet(np.ones(count), nodes) * 0.7 * (1 - background[:, :1]) / moments[0]
        self.service = service_of(self.coefficients, size, background, connect, usual.sum() / 3, alone)
        self.reads = usual * rng.uniform(0.5, 4, (nodes, count))
        self.writes = 0.3 * usual * rng.uniform(0, 2, (nodes, count)) * written
        self.z = float(rng.uniform(-1, 2) * self.service.mean.mean())
        delay = 3 * self.service.mean * rng.lognormal(0, 0.3, (nodes, count)) - min(self.z, 0.0)
        self.price = dear * delay / self.service.rate
        self.write_price = dear * 0.3 * self.service.mean / self.service.rate * written
        self.scale = float((self.price * usual).sum(1).max())
        self.rng = rng

    def minima(self, tol=1e-4, work=20_000, z=None, levels=None):
        zs = np.array([self.z if z is None else z])
        written = self.writes, self.write_price
        low, upper = node_minima(
            self.service, self.reads, self.price, zs, tol * self.scale, work, *written, levels=levels
        )
        return low[0], upper[0]

    def levels(self, j, reads, writes):
        """1/w and w/q of node j at rates (..., C), last (..., 2)."""
        work = self.service.background[j] + (reads + writes) @ self.service.moments[:, j].T
        return np.stack([2 * (1 - work[..., 0]) / work[..., 1], 1.5 * work[..., 1] / work[..., 2]], axis=-1)

    def value(self, j, reads, writes):
        return value(self.service, j, reads, writes, self.price, self.write_price, self.z)

    def sample(self, j, count):
        """Random rates, among them many at the limits, scaled to loads below 1."""
        rates = []
        for most in (self.reads[j], self.writes[j]):
            shape = (count, len(most))
            kind = self.rng.integers(0, 3, shape)
            rates.append(most * np.choose(kind, [0 * kind, 1 + 0 * kind, self.rng.random(shape)]))
        load = (rates[0] + rates[1]) @ self.service.moments[0, j]
        free = 1 - self.service.background[j, 0]
        scale = np.minimum(1, free * self.rng.random(count) / np.maximum(load, 1e-300))[:, None]
        return rates[0] * scale, rates[1] * scale


@given(
    SEEDS, st.integers(1, 5), st.booleans(), st.booleans(), st.sampled_from([0.1, 1.0, 30.0]), st.booleans()
)
def test_no_rates_are_below_the_bound(seed, count, written, other, dear, alone):
    case = Case(seed, count, written=written, other=other, dear=dear, alone=alone)
    low, upper = case.minima()
    assert np.all(low >= upper - 1e-4 * case.scale * (1 + 1e-9))
    assert np.all(low <= upper) and np.all(upper <= 0)
    for j in range(2):
        sampled = case.value(j, *case.sample(j, 3000)).min()
        assert low[j] <= sampled + 1e-12 * case.scale
        # the found minimum is not beaten by chance
        assert upper[j] <= sampled + 1e-4 * case.scale


@given(SEEDS, st.integers(1, 5), st.booleans(), st.booleans(), st.sampled_from([0.1, 1.0, 30.0]))
def test_no_rates_whose_levels_lie_in_a_cell_are_below_its_bound(seed, count, written, other, dear):
    """Cells around the levels of random rates; rates near those, and any others that happen to lie there."""
    case, factor = Case(seed, count, written=written, other=other, dear=dear), 1.2
    centre = [[part.mean(axis=0) for part in case.sample(j, 20)] for j in range(2)]
    around = np.stack([case.levels(j, *centre[j]) for j in range(2)])
    cells = np.stack([around / factor, around * factor], axis=-1).reshape(2, 4)
    low, upper = case.minima(levels=cells)
    anywhere = case.minima()[0]
    assert np.all(low >= upper - 1e-4 * case.scale * (1 + 1e-9)) and np.all(low <= upper)
    # less is allowed; but what is not worth its while alone is left out of both
    assert np.all(low >= anywhere - 1e-4 * case.scale)
    for j in range(2):
        near = [part * case.rng.uniform(0.8, 1.2, (300, count)) for part in centre[j]]
        near = [np.minimum(part, most[j]) for part, most in zip(near, (case.reads, case.writes), strict=True)]
        for reads, writes in (near, case.sample(j, 300)):
            with np.errstate(divide="ignore", invalid="ignore"):
                level = case.levels(j, reads, writes)
            inside = np.all((level >= around[j] / factor) & (level <= around[j] * factor), axis=1)
            if inside.any():
                assert low[j] <= case.value(j, reads[inside], writes[inside]).min() + 1e-12 * case.scale


@pytest.mark.parametrize(
    ("count", "written", "other", "dear", "alone"),
    [
        (2, False, False, 1.0, False),
        (3, False, True, 1.0, False),
        (2, True, True, 1.0, False),
        (2, False, False, 50.0, False),
        (3, True, False, 20.0, False),
        (3, False, True, 2.0, True),
    ],
)
def test_global_search_finds_the_same(count, written, other, dear, alone):
    case = Case(count, count, nodes=1, written=written, other=other, dear=dear, alone=alone)
    tol = 1e-5
    (low,), (upper,) = case.minima(tol)
    most = np.concatenate([case.reads[0], case.writes[0]]) if written else case.reads[0]

    def function(parts):
        rates = parts.T * most
        reads = rates[:, :count]
        found = case.value(0, reads, rates[:, count:] if written else np.zeros_like(reads))
        return np.where(np.isfinite(found), found, 1e3 * case.scale * (1 + parts.sum(axis=0)))

    # a generation at once
    found = differential_evolution(
        function,
        [(0, 1)] * len(most),
        popsize=20,
        maxiter=300,
        tol=1e-12,
        rng=1,
        polish=False,
        vectorized=True,
        updating="deferred",
    ).fun
    assert low <= found + 1e-12 * case.scale
    assert found - low <= 2e-4 * case.scale
    assert upper <= found + tol * case.scale


@given(SEEDS, st.booleans(), st.booleans(), st.floats(0.3, 20))
def test_one_size_without_writes_is_convex_and_found_exactly(seed, other, alone, dear):
    case = Case(seed, 1, nodes=1, other=other, alone=alone, dear=dear)
    (low,), (upper,) = case.minima(1e-6)
    top = min(
        case.reads[0, 0], (1 - case.service.background[0, 0]) / case.service.moments[0, 0, 0] * (1 - 1e-9)
    )
    nothing = np.zeros(1)
    exact = minimize_scalar(
        lambda x: float(case.value(0, np.array([x]), nothing)), bounds=(0, top), options={"xatol": 1e-9 * top}
    ).fun
    exact = min(exact, 0.0)
    assert low <= exact + 1e-9 * case.scale
    assert abs(upper - exact) <= 1e-5 * case.scale
    x = np.linspace(0, 0.95 * top, 200)[:, None]
    bend = np.diff(case.value(0, x, np.zeros_like(x)), 2)
    assert bend.min() >= -1e-11 * case.scale


@given(SEEDS)
def test_phi_is_convex_in_the_levels_and_the_size(seed):
    """phi(1/w, 1/q, B) at the middle of two points is at most the mean of its values there."""
    rng = np.random.default_rng(seed)
    coefficients = laws(rng, 1)[:, :, 0]
    z = rng.uniform(-1, 3)

    def phi(p, s, size):
        m = np.stack([size**power for power in range(4)], -1) @ coefficients.T
        d = 1 / p + m[..., 0] + 0.01 - z
        return 0.5 * (d + np.sqrt(d**2 + 1 / p**2 + 1 / s + m[..., 1] - m[..., 0] ** 2 + 1e-5))

    one, two = np.exp(rng.uniform(-3, 5, (2, 3, 500)))
    middle = phi(*(0.5 * (one + two)))
    ends = 0.5 * (phi(*one) + phi(*two))
    assert np.all(middle <= ends + 1e-12 * (1 + np.abs(ends) + abs(z)))
    # never falling in w = 1/p and q = 1/s
    assert np.all(phi(one[0] * 1.01, one[1], one[2]) <= phi(*one) + 1e-12)
    assert np.all(phi(one[0], one[1] * 1.01, one[2]) <= phi(*one) + 1e-12)


@given(SEEDS, st.integers(1, 12))
def test_two_row_program(seed, n):
    rng = np.random.default_rng(seed)
    cost = -rng.lognormal(0, 1, n) * rng.choice([1, 1, -1], n)
    first = rng.lognormal(0, 1.5, n)
    second = first * rng.lognormal(0, 1, n)
    half = n // 2
    first[n - half :], second[n - half :] = first[:half], second[:half]  # parallel columns
    most = rng.lognormal(-1, 2, n)
    room = rng.uniform(0.01, 1, 2)
    x = np.empty(n)
    a, b = solve(cost, first, second, room[0], room[1], most, rng.integers(0, n + 2, 2), x)
    assert a >= 0 and b >= 0
    dual = -a * room[0] - b * room[1] + (most * np.minimum(0, cost + a * first + b * second)).sum()
    exact = linprog(cost, A_ub=[first, second], b_ub=room, bounds=np.stack([0 * most, most], 1)).fun
    assert dual == pytest.approx(exact, rel=1e-8, abs=1e-12)
    assert cost @ x == pytest.approx(exact, rel=1e-8, abs=1e-12)
    assert first @ x <= room[0] * (1 + 1e-9) and second @ x <= room[1] * (1 + 1e-9)


def test_tiny_prices_leave_the_node_empty():
    case = Case(3, 4, dear=1e-6)
    low, upper = case.minima()
    assert np.all(low == 0) and np.all(upper == 0)


def test_little_work_gives_a_valid_and_weaker_bound():
    case = Case(5, 4, written=True, other=True)
    best, upper = case.minima(1e-6)
    before = np.full(2, -np.inf)
    for work in (1, 5, 30, 200):
        low, _ = case.minima(1e-6, work)
        assert np.all(low <= upper) and np.all(low >= before - 1e-12 * case.scale)
        before = low
    assert np.all(best >= before - 1e-12 * case.scale)


@pytest.mark.parametrize("seed", range(4))
def test_sizes_that_nodes_serve_alike_count_together(seed):
    """Services that do not depend on the size: columns of the linear programs are equal, and so are their costs."""
    case = Case(seed, 3, other=True)
    low, upper = case.minima(1e-4)
    service, twice = case.service, {}
    for name in ("moments", "mean", "variance"):
        twice[name] = np.ascontiguousarray(np.tile(getattr(service, name), 2))
    alike = service._replace(size=np.tile(service.size, 2), **twice)
    reads, price = np.tile(case.reads / 2, 2), np.tile(case.price, 2)
    again = node_minima(alike, reads, price, np.array([case.z]), 1e-4 * case.scale, 20_000)
    assert again[0][0] == pytest.approx(low, abs=2e-4 * case.scale)
    assert again[1][0] == pytest.approx(upper, abs=2e-4 * case.scale)


def test_falls_with_z():
    case = Case(6, 3)
    service = case.service
    zs = np.linspace(-2, 2, 9) * service.mean.mean()
    low, upper = node_minima(service, case.reads, case.price, zs, 1e-6 * case.scale, 20_000)
    assert low.shape == upper.shape == (9, 2)
    assert np.all(np.diff(upper, axis=0) <= 1e-6 * case.scale)


@pytest.mark.parametrize("z", [0.5, 3.0, 1e3, 1e6, 1e9])
def test_reads_that_z_is_far_above_lose_no_digits(z):
    """phi falls with the distance of z, and is then the small difference of two large numbers."""
    case = Case(7, 3)
    node = Columns(
        *(np.zeros(1),) * 6,
        mean=case.service.mean[0],
        variance=case.service.variance[0],
        mean_step=np.zeros((1, 3)),
        variance_step=np.zeros((1, 3)),
    )
    terms = Terms(np.empty(3), np.empty(3), np.empty(3), np.empty((1, 3)))
    w, q, rate = 0.02, 3e-4, 0.25
    delay_terms.py_func(node, 1 / w, 1 / q, z, rate, False, terms)
    with localcontext(prec=60):
        for c in range(3):
            mean, variance = Decimal(node.mean[c]), Decimal(node.variance[c])
            d = 1 / Decimal(1 / w) + mean - Decimal(z)
            rest = (1 / Decimal(1 / w)) ** 2 + 1 / Decimal(1 / q) + variance
            exact = (d + (d * d + rest).sqrt()) / 2 / Decimal(rate)
            assert terms.value[c] == pytest.approx(float(exact), rel=1e-13)


def test_other_work_without_a_third_moment():
    """No work is like that, but tables may say so; the bound stays valid."""
    case = Case(7, 3, other=True)
    case.service.background[:, 2] = 0
    low, upper = case.minima()
    for j in range(2):
        assert low[j] <= case.value(j, *case.sample(j, 3000)).min()
    assert np.all(low <= upper)


class Intervals:
    """A case whose classes are intervals of sizes, with prices linear in between."""

    def __init__(self, seed, count, width, written):
        self.case = case = Case(seed, count, written=written)
        middle = case.service.size
        self.ends = np.stack([middle * (1 - width), middle * (1 + width)])
        tilt = case.rng.uniform(-1, 1, (2, *case.price.shape)) * width
        self.price = np.stack([case.price * (1 - tilt[0]), case.price * (1 + tilt[0])])
        self.write_price = np.stack([case.write_price * (1 - tilt[1]), case.write_price * (1 + tilt[1])])

    def minima(self, tol=1e-4, work=20_000):
        case = self.case
        low, upper = cell_minima(
            case.service,
            Coefficients(case.coefficients, case.coefficients),
            self.ends,
            case.reads,
            self.price,
            np.array([case.z]),
            tol * case.scale,
            work,
            case.writes,
            self.write_price,
        )
        return low[0], upper[0]

    def spread(self, pieces):
        """The same with every interval as so many exact sizes: service, prices, write prices."""
        case = self.case
        part = np.linspace(0, 1, pieces)
        size = (self.ends[0][:, None] * (1 - part) + self.ends[1][:, None] * part).ravel()
        service = case.service
        connect = (
            service.mean[:, 0] - service.moments[0, :, 0],
            service.variance[:, 0] - service.moments[1, :, 0] + service.moments[0, :, 0] ** 2,
        )
        fine = service_of(case.coefficients, size, service.background, connect, service.rate)

        def between(ends):
            return (ends[0][..., None] * (1 - part) + ends[1][..., None] * part).reshape(len(ends[0]), -1)

        return fine, between(self.price), between(self.write_price)


@given(SEEDS, st.integers(1, 4), st.sampled_from([0.02, 0.2, 0.6]), st.booleans())
def test_no_spread_over_the_sizes_is_below_the_bound(seed, count, width, written):
    intervals = Intervals(seed, count, width, written)
    case, pieces = intervals.case, 7
    low, upper = intervals.minima()
    assert np.all(low <= upper)
    fine, price, write_price = intervals.spread(pieces)
    for j in range(2):
        reads, writes = case.sample(j, 2000)
        shares = case.rng.dirichlet(np.full(pieces, 0.1), reads.shape)
        rates = [(kind[..., None] * shares).reshape(len(kind), -1) for kind in (reads, writes)]
        sampled = value(fine, j, *rates, price, write_price, case.z).min()
        assert low[j] <= sampled + 1e-12 * case.scale


@pytest.mark.parametrize("written", [False, True])
def test_narrow_intervals_are_nearly_exact_and_points_are(written):
    for width, tol in ((0.0, 1e-4), (1e-3, 2e-3)):
        intervals = Intervals(11, 3, width, written)
        low, upper = intervals.minima()
        exact_low, exact_upper = intervals.case.minima()
        scale = intervals.case.scale
        np.testing.assert_allclose(upper, exact_upper, atol=1.1e-4 * scale, rtol=0)
        np.testing.assert_allclose(low, exact_low, atol=2 * tol * scale, rtol=0)


def test_error_of_the_tangent_falls_with_the_square_of_the_width():
    """At one price for all sizes of an interval the smallest size is the best, so that two rates are all there is."""
    gaps = []
    for width in (0.4, 0.2, 0.1):
        intervals = Intervals(12, 2, width, False)
        intervals.price[:] = intervals.case.price
        low, _ = intervals.minima(1e-6, 40_000)
        fine, price, write_price = intervals.spread(9)
        best = np.full(2, np.inf)
        for j in range(2):
            small = np.zeros((2, 9))
            small[:, 0] = 1
            x = intervals.case.reads[j] * np.stack(
                np.meshgrid(*[np.linspace(0, 1, 200)] * 2, indexing="ij"), -1
            ).reshape(-1, 2)
            rates = (x[..., None] * small).reshape(len(x), -1)
            best[j] = value(fine, j, rates, 0 * rates, price, write_price, intervals.case.z).min()
        gaps.append(((best - low) / intervals.case.scale).max())
    assert gaps[0] > 0 and gaps[2] < gaps[0] / 8
