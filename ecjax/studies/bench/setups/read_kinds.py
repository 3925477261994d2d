"""Small reads beside full reads on a random placement: time of the spread and of its lower bound, and the gap."""

import time
from collections.abc import Iterator
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from ecjax.planning import prepare
from ecjax.planning.read_kinds import KindModel, KindPlan, SmallReads, plan_kinds
from ecjax.planning.read_kinds.bound import lower_bound
from ecjax.planning.read_kinds.node_lists import decoding_nodes
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups.random_problem import random_problem, with_sizes

K, EXTRA = 4, 3  # every file has 4 + 3 chunks
_SMALL_PART = 0.1  # of the bytes of a chunk


def planned(runner: Runner, files: int, nodes: int, load: float, gap: float) -> Iterator[Row]:
    """The spread of reads on a placement with the bound of all spreads on it."""
    model = random_model(files, nodes, load, runner.seed)
    outcome = runner.time(lambda: _planned(model, gap))
    plan, bound, spread_s = outcome.value
    yield Row(
        "ecjax spread and bound",
        f"{files:,} files x {nodes}, load {load:g} and as many small reads",
        *outcome.timing,
        rows=files,
        node_count=nodes,
        dtype="float64",
        objective=plan.latency,
        lower_bound=bound,
        gap=None if bound is None else plan.latency / bound - 1,
        note=f"the spread alone {spread_s:.3g} s" + ("; no bound: too many reads" if bound is None else ""),
    )


def _planned(model: KindModel, gap: float) -> tuple[KindPlan, float | None, float]:
    """Plan, its bound, s, and the time of the plan alone, s."""
    start = time.perf_counter()
    plan = plan_kinds(model, model.stored * (K / model.stored.sum(axis=1, keepdims=True)))
    spread_s = time.perf_counter() - start
    return plan, lower_bound(model, plan, gap), spread_s


def random_model(files: int, nodes: int, load: float, seed: int) -> KindModel:
    """Every file with full reads, and as many small reads of one of its chunks, on nodes drawn at random.

    Args:
        files: r.
        nodes: m.
        load: the least possible largest node load of the full reads, whatever their placement.
        seed: of all that is drawn.
    """
    rng = np.random.default_rng(seed + 1)
    problem = with_sizes(random_problem(files, nodes, load, False, seed), 1, (K,), load, seed)
    stored = rng.random((files, nodes)).argsort(axis=1).argsort(axis=1) < K + EXTRA
    node = np.where(stored, rng.random((files, nodes)), -1).argmax(axis=1)[:, None]
    row = np.arange(files)
    one = np.ones(files)
    small = SmallReads(
        row,
        np.zeros(files, int),
        node,
        decoding_nodes(stored, row, node),
        (K * one).astype(int),
        rng.permutation(np.asarray(problem.files.rate)),
        _SMALL_PART * np.asarray(problem.files.chunk_bytes),
    )
    floor = replace(problem.files, min_extra_chunks=jnp.full(files, float(EXTRA)))
    return KindModel(prepare(problem.nodes, floor), stored, small)
