"""From tables to arrays: service laws as polynomials, chunk sizes, placement rows, mistakes of both tables."""

import numpy as np
import pandas as pd
import problems
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.planning import prepare
from ecjax.problem.arrays import check_together, code_k, column, files_arrays, nodes_arrays, placement_rows

SIZES = [1e3, 7e5, 1e6, 3e7]


@pytest.mark.parametrize(
    "nodes, scaling",
    [
        (problems.moment_nodes(1), "proportional"),
        (problems.moment_nodes(1), "none"),
        (problems.affine_nodes(1), "proportional"),
        (problems.affine_nodes(1), "none"),  # the affine law gives every size its own, whatever is asked
    ],
)
def test_moments_at_every_size_are_those_of_the_law(nodes, scaling):
    files = pd.DataFrame({"bytes": SIZES, "k": 1})
    expected = problems.service(problems.Case(nodes, files, scaling))
    arrays = nodes_arrays(pa.Table.from_pandas(nodes), scaling)
    polynomial = np.asarray(arrays.service)  # (3, 4, m)
    for row, size in enumerate(SIZES):
        found = np.einsum("npm,p->nm", polynomial, size ** np.arange(4.0))
        np.testing.assert_allclose(found, [moment[row] for moment in expected], rtol=1e-12)
    assert arrays.count == len(nodes)


def test_affine_law_has_the_moments_of_a_shifted_exponential():
    """Against the moments of Delta + Exp(Psi) by integration."""
    nodes = pd.DataFrame(
        {"delta_s": [0.3], "delta_s_per_byte": [2e-7], "psi_s": [0.1], "psi_s_per_byte": [4e-7]}
    )
    polynomial = np.asarray(nodes_arrays(pa.Table.from_pandas(nodes)).service)[:, :, 0]
    fixed, mean = 0.3 + 2e-7 * 1e6, 0.1 + 4e-7 * 1e6
    x = np.linspace(0, 60 * mean, 2_000_001)
    density = np.exp(-x / mean) / mean
    for n in (1, 2, 3):
        expected = np.trapezoid((fixed + x) ** n * density, x)
        assert polynomial[n - 1] @ 1e6 ** np.arange(4.0) == pytest.approx(expected, rel=1e-8)


def test_absent_columns_are_zero_and_present_ones_are_taken():
    nodes = problems.moment_nodes(2).assign(background_load=0.1, background_second=0.2, background_third=0.3)
    arrays = nodes_arrays(
        pa.Table.from_pandas(nodes.drop(columns=["cost_per_chunk_dollars", "connect_var_s2"]))
    )
    assert not np.any(arrays.cost_per_chunk) and not np.any(arrays.connect_variance)
    np.testing.assert_array_equal(arrays.cost_per_byte, nodes["cost_per_byte_dollars"])
    np.testing.assert_array_equal(arrays.connect_mean, nodes["connect_mean_s"])
    np.testing.assert_array_equal(arrays.background, np.repeat([[0.1], [0.2], [0.3]], len(nodes), axis=1))


def test_empty_cells_take_the_default():
    table = pa.table({"x": pa.chunked_array([[1, None], [3]])})
    np.testing.assert_array_equal(column(table, "x", 7.0), [1, 7, 3])
    np.testing.assert_array_equal(column(table, "y", 7.0), [7, 7, 7])


def test_files_are_cut_into_k_chunks_and_paid_for_by_stored_bytes():
    table = pa.table({"file_id": [1, 2], "bytes": [6e6, 8e6], "k": [3, 4], "rate_per_s": [0.5, 0.0]})
    files = files_arrays(table)
    np.testing.assert_array_equal(files.chunk_bytes, [2e6, 2e6])
    np.testing.assert_array_equal(files.stored_chunk_bytes, [2e6, 2e6])
    np.testing.assert_array_equal(files.write_rate, [0, 0])
    more = table.append_column("stored_bytes", pa.array([9e6, 4e6]))
    more = more.append_column("min_extra_chunks", pa.array([2, 0]))
    more = more.append_column("write_rate_per_s", pa.array([0.1, 0.2]))
    files = files_arrays(more)
    np.testing.assert_array_equal(files.chunk_bytes, [2e6, 2e6])
    np.testing.assert_array_equal(files.stored_chunk_bytes, [3e6, 1e6])
    np.testing.assert_array_equal(files.min_extra_chunks, [2, 0])
    np.testing.assert_array_equal(files.write_rate, [0.1, 0.2])
    assert files.count == 2


