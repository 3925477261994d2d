"""Combinations of codes compared before any is planned: dollars, and latencies of nodes that are all alike."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ecjax.console import log
from ecjax.durability.codes import Code
from ecjax.problem.arrays import column, nodes_arrays
from ecjax.studies.codes.layouts import Classes
from ecjax.studies.codes.traffic import Traffic

MOST_PLANNED = 12
_MOST_COMPARED = 100_000
_BUSY = 0.95  # mean load of the nodes above which no plan is tried


class Burden(NamedTuple):
    """What the reads of one class in one code bring to a node, the mean of all nodes.

    Attributes:
        load: rho
        second: A_2, s, as brought to one server as fast as all channels of the node
        third: A_3, s^2, likewise
        mean: of a chunk's service, s
        variance: of it, s^2
        slowest: H_k - 1, standard deviations that the slowest of k is above the mean, if they are exponential
    """

    load: float
    second: float
    third: float
    mean: float
    variance: float
    slowest: float


def burden_of(traffic: Traffic, classes: Classes, at: int, code: Code) -> Burden:
    """What reads of the class ``at`` in this code bring to a node."""
    nodes = nodes_arrays(traffic.nodes)
    members = classes.of_file == at
    rate, size = (column(traffic.files, name)[members] for name in ("rate_per_s", "bytes"))
    powers = (size / code.k)[:, None] ** np.arange(4.0)
    sums = rate @ powers
    load, second, third = map(float, code.k * np.asarray(nodes.work).mean(axis=2) @ sums / nodes.count)
    served = np.asarray(nodes.service)[:2].mean(axis=2) @ sums
    mean, square = map(float, served / rate.sum()) if rate.any() else (0.0, 0.0)
    slowest = math.fsum(1 / i for i in range(2, code.k + 1))
    return Burden(load, second, third, mean, max(0.0, square - mean**2), slowest)


def worth_a_plan(traffic: Traffic, classes: Classes, codes: Sequence[Code]) -> list[tuple[Code, ...]]:
    """Combinations, a code per class, that no other beats in dollars and mean latency, the cheapest first.

    Latencies are those of single queues, all nodes being the mean of them; a read takes the slowest of k exponentials.
    Nodes with several channels wait as one server as fast as all of these, which is never less.
    At most ``MOST_PLANNED`` are left, spread evenly, ends included; where there are too many to compare, every second
    code by overhead.

    Args:
        traffic: files and nodes.
        classes: of the files.
        codes: durable enough.
    """
    listed = sorted(codes, key=lambda code: code.n / code.k)
    while len(listed) ** len(classes.names) > _MOST_COMPARED:
        listed = listed[::2]
    if len(listed) < len(codes):
        log.warning(
            "combinations: of %d codes, too many for %d classes, %d are compared, spread over their overheads",
            len(codes),
            len(classes.names),
            len(listed),
        )
    burdens = [[burden_of(traffic, classes, at, code) for code in listed] for at in range(len(classes.names))]
    other = np.asarray(nodes_arrays(traffic.nodes).background).mean(axis=1)
    points = []
    for choice in itertools.product(range(len(listed)), repeat=len(classes.names)):
        parts = [burdens[at][which] for at, which in enumerate(choice)]
        load, second, third = (
            base + math.fsum(part[moment] for part in parts) for moment, base in enumerate(other.tolist())
        )
        if load >= _BUSY:
            continue
        wait = second / 2 / (1 - load)
        spread = third / 3 / (1 - load) + wait**2
        latency = math.fsum(
            share * (wait + part.mean + part.slowest * math.sqrt(spread + part.variance))
            for share, part in zip(classes.read_share, parts, strict=True)
        )
        overhead = math.fsum(
            share * listed[which].n / listed[which].k
            for share, which in zip(classes.bytes_share, choice, strict=True)
        )
        points.append((overhead, latency, choice))
    front: list[tuple[float, float, tuple[int, ...]]] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    few = np.linspace(0, max(len(front) - 1, 0), min(len(front), MOST_PLANNED)).round().astype(int)
    return [tuple(listed[which] for which in front[at][2]) for at in dict.fromkeys(few.tolist())]
