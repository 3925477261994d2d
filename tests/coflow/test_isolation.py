"""What is certain of loads, and times alone, against all choices of sources."""

from itertools import permutations, product

import numpy as np
import pytest
from drawn_coflows import file_reads, transfers
from hypothesis import given
from hypothesis import strategies as st

from ecjax.coflow.isolation import isolation_s, port_loads
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, given_sources, reads


def choices(workload, coflow):
    """Sources of all flows of a coflow: every way to choose them."""
    a, b = workload.first_flow[coflow : coflow + 2]
    if workload.source[a] != CHOSEN_LATER:
        return [tuple(workload.source[a:b])]
    candidates = workload.candidate[workload.first_candidate[coflow] : workload.first_candidate[coflow + 1]]
    return permutations(candidates, int(b - a))


def seconds(workload, fabric, coflow, source):
    """At every port, for these sources."""
    send, receive = np.zeros(len(fabric.send)), np.zeros(len(fabric.receive))
    for f, s in zip(range(*workload.first_flow[coflow : coflow + 2]), source, strict=True):
        send[s] += workload.bytes[f] / fabric.send[s]
        receive[workload.destination[f]] += workload.bytes[f] / fabric.receive[workload.destination[f]]
    return np.concatenate([send, receive])


@given(st.integers(0, 10_000), st.booleans())
def test_all_choices(seed, mixed):
    workload, fabric = (
        file_reads(seed, coflows=5, servers=4, given=0.3) if mixed else transfers(seed, coflows=5)
    )
    loads = port_loads(workload, fabric)
    alone = isolation_s(workload, fabric)
    for c in range(5):
        certain = np.zeros(loads.ports)
        certain[loads.port[loads.first[c] : loads.first[c + 1]]] = loads.load[
            loads.first[c] : loads.first[c + 1]
        ]
        each = np.array([seconds(workload, fabric, c, source) for source in choices(workload, c)])
        np.testing.assert_allclose(alone[c], each.max(axis=1).min(), rtol=1e-12)
        known = each.shape[1]
        np.testing.assert_allclose(
            certain[:known], each.min(axis=0), rtol=1e-12
        )  # never less, whatever is chosen
        if loads.ports > known:
            size = workload.bytes[workload.first_flow[c] : workload.first_flow[c + 1]].sum()
            servers = {s for other in range(5) for source in choices(workload, other) for s in source}
            np.testing.assert_allclose(certain[-1], size / fabric.send[sorted(servers)].sum(), rtol=1e-12)


def test_chunks_of_several_sizes_go_to_servers_of_several_speeds():
    workload = reads(
        np.zeros(1), np.zeros(1), np.ones(1), np.array([3]), np.array([0, 4]), np.array([2, 0, 3, 1])
    )._replace(bytes=np.array([2.0, 6.0, 3.0]), destination=np.array([0, 1, 2]))
    fabric = Fabric(np.array([1.0, 2.0, 4.0, 0.5]), np.full(3, 100.0))
    best = min(
        max(b / fabric.send[s] for b, s in zip(workload.bytes, source, strict=True))
        for source in product(range(4), repeat=3)
        if len(set(source)) == 3
    )
    assert isolation_s(workload, fabric)[0] == pytest.approx(best)


def test_a_port_twice():
    workload = given_sources(
        np.zeros(1), np.array([0, 3]), np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([6.0, 2.0, 3.0])
    )
    fabric = Fabric(np.array([2.0, 1.0]), np.array([3.0, 1.0]))
    loads = port_loads(workload, fabric)
    assert loads.port.tolist() == [0, 1, 2, 3] and loads.load.tolist() == [4.0, 3.0, 2.0, 5.0]
    assert isolation_s(workload, fabric).tolist() == [5.0]
