"""How sure the bound and the cost of a plan are, where the rates of its files have standard errors.

The delta method: errors of the rates are independent from file to file and small beside what would change the slope,

    Var L = sum_i (dL / d lambda_i)^2 se_i^2

with L the mean latency bound, weighted by the reads themselves (every file has the z of its least bound, so that by the
envelope theorem slopes are those at fixed z), or the cost per period, of which only the price of reads follows rates.

Estimates have no slopes at hand: they are computed once more, at rates moved by a part of

    delta_i = (dL / d lambda_i) se_i^2 / sd L,

the likeliest change of the rates that moves L by its standard deviation. By Cauchy and Schwarz what the estimate
changes along it is at most its own standard deviation, and all of it where estimate and bound rise with the same rates;
beside slopes taken file by file the two agree within a few per cent.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import planning
from ecjax.planning import Problem
from ecjax.predict.plan_estimates import PlanEstimate, plan_estimate, within_bound
from ecjax.programs import program
from ecjax.simulation.laws import Laws

_STEP = 0.25  # of a standard deviation: small beside what changes slopes


class RateErrors(NamedTuple):
    """Standard errors of figures of a plan by those of the rates.

    Attributes:
        latency_s: of the mean latency bound.
        cost: of the cost, $ per period.
    """

    latency_s: float
    cost: float


class EstimateErrors(NamedTuple):
    """Standard errors of the estimated latency of all reads by those of the rates, s.

    Attributes:
        mean: of the mean.
        p99: of the 99 % quantile.
    """

    mean: float
    p99: float


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


_VALUE_AND_SLOPES = program(jax.value_and_grad(_latency))


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
    slopes = np.asarray(_VALUE_AND_SLOPES(rate, problem, reads, jnp.asarray(stored))[1])
    latency = float(np.linalg.norm(np.where(rate_error > 0, slopes, 0.0) * rate_error))
    if problem.reading is None:
        return RateErrors(latency, 0.0)
    each = np.asarray(jnp.sum(problem.reading * planning.of_files(problem, reads), axis=-1))
    rates = np.asarray(rate)
    share = np.divide(rate_error, rates, out=np.zeros_like(rates), where=rates > 0)
    return RateErrors(latency, float(np.linalg.norm(each * share)))


def estimate_errors(
    problem: Problem,
    laws: Laws,
    probabilities: np.ndarray,
    stored: np.ndarray,
    rate_error: np.ndarray,
    estimate: PlanEstimate,
) -> EstimateErrors:
    """Standard errors of the estimated latency of a stable plan; infinite where the moved rates overload a node.

    Args:
        problem: scaled.
        laws: of the m nodes.
        probabilities: (R, m) of the placement rows.
        stored: (R, m) bool.
        rate_error: (r,) 1/s, standard errors of the files' reads, scaled as these.
        estimate: at the rates of the problem.
    """
    rate = np.asarray(problem.files.rate)
    placed = jnp.asarray(probabilities), jnp.asarray(stored)
    bound, slope = _VALUE_AND_SLOPES(problem.files.rate, problem, *placed)
    slopes = np.where(rate_error > 0, np.asarray(slope), 0.0)
    deviation = float(np.linalg.norm(slopes * rate_error))
    if not deviation > 0:
        return EstimateErrors(0.0, 0.0)
    moved = np.maximum(rate + _STEP * slopes * rate_error**2 / deviation, 0.0)
    there = plan_estimate(problem, laws, probabilities, stored, moved)
    bound_there, _ = _VALUE_AND_SLOPES(jnp.asarray(moved), problem, *placed)
    # what is told of both is no larger than its bound
    means = within_bound(estimate.mean, float(bound)), within_bound(there.mean, float(bound_there))
    return EstimateErrors(abs(means[1] - means[0]) / _STEP, abs(there.p99 - estimate.p99) / _STEP)
