"""Random small systems, arrivals and outages, and the engine run on them; for tests."""

import numpy as np
from systems import law_table, make_system, poisson

from ecjax.simulation import events, tally


def random_system(rng, kind="exponential", delays=False, writes=True):
    """Up to 5 nodes of different speed, files of different rows, needs and classes."""
    nodes = int(rng.integers(2, 6))
    files = int(rng.integers(1, 4))
    need, placements, probabilities, groups = [], [], [], []
    for _ in range(files):
        width = int(rng.integers(1, nodes + 1))
        need.append(int(rng.integers(1, width + 1)))
        placements.append(rng.permutation(nodes)[:width])
        part = np.full(width, need[-1] / width)
        part += min(need[-1] / width, 1 - need[-1] / width) * rng.uniform(0, 1) * np.linspace(-1, 1, width)
        probabilities.append(part)
        groups.append(int(rng.integers(0, 2)))
    if writes:
        need.append(nodes)
        placements.append(np.arange(nodes))
        probabilities.append(np.ones(nodes))
        groups.append(-1)
    files = len(need)
    law = law_table(kind, nodes, offset=rng.uniform(0, 0.5, nodes), scale=rng.uniform(0.2, 0.8, nodes), a=1.5)
    system = make_system(
        need,
        placements,
        law,
        probabilities,
        classes=groups,
        queues=rng.integers(0, 3, files),
        extra_s=rng.uniform(0, 0.1, files),
        link_s=np.where(rng.random(files) < 0.5, 0.0, rng.uniform(0, 0.5, files)) if delays else 0.0,
        connect=[rng.choice([0.0, 0.7, 2.0], nodes), rng.choice([0.0, 0.1, 0.8], nodes)] if delays else None,
        chunks=int(rng.integers(1, 3)),
    )
    return system, poisson(
        rng.uniform(0.1, 0.6, files), int(rng.integers(50, 120)), int(rng.integers(1 << 30))
    )


def random_outages(rng, nodes, until):
    """A few intervals, overlapping ones among them, one that never ends at times."""
    found = []
    for _ in range(int(rng.integers(1, 6))):
        start = rng.uniform(-0.1 * until, until)
        found.append((int(rng.integers(nodes)), start, start + rng.exponential(0.15 * until)))
    if rng.random() < 0.2:
        found.append((int(rng.integers(nodes)), rng.uniform(0.5, 1.0) * until, np.inf))
    return found


def run_engine(system, times, files, seed, splits=(), **settings):
    """The tally, with paths, of a run in blocks, and how many requests never end."""
    groups = max(int(system.group.max()) + 1, 1)
    counts = tally.empty(len(times), groups, system.nodes, files=system.files, paths=True)
    run = events.Run(system, events.settings(system, **settings), seed)
    edges = [0, *splits, len(times)]
    for first, end in zip(edges[:-1], edges[1:], strict=True):
        assert events.replay_block(run, counts, times[first:end], files[first:end], first)
    return counts, events.finish(run, counts)
