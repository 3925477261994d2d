"""How sure the bound and the cost of a plan are, where the rates of its files have standard errors.

The delta method: errors of the rates are independent from file to file and small beside what would change the slope,

    Var L = sum_i (dL / d lambda_i)^2 se_i^2

with L the mean latency bound, weighted by the reads themselves (every file has the z of its least bound, so that by the
envelope theorem slopes are those at fixed z), or the cost per period, of which only the price of reads follows rates.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import planning
from ecjax.planning import Problem


class RateErrors(NamedTuple):
    """Standard errors of figures of a plan by those of the rates.

    Attributes:
        latency_s: of the mean latency bound.
        cost: of the cost, $ per period.
    """

    latency_s: float
    cost: float


def _latency(rate: jax.Array, problem: Problem, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
    """The mean latency bound (s) at rates (r,) of reads."""
    size = problem.files.chunk_bytes
    terms = jnp.stack([rate, rate * size, rate * size**2, rate * size**3])
    row, rows = problem.row, problem.rows
    if row is not None:
        terms = jax.vmap(lambda each: jax.ops.segment_sum(each, row, rows))(terms)
    share = rate / jnp.sum(rate)
    changed = replace(problem, reads=terms, share=share, files=replace(problem.files, rate=rate))
    return planning.evaluate(changed, probabilities, stored, jnp.zeros(())).latency


_SLOPES = jax.jit(jax.grad(_latency))


def rate_errors(
    problem: Problem, probabilities: np.ndarray, stored: np.ndarray, rate_error: np.ndarray
) -> RateErrors:
    """Standard errors of the bound and the cost of a stable plan.

    Args:
        problem: scaled.
        probabilities: (R, m) of the placement rows.
        stored: (R, m) bool.
        rate_error: (r,) 1/s, standard errors of the files' reads, scaled as these.
    """
    rate, reads = problem.files.rate, jnp.asarray(probabilities)
    slopes = np.asarray(_SLOPES(rate, problem, reads, jnp.asarray(stored)))
    latency = float(np.linalg.norm(np.where(rate_error > 0, slopes, 0.0) * rate_error))
    if problem.reading is None:
        return RateErrors(latency, 0.0)
    each = np.asarray(jnp.sum(problem.reading * planning.of_files(problem, reads), axis=-1))
    rates = np.asarray(rate)
    share = np.divide(rate_error, rates, out=np.zeros_like(rates), where=rates > 0)
    return RateErrors(latency, float(np.linalg.norm(each * share)))
