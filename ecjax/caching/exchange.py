"""What an edge keeps after a read: chunks of the requested item in exchange for those of a few kept items.

Candidates leave room for K chunks, free ones included: they are taken in order of a key until there is as much; in the
paper's schemes the chunks that the requested item has count as room (at most K + 1 items share 2K - 1 chunks, Table
IV). Then the requested item, any of whose chunks may be kept, and the candidates, which may only lose chunks, are
planned anew.

- ``exact``: candidates by release price, min over j < lambda of (tau_lambda - tau_j) / (lambda - j), which is what a
  chunk is worth that goes first; the best plan of all by dynamic programming. Where the requested item gains less than
  the least price for every chunk that it lacks room for, no plan is better, and nothing more is done.
- ``near_optimal``, the paper's own: candidates by mean value per chunk, tau_lambda / lambda, of all of whose partitions
  the market is cleared. An item whose last chunks are worth little for much before them is not found (erratum 5), so
  the bound 1 - (2K - 1) / C that the paper claims does not hold: what is kept may get stuck at a fraction of the
  optimum.
- ``near_optimal_dp``, ours: the same candidates and as good a plan of them, by dynamic programming.
- ``samplex`` (Algorithm 2): candidates by mean value; the best of a few partitions of their chunks. The partition that
  is in use is one of them and nothing changes unless it gets better; as printed it may get worse (erratum 4).

Keys are by the popularity of now, and by the estimates when the item was last ranked: after a read that found some of
its chunks missing, when it is a candidate, and when its key is the least and estimates have moved since (then it is
ranked anew and the least key looked for again). So a read costs no more when estimates move, and an item that a fast
fetch makes cheap for a moment is not let go for that: with latencies that vary by 0.3 of their mean and a = 0.9 the
mean latency is 0.7 % above that of the static optimum, and 2.1 % with keys that are all up to date (M = C = 1000,
K = 15, Zipf 1.0). The plan of the candidates is by the estimates of now.

Where popularity is that of a mixture (``experts``, ``returns``), rates of items that are not read fall, and not all
alike. Then weights and keys are taken anew of the item that is read, of every candidate, and of IN_TURN kept items in
turn at each read: within 0.3 % of the latency with keys that are all fresh.
"""

import numpy as np

from ecjax.by_reference import by_reference
from ecjax.caching.candidate_samples import candidate_optimum, candidate_samplex
from ecjax.caching.chunk_order import choices, chunks_of, slowest_first
from ecjax.caching.ranking import insert, remove, settle
from ecjax.caching.returns import rate
from ecjax.caching.serving import how_many
from ecjax.machine_code import njit

EXACT, NEAR_OPTIMAL_DP, NEAR_OPTIMAL, SAMPLEX = 10, 11, 12, 13  # which of them
_BETTER = 1.0 + 1e-12  # gains below this are of rounding
_VANISHED = 1e200
IN_TURN = 4  # kept items whose weights by the mixture are taken anew at each read


@njit(inner=True, error_model="numpy")
def _key(kind, size, value, row, count, number):
    """Key of a kept item, of ``number`` chunks: the less, the sooner it is a candidate."""
    whole = value[row, count - 1]
    if kind != EXACT:
        return whole / number
    least = whole / number
    for o in range(1, count):
        if size[row, o] < number:
            least = min(least, (whole - value[row, o]) / (number - size[row, o]))
    return least


@njit(inner=True, error_model="numpy")
def _rank(kind, stored, state, scratch, e, m, row):
    """Order the chunks of a kept item in ``row`` of the scratch and set its key; returns the number of choices."""
    latency, order, size, value = scratch.latency, scratch.order, scratch.size, scratch.value
    item = state.items[e, m]
    useful = slowest_first(stored.node_of, stored.k, state.estimate, item.contents, e, m, row, latency, order)
    count = choices(latency, row, useful, item.weight, size, value)
    item.key = _key(kind, size, value, row, count, how_many(item.contents))
    item.revision = state.edges[e].moved
    return count


