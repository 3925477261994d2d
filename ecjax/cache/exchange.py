"""What an edge keeps after a read: chunks of the requested item in exchange for those of a few kept items.

Candidates leave room for K chunks, free ones included: they are taken in order of a key until there is as much. Then
the requested item, any of whose chunks may be kept, and the candidates, which may only lose chunks, are planned anew.

- ``exact``: candidates by release price, min over j < lambda of (tau_lambda - tau_j) / (lambda - j), which is what a
  chunk is worth that goes first; the best plan of all by dynamic programming. Where the requested item gains less than
  the least price for every chunk that it lacks room for, no plan is better, and nothing more is done.
- ``near_optimal``, of the paper: candidates by mean value per chunk, tau_lambda / lambda; the best plan. An item whose
  last chunks are worth little for much before them is not found (erratum 5), so the bound 1 - (2K - 1) / C that the
  paper claims does not hold: what is kept may get stuck at a fraction of the optimum.
- ``samplex`` (Algorithm 2): candidates by mean value; the best of a few partitions of their chunks. The partition that
  is in use is one of them and nothing changes unless it gets better; as printed it may get worse (erratum 4).

Keys are by the popularity of now, and by the estimates when the item was last ranked: after a read that found some of
its chunks missing, when it is a candidate, and when its key is the least and estimates have moved since (then it is
ranked anew and the least key looked for again). So a read costs no more when estimates move, and an item that a fast
fetch makes cheap for a moment is not let go for that: with latencies that vary by 0.3 of their mean and a = 0.9 the
mean latency is 0.7 % above that of the static optimum, and 2.1 % with keys that are all up to date (M = C = 1000,
K = 15, Zipf 1.0). The plan of the candidates is by the estimates of now.
"""

import numba
import numpy as np

from ecjax.cache.candidate_samples import candidate_samplex
from ecjax.cache.chunk_order import choices, chunks_of, slowest_first
from ecjax.cache.ranking import insert, remove, settle
from ecjax.cache.serving import how_many

EXACT, NEAR_OPTIMAL, SAMPLEX = 10, 11, 12  # which of them
_BETTER = 1.0 + 1e-12  # gains below this are of rounding
_VANISHED = 1e200


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _key(kind, size, value, row, count, held):
    """Key of a kept item, of ``held`` chunks: the less, the sooner it is a candidate."""
    whole = value[row, count - 1]
    if kind != EXACT:
        return whole / held
    least = whole / held
    for o in range(1, count):
        if size[row, o] < held:
            least = min(least, (whole - value[row, o]) / (held - size[row, o]))
    return least


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rank(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, m, row):
    """Order the chunks of a kept item in ``row`` of the scratch and set its key; returns the number of choices."""
    latency, order, size, value = scratch
    bits = kept[e, m]
    useful = slowest_first(node_of, k, estimate, bits, e, m, row, latency, order)
    count = choices(latency, row, useful, weight[e, m], size, value)
    ranking[3][e, m] = _key(kind, size, value, row, count, how_many(bits))
    seen[e, m] = moved[e]
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _refresh_first(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, row):
    """Until the first of the ranking has a key by the present estimates; only then is it known to be the first."""
    heap, held, place, key, tie = ranking
    while held[e] > 0:
        first = heap[e, 0]
        if seen[e, first] == moved[e]:
            break
        _rank(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, first, row)
        settle(heap, held, place, key, tie, e, first)


@numba.njit(cache=True, nogil=True, inline="always", error_model="numpy")
def rank_all(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e):
    """Rank everything that the edge keeps, from nothing."""
    heap, held, place, key, tie = ranking
    held[e] = 0
    for m in range(kept.shape[1]):
        place[e, m] = -1
        if kept[e, m] != 0:
            _rank(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, m, k)
            insert(heap, held, place, key, tie, e, m)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _gains_too_little(size, value, count, now, room, price):
    """Whether the requested item, worth ``now``, cannot pay ``price`` per chunk beyond ``room`` chunks."""
    for o in range(1, count):
        gain = value[0, o] - now
        lacking = size[0, o] - room
        if gain > 0.0 and (lacking <= 0 or gain > price * lacking * _BETTER):
            return False
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def best_plan(rows, room, size, value, count, best, choice, chosen):
    """The best choice for every row within ``room`` chunks in total; returns its value.

    Args:
        rows: number of items.
        room: chunks.
        size: (>= rows, K + 1) of ``choices``.
        value: (>= rows, K + 1) of ``choices``.
        count: (>= rows,) number of choices.
        best: (> room,) scratch.
        choice: (>= rows, > room) int64 scratch.
        chosen: (>= rows,) int64, the choice for every row. Written.
    """
    for b in range(room + 1):
        best[b] = 0.0
    for row in range(rows):
        for b in range(room, -1, -1):
            most, which = best[b], 0
            for o in range(1, count[row]):
                if size[row, o] > b:
                    break
                worth = best[b - size[row, o]] + value[row, o]
                if worth > most:
                    most, which = worth, o
            best[b] = most
            choice[row, b] = which
    b = room
    for row in range(rows - 1, -1, -1):
        chosen[row] = choice[row, b]
        b -= size[row, chosen[row]]
    return best[room]


