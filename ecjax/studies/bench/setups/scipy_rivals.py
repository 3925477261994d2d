"""Plans by SciPy's general methods, for problems small enough for them."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.sparse import csr_matrix, kron

from ecjax.planning import Problem

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def with_slope(function: Callable[[jax.Array], jax.Array], shape: tuple[int, ...]) -> Objective:
    """Value and gradient at a flat vector, compiled.

    Args:
        function: of probabilities of this shape, s.
        shape: (r, m).
    """
    program = jax.jit(jax.value_and_grad(lambda flat: function(flat.reshape(shape))))

    def value_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = program(jnp.asarray(flat))
        return float(value), np.asarray(slope)

    return value_and_slope


def rows_sum_to_k(problem: Problem) -> LinearConstraint:
    """Every file is read from k nodes: its probabilities, of r m numbers, sum to k."""
    sums = kron(csr_matrix(np.eye(problem.rows)), np.ones((1, problem.nodes.count)))
    return LinearConstraint(sums.toarray(), np.asarray(problem.k), np.asarray(problem.k))


def minimised(
    objective: Objective,
    start: jax.Array,
    upper: np.ndarray | float,
    constraints: list[LinearConstraint],
    method: str,
    options: Mapping[str, float],
) -> tuple[float, int]:
    """The least value that a method of SciPy's reaches, s, and its iterations.

    Args:
        objective: with its gradient.
        start: (r, m) probabilities.
        upper: (r m,) or one bound of all probabilities; the lower one is 0.
        constraints: on the flat probabilities.
        method: "SLSQP" or "trust-constr".
        options: of the method.
    """
    begin = np.asarray(start).ravel()
    result = minimize(
        objective,
        begin,
        jac=True,
        method=method,
        bounds=Bounds(0.0, np.broadcast_to(upper, begin.shape)),
        constraints=constraints,
        options=dict(options),
    )
    return objective(np.clip(result.x, 0, 1))[0], int(result.nit)
