"""Small reads of a files table: what is allowed, and where a placement has their chunks."""

import numpy as np
import pyarrow as pa
import pytest
from planning.read_kinds.kind_models import nodes_of

from ecjax.errors import UserError
from ecjax.planning import prepare
from ecjax.planning.read_kinds.node_lists import decoding_nodes
from ecjax.problem.arrays import files_arrays, placement_rows
from ecjax.problem.small_reads import (
    check_listed_orders,
    chunk_reads,
    counted_as_full,
    data_chunks,
    small_traffic,
    with_listed_nodes,
)
from ecjax.tables.checks import check


def files(**columns) -> pa.Table:
    """Three files of k = 2."""
    table = {"file_id": [1, 2, 3], "bytes": [8.0, 8.0, 8.0], "k": [2, 2, 2], "rate_per_s": [1.0, 1.0, 1.0]}
    return check(pa.table(table | columns), "files")


def test_files_without_small_reads_have_none():
    assert small_traffic(files()) is None
    assert small_traffic(files(small_rate_per_s=[0.0, None, 0.0], small_bytes=[1.0, None, 1.0])) is None


def test_only_small_reads_are_reads_too():
    table = files(rate_per_s=[0.0] * 3, small_rate_per_s=[1.0, None, 0.0], small_bytes=[1.0, None, None])
    traffic = small_traffic(table)
    assert traffic.rate.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"small_rate_per_s": [1.0, 0.0, 0.0]}, "missing columns: small_bytes"),
        ({"small_rate_per_s": [1.0, 1.0, 0.0], "small_bytes": [1.0, None, 1.0]}, "small_bytes, row 1"),
        (
            {"small_rate_per_s": [1.0] * 3, "small_bytes": [1.0] * 3, "small_chunk": [0, 1, 2]},
            "small_chunk, row 2.*found 2; allowed: below k = 2",
        ),
        ({"small_rate_per_s": [-1.0] * 3, "small_bytes": [1.0] * 3}, "small_rate_per_s"),
        ({"rate_per_s": [0.0] * 3}, "rates that sum to 0"),
    ],
)
def test_what_is_wrong_is_said(columns, words):
    with pytest.raises(UserError, match=words):
        files(**columns)


@pytest.mark.parametrize(
    ("small_bytes", "stripe_unit", "width", "size"),
    [
        (5.0, None, 1, 5.0),
        (5.0, 5.0, 1, 5.0),
        (5.0, 4.0, 2, 4.0),
        (8.0, 4.0, 2, 4.0),
        (8.1, 4.0, 3, 4.0),
        # as many chunks as there are: five units, of which one chunk has two and three one
        (16.1, 4.0, 4, 5.0),
        (33.0, 4.0, 4, 9.0),
        # without units, or with larger ones, chunks of 15 bytes
        (15.0, None, 1, 15.0),
        (16.0, None, 2, 15.0),
        (31.0, 1000.0, 3, 15.0),
        # no more than the file
        (1000.0, None, 4, 15.0),
        (1000.0, 4.0, 4, 15.0),
    ],
)
def test_reads_beyond_a_stripe_unit_are_of_whole_units_of_several_chunks(
    small_bytes, stripe_unit, width, size
):
    table = files(k=[4] * 3, bytes=[60.0] * 3, small_rate_per_s=[1.0] * 3, small_bytes=[small_bytes] * 3)
    traffic = small_traffic(table, stripe_unit)
    assert traffic.width.tolist() == [width] * 3
    assert traffic.size.tolist() == [size] * 3
    twice = traffic.scaled(1.0, 2.0)
    assert twice.width.tolist() == [width] * 3
    assert twice.size.tolist() == [2 * size] * 3


def test_reads_of_several_chunks_begin_anywhere_and_go_around():
    table = files(
        k=[3, 3, 2],
        small_rate_per_s=[6.0, 4.0, 5.0],
        small_bytes=[2.0, 2.0, 2.0],
        small_chunk=pa.array([None, 2, None], pa.int64()),
    )
    stored = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1]], bool)
    data = np.array([[3, 0, 1], [0, 1, 3], [2, 0, -1]])
    reads = chunk_reads(small_traffic(table, 1.0), placement_rows(table), data, stored).reads
    assert reads.row.tolist() == [0, 0, 0, 1, 2]
    assert reads.chunk.tolist() == [0, 1, 2, 2, 0]
    assert reads.nodes.tolist() == [[3, 0], [0, 1], [1, 3], [3, 0], [2, 0]]
    assert reads.others.tolist() == [[0, 1, 2, 3]] * 3 + [[0, 1, 3, -1], [0, 2, 3, -1]]
    assert reads.rate.tolist() == [2.0, 2.0, 2.0, 4.0, 5.0]
    assert reads.width.tolist() == [2] * 5
    assert reads.size.tolist() == [1.0] * 5