@njit(inner=True, error_model="numpy")
def _refresh_first(rules, stored, state, scratch, e, row):
    """Until the first of the ranking has a key by the present estimates; only then is it known to be the first."""
    heap, items, edges = state.heap, state.items, state.edges
    while edges[e].ranked > 0:
        first = heap[e, 0]
        aged = rules.mixture and items[e, first].weighed != state.experts.clock[e]
        if items[e, first].revision == edges[e].moved and not aged:
            break
        if aged:
            weigh(state, e, first)
        _rank(rules.kind, stored, state, scratch, e, first, row)
        settle(heap, items, edges, e, first)


@njit(error_model="numpy")
def weigh(state, e, m):
    """Set the weight of item m to its rate by the mixture now; returns it over the weight before."""
    item = state.items[e, m]
    before = item.weight
    item.weight = rate(state.experts, state.returns, e, m)
    item.weighed = state.experts.clock[e]
    return item.weight / before


@njit(error_model="numpy")
def weigh_all(state, e):
    """Set the weights of all items."""
    state = by_reference(state)
    for m in range(state.items.shape[1]):
        weigh(state, e, m)


@njit(error_model="numpy")
def weigh_in_turn(kind, stored, state, scratch, candidates, e):
    """Set the weights and keys of the next few items that are kept, of all where there are few.

    Weights first: what is remembered of the items is far apart, and a processor fetches it at the same time where one
    does not wait for the other.
    """
    heap, items, edges = state.heap, state.items, state.edges
    item, grown = candidates.item, candidates.grown
    few = min(IN_TURN, edges[e].ranked)
    for place in range(few):
        edges[e].turn += 1
        if edges[e].turn >= edges[e].ranked:
            edges[e].turn = 0
        item[place] = heap[e, edges[e].turn]
    for place in range(few):
        grown[place] = weigh(state, e, item[place])
    for place in range(few):
        m = item[place]
        if grown[place] < _VANISHED:
            items[e, m].key *= grown[place]
        else:
            _rank(kind, stored, state, scratch, e, m, stored.k)
        settle(heap, items, edges, e, m)


@njit(error_model="numpy")
def rank_all(kind, stored, state, scratch, e):
    """Rank everything that edge e keeps by the present estimates and popularity, from nothing."""
    stored, state, scratch = by_reference(stored), by_reference(state), by_reference(scratch)
    heap, items, edges = state.heap, state.items, state.edges
    edges[e].ranked = 0
    for m in range(items.shape[1]):
        items[e, m].place = -1
        if items[e, m].contents != 0:
            _rank(kind, stored, state, scratch, e, m, stored.k)
            insert(heap, items, edges, e, m)


@njit(inner=True, error_model="numpy")
def _gains_too_little(size, value, count, now, room, price):
    """Whether the requested item, worth ``now``, cannot pay ``price`` per chunk beyond ``room`` chunks."""
    for o in range(1, count):
        gain = value[0, o] - now
        lacking = size[0, o] - room
        if gain > 0.0 and (lacking <= 0 or gain > price * lacking * _BETTER):
            return False
    return True


@njit(error_model="numpy")
def best_plan(rows, capacity, size, value, candidates):
    """The best choice for every row within a capacity in total; returns its value.

    Args:
        rows: number of items.
        capacity: chunks, up to 3K.
        size: (>= rows, K + 1) of ``choices``.
        value: (>= rows, K + 1) of ``choices``.
        candidates: Candidates with the number of choices of every row; ``plan`` is written.
    """
    count, plan, best, choice = candidates.options, candidates.plan, candidates.best, candidates.choice
    for b in range(capacity + 1):
        best[b] = 0.0
    for row in range(rows):
        for b in range(capacity, -1, -1):
            most, which = best[b], 0
            for o in range(1, count[row]):
                if size[row, o] > b:
                    break
                worth = best[b - size[row, o]] + value[row, o]
                if worth > most:
                    most, which = worth, o
            best[b] = most
            choice[row, b] = which
    b = capacity
    for row in range(rows - 1, -1, -1):
        plan[row] = choice[row, b]
        b -= size[row, plan[row]]
    return best[capacity]


