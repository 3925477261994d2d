"""How long nodes serve chunks of each class, as drawn from the laws of a replay."""

from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.machine_code import njit
from ecjax.simulation.laws import service
from ecjax.streams import streams
from ecjax.studies.replay.operating_point import OperatingPoint

_DRAWS, _ALL_DRAWS = 20_000, 2_000_000  # of a class, of all: the standard error of a share is 0.4 % at most
_PURPOSE = 0x5E21  # of random numbers
_SHARES = np.round(np.linspace(0.01, 0.99, 99), 2)


def services(run_id: str, at: OperatingPoint, seed: int) -> pa.Table:
    """Rows of ``services``: quantiles of the service time of a chunk, of all reads and of each class.

    Files and nodes are drawn as reads draw them; the nodes of a policy that looks at the queues as probabilities say.

    Args:
        run_id: of the run.
        at: what is replayed.
        seed: of the draws.
    """
    problem, classes = at.problem, at.plan.classes
    random = np.random.default_rng([seed, _PURPOSE])
    rate, of_class = np.asarray(problem.files.rate), np.asarray(classes.of_file)
    row = np.arange(len(rate)) if problem.row is None else np.asarray(problem.row)
    rate = rate * at.probabilities.sum(axis=1)[row]  # of its chunks
    chunk_bytes = np.asarray(problem.files.chunk_bytes)
    count = len(classes.names)
    draws = max(100, min(_DRAWS, _ALL_DRAWS // count))
    times = np.full((count, draws), np.nan)
    for number in range(count):
        weight = np.where(of_class == number, rate, 0.0)
        if not weight.sum() > 0:
            continue
        file = random.choice(len(rate), draws, p=weight / weight.sum())
        reads = np.cumsum(at.probabilities[row[file]], axis=1)
        node = (reads < random.random(draws)[:, None] * reads[:, -1:]).sum(axis=1)
        drawn = _drawn(at.laws.table, at.laws.samples, node, chunk_bytes[file], seed + number)
        if at.queue.name == "partitioned":
            drawn = drawn / np.asarray(at.queue.weights)[number, node]
        times[number] = drawn
    parts: list[tuple[str, str | None, np.ndarray]] = []
    if rate.sum() > 0:  # small reads alone have no chunks of full ones
        whole = random.choice(count, draws, p=np.bincount(of_class, rate, count) / rate.sum())
        parts.append(("all", None, times[whole, np.arange(draws)]))
    if count > 1:
        parts += [("class", str(name), each) for name, each in zip(classes.names, times, strict=True)]
    rows: list[dict[str, Any]] = []
    for group, name, each in parts:
        if np.isfinite(each).all():
            quantiles = np.quantile(each, _SHARES)
            common = {"run_id": run_id, "group": group, "class": name}
            rows += [
                common | {"probability": float(p), "service_s": float(q)}
                for p, q in zip(_SHARES, quantiles, strict=True)
            ]
    return pa.Table.from_pylist(rows)


@njit()
def _drawn(table, samples, node, chunk_bytes, seed):
    times = np.empty(len(node))
    start = streams.mixed(seed)
    for number in range(len(node)):
        state = streams.stream(start, number)
        times[number] = service(table, samples, node[number], chunk_bytes[number], 1, state)
    return times
