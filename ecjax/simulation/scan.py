"""FCFS replay as a parallel scan in JAX, for accelerators: the same draws and the same paths as ``fcfs``.

A request takes the time F at which a node is free to max(F + s, c): s = X, c = t + X where it reads from the node, with
the service time X and the arrival t; s = 0, c = -inf where it does not. Such maps compose to maps of the same form::

    (s1, c1) then (s2, c2):  (s1 + s2, max(c1 + s2, c2))

so that a block of requests is an associative scan; blocks follow one another. Nodes sit in a dense (requests, nodes)
array: on a CPU the compiled loop of ``fcfs`` is faster.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit types)
from ecjax.programs import program
from ecjax.simulation import laws, scan_draws, tally
from ecjax.simulation.system import System
from ecjax.streams import streams

_DENSE = 1 << 21  # most elements of a dense block, lanes x requests x nodes


class _Fixed(NamedTuple):
    """What the compiled program depends on."""

    nodes: int
    widest: int  # entries of a row
    kinds: tuple[int, ...]  # of the laws in use
    chunks: int  # most of them served together
    linked: bool  # some client's link is limited
    connecting: bool  # some connection delay is random
    requests: int  # of a lane, at most
    block: int  # requests taken together
    batches: int  # most batches that a block touches
    classes: int  # 0: only latencies
    paths: bool  # whether latencies are wanted


def replay_fcfs(system: System, times: Any, files: Any, seeds: Any, units: Any = None) -> jax.Array:
    """Latencies (lanes, b), s, of requests under probabilistic scheduling, first come, first served.

    A lane is a replication, or a plan. Requests with ``group`` -1 have a latency too.

    Args:
        system: System.
        times: (b,) or (lanes, b) s, arrivals, in order.
        files: as times, int64.
        seeds: (lanes,) of the draws.
        units: (lanes, entries) int64, probabilities of each lane instead of ``system.units``.
    """
    fixed, lanes = _prepared(system, times, files, seeds, units, 0, None, True)
    return _run(fixed, system, lanes)[0]


def tallies_fcfs(
    system: System,
    times: Any,
    files: Any,
    seeds: Any,
    classes: int,
    units: Any = None,
    counts: Sequence[int] | None = None,
    of_files: int = 0,
    file_bins: bool = False,
) -> list[tally.Tally]:
    """One tally per lane, summed on the device but for those of files; arguments as of ``replay_fcfs``, and:

    Args:
        system: System.
        times: (lanes, b).
        files: (lanes, b).
        seeds: (lanes,).
        classes: of reads.
        units: (lanes, entries).
        counts: (lanes,) requests of each lane; what follows them is left out. Default: all b.
        of_files: the first files of the system whose latencies are counted one by one; 0: none.
        file_bins: also histograms of these.
    """
    fixed, lanes = _prepared(system, times, files, seeds, units, classes, counts, of_files > 0)
    latency, sums, busy, bins = jax.tree.map(np.asarray, _run(fixed, system, lanes))
    batch = np.asarray(_batch_of(np.arange(fixed.requests), fixed.requests))
    tallies = []
    for lane, (times_of, count) in enumerate(zip(lanes["time"], lanes["count"], strict=True)):
        counts_of = tally.empty(fixed.requests, classes, fixed.nodes, of_files, file_bins)
        held, first = np.unique(batch[:count], return_index=True)
        counts_of.began[held] = times_of[first]
        touched = batch[:: fixed.block, None] + np.arange(fixed.batches)
        touched = np.minimum(touched, tally.BATCHES - 1).ravel()
        for block, sums_of_block in zip(touched, sums[lane].reshape(-1, *sums.shape[3:]), strict=True):
            counts_of.batches[:, block] += sums_of_block[:, :2]
            counts_of.sums[counts_of.segment[block], : classes + fixed.nodes] += sums_of_block
        for block, busy_of_block in zip(touched, busy[lane].reshape(-1, fixed.nodes), strict=True):
            counts_of.busy[counts_of.segment[block]] += busy_of_block
        counts_of.bins[...] = bins[lane]
        if of_files:
            segment = counts_of.segment[batch[:count]]
            file = lanes["file"][lane, :count]
            tally.count_files(counts_of, segment, file, system.group, latency[lane, :count])
        tallies.append(counts_of)
    return tallies


def _batch_of(number, requests):
    """Batches of requests; see ``tally.batch_of``."""
    per_request = min(1.0, tally.BATCHES / max(requests, 1))
    return (number.astype(float) * per_request).astype(int).clip(0, tally.BATCHES - 1)


def _prepared(system, times, files, seeds, units, classes, counts, paths):
    """Static facts; arrays by lane."""
    kinds = tuple(sorted({int(kind) for kind in system.laws.table[np.unique(system.law), laws.KIND]}))
    seeds = [int(seed) for seed in np.atleast_1d(seeds)]
    times = np.broadcast_to(np.asarray(times, float), (len(seeds), np.shape(times)[-1]))
    requests = times.shape[1]
    # a block touches few batches, whatever the length of the run
    most = max(64, min(_DENSE // (len(seeds) * system.nodes), requests // 64))
    block = 1 << (most.bit_length() - 1)
    fixed = _Fixed(
        nodes=system.nodes,
        widest=system.widest,
        kinds=kinds,
        chunks=int(system.chunks.max()),
        linked=bool(np.any(system.link_s > 0)),
        connecting=bool(np.any(system.connect[0] > 0)),
        requests=requests,
        block=block,
        batches=min(block, block * tally.BATCHES // max(requests, tally.BATCHES) + 2),
        classes=classes,
        paths=paths,
    )
    purposes = (streams.SERVICE, streams.DISPATCH, streams.CONNECT)
    lanes = {
        "time": times,
        "file": np.broadcast_to(np.asarray(files, np.int64), times.shape),
        "count": np.full(len(seeds), requests) if counts is None else np.asarray(counts, np.int64),
        "key": np.array([[int(streams.key(seed, use)) for use in purposes] for seed in seeds], np.uint64),
        "units": np.broadcast_to(system.units if units is None else units, (len(seeds), len(system.units))),
    }
    return fixed, lanes


def _composed(first, second):
    return first[0] + second[0], jnp.maximum(first[1] + second[0], second[1])


def _block(fixed, system, lane, carry, requests):
    """One block of one lane: the nodes' free times and histograms go on, latencies and sums come out."""
    free, bins = carry
    number, time, file = requests["number"], requests["time"], requests["file"]
    valid = number < lane["count"]
    begin, end = system.start[system.row[file]], system.start[system.row[file] + 1]
    choice = scan_draws.stream(lane["key"][1], number)
    entry, read = scan_draws.entries(fixed.widest, lane["units"], begin, end - begin, choice)
    read &= valid[:, None]
    node = system.node[entry]
    work = scan_draws.service(
        fixed.kinds,
        fixed.chunks,
        system.laws.table[system.law[entry]],
        system.laws.samples,
        system.chunk_bytes[file][:, None],
        system.chunks[entry],
        scan_draws.stream(lane["key"][0], number[:, None] * fixed.nodes + node),
    )
    delay = system.connect[1][node]
    if fixed.connecting:
        shape, state = system.connect[0][node], number[:, None] * fixed.nodes + node
        drawn = scan_draws.gamma(scan_draws.stream(lane["key"][2], state), shape, shape > 0.0)
        delay = jnp.where(shape > 0.0, delay * drawn, delay)
    spot = jnp.arange(fixed.block)[:, None], jnp.where(read, node, fixed.nodes)
    dense = jnp.zeros((fixed.block, fixed.nodes)).at[spot].set(work, mode="drop")
    reached = jnp.full((fixed.block, fixed.nodes), -jnp.inf).at[spot].set(time[:, None] + work, mode="drop")
    total, floor = jax.lax.associative_scan(_composed, (dense, reached))
    finish = jnp.maximum(free[None, :] + total, floor)
    sojourn = finish - time[:, None]
    ready = jnp.take_along_axis(sojourn, node, axis=1) + delay
    if (
        fixed.linked
    ):  # a chunk keeps those that come after it waiting: the last ends after the longest such wait
        ready = jnp.sort(jnp.where(read, ready, jnp.inf), axis=1)
        remainder = read.sum(axis=1)[:, None] - jnp.arange(fixed.widest)[None, :]
        read, ready = remainder > 0, ready + remainder.astype(float) * system.link_s[file][:, None]
    latency = jnp.where(read, ready, -jnp.inf).max(axis=1) + system.extra_s[file]
    if not fixed.classes:
        return (finish[-1], bins), (latency, (), ())
    group = jnp.where(valid, system.group[file], -1)
    of_class = group[:, None] == jnp.arange(fixed.classes)[None, :]
    counted = jnp.concatenate([of_class, (reached > -jnp.inf) & (group >= 0)[:, None]], axis=1)
    value = jnp.concatenate([jnp.broadcast_to(latency[:, None], of_class.shape), sojourn], axis=1)
    value = jnp.where(counted, value, 0.0)
    batch = _batch_of(number, fixed.requests)
    within = (batch - batch[0])[:, None] == jnp.arange(fixed.batches)[None, :]
    powers = jnp.stack([counted.astype(float), value, value**2], axis=-1)
    # products, not scattered sums: those would add in another order every time
    sums = jnp.einsum("bk,bgs->kgs", within.astype(float), powers)
    busy = within.astype(float).T @ dense
    place = (jax.lax.bitcast_convert_type(value, jnp.int64) >> tally.BIN_SHIFT) - tally.BIN_OFFSET
    segment = jnp.searchsorted(jnp.asarray(tally.SEGMENTS), batch, side="right") - 1
    spots = segment[:, None], jnp.arange(value.shape[1])[None, :], place.clip(0, tally.BINS - 1)
    bins = bins.at[spots].add(counted.astype(jnp.uint32))
    return (finish[-1], bins), (latency if fixed.paths else (), sums, busy)


@partial(program, static_argnums=0)
def _run(fixed, system, lanes):
    """Latencies (lanes, b), or sums (lanes, blocks, batches, G, 3), busy (..., m) and bins (lanes, S, G, BINS)."""
    blocks = -(-fixed.requests // fixed.block)
    whole = blocks * fixed.block
    groups = fixed.classes + fixed.nodes if fixed.classes else 0

    def blocked(values):
        return jnp.pad(values, (0, whole - len(values)), mode="edge").reshape(blocks, fixed.block)

    def one(lane):
        requests = {"number": jnp.arange(whole), "time": lane["time"], "file": lane["file"]}
        start = jnp.zeros(fixed.nodes), jnp.zeros((len(tally.SEGMENTS), groups, tally.BINS), jnp.uint32)
        body = partial(_block, fixed, system, lane)
        (_, bins), (latency, sums, busy) = jax.lax.scan(body, start, jax.tree.map(blocked, requests))
        return (latency.reshape(whole)[: fixed.requests] if fixed.paths else ()), sums, busy, bins

    return jax.vmap(one)(lanes)