@njit(inner=True, error_model="numpy")
def _best_cleared(rows, capacity, size, value, candidates, chunks_of_row, rules):
    """As ``best_plan``, but of all partitions of the capacity, or of a few and the one in use, ``chunks_of_row``."""
    count, plan, random_state = candidates.options, candidates.plan, rules.random_state
    kinds = size.shape[1]
    tau = np.empty((rows, kinds))
    for row in range(rows):
        o = 0
        for chunks in range(kinds):
            if o + 1 < count[row] and size[row, o + 1] == chunks:
                o += 1
            tau[row, chunks] = value[row, o]
    if rules.kind == NEAR_OPTIMAL:
        candidate_optimum(tau, chunks_of_row, capacity, rules.partitions)
    else:
        _, random_state[0] = candidate_samplex(
            tau, chunks_of_row, capacity, rules.partitions, rules.samples, random_state[0]
        )
    total = 0.0
    for row in range(rows):
        o = 0
        while o + 1 < count[row] and size[row, o + 1] <= chunks_of_row[row]:
            o += 1
        plan[row] = o
        total += value[row, o]
    return total


@njit(inline="always", error_model="numpy")
def exchange(rules, stored, state, scratch, candidates, e, m, grown, complete):
    """Decide after a read of item m at edge e; where it failed, only the key of m follows its popularity.

    Args:
        rules: Rules; the kind is one of this module.
        stored: Stored.
        state: State, updated.
        scratch: Scratch.
        candidates: Candidates.
        e: edge.
        m: item.
        grown: the weight of m now over that at its previous read; inf where that is 0.
        complete: whether all data chunks of m are at hand.
    """
    kind, k = rules.kind, stored.k
    heap, items, edges = state.heap, state.items, state.edges
    current, edge = items[e, m], edges[e]
    before = how_many(current.contents)
    if before == k or not complete:
        if before > 0:
            if grown < _VANISHED:
                current.key *= grown
            else:  # after many hundred half-lives the old weight and key have vanished, or lost digits
                _rank(kind, stored, state, scratch, e, m, k)
            settle(heap, items, edges, e, m)
        return
    latency, order, size, value = scratch.latency, scratch.order, scratch.size, scratch.value
    count, item, plan = candidates.options, candidates.item, candidates.plan
    if before > 0:
        remove(heap, items, edges, e, m)
    first = 0 * k  # for a plain 0 functions are compiled once more
    useful = slowest_first(stored.node_of, k, state.estimate, current.contents, e, m, first, latency, order)
    count[0] = choices(latency, first, k, current.weight, size, value)
    mine = 0
    while mine + 1 < count[0] and size[0, mine + 1] <= useful:
        mine += 1
    now = value[0, mine]
    changes = True
    if kind == EXACT:
        if edge.free < k:
            _refresh_first(rules, stored, state, scratch, e, k + 2)
        price = items[e, heap[e, 0]].key if edge.ranked > 0 else np.inf
        changes = not _gains_too_little(size, value, count[0], now, before + edge.free, price)
    rows, freed, kept_value = first + 1, edge.free, now
    if changes:
        item[0] = m
        enough = k if kind == EXACT else k - before
        while freed < enough and edge.ranked > 0:
            _refresh_first(rules, stored, state, scratch, e, k + 2)
            other = heap[e, 0]
            remove(heap, items, edges, e, other)
            item[rows] = other
            count[rows] = _rank(kind, stored, state, scratch, e, other, rows)
            kept_value += value[rows, count[rows] - 1]
            freed += how_many(items[e, other].contents)
            rows += 1
        capacity = min(before + freed, rows * k)
        if kind >= NEAR_OPTIMAL:
            chunks_of_row = np.empty(rows, np.int64)
            for row in range(rows):
                chunks_of_row[row] = how_many(items[e, item[row]].contents)
            planned_value = _best_cleared(rows, capacity, size, value, candidates, chunks_of_row, rules)
        else:
            planned_value = best_plan(rows, capacity, size, value, candidates)
        changes = planned_value > kept_value * _BETTER
    if changes:
        for row in range(rows):
            chunks = size[row, plan[row]]
            edge.free += how_many(items[e, item[row]].contents) - chunks
            items[e, item[row]].contents = chunks_of(order, row, chunks)
            count[row] = min(count[row], plan[row] + 1)
    elif before > 0:
        # choices of m are no longer needed beyond what is kept
        count[0] = mine + 1
    for row in range(first, rows):
        other = m if row == 0 else item[row]
        number = how_many(items[e, other].contents)
        if number > 0:
            if changes or row == 0:
                items[e, other].key = _key(kind, size, value, row, count[row], number)
                items[e, other].revision = edge.moved
            insert(heap, items, edges, e, other)
