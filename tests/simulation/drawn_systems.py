"""Random small systems with arrivals, for tests that compare engines path by path."""

import numpy as np
from hypothesis import strategies as st
from systems import law_table, make_system, poisson

from ecjax.simulation.laws import Laws

NODES = 5


def blocks(times, files, cuts=()):
    """(times, files, first) of the blocks that these cuts make."""
    edges = [0, *sorted(min(cut, len(times)) for cut in cuts), len(times)]
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        yield times[first:last], files[first:last], first


def agree(counts, simulation, files) -> None:
    """Latencies, busy times, and sojourns at the nodes of a tally equal those of the plain simulator."""
    system = simulation.system
    np.testing.assert_allclose(counts.paths, simulation.latencies, rtol=1e-9)
    np.testing.assert_allclose(counts.busy.sum(axis=0), simulation.busy, rtol=1e-9, atol=1e-9)
    sojourns = np.zeros((system.nodes, 2))
    for request, node, sent, finish in simulation.records:
        if system.group[files[request]] >= 0:
            sojourns[node] += 1, finish - sent
    first = int(counts.classes[0])
    found = counts.sums[:, first : first + system.nodes, :2].sum(axis=0)
    np.testing.assert_allclose(found, sojourns, rtol=1e-9, atol=1e-9)
    for file in range(system.files):
        own = (files == file) & (system.group[file] >= 0)
        found = counts.sums[:, first + system.nodes + file, :2].sum(axis=0)
        np.testing.assert_allclose(found, (own.sum(), counts.paths[own].sum()), rtol=1e-9)


def mixed_laws(rng) -> Laws:
    """Laws of several kinds, one per node."""
    kinds = (
        ("exponential", 0, 0),
        ("gamma", 0.6, 0),
        ("lognormal", 0.8, 0),
        ("weibull", 1.7, 0),
        ("pareto", 1.5, 50),
    )
    if rng.random() < 0.25:
        kinds = (("exponential_with_stalls", 0.3, 2.0), *kinds[1:])
    table = np.concatenate([law_table(kind, 1, 0.1, 0.5, a, b, 0.01, 0.02).table for kind, a, b in kinds])
    return Laws(table[rng.permutation(len(kinds))], np.zeros(1))


@st.composite
def random_systems(draw):
    """(system, times, files, seed): mixed needs, rows, classes, sizes, laws; some with delays, links, writes."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    files = int(rng.integers(1, 5))
    placements, need = [], []
    for _ in range(files):
        n = int(rng.integers(1, NODES + 1))
        placements.append(sorted(rng.choice(NODES, n, replace=False).tolist()))
        need.append(int(rng.integers(1, n + 1)))
    classes = rng.integers(0, 2, files)
    if draw(st.booleans()):  # writes go to every node and are not reported
        classes[-1], need[-1] = -1, len(placements[-1])
    connect = np.zeros((2, NODES))
    if draw(st.booleans()):
        connect[0], connect[1] = rng.choice([0.0, 0.5, 2.0], NODES), rng.uniform(0, 0.5, NODES)
    probabilities = []
    for k, nodes in zip(need, placements, strict=True):
        p = rng.uniform(0.1, 1, len(nodes))
        for _ in range(200):  # towards a sum of k with none above 1
            p = np.minimum(p * k / p.sum(), 1.0)
        p += (k - p.sum()) / len(p) if k < len(p) and p.sum() < k else 0.0
        probabilities.append(p if k < len(nodes) and p.max() <= 1 else np.full(len(nodes), k / len(nodes)))
    system = make_system(
        need,
        placements,
        mixed_laws(rng),
        probabilities=probabilities,
        classes=classes,
        queues=rng.integers(0, 2, files),
        chunk_bytes=rng.uniform(1, 10, files),
        connect=connect,
        extra_s=rng.uniform(0, 1, files),
        link_s=rng.uniform(0, 0.5, files) if draw(st.booleans()) else 0.0,
        chunks=draw(st.sampled_from([1, 1, 3])),
    )
    # background work has laws of its own: entries of the last file take those after the nodes'
    laws = Laws(np.concatenate([system.laws.table, mixed_laws(rng).table]), np.zeros(1))
    own = system.law.copy()
    own[system.start[-2] :] += NODES
    system = system._replace(laws=laws, law=own)
    load = draw(st.sampled_from([0.3, 0.8, 1.5]))
    mean_work = 1.0 * NODES / np.mean(need)
    times, chosen = poisson(np.full(files, load * mean_work / files), 120, int(rng.integers(10**6)))
    return system, times, chosen.astype(np.int64), draw(st.integers(0, 2**40))


RANDOM_SYSTEMS = random_systems()
