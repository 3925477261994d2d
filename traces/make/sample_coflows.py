"""A small Coflow-Benchmark trace, generated: ``python traces/make/sample_coflows.py``.

A hundred shuffles of a cluster of 40 racks with the published shares of the Facebook trace (Chowdhury, Zhong, Stoica,
"Efficient coflow scheduling with Varys", SIGCOMM 2014): coflows are short where their longest flow is below 5 MB,
narrow where they have at most 50 flows. Arrivals are as dense, and ports are loaded as much, as in that trace; widths,
sizes within a class and ports are drawn.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

SEED = 20261124
RACKS, COFLOWS = 40, 100
SECONDS = COFLOWS * 3600 / 526  # that trace has 526 coflows in an hour
TOTAL_MB = 1_800_000  # 53 % of what the ports could carry in that time
LONG_MB, WIDE = 5, 50


class Shape(NamedTuple):
    """A class of coflows: share of their number and of all bytes, flows of each."""

    name: str
    share: float
    byte_share: float
    width: tuple[int, int]


SHAPES = (
    Shape("short narrow", 0.60, 0.0001, (1, 12)),
    Shape("long narrow", 0.16, 0.0011, (1, 12)),
    Shape("short wide", 0.12, 0.0088, (400, 1600)),
    Shape("long wide", 0.12, 0.99, (400, 1600)),
)


def coflows(seed: int = SEED) -> Iterator[tuple[int, list[int], dict[int, int]]]:
    """Coflows in order of arrival: ms, racks of the mappers, and the megabytes of each reducer by its rack."""
    random = np.random.default_rng(seed)
    drawn = [coflow for shape in SHAPES for coflow in _of_shape(shape, round(shape.share * COFLOWS), random)]
    times = np.sort(random.integers(0, round(1000 * SECONDS), len(drawn)))
    for when, place in zip(times, random.permutation(len(drawn)), strict=True):
        yield int(when), *drawn[place]


def _of_shape(
    shape: Shape, count: int, random: np.random.Generator
) -> Iterator[tuple[list[int], dict[int, int]]]:
    low, high = shape.width
    width = np.exp(random.uniform(np.log(low), np.log(high + 1), count))
    mappers = np.clip(np.rint(np.sqrt(width) * random.uniform(0.8, 1.25, count)), 1, RACKS).astype(int)
    reducers = np.clip(np.rint(width / mappers), 1, RACKS).astype(int)
    # megabytes in proportion to flows, times what makes coflows of a class differ
    weight = mappers * reducers * random.lognormal(0, 0.3, count)
    for m, r, part in zip(mappers, reducers, weight / weight.sum(), strict=True):
        each = max(round(TOTAL_MB * shape.byte_share * part / r), 1)
        if shape.name.startswith("short"):
            each = min(each, LONG_MB * int(m) - 1)
        else:
            each = max(each, LONG_MB * int(m))
        racks = [random.permutation(RACKS)[:number].tolist() for number in (m, r)]
        yield sorted(racks[0]), dict.fromkeys(sorted(racks[1]), each)


def lines(seed: int = SEED) -> Iterator[str]:
    """The lines of the trace."""
    yield f"{RACKS} {COFLOWS}"
    for number, (when, mappers, reducers) in enumerate(coflows(seed), 1):
        words = [number, when, len(mappers), *mappers, len(reducers)]
        yield " ".join([*map(str, words), *(f"{rack}:{size:.1f}" for rack, size in reducers.items())])


def write_coflows(path: Path) -> None:
    """Write the trace."""
    path.write_text("".join(f"{line}\n" for line in lines()))


if __name__ == "__main__":
    write_coflows(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "coflows.txt")
