"""Codes by their parity checks, against codes whose decodable sets are known and against enumeration of generators."""

import itertools
import math
import random

import pytest

from ecjax.durability import lrc
from ecjax.durability.assessment import always_survived
from ecjax.durability.codes import code_of, other_name
from ecjax.durability.parity_checks import decodable_shares, follows_from_data

_PRIME = 1_000_003


@pytest.mark.parametrize("k, groups, parity", [(4, 2, 2), (6, 2, 1), (6, 3, 2), (12, 2, 2)])
def test_an_lrc_by_its_checks_is_the_lrc(k, groups, parity):
    size = k // groups
    checks = tuple((*range(i * size, (i + 1) * size), k + i) for i in range(groups))
    shares = decodable_shares(k + groups + parity, k, checks)
    assert shares == pytest.approx(lrc.decodable_shares(k, groups, parity)[: len(shares)], rel=1e-12)


def test_without_sparse_checks_it_is_mds():
    assert decodable_shares(9, 6, ((*range(9),),)) == (1.0,) * 4


def _rank(rows):
    """By plain elimination modulo a prime."""
    rows, rank = [list(row) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column] % _PRIME), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, _PRIME)
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] * inverse % _PRIME
            rows[r] = [(a - factor * b) % _PRIME for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


def test_xorbas_by_a_generator_and_its_distance():
    """(4, 3, 2) by coding data: two groups of 2 with local parities, and a global one that makes up the last group."""
    code = code_of("xorbas(4,3,2)")
    assert code.n == 7 and code.degraded_chunks == 2 and code.repair_chunks == 2
    draw = random.Random(3)
    data = [[int(i == j) for j in range(4)] for i in range(4)]
    local = [[draw.randrange(1, _PRIME) if j // 2 == i else 0 for j in range(4)] for i in range(2)]
    # the only global parity is a combination of the local ones
    weight = [draw.randrange(1, _PRIME) for _ in range(2)]
    last = [sum(w * row[j] for w, row in zip(weight, local, strict=True)) % _PRIME for j in range(4)]
    generator = [*data, last, *local]
    shares = decodable_shares(code.n, code.k, code.checks)
    for lost in range(4):
        sets = list(itertools.combinations(range(7), lost))
        decodable = sum(_rank([generator[i] for i in range(7) if i not in some]) == 4 for some in sets)
        assert shares[lost] == pytest.approx(decodable / len(sets), abs=1e-12), lost


@pytest.mark.parametrize(
    ("checks", "follow"),
    [
        (((0, 1, 2, 3),), False),  # data that keep a check are fewer than four chunks
        (((0, 1, 2, 3, 4),), True),
        (((0, 1, 4), (2, 3, 4)), False),  # their difference holds data only
        (((0, 1, 4), (2, 3, 5)), True),
        (((4, 5), (0, 1, 4)), True),
    ],
)
def test_parity_follows_from_data(checks, follow):
    assert follows_from_data(6, 4, checks) == follow


def test_facebooks_code_survives_four_losses_and_reads_five_chunks():
    """Sathiamoorthy et al., XORing Elephants (2013): (10, 6, 5), distance 5."""
    code = code_of("xorbas(10,6,5)")
    assert (code.n, code.repair_chunks, code.degraded_chunks) == (16, 5, 5)
    assert always_survived(code) == 4
    shares = decodable_shares(code.n, code.k, code.checks)
    # five data chunks of a group have one check of theirs and the three that hold all; no other set of five fails
    assert shares[5] == pytest.approx(1 - 2 / math.comb(16, 5), rel=1e-12)


def test_clay_reads_parts_of_its_helpers():
    code = code_of("clay(8,4,11)")
    assert (code.k, code.n, code.repair_chunks, code.degraded_chunks) == (8, 12, 2.75, 8)
    assert always_survived(code) == 4
    assert code_of("clay(8,4,12)") is None and code_of("clay(8,4,8)") is None


@pytest.mark.parametrize("name", ["8-3", "lrc(12,5,2)", "clay(8,4,8)", "", "+", "xorbas(10,4,5)"])
def test_misspelt_codes_are_no_names_of_tables(name):
    assert code_of(name) is None and other_name(name) is None
