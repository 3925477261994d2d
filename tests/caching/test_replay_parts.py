"""Parts of the replay of caches: the ranking, the order of chunks, popularity, latencies, the plan of candidates."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.caching.chunk_order import choices, chunks_of, slowest_first
from ecjax.caching.clock import nanoseconds
from ecjax.caching.edge_state import EDGE, ITEM, Candidates
from ecjax.caching.exchange import best_plan
from ecjax.caching.popularity import count_read
from ecjax.caching.ranking import insert, remove, settle
from ecjax.caching.serving import factor, how_many
from ecjax.streams import streams


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 3)), max_size=60))
def test_ranking_is_a_sorted_dictionary(steps):
    """Insert, take out and change keys as a dictionary does; the first is always the least."""
    items = 8
    heap, of_item, of_edge = np.zeros((2, items), np.int64), np.zeros((2, items), ITEM), np.zeros(2, EDGE)
    of_item["place"] = -1
    ranking = heap, of_item, of_edge
    expected = {}
    for number, (m, action, value) in enumerate(steps):
        if action == 2:
            if m in expected:
                remove(*ranking, 1, m)
                del expected[m]
        else:
            of_item["key"][1, m], of_item["tie"][1, m] = value, number
            (settle if m in expected else insert)(*ranking, 1, m)
            expected[m] = (value, number)
        assert of_edge["ranked"][1] == len(expected)
        if expected:
            assert heap[1, 0] == min(expected, key=expected.get)
        assert {m: i for i, m in enumerate(heap[1, : len(expected)])} == {
            m: i for m, i in enumerate(of_item["place"][1]) if i >= 0
        }
    assert of_edge["ranked"][0] == 0


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), copies=st.integers(1, 3), edge_s=st.integers(0, 2))
def test_order_and_choices_by_definition(seed, k, copies, edge_s):
    """Against eq. 1 of every set of the slowest chunks; latencies of few values, so that there are ties."""
    rng = np.random.default_rng(seed)
    node_of = rng.integers(-1, 5, (1, k, copies))
    node_of[:, :, 0] = rng.integers(0, 5, (1, k))
    estimate = rng.integers(1, 4, (1, 5)).astype(float)
    bits = np.uint64(rng.integers(2**k))
    weight = rng.uniform(0.1, 10.0)
    latency, order = np.full((2, k + 1), float(edge_s)), np.empty((2, k), np.int64)
    useful = slowest_first(node_of, k, estimate, bits, 0, 0, 1, latency, order)

    of_chunk = [max(min(estimate[0, n] for n in node_of[0, j] if n >= 0), edge_s) for j in range(k)]
    assert latency[1].tolist() == [*sorted(of_chunk, reverse=True), edge_s]
    assert [of_chunk[j] for j in order[1]] == latency[1, :k].tolist() and sorted(order[1]) == list(range(k))
    kept = {j for j in range(k) if int(bits) >> j & 1}

    def saved(chunks):
        return max(of_chunk) - max((of_chunk[j] for j in range(k) if j not in chunks), default=edge_s)

    # the slowest that are kept are all that saves anything
    assert saved(kept) == saved(set(order[1, :useful].tolist()) & kept) == latency[1, 0] - latency[1, useful]
    size, value = np.empty((2, k + 1), np.int64), np.empty((2, k + 1))
    count = choices(latency, 1, k, weight, size, value)
    best = [
        max(saved(set(c)) for n in range(j + 1) for c in itertools.combinations(range(k), n))
        for j in range(k + 1)
    ]
    found = [value[1, :count][size[1, :count] <= j].max() for j in range(k + 1)]
    np.testing.assert_allclose(found, weight * np.array(best), rtol=1e-14)
    assert (np.diff(value[1, :count]) > 0.0).all()
    for o in range(count):
        chunks = chunks_of(order, 1, size[1, o])
        assert how_many(chunks) == size[1, o]


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4), k=st.integers(1, 4), room=st.integers(0, 10))
def test_best_plan_is_the_best_of_all(seed, rows, k, room):
    rng = np.random.default_rng(seed)
    size = np.broadcast_to(np.arange(k + 1), (rows, k + 1)).copy()
    value = np.cumsum(rng.integers(0, 5, (rows, k + 1)), axis=1).astype(float)
    value -= value[:, :1]
    count = rng.integers(1, k + 2, rows)
    chosen = np.empty(rows, np.int64)
    work = np.empty(room + 1), np.empty((rows, room + 1), np.int64)
    found = best_plan(
        rows, room, size, value, Candidates(count, np.arange(rows), chosen, np.empty(rows), *work)
    )
    plans = itertools.product(*(range(c) for c in count))
    assert found == max(sum(value[r, o] for r, o in enumerate(p)) for p in plans if sum(p) <= room)
    assert found == value[np.arange(rows), chosen].sum() and chosen.sum() <= room and (chosen < count).all()


def test_popularity_over_thousands_of_half_lives():
    """Weights keep the ratios of counters that decay read by read, however far apart in time."""
    rng = np.random.default_rng(1)
    items, edges = np.zeros((2, 4), ITEM), np.zeros(2, EDGE)
    weight, reference = items["weight"], edges["reference_s"]
    counter, last = np.zeros(4), np.zeros(4)
    now, half_life = 0.0, 3.0
    for _ in range(400):
        now += rng.exponential(50.0) if rng.random() < 0.1 else rng.exponential(1.0)
        m = rng.integers(4)
        counter[m] = counter[m] * 2.0 ** (-(now - last[m]) / half_life) + 1.0
        last[m] = now
        count_read(items, edges, half_life, 1, m, now)
        expected = counter * 2.0 ** (-(now - last) / half_life)
        np.testing.assert_allclose(weight[1] / weight[1, m], expected / expected[m], rtol=1e-9, atol=1e-300)
    assert now > 256 * half_life and reference[1] > 0.0
    assert not weight[0].any() and reference[0] == 0.0


def test_a_rare_read_forgets_all_others():
    items, edges = np.zeros((1, 3), ITEM), np.zeros(1, EDGE)
    items["weight"] = 1.0
    assert count_read(items, edges, 1e-3, 0, 1, 100.0) == 0.0
    assert items["weight"].tolist() == [[0.0, 1.0, 0.0]]


def test_factors_have_mean_1_and_the_variation_asked_for():
    variation = 0.4
    key, sigma = np.uint64(streams.key(3, 1)), np.sqrt(np.log1p(variation**2))
    drawn = np.array([[factor(key, sigma, read, node) for node in range(4)] for read in range(20_000)])
    assert abs(drawn.mean() - 1.0) < 4 * variation / np.sqrt(drawn.size)
    assert abs(drawn.std() - variation) < 0.01
    assert np.abs(np.corrcoef(drawn, rowvar=False) - np.eye(4)).max() < 4 / np.sqrt(len(drawn))
    assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 4 / np.sqrt(len(drawn))


@settings(max_examples=3)
@given(st.integers(0, 3))
def test_the_clock_does_not_go_back(_):
    moment = np.empty(2, np.int64)
    times = [nanoseconds(moment) for _ in range(100)]
    assert times == sorted(times) and times[-1] > times[0]
