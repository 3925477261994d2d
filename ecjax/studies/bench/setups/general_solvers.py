"""The relaxation of a problem at one z by solvers that know nothing of it, beside the smoothed dual.

They get a linear program: shares of hot and of cold chunks of every file on every node, and the latency of each node
above tangents of it, which leaves the optimum a little too low. Those that are not installed are left out.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from ecjax.planning.certified.data import flatten, rates_of
from ecjax.planning.certified.relax import Passes
from ecjax.planning.certified.smooth import Bins, Relaxation
from ecjax.planning.smoothed import latency
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups.certified import LOAD, THETA, problem_of

TANGENTS = 80
_NEAREST = 1e-3  # of a node's room, that the last tangent leaves
_AROUND = 1.3  # times the room that a load leaves
_TIME_LIMIT_S = 120.0
_ITERATIONS = 20_000  # of first-order steps
_TOLERANCE = 1e-6  # of interior points


class Program(NamedTuple):
    """Minimise cost . x with equal x = right, at_most x <= limit, 0 <= x <= upper, plus a constant, s."""

    cost: np.ndarray
    equal: sparse.csr_array
    right: np.ndarray
    at_most: sparse.csr_array
    limit: np.ndarray
    upper: np.ndarray
    constant: float


def raced(runner: Runner, files: int, nodes: int) -> Iterator[Row]:
    """Prices by the smoothed dual from nothing, then general solvers on the linear program; each runs once."""
    service, rows = flatten(problem_of(files, nodes, 0, runner.seed))
    passes = Passes(service, rows, 1)
    passes.with_theta(THETA / files)
    bins = Bins(passes)
    z = bins.relax().z

    def ours() -> Relaxation:
        return Bins(passes).relax(z, fixed_z=True)

    outcome = runner.time(ours)
    relaxation: Relaxation = outcome.value
    size = f"{files:,} files x {nodes}, load {LOAD:g}"
    bound = bins.proven(relaxation)
    yield Row(
        "ecjax prices",
        size,
        *outcome.timing,
        dtype="float64",
        objective=relaxation.objective,
        lower_bound=bound,
        note="by Newton's method on the smoothed dual; bound proven for all tangents",
    )
    program = linear_program(bins, z, relaxation.loads[:, 0])
    for name, (module, solve) in _SOLVERS.items():
        if find_spec(module) is None:
            continue
        outcome = runner.once().time(partial(solve, program))
        value, words = outcome.value
        note = words if value is None else f"{words}; {(value - bound) / bound:.1e} above ecjax's bound"
        yield Row(name, size, *outcome.timing, dtype="float64", objective=value, note=note)


def linear_program(bins: Bins, z: float, near: np.ndarray) -> Program:
    """The relaxation at one z, with tangents for the latency of nodes, half of them near loads (m,), 1/s."""
    rows, law = bins.passes.rows, bins.cluster.law
    number, m = rows.number, len(law.mean)
    entries = number * m
    dollars = rows.chunks[:, None] * rows.chunk_price + rows.bytes[:, None] * rows.byte_price
    cost = (rows.per_dollar * dollars).ravel()
    by_file = sparse.kron(sparse.eye(number), np.ones((1, m)))
    nothing = sparse.csr_array((number, entries))
    equal = sparse.block_array(
        [[by_file, nothing, sparse.csr_array((number, m))], [nothing, by_file, sparse.csr_array((number, m))]]
    )
    reads = sparse.kron(rates_of(rows)[None], sparse.eye(m))  # (m, entries): loads of the nodes
    parts = [[sparse.eye(entries), sparse.eye(entries), sparse.csr_array((entries, m))]]
    limit = [np.ones(entries)]
    most = latency.most(law)
    everywhere = most * (1 - np.geomspace(1.0, _NEAREST, TANGENTS // 2))[:, None]
    around = most - (most - near) * np.geomspace(1 / _AROUND, _AROUND, TANGENTS // 2)[:, None]
    for loads in np.maximum(np.concatenate([everywhere, around]), 0.0):
        at = latency.cost(np, law, loads, z)
        parts.append([sparse.diags(at.slope) @ reads, sparse.csr_array((m, entries)), -sparse.eye(m)])
        limit.append(at.slope * loads - at.value)
    return Program(
        cost=np.concatenate([cost, cost, np.ones(m)]),
        equal=equal.tocsr(),
        right=np.concatenate([rows.hot, rows.length - rows.hot]).astype(float),
        at_most=sparse.block_array(parts).tocsr(),
        limit=np.concatenate(limit),
        upper=np.concatenate([np.ones(2 * entries), np.full(m, np.inf)]),
        constant=0.0 if bins.passes.service.alone else z,
    )


def _highs(program: Program) -> tuple[float | None, str]:
    result = optimize.linprog(
        program.cost,
        *(program.at_most, program.limit, program.equal, program.right),
        bounds=np.stack([np.zeros_like(program.upper), program.upper], axis=1),
        method="highs-ipm",
        options={"time_limit": _TIME_LIMIT_S},
    )
    if result.status != 0:
        return None, f"no optimum: {result.message.split('.')[0]}"
    return float(result.fun) + program.constant, f"{result.nit} iterations"


def _conic(program: Program) -> tuple[sparse.csc_matrix, np.ndarray, int, int]:
    """A x + s = b with s = 0 in the first rows and s >= 0 in the others; how many of each."""
    count = len(program.cost)
    bounded = np.flatnonzero(np.isfinite(program.upper))
    upper = sparse.eye(count, format="csr")[bounded]
    matrix = sparse.vstack([program.equal, program.at_most, upper, -sparse.eye(count)])
    right = np.concatenate([program.right, program.limit, program.upper[bounded], np.zeros(count)])
    return sparse.csc_matrix(matrix), right, len(program.right), len(right) - len(program.right)


def _clarabel(program: Program) -> tuple[float | None, str]:
    import clarabel

    matrix, right, zeros, positive = _conic(program)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, _TIME_LIMIT_S
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    nothing = sparse.csc_matrix((len(program.cost), len(program.cost)))
    cones = [clarabel.ZeroConeT(zeros), clarabel.NonnegativeConeT(positive)]
    result = clarabel.DefaultSolver(nothing, program.cost, matrix, right, cones, settings).solve()
    return _told(str(result.status), "Solved", result.obj_val, result.iterations, program)


def _moreau(program: Program) -> tuple[float | None, str]:
    import moreau

    matrix, right, zeros, positive = _conic(program)
    settings = moreau.Settings(time_limit=_TIME_LIMIT_S)
    settings.ipm_settings.tol_gap_rel = settings.ipm_settings.tol_feas = _TOLERANCE
    cones = moreau.Cones(num_zero_cones=zeros, num_nonneg_cones=positive)
    nothing = sparse.csr_matrix((len(program.cost), len(program.cost)))
    solver = moreau.Solver(nothing, program.cost, sparse.csr_matrix(matrix), right, cones, settings)
    solver.solve()
    status = str(solver.info.status).rpartition(".")[2]
    return _told(status, "Solved", solver.info.obj_val, solver.info.iterations, program)


def _mpax(program: Program) -> tuple[float | None, str]:
    import jax.numpy as jnp
    import mpax
    from jax.experimental import sparse as jax_sparse

    def on_device(matrix: sparse.csr_array) -> Any:
        return jax_sparse.BCSR.from_scipy_sparse(sparse.csr_matrix(matrix))

    upper = np.minimum(program.upper, 1e6)
    linear = mpax.create_lp(
        *(jnp.asarray(program.cost), on_device(program.equal), jnp.asarray(program.right)),
        *(
            on_device(-program.at_most),
            jnp.asarray(-program.limit),
            jnp.zeros(len(upper)),
            jnp.asarray(upper),
        ),
    )
    solver = mpax.r2HPDHG(iteration_limit=_ITERATIONS)  # at its own tolerance: a tighter one takes for ever
    result = solver.optimize(linear)
    status = mpax.utils.TerminationStatus(int(result.termination_status)).name
    value = float(program.cost @ np.asarray(result.primal_solution))
    return _told(status, "optimal", value, int(result.iteration_count), program)


def _told(
    status: str, solved: str, value: float, iterations: int, program: Program
) -> tuple[float | None, str]:
    """Objective and words; without an objective where the solver says that it has none."""
    if status.lower() != solved.lower():
        return (
            None,
            f"no optimum: {status} after {iterations} iterations, at {value + program.constant:.6g} s",
        )
    return float(value) + program.constant, f"{iterations} iterations"


_Solve = Callable[[Program], tuple[float | None, str]]
_SOLVERS: dict[str, tuple[str, _Solve]] = {
    "HiGHS interior point (SciPy)": ("scipy", _highs),
    "Clarabel": ("clarabel", _clarabel),
    "Moreau": ("moreau", _moreau),
    "MPAX r2HPDHG": ("mpax", _mpax),
}
