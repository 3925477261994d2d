"""Rows that several devices share: the prices of one device, with sums that travel once a pass."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

TESTS = Path(__file__).parents[2]

# devices are made when JAX starts, so that it has to be a process of its own
PROGRAM = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", 8)
import ecjax.precision
import numpy as np
from planning.smoothed.samples_of_rows import sample
from planning.smoothed.test_newton import start
from ecjax.planning.smoothed.newton import Cluster, Settings
from ecjax.planning.smoothed.program import Request, solved

nodes, sites, per_site, limited = map(int, sys.argv[1:])
drawn = sample(15, nodes, 40, sites, per_site)
capacity = np.full(nodes, 1e4 if limited else np.inf)
request = Request(Cluster(drawn.law, capacity), drawn.by_node, drawn.sites, Settings(last=1e-3), *start(drawn))
assert len(jax.local_devices()) == 8
(one,), (eight,) = solved([request], jax.local_devices()[:1]), solved([request])
assert one.turns == eight.turns > 5 and eight.promise < 1e-9 and eight.unfinished == 0
# sums are in another order: the last digits differ
np.testing.assert_allclose(eight.objective, one.objective, rtol=1e-10)
np.testing.assert_allclose(eight.read, one.read, rtol=1e-8)
np.testing.assert_allclose(eight.answer.requested, one.answer.requested, rtol=1e-8)
np.testing.assert_allclose(eight.answer.detail.hot, one.answer.detail.hot, rtol=1e-6, atol=1e-9)
"""


@pytest.mark.parametrize(
    "nodes, sites, per_site, limited",
    [
        (6, 0, 1, 0),
        pytest.param(9, 4, 2, 0, marks=pytest.mark.slow),
        pytest.param(6, 0, 1, 1, marks=pytest.mark.slow),
    ],
)
def test_eight_devices_find_what_one_does(nodes, sites, per_site, limited):
    words = map(str, (nodes, sites, per_site, limited))
    environment = os.environ | {"PYTHONPATH": str(TESTS), "JAX_PLATFORMS": "cpu"}
    environment["JAX_COMPILATION_CACHE_DIR"] = jax.config.jax_compilation_cache_dir
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
