"""Cold chunks under writes: the cheapest nodes that have room for them, against a loop over rows."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pytest

from ecjax.planning import floor, placement
from ecjax.planning.problem import node_work, prices
from ecjax.programs import program

with_floor_and_writes = program(floor.with_floor_and_writes)


def placed(problem, probabilities, hot, together: int) -> np.ndarray:
    """Row after row, each at the loads after the rounds (of so many rows) before."""
    load = np.array(node_work(problem, jnp.asarray(probabilities), jnp.asarray(hot, float))[0])
    price, service = np.asarray(prices(problem)), np.asarray(problem.nodes.service)[0]
    may = np.ones_like(hot) if problem.allowed is None else np.asarray(problem.allowed)
    stored = hot.copy()
    for first in range(0, len(hot), together):
        before = load.copy()
        for row in range(first, min(first + together, len(hot))):
            added = np.asarray(problem.writes)[:, row] @ service
            filled = before + added
            room = filled < 0.95
            order = sorted(
                np.flatnonzero(~hot[row] & may[row]),
                key=lambda j, row=row, filled=filled, room=room: (
                    not room[j],
                    price[row, j] if room[j] else filled[j],
                    j,
                ),
            )
            for j in order[: max(0, int(problem.floor[row]) - hot[row].sum())]:
                stored[row, j] = True
                load[j] += added[j]
    return stored


def hot_chunks(case, seed=0):
    """k hot chunks of every file, each read in full."""
    random = np.random.default_rng(seed)
    hot = np.zeros(case.even.shape, bool)
    for row, k in enumerate(case.k.astype(int)):
        hot[row, random.permutation(hot.shape[1])[:k]] = True
    return hot


@pytest.mark.parametrize("writes", [0.3, 3.0, 10.0])
@pytest.mark.parametrize("count, together, load", [(problems.FILES, 1, 1.6), (130, 3, 1.1)])
def test_rows_take_the_cheapest_nodes_with_room(writes, count, together, load):
    files = problems.mixed_files(1, count).assign(min_extra_chunks=2)
    case = problems.Case(
        problems.moment_nodes(1), files.assign(write_rate_per_s=writes * files["rate_per_s"])
    ).at_load(load)
    problem, hot = case.problem(), hot_chunks(case)
    found = np.asarray(with_floor_and_writes(problem, jnp.asarray(hot, float), jnp.asarray(hot)))
    np.testing.assert_array_equal(found, placed(problem, hot.astype(float), hot, together))
    np.testing.assert_array_equal(found.sum(axis=1), case.k + 2)
    cheapest = np.asarray(placement.with_floor(problem, jnp.asarray(hot)))
    assert np.any(found != cheapest), "the cheapest nodes are to be full in this case"


def test_cold_chunks_go_to_allowed_nodes_only():
    files = problems.mixed_files(1).assign(min_extra_chunks=1)
    files = files.assign(write_rate_per_s=3 * files["rate_per_s"])
    case = problems.Case(problems.moment_nodes(1), files).at_load(1.6)
    hot = hot_chunks(case)
    allowed = np.ones_like(hot)
    for row in range(len(hot)):
        allowed[row, np.flatnonzero(~hot[row])[row % 2]] = False
    problem = replace(case.problem(), allowed=jnp.asarray(allowed))
    found = np.asarray(with_floor_and_writes(problem, jnp.asarray(hot, float), jnp.asarray(hot)))
    assert not np.any(found & ~allowed)
    np.testing.assert_array_equal(found, placed(problem, hot.astype(float), hot, 1))


def test_with_few_writes_only_prices_count():
    case = problems.written(writes=1e-6)
    problem, hot = case.problem(), hot_chunks(case)
    problem = replace(problem, floor=problem.k + 2)
    found = with_floor_and_writes(problem, jnp.asarray(hot, float), jnp.asarray(hot))
    np.testing.assert_array_equal(found, placement.with_floor(problem, jnp.asarray(hot)))
