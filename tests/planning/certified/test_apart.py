"""Small and large chunks on nodes of their own: where sizes are far apart, and which starts keep to that."""

import numpy as np
import pandas as pd
import problems
import pytest
from planning.certified.untuned import limited, passes_of

from ecjax.planning.certified import Settings, plan_lanes
from ecjax.planning.certified.apart import kept_apart
from ecjax.planning.certified.choice import NONE

M = 6
BYTES = np.array([2.0, 2e9] * 3)  # of files; k = 2


def tables():
    """Equal nodes of 4 ms + 10 ns/B + Exp(6 ms), and files of two sizes that bring as much work each: load 0.4."""
    nodes = {"node_id": [f"e{j}" for j in range(M)], "delta_s": 0.004, "psi_s": 0.006}
    nodes |= {"delta_s_per_byte": 1e-8, "psi_s_per_byte": 0.0}
    work = 2 * (0.01 + 1e-8 * BYTES / 2)
    files = {"file_id": np.arange(M), "bytes": BYTES, "k": 2, "rate_per_s": 0.4 / work, "min_extra_chunks": 1}
    return pd.DataFrame(nodes), pd.DataFrame(files)


def test_plans_are_no_worse_than_with_half_of_the_nodes_for_each_size():
    nodes, files = tables()
    case, one = problems.Case(nodes, files), np.ones(1)
    plans, bound, _ = plan_lanes(case.problem(), np.zeros(1), one, one, Settings())
    # nodes of a half are alike: by convexity the best is to read all as much
    half = (np.arange(M) < 3) == (BYTES < 3)[:, None]
    divided = problems.outcome(case, half * 2 / 3, half)
    objective = plans.evaluation.objective[0]
    assert objective <= divided.latency_shared_z_s * (1 + 1e-3)
    assert bound[0] <= objective


def problem_of(**limits):
    nodes, files = tables()
    return limited(problems.Case(nodes, files).problem(), **limits)


@pytest.mark.parametrize("masked", [False, True])
def test_starts_divide_the_nodes_and_leave_the_rows_as_they_were(masked):
    allowed = np.ones((M, M), bool)
    allowed[:, 5] = False
    passes = passes_of(problem_of(allowed=allowed) if masked else problem_of(), 0.0)
    rows, small = passes.rows, BYTES < 3
    starts = list(kept_apart(passes, np.zeros(M), 0))
    assert passes.rows is rows
    # of five nodes there are not three for each size
    assert bool(starts) != masked
    for kinds, _ in starts:
        stored = kinds != NONE
        assert np.all(stored.sum(axis=1) == 3)
        assert not np.any(stored[small].any(axis=0) & stored[~small].any(axis=0))


def test_sites_are_kept():
    """Two sites of three nodes, two chunks of a file at each: half of the nodes has no room for three chunks."""
    site = np.repeat([0, 1], 3)
    passes = passes_of(problem_of(site=site, per_site=1), 0.0)
    assert not list(kept_apart(passes, np.zeros(M), 0))
    passes = passes_of(problem_of(site=np.arange(M) % 3, per_site=1), 0.0)
    for kinds, _ in kept_apart(passes, np.zeros(M), 0):
        for row in kinds != NONE:
            assert np.bincount(np.arange(M)[row] % 3).max() == 1


def test_files_of_one_size_are_not_divided():
    nodes, files = tables()
    problem = problems.Case(nodes, files.assign(bytes=2.0, rate_per_s=1.0)).problem()
    assert not list(kept_apart(passes_of(problem, 0.0), np.zeros(M), 0))