def test_reads_of_more_chunks_than_rebuild_a_file():
    """d chunks of bytes / d; storage keeps chunks of stored_bytes / k, max(d, k + min_extra_chunks) of them."""
    files = pa.table(
        {
            "file_id": [1, 2, 3],
            "bytes": [6e6, 8e6, 9e6],
            "k": [3, 4, 3],
            "rate_per_s": [0.5, 0.1, 0.1],
            "d": pa.array([6, None, 4]),
            "min_extra_chunks": [1, 2, 3],
            "stored_bytes": [9e6, 8e6, 9e6],
        }
    )
    arrays = files_arrays(files)
    np.testing.assert_array_equal(arrays.chunk_bytes, [1e6, 2e6, 9e6 / 4])
    np.testing.assert_array_equal(arrays.stored_chunk_bytes, [3e6, 2e6, 3e6])
    np.testing.assert_array_equal(arrays.k, [6, 4, 4])
    np.testing.assert_array_equal(code_k(files), [3, 4, 3])
    nodes = problems.moment_nodes()
    floor = prepare(nodes_arrays(pa.Table.from_pandas(nodes)), arrays).floor
    np.testing.assert_array_equal(floor, [6, 6, 6])


@pytest.mark.parametrize("names", [["b", "a", None, "b", None, "a"], [7, 3, None, 7, None, 3]])
def test_rows_are_groups_in_order_of_appearance_then_single_files(names):
    table = pa.table({"file_id": [10, 11, 12, 13, 14, 15], "group": pa.chunked_array([names[:3], names[3:]])})
    rows = placement_rows(table)
    assert rows.count == 4
    np.testing.assert_array_equal(rows.of_file, [0, 1, 2, 0, 3, 1])
    assert rows.group.to_pylist() == [names[0], names[1], None, None]
    assert rows.file.to_pylist() == [None, None, 12, 14]


def test_all_files_in_groups():
    rows = placement_rows(pa.table({"file_id": ["x", "y"], "group": [1, 1]}))
    assert rows.count == 1 and rows.group.to_pylist() == [1] and rows.file.to_pylist() == [None]
    np.testing.assert_array_equal(rows.of_file, [0, 0])


@pytest.mark.parametrize("extra", [{}, {"group": pa.nulls(2, pa.string())}])
def test_without_groups_every_file_is_a_row(extra):
    rows = placement_rows(pa.table({"file_id": ["x", "y"], **extra}))
    assert rows.of_file is None and rows.group is None and rows.count == 2
    assert rows.file.to_pylist() == ["x", "y"]


def test_code_that_does_not_fit_on_the_nodes_names_the_file():
    nodes = pa.table({"node_id": ["a", "b", "c"]})
    files = pa.table({"file_id": ["x", "y"], "k": [2, 2], "min_extra_chunks": [1, 2]})
    with pytest.raises(UserError) as error:
        check_together(nodes, files)
    assert str(error.value) == (
        "files: row 1 (file_id=y): k=2 + min_extra_chunks=2 needs 4 nodes; nodes has 3"
    )
    with pytest.raises(UserError, match=r"row 0 \(file_id=x\): k=5 needs 5 nodes; nodes has 3"):
        check_together(nodes, pa.table({"file_id": ["x"], "k": [5]}))
    check_together(nodes, files.slice(0, 1))
    wide = files.slice(0, 1).append_column("d", pa.array([4]))
    with pytest.raises(UserError, match=r"row 0 \(file_id=x\): d=4 needs 4 nodes; nodes has 3"):
        check_together(nodes, wide)


def test_node_that_other_work_overloads_is_named():
    nodes = pa.table({"node_id": [5, 6], "background_load": [0.5, 1.0]})
    with pytest.raises(
        UserError, match=r"column background_load, row 1 \(node_id=6\): found 1; allowed: below 1"
    ):
        check_together(nodes, pa.table({"file_id": ["x"], "k": [1]}))
