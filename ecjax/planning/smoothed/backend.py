"""The control flow and linear algebra of NumPy and of JAX under the same names, so that a method is written once.

NumPy starts at once and skips what a step does not need; a program of JAX runs on any device and takes lanes by vmap.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

State = Any

# added to a unit diagonal, the first that lets the factors exist
RIDGES = (1e-12, 1e-9, 1e-6, 1e-3)


class Backend(NamedTuple):
    """What the array program needs beside the functions that NumPy and JAX share.

    Attributes:
        xp: ``numpy`` or ``jax.numpy``.
        while_loop: (condition, body, state) -> state.
        cond: (predicate, if true, if false, state) -> state.
        scan: (body, carry, count) -> (carry, outputs stacked on axis 0); the body gets the carry and the step's number.
        sort: (values, others of the same shape, axis) -> both in the order of the values, along the axis.
        solve: (symmetric matrix (m, m), diagonal to be added to it (m,), right side (m,)) -> (m,); the sum is positive
            definite but for rounding, and scaled to a unit diagonal. The matrix may be changed.
    """

    xp: Any
    while_loop: Callable[..., State]
    cond: Callable[..., State]
    scan: Callable[..., tuple[State, Any]]
    sort: Callable[..., tuple[Any, Any]]
    solve: Callable[..., Any]


def _while_loop(condition, body, state):
    while condition(state):
        state = body(state)
    return state


def _cond(predicate, if_true, if_false, state):
    return if_true(state) if predicate else if_false(state)


def _scan(body, carry, count):
    outputs = []
    for step in range(count):
        carry, output = body(carry, step)
        outputs.append(output)
    return carry, np.stack(outputs)


def _sort(values, others, axis):
    order = np.argsort(values, axis=axis)
    return np.take_along_axis(values, order, axis=axis), np.take_along_axis(others, order, axis=axis)


def _solve(matrix, diagonal, right):
    # in place, as far as it goes: a matrix of thousands of rows is dear to touch
    on_diagonal = np.arange(len(right))
    matrix[on_diagonal, on_diagonal] += diagonal
    scale = 1 / np.sqrt(matrix[on_diagonal, on_diagonal])
    matrix *= scale[:, None]
    matrix *= scale
    for ridge in RIDGES:
        matrix[on_diagonal, on_diagonal] = 1.0 + ridge
        try:
            # columns as LAPACK has them: the same matrix, and no copy of its own making
            factors = linalg.cho_factor(matrix.T, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return scale * linalg.cho_solve(factors, scale * right, check_finite=False)
    return scale * scale * right


NUMPY = Backend(np, _while_loop, _cond, _scan, _sort, _solve)


def jax_backend() -> Backend:
    """The same of JAX."""
    import jax
    from jax import numpy as jnp

    def scan(body, carry, count):
        return jax.lax.scan(body, carry, jnp.arange(count))

    def sort(values, others, axis):
        return jax.lax.sort((values, others), dimension=axis, num_keys=1)

    def solve(matrix, diagonal, right):
        ridges = jnp.array(RIDGES)
        whole = matrix + jnp.diag(diagonal)
        scale = 1 / jnp.sqrt(jnp.diag(whole))
        scaled = whole * scale[:, None] * scale[None]
        right = scale * right

        def body(state):
            number, _ = state
            factors = jax.scipy.linalg.cho_factor(scaled + ridges[number] * jnp.eye(right.shape[0]))
            return number + 1, jax.scipy.linalg.cho_solve(factors, right)

        def failed(state):
            number, solution = state
            return (number < len(RIDGES)) & ~jnp.all(jnp.isfinite(solution))

        solution = jax.lax.while_loop(failed, body, (0, jnp.full_like(right, jnp.nan)))[1]
        return scale * jnp.where(jnp.isfinite(solution), solution, right)

    return Backend(jnp, jax.lax.while_loop, jax.lax.cond, scan, sort, solve)