def test_reads_are_spread_over_data_chunks_or_lie_in_one():
    table = files(
        small_rate_per_s=[6.0, 4.0, 0.0],
        small_bytes=[1.0, 2.0, 1.0],
        small_chunk=pa.array([None, 1, None], pa.int64()),
    )
    stored = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]], bool)
    probabilities = np.array([[0.2, 1.0, 0, 0.8], [0.5, 0, 1.0, 0.5], [0, 1, 1, 0]])
    rows = placement_rows(table)
    data = data_chunks(stored, probabilities, rows, table)
    assert data.tolist() == [[1, 3], [0, 2], [1, 2]]
    reads = chunk_reads(small_traffic(table), rows, data, stored)
    assert reads.reads.row.tolist() == [0, 0, 1]
    assert reads.reads.chunk.tolist() == [0, 1, 1]
    assert reads.reads.node.tolist() == [1, 3, 2]
    assert reads.reads.others.tolist() == [[0, 3], [0, 1], [0, 3]]
    assert reads.reads.rate.tolist() == [3.0, 3.0, 4.0]
    assert reads.file.tolist() == [0, 0, 1]


def test_files_of_a_group_that_read_alike_are_one():
    table = files(small_rate_per_s=[6.0, 4.0, 2.0], small_bytes=[1.0, 1.0, 2.0], group=["a", "a", "a"])
    rows = placement_rows(table)
    reads = chunk_reads(small_traffic(table), rows, np.array([[2, 0]]), np.array([[1, 0, 1, 1]], bool))
    assert reads.reads.rate.tolist() == [5.0, 1.0, 5.0, 1.0]
    assert reads.reads.size.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert np.bincount(reads.of, reads.rate).tolist() == [5.0, 1.0, 5.0, 1.0]


def test_listed_nodes_say_which_chunks_hold_data():
    table = files(nodes=[["d", "b", "a"], None, None])
    data, listed = with_listed_nodes(
        np.array([[0, 1], [0, 1], [2, 3]]), placement_rows(table), table, pa.array(list("abcd"))
    )
    assert data.tolist() == [[3, 1], [0, 1], [2, 3]]
    assert listed.tolist() == [True, False, False]


def test_nodes_to_decode_from_leave_out_the_one_whose_chunk_is_read():
    stored = np.array([[1, 1, 1, 0], [1, 0, 0, 1]], bool)
    one = decoding_nodes(stored, np.array([0, 0, 1]), np.array([[0], [1], [3]]))
    assert one.tolist() == [[1, 2], [0, 2], [0, -1]]
    mixed = decoding_nodes(stored, np.array([0, 0, 1]), np.array([[0, -1], [0, 1], [3, 0]]))
    assert mixed.tolist() == [[1, 2, -1], [0, 1, 2], [0, 3, -1]]


def test_lists_of_a_group_with_small_reads_have_one_order():
    """The last of three files of k = 2 is alone; what comes after two nodes is no data."""
    small = {"small_bytes": [1.0] * 3, "group": ["g", "g", None], "small_rate_per_s": [0.0, 1.0, 1.0]}

    def orders(second: list[str], **columns) -> None:
        lists = [["a", "b", "c", "d"], second, ["d", "c", "b", "a"]]
        table = files(nodes=lists, **(small | columns))
        check_listed_orders(table, placement_rows(table), small_traffic(table))

    orders(["a", "b", "d", "c"])
    orders(None)
    with pytest.raises(UserError, match=r"row 1 \(file_id=2\): found b, a first; allowed: a, b as in row 0"):
        orders(["b", "a", "c", "d"])
    # no small reads, no data chunks that matter
    orders(["b", "a", "c", "d"], small_rate_per_s=[0.0, 0.0, 1.0])
    orders(["b", "a", "c", "d"], group=[None] * 3)


@pytest.mark.parametrize("size", [1.0, 10.0])
def test_counted_reads_bring_the_same_work(size):
    """At every scaling of the sizes: 10 and 30 ms of the services at the two nodes do not go with them."""
    table = files(small_rate_per_s=[6.0, 0.0, 0.0], small_bytes=[1.0, 1.0, 1.0])
    problem = prepare(nodes_of([0.01, 0.02], [0.0, 0.01], 1e-3), files_arrays(table))

    def more(traffic) -> np.ndarray:
        return np.asarray(counted_as_full(problem, traffic, size).files.rate) - np.asarray(problem.files.rate)

    mean = [np.mean([0.01, 0.03]) + 1e-3 * size * each for each in (1.0, 4.0, 0.5)]
    assert more(small_traffic(table)) * 2 * mean[1] == pytest.approx([6.0 * mean[0], 0, 0])
    # of two chunks, half a byte of each
    assert more(small_traffic(table, 0.5)) * 2 * mean[1] == pytest.approx([6.0 * 2 * mean[2], 0, 0])
