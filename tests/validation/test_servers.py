import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ecjax.tables.requests import Accesses
from ecjax.validation.servers import fcfs_finishes, overlaps

_times = st.integers(0, 12).map(lambda v: v / 4)


@given(st.lists(st.tuples(st.integers(0, 2), _times, st.one_of(st.none(), _times)), min_size=1, max_size=12))
def test_overlaps_as_counted_pair_by_pair(rows):
    node = np.array([row[0] for row in rows])
    start = np.array([row[1] for row in rows], float)
    length = np.array([np.nan if row[2] is None else row[2] for row in rows], float)
    begin = np.arange(len(rows) + 1)
    accesses = Accesses(begin, start, node, start, start, start + length, pa.array(["a", "b", "c"]))
    found = overlaps(accesses, 0.0)
    for name in range(3):
        own = [(s, s + w) for n, s, w in zip(node, start, length, strict=True) if n == name and w == w]
        own.sort(key=lambda pair: pair[0])
        within = sum(any(e > own[i][0] for _, e in own[:i]) for i in range(len(own)))
        assert found.share[name] == (within / len(own) if own else 0)
        at_once = max((sum(s <= t < e for s, e in own) for t, _ in own), default=0)
        assert found.most[name] == max(at_once, 1 if own else 0)


def test_fcfs_finishes_by_hand():
    accesses = Accesses(
        begin=np.arange(5),
        arrival=np.array([0.0, 0.0, 1.0, 1.5]),
        node=np.array([0, 1, 0, 0]),
        bytes=np.ones(4),
        start=np.array([0.0, 0.0, 5.0, np.nan]),
        finish=np.array([3.0, 1.0, 6.0, np.nan]),
        node_ids=pa.array(["a", "b"]),
    )
    np.testing.assert_array_equal(fcfs_finishes(accesses), [3.0, 1.0, 4.0, 4.0])


def test_accesses_with_a_finish_alone_are_served_behind_those_before_them():
    """Two nodes in order of arrival, by hand; the log lacks when some of their services began."""
    finish = np.array([1.0, 0.7, 2.0, 3.0, 5.0])
    accesses = Accesses(
        begin=np.arange(6),
        arrival=np.array([0.0, 0.0, 0.5, 1.0, 4.0]),
        node=np.array([0, 1, 0, 0, 1]),
        bytes=np.ones(5),
        start=np.array([0.0, np.nan, np.nan, 2.0, 4.0]),
        finish=finish,
        node_ids=pa.array(["a", "b", "none"]),
    )
    np.testing.assert_allclose(fcfs_finishes(accesses), finish)
