"""The promised quantiles against the exact union over M/M/1 nodes, and in what they round."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from ecjax.programs import program
from ecjax.queueing import ServiceLaw, UnitLaw, Workload, tail_bound

LEVELS = (0.5, 0.9, 0.99, 0.999)
PI = np.array([[0.9, 0.7, 0.4], [0.2, 0.3, 0.5]])
RATES = np.array([1.0, 1.5])
SPEEDS = np.array([1.5, 1.0, 0.8])

bounded = program(tail_bound)


def system(load, chunk_bytes=1.0):
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=1 / SPEEDS)
    busiest = (RATES @ PI / SPEEDS).max()
    return Workload.of(RATES * load / busiest, chunk_bytes, 2, service)


def union(weights, decays, level):
    return brentq(lambda x: np.minimum(weights @ np.exp(-decays * x), 1).sum() - (1 - level), 0, 1e4)


@pytest.mark.parametrize("load", [0.2, 0.6, 0.9])
def test_promises_are_the_exact_union_rounded_up(load):
    reads = system(load)
    found = bounded(PI, reads)
    decays = SPEEDS - np.asarray(reads.rate) @ PI
    exact = np.array([[union(pi, decays, level) for level in LEVELS] for pi in PI])
    # to the cumulative probability that the table of the service law keeps
    assert (np.asarray(found.file_quantiles) > exact * (1 - 1e-4)).all()
    assert_allclose(found.file_quantiles, exact, rtol=0.04)

    def over_all(x):
        share = np.asarray(reads.rate / reads.rate.sum())
        return share @ np.minimum(PI @ np.exp(-decays * x), 1)

    exact = [brentq(lambda x, level=level: over_all(x) - (1 - level), 0, 1e4) for level in LEVELS]
    assert (np.asarray(found.quantiles) > np.array(exact) * (1 - 1e-4)).all()
    assert_allclose(found.quantiles, exact, rtol=0.04)


def test_promises_hold_for_constant_services_at_the_jump():
    service = ServiceLaw.of_nodes(UnitLaw.named("deterministic"), scale=2.0, nodes=3)
    reads = Workload.of(np.array([0.01, 0.01]), 1.0, 2, service)
    found = np.asarray(bounded(PI, reads).file_quantiles)
    # nearly all reads take exactly one service; never less is promised, and not much more
    assert (found[:, 0] >= 2.0).all()
    assert_allclose(found[:, 0], 2.0, rtol=2e-3)
