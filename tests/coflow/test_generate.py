"""Generated reads: their laws, what stays the same from one point of a sweep to the next, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ecjax.coflow import generate as generator
from ecjax.coflow.generate import ReadSettings, _orders, generate
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, check
from ecjax.errors import UserError

MANY = ReadSettings(requests=4000, servers=12, clients=5, n=6, k=3)
LEAST_P = 1e-4  # of tests of laws


def candidates(workload):
    return np.split(workload.candidate, workload.first_candidate[1:-1])


@given(
    seed=st.integers(0, 2**62),
    requests=st.integers(1, 30),
    racks=st.sampled_from([None, 1, 2, 4, 12]),
    k_range=st.sampled_from([None, (1, 8), (3, 3)]),
    share=st.floats(0, 1),
)
def test_every_workload_can_be_replayed(seed, requests, racks, k_range, share):
    settings = replace(
        MANY, requests=requests, racks=racks, k_range=k_range, share_at_zero=share, duration_s=10.0
    )
    found = generate(settings, seed)
    check(found, Fabric(np.ones(12), np.ones(5)))
    assert len(found.arrival_s) == requests and (found.source == CHOSEN_LATER).all()
    assert found.arrival_s[0] >= 0 and found.arrival_s[-1] <= 10
    assert np.sum(found.arrival_s == 0) == round(share * requests)
    n, k = np.diff(found.first_candidate), found.width
    if k_range is None:
        assert (k == 3).all() and (n == 6).all()
    else:
        assert k_range[0] <= k.min() and k.max() <= k_range[1]
        np.testing.assert_array_equal(n, (3 * k + 1) // 2)  # 1.5 k, halves up
    assert (found.coflow_bytes >= 1e5 * (1 - 1e-12)).all() and (
        found.coflow_bytes <= 1e10 * (1 + 1e-12)
    ).all()
    # chunks of a file: one size, one client
    for values in (found.bytes, found.destination):
        np.testing.assert_array_equal(values, np.repeat(values[found.first_flow[:-1]], k))


def test_laws_of_table_one():
    """What is drawn follows its law: p-values of one seed after another are themselves uniform."""
    settings = replace(MANY, requests=1000)
    p_values = []
    for seed in range(60):
        found = generate(settings, seed)
        first = found.candidate[found.first_candidate[:-1]]
        # a server is drawn once per read: counts vary less than those of independent draws, by (12 - 6) / (12 - 1)
        kept = stats.chisquare(np.bincount(found.candidate, minlength=12)).statistic * 11 / 6
        p_values.append(
            [
                stats.kstest(np.log(found.coflow_bytes / 1e5) / np.log(1e5), "uniform").pvalue,
                stats.kstest(found.arrival_s / 1000, "uniform").pvalue,
                stats.chisquare(np.bincount(found.destination[::3], minlength=5)).pvalue,
                stats.chisquare(np.bincount(first, minlength=12)).pvalue,
                stats.chi2.sf(kept, 11),
            ]
        )
    for law in np.transpose(p_values):
        assert stats.kstest(law, "uniform").pvalue > LEAST_P


def test_servers_of_a_read_are_all_sets_alike_and_nothing_depends_on_anything():
    found = generate(MANY, 1)
    pairs = np.zeros((12, 12))
    for own in candidates(found):
        pairs[np.ix_(own, own)] += 1
    np.testing.assert_allclose(pairs[np.triu_indices(12, 1)] / 4000, 15 / 66, atol=0.033)  # 5 deviations
    first = found.candidate[found.first_candidate[:-1]]
    values = [np.log(found.coflow_bytes), found.arrival_s, found.destination[::3], first]
    assert np.abs(np.corrcoef(values) - np.eye(4)).max() < 5 / np.sqrt(4000)


def test_the_default_is_table_one():
    found = generate(ReadSettings(), 0)
    assert len(found.arrival_s) == 512 and (found.width == 4).all()
    assert (np.diff(found.first_candidate) == 8).all()
    assert found.candidate.max() == 59 and found.destination.max() == 59


@pytest.mark.parametrize("racks", [1, 3, 4, 12])
def test_chunks_of_a_file_are_in_different_racks_while_they_last(racks):
    found = generate(replace(MANY, racks=racks), 2)
    for own in candidates(found)[:500]:
        rack = own // (12 // racks)
        for begin in range(0, 6, racks):
            later = rack[begin : begin + racks]
            assert len(set(later)) == len(later)
    # neither racks nor servers are preferred, wherever they are in the order
    for place in (0, 5):
        servers = found.candidate[found.first_candidate[:-1] + place]
        assert stats.chisquare(np.bincount(servers, minlength=12)).pvalue > LEAST_P


def test_the_same_seed_gives_the_same_reads_and_another_does_not():
    for first, second in zip(generate(MANY, 3), generate(MANY, 3), strict=True):
        np.testing.assert_array_equal(first, second)
    assert (generate(MANY, 4).coflow_bytes != generate(MANY, 3).coflow_bytes).all()


def test_orders_of_many_servers_are_drawn_a_few_reads_at_a_time(monkeypatch):
    drawn = []

    class Counting(np.random.Generator):
        def random(self, shape):
            drawn.append(int(np.prod(shape)))
            return super().random(shape)

    settings = replace(MANY, requests=100)
    random = lambda: Counting(np.random.PCG64(1))  # noqa: E731
    at_once = _orders(settings, 6, random())
    assert drawn == [100 * 12]
    monkeypatch.setattr(generator, "_MOST_DRAWN", 40)
    np.testing.assert_array_equal(_orders(settings, 6, random()), at_once)
    assert drawn[1:] == [3 * 12] * 33 + [12]
    # a read is drawn as a whole
    monkeypatch.setattr(generator, "_MOST_DRAWN", 5)
    np.testing.assert_array_equal(_orders(settings, 6, random()), at_once)


@pytest.mark.parametrize("racks", [None, 4])
def test_a_larger_n_adds_servers_and_another_k_cuts_the_same_files(racks):
    settings = replace(MANY, requests=200, racks=racks)
    base, wide = generate(settings, 5), generate(replace(settings, n=9, k=5), 5)
    np.testing.assert_array_equal(wide.arrival_s, base.arrival_s)
    np.testing.assert_allclose(wide.coflow_bytes, base.coflow_bytes, rtol=1e-14)
    np.testing.assert_array_equal(wide.destination[::5], base.destination[::3])
    for few, more in zip(candidates(base), candidates(wide), strict=True):
        np.testing.assert_array_equal(more[:6], few)


def test_a_larger_share_moves_further_reads_to_zero():
    def reads(share):
        found = generate(replace(MANY, requests=100, share_at_zero=share), 6)
        return dict(zip(found.coflow_bytes.tolist(), found.arrival_s.tolist(), strict=True))

    none, some, more = reads(0.0), reads(0.25), reads(0.6)
    assert none.keys() == some.keys() == more.keys()  # sizes tell the reads apart
    assert [sum(arrival == 0 for arrival in found.values()) for found in (none, some, more)] == [0, 25, 60]
    for size, arrival in none.items():
        assert some[size] in (0, arrival)
        assert more[size] == 0 or more[size] == some[size] == arrival


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"requests": 0}, "requests: found 0; allowed: a whole number of at least 1"),
        ({"servers": 2.5}, "servers: found 2.5; allowed: a whole number of at least 1"),
        ({"clients": True}, "clients: found True; allowed: a whole number of at least 1"),
        ({"min_bytes": 0}, "min_bytes: found 0; allowed: a finite number above 0"),
        ({"max_bytes": float("nan")}, "max_bytes: found nan; allowed: a finite number above 0"),
        ({"duration_s": -1.0}, "duration_s: found -1.0; allowed: a finite number at least 0"),
        ({"min_bytes": 2e10}, "min_bytes: found 2e+10; allowed: at most max_bytes=1e+10"),
        ({"share_at_zero": 1.5}, "share_at_zero: found 1.5; allowed: a number from 0 to 1"),
        ({"racks": 5}, "racks: found 5; allowed: a divisor of servers=12, as racks are of one size"),
        ({"n": 2}, "k=3: found n=2; allowed: from k=3 to servers=12"),
        ({"n": 13}, "k=3: found n=13; allowed: from k=3 to servers=12"),
        ({"k_range": (3,)}, "k_range: found (3,); allowed: two whole numbers, 1 <= least <= most"),
        ({"k_range": (4, 3)}, "k_range: found (4, 3); allowed: two whole numbers, 1 <= least <= most"),
        ({"k_range": 4}, "k_range: found 4; allowed: two whole numbers, 1 <= least <= most"),
        ({"k_range": (2, 9)}, "k=9 with n_per_k=1.5: found n=14; allowed: from k=9 to servers=12"),
        (
            {"k_range": (2, 9), "n_per_k": 0.5},
            "k=2 with n_per_k=0.5: found n=1; allowed: from k=2 to servers=12",
        ),
    ],
)
def test_settings_that_are_refused(wrong, message):
    with pytest.raises(UserError) as error:
        generate(replace(MANY, **wrong), 0)
    assert str(error.value) == message
