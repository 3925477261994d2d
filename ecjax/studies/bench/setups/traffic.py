"""Queues under the arrivals of a log: recursions bin by bin, their form in JAX, and a plan with its bound."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.planning.trace.data import traced
from ecjax.planning.trace.plan import plan_trace
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, compiled
from ecjax.studies.bench.setups.device_limits import Work, against_limits
from ecjax.studies.bench.setups.random_problem import random_problem
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.lindley import values_and_prices, waits
from ecjax.traffic.two_moments import Constants, workload_path, workload_path_traced

LOAD, NODES = 0.5, 12
MEAN_S = 0.02  # of a service, exponential
BIN_S = 0.02
BURST, QUIET = 3.0, 0.2  # times the mean rate
SHARE = 0.3  # of the time that it bursts
LENGTH = 50  # bins of a burst, and of what is between


def recursions(runner: Runner, bins: int, bins_by_jax: int) -> Iterator[Row]:
    """Work of 12 nodes in bursts: both recursions on the host, and as programs of JAX, which take bin after bin."""
    random = np.random.default_rng(runner.seed)
    rates = np.repeat(random.choice([QUIET, BURST], -(-bins // LENGTH), p=[1 - SHARE, SHARE]), LENGTH)[:bins]
    rates *= LOAD / rates.mean()
    work = MEAN_S * random.poisson(rates[:, None] * BIN_S / MEAN_S, (bins, NODES))
    width = np.full(bins, BIN_S)
    c = np.full(NODES, MEAN_S)
    constants = Constants(c, 2 * c)
    count = min(bins, bins_by_jax)
    arrays = jnp.asarray(work[:count]), jnp.asarray(width[:count])
    programs = {
        "ecjax two moments (JAX)": compiled(partial(workload_path_traced, constants=constants), *arrays),
        "ecjax smoothed Lindley (JAX)": compiled(lambda work, width: waits(width, work, c)[0], *arrays),
    }
    variants: dict[str, Callable[[], Any]] = {
        "ecjax two moments, one core": partial(workload_path, work, width, constants),
        "ecjax smoothed Lindley with prices, one core": partial(values_and_prices, width, work, c),
    }
    variants |= {name: program for name, (program, _) in programs.items()}
    for name, outcome in runner.race(variants).items():
        number = count if name in programs else bins
        each_us = outcome.timing.min_s / (number * NODES) * 1e6
        row = Row(
            name,
            f"{number:,} bins x {NODES}",
            *outcome.timing,
            rows=number,
            node_count=NODES,
            dtype="float64",
            compile_s=programs[name][1] if name in programs else None,
            note=f"{each_us:.3g} µs per bin and node",
        )
        # the work of every bin and node is read, and a wait written
        yield against_limits(row, Work(bytes=2.0 * work[:count].nbytes)) if name in programs else row


def planned(runner: Runner, files: int, bins: int, gap: float) -> Iterator[Row]:
    """A plan for files that burst, each by itself, with a bound on all plans."""
    problem = random_problem(files, NODES, LOAD, False, runner.seed)
    random = np.random.default_rng(runner.seed)
    rate = np.asarray(problem.files.rate)
    length_s = 2.0 * bins / rate.sum()  # two reads in a bin
    bursts = random.choice([QUIET, BURST], (20, files), p=[1 - SHARE, SHARE])
    counts = random.poisson(bursts / bursts.mean(axis=0) * rate * length_s / 20)
    period, file = np.nonzero(counts)
    reads = np.repeat(np.arange(len(period)), counts[period, file])
    at = (period[reads] * bins + random.integers(0, bins, len(reads))) // 20
    pairs, number = np.unique(at * files + file[reads], return_counts=True)
    binned = BinnedReads(
        np.full(bins, length_s / bins), pairs // files, pairs % files, number.astype(float), files
    )
    data = traced(problem, binned, None, 0.0)
    outcome = runner.time(partial(plan_trace, data, gap))
    plan = outcome.value
    yield Row(
        "ecjax objective=trace",
        f"{files:,} files x {NODES}, {bins:,} bins",
        *outcome.timing,
        rows=files,
        node_count=NODES,
        dtype="float64",
        objective=plan.objective,
        lower_bound=plan.bound,
        iterations=plan.iterations,
        note=f"mean wait {plan.wait:.4g} s, of reads spread over all nodes {plan.spread_wait:.4g} s",
    )
