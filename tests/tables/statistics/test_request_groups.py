from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecjax.tables.statistics.requests import RequestGrouper


def run(keys, splits, files=None, writes=None):
    rows = len(keys)
    keys = np.array(keys, np.int64)
    files = np.zeros(rows, np.int64) if files is None else np.array(files)
    writes = np.zeros(rows, bool) if writes is None else np.array(writes)
    arrivals, sizes = np.arange(rows, dtype=float), np.arange(1, rows + 1, dtype=float)
    grouper, parts, begins, mixed = RequestGrouper(), [], [], []
    for part in np.split(np.arange(rows), sorted(splits)):
        requests, starts, row = grouper.add(
            keys[part], files[part], arrivals[part], writes[part], sizes[part]
        )
        parts.append(requests)
        begins.extend(starts)
        mixed.append(None if row is None else int(part[row]))
    parts.append(grouper.finish())
    return [np.concatenate(field) for field in zip(*parts, strict=True)], begins, mixed, grouper


@given(st.data())
def test_consecutive_rows_of_one_id_are_one_request_in_any_batches(data):
    keys = data.draw(st.lists(st.integers(-2, 3), min_size=1, max_size=40))
    splits = data.draw(st.lists(st.integers(0, len(keys)), max_size=4))
    (_, arrival, _, size, rows), begins, _, _ = run(keys, splits)
    expected = [list(group) for _, group in groupby(range(len(keys)), key=lambda row: keys[row])]
    assert rows.tolist() == [len(group) for group in expected]
    assert arrival.tolist() == [group[0] for group in expected]
    assert size.tolist() == [sum(row + 1 for row in group) for group in expected]
    assert np.flatnonzero(begins).tolist() == [group[0] for group in expected]


def test_ids_that_come_back_are_counted():
    *_, grouper = run([5, 5, 6, 5, 7, 6], [2, 4])
    assert grouper.returned == 2


def test_a_request_of_two_files_or_operations_is_found():
    *_, mixed, _ = run([1, 1, 2, 2], [3], files=[0, 0, 1, 2])
    assert mixed == [None, 3]
    *_, mixed, _ = run([1, 1, 2, 2], [2], writes=[False, True, True, True])
    assert mixed == [1, None]


def test_file_and_operation_come_from_the_rows():
    (file, _, write, _, _), *_ = run([1, 1, 2, 3], [1], files=[4, 4, 2, 4], writes=[True, True, False, True])
    assert file.tolist() == [4, 2, 4] and write.tolist() == [True, False, True]
