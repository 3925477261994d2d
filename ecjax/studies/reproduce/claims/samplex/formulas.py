"""Partitions of the SampleX paper, and the times of its machine, which need no study."""

import math

import numpy as np

from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import judge, refuted
from ecjax.studies.reproduce.evidence import Evidence

TABLE_2 = {(40, 6): 3692, (60, 6): 19858, (80, 6): 69624, (100, 6): 189509, (120, 6): 436140} | {
    (100, 2): 51,
    (100, 4): 8037,
    (100, 8): 1527675,
    (100, 10): 6292069,
}
TABLE_4 = {2: 2, 4: 9, 6: 37, 8: 127, 10: 378, 15: 3920, 18: 13284}
_MACHINE = "milliseconds of a Python program on the authors' laptop"


def _count(capacity: int, k: int, items: int | None = None) -> int:
    from ecjax.caching.partitions import Partitions

    return Partitions(capacity, k, items).count


def _table_2(evidence: Evidence) -> Finding:
    wrong = [at for at, count in TABLE_2.items() if _count(*at) != count]
    return judge(
        not wrong, float(_count(100, 6)), f"{len(TABLE_2) - len(wrong)} of {len(TABLE_2)} counts are equal"
    )


def _table_4(evidence: Evidence) -> Finding:
    wrong = [k for k, count in TABLE_4.items() if _count(2 * k - 1, k, k + 1) != count]
    return judge(
        not wrong, float(_count(35, 18, 19)), f"{len(TABLE_4) - len(wrong)} of {len(TABLE_4)} are equal"
    )


def _factorial(evidence: Evidence) -> Finding:
    over = [k for k, count in TABLE_4.items() if count >= math.factorial(k)]
    return refuted(
        bool(over), 2.0, f"not below K! at K = {over}: 2 = 2!; below it for all larger K of Table IV"
    )


def _sequence(evidence: Evidence) -> Finding:
    from ecjax.caching.partitions import Partitions

    printed = [[4, 0, 0], [2, 1, 0], [0, 2, 0], [1, 0, 1]]
    chi = Partitions(4, 3)
    same = np.array_equal(list(chi), printed) and np.array_equal([chi.unrank(i) for i in range(4)], printed)
    fewer = np.array_equal(list(Partitions(4, 3, 3)), printed[1:])
    return judge(same and fewer, float(chi.count), "listed, and found by rank; 3 items leave out the first")


def _last(evidence: Evidence) -> Finding:
    from ecjax.caching.partitions import Partitions

    checked, good = 0, True
    for k in range(1, 9):
        for capacity in range(1, 61):
            chi = Partitions(capacity, k)
            whole = np.zeros(k, int)
            whole[-1] = capacity // k
            if capacity % k:
                whole[capacity % k - 1] += 1
            good &= bool(np.array_equal(chi.unrank(chi.count - 1), whole))
            checked += 1
    return judge(good, float(checked), "capacities up to 60 with K up to 8, found by rank")


def _bound(evidence: Evidence) -> Finding:
    ratio = {
        (c, k): _count(c, k) / math.prod(c // part + 1 for part in range(2, k + 1))
        for k in range(2, 11)
        for c in range(1, 121)
    }
    equal = {k for (_, k), value in ratio.items() if value == 1}
    return refuted(
        max(ratio.values()) >= 1,
        max(ratio.values()),
        f"count over the product, C up to 120, K up to 10: never above 1, but equal for some C at K = {sorted(equal)} "
        "(51 at C = 100, K = 2, as in the paper's own Table II)",
    )


FORMULAS = (
    Claim(
        "samplex-eq4-sequence",
        "eq. 4, Sec. III-C",
        "Partitions of C = 4, K = 3 are {4,0,0}, {2,1,0}, {0,2,0}, {1,0,1}, in this order.",
        _sequence,
        paper_value="4",
        quantity="partitions",
    ),
    Claim(
        "samplex-chi-bound",
        "Sec. III-C",
        "There are fewer partitions than the product of floor(C/k) + 1 over k = 2 to K.",
        _bound,
        quantity="largest count over the product",
    ),
    Claim(
        "samplex-tab2-counts",
        "Table II",
        "Numbers of partitions for K = 6, C = 40 to 120, and for C = 100, K = 2 to 10.",
        _table_2,
        paper_value="189509 at C = 100, K = 6",
        quantity="partitions at C = 100, K = 6",
    ),
    Claim(
        "samplex-eq7-last",
        "eq. 7",
        "The last partition has whole items and at most one other.",
        _last,
        quantity="capacities and K that were looked at",
    ),
    Claim(
        "samplex-tab4-counts",
        "Table IV",
        "Largest numbers of partitions per request for K = 2 to 18.",
        _table_4,
        paper_value="13284 at K = 18",
        quantity="partitions at K = 18",
    ),
    Claim(
        "samplex-tab4-factorial",
        "Sec. IV-D",
        "There are fewer partitions per request than K factorial.",
        _factorial,
        quantity="count at K = 2",
    ),
)