@numba.njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _best_sampled(rows, room, kept, e, k, size, value, count, item, chosen, draw):
    """As ``best_plan``, but of a few partitions of ``room`` chunks, and of the one that is in use."""
    state, samples, table = draw
    tau = np.empty((rows, k + 1))
    plan = np.empty(rows, np.int64)
    for row in range(rows):
        plan[row] = how_many(kept[e, item[row]])
        o = 0
        for chunks in range(k + 1):
            if o + 1 < count[row] and size[row, o + 1] == chunks:
                o += 1
            tau[row, chunks] = value[row, o]
    _, state[0] = candidate_samplex(tau, plan, room, table, samples, state[0])
    found = 0.0
    for row in range(rows):
        o = 0
        while o + 1 < count[row] and size[row, o + 1] <= plan[row]:
            o += 1
        chosen[row] = o
        found += value[row, o]
    return found


@numba.njit(cache=True, nogil=True, inline="always", error_model="numpy")
def exchange(
    kind,
    node_of,
    k,
    kept,
    weight,
    free,
    estimate,
    moved,
    ranking,
    seen,
    grown,
    complete,
    scratch,
    work,
    draw,
    e,
    m,
):
    """Decide after a read of item m at edge e; where it failed, only the key of m follows its popularity.

    Args:
        kind: EXACT, NEAR_OPTIMAL or SAMPLEX.
        node_of: (M, K + R, copies).
        k: K.
        kept: (E, M) uint64, updated.
        weight: (E, M) popularity.
        free: (E,) chunks that are free, updated.
        estimate: (E, N) s.
        moved: (E,) changes of estimates so far.
        ranking: heap, size, place, key and tie of ``ranking``, updated.
        seen: (E, M) int64, ``moved`` when the key was set, updated.
        grown: the weight of m now over that at its previous read; inf where that is 0.
        complete: whether all data chunks of m are at hand.
        scratch: latency (K + 3, K + 1), order (K + 3, K), size and value (K + 3, K + 1).
        work: best (3K + 1,), choice (K + 3, 3K + 1), chosen, count, item (K + 3,) of the plan.
        draw: random state (1,) uint64, updated; S; ``partition_table`` of 3K chunks and K + 2 items.
        e: edge.
        m: item.
    """
    heap, held, place, key, tie = ranking
    latency, order, size, value = scratch
    best, choice, chosen, count, item = work
    bits = kept[e, m]
    own = how_many(bits)
    if own == k or not complete:
        if own > 0:
            if grown < _VANISHED:
                key[e, m] *= grown
            else:  # after many hundred half-lives the old weight and key have vanished, or lost digits
                _rank(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, m, k)
            settle(heap, held, place, key, tie, e, m)
        return
    if own > 0:
        remove(heap, held, place, key, tie, e, m)
    first = 0 * k  # for a plain 0 functions are compiled once more
    useful = slowest_first(node_of, k, estimate, bits, e, m, first, latency, order)
    count[0] = choices(latency, first, k, weight[e, m], size, value)
    mine = 0
    while mine + 1 < count[0] and size[0, mine + 1] <= useful:
        mine += 1
    now = value[0, mine]
    changes = True
    if kind == EXACT:
        if free[e] < k:
            _refresh_first(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, k + 2)
        price = key[e, heap[e, 0]] if held[e] > 0 else np.inf
        changes = not _gains_too_little(size, value, count[0], now, own + free[e], price)
    rows, freed, kept_value = first + 1, free[e], now
    if changes:
        item[0] = m
        while freed < k and held[e] > 0:
            _refresh_first(kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, k + 2)
            other = heap[e, 0]
            remove(heap, held, place, key, tie, e, other)
            item[rows] = other
            count[rows] = _rank(
                kind, node_of, k, kept, weight, estimate, moved, ranking, seen, scratch, e, other, rows
            )
            kept_value += value[rows, count[rows] - 1]
            freed += how_many(kept[e, other])
            rows += 1
        room = min(own + freed, rows * k)
        if kind == SAMPLEX:
            found = _best_sampled(rows, room, kept, e, k, size, value, count, item, chosen, draw)
        else:
            found = best_plan(rows, room, size, value, count, best, choice, chosen)
        changes = found > kept_value * _BETTER
    if changes:
        for row in range(rows):
            chunks = size[row, chosen[row]]
            free[e] += how_many(kept[e, item[row]]) - chunks
            kept[e, item[row]] = chunks_of(order, row, chunks)
            count[row] = min(count[row], chosen[row] + 1)
    elif own > 0:
        # choices of m are no longer needed beyond what is kept
        count[0] = mine + 1
    for row in range(first, rows):
        other = m if row == 0 else item[row]
        left = how_many(kept[e, other])
        if left > 0:
            if changes or row == 0:
                key[e, other] = _key(kind, size, value, row, count[row], left)
                seen[e, other] = moved[e]
            insert(heap, held, place, key, tie, e, other)
