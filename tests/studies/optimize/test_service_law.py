"""``service=LAW``: bounds and estimates are of that law, not of the moments of the nodes table."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import ecjax
from ecjax.errors import UserError
from ecjax.problem.arrays import files_arrays
from ecjax.problem.service_laws import mean_chunk_bytes, served_nodes
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)


def one_node(mean, deviation=0.2):
    """A node by its moments, of a deviation that is a part of the mean, and a file on it."""
    nodes = pa.table(
        {
            "node_id": ["a"],
            "service_mean_s": [mean],
            "service_second_s2": [mean**2 * (1 + deviation**2)],
            "service_third_s3": [mean**3 * (1 + 3 * deviation**2)],
            "reference_bytes": [10.0],
        }
    )
    return nodes, pa.table({"file_id": ["f"], "bytes": [10.0], "k": [1], "rate_per_s": [50.0]})


def written(folder, nodes, files) -> dict[str, str]:
    """Both tables as files, by option."""
    for name, table in (("nodes", nodes), ("files", files)):
        pq.write_table(table, folder / f"{name}.parquet")
    return {name: str(folder / f"{name}.parquet") for name in ("nodes", "files")}


@pytest.mark.parametrize(("law", "second"), [("exponential", 2.0), ("deterministic", 1.0), ("auto", 1.04)])
def test_the_bound_of_one_chunk_is_the_mean_of_that_law(law, second, tmp_path):
    """M/G/1 at a load of 0.5; the estimate, on lattices, is no larger."""
    options = OptimizeOptions(
        **written(tmp_path, *one_node(0.01)), theta=[1.0], service=law, out=str(tmp_path / "out"), figures=[]
    )
    assert optimize_study(options, QUIET) == 0
    [run] = read_results(options.out, "runs").to_dict("records")
    exact = 0.01 + 50 * second * 0.01**2 / (2 * 0.5)
    assert run["latency_s"] == pytest.approx(exact, rel=1e-6)
    assert run["estimated_mean_s"] == pytest.approx(exact, rel=2e-3)
    assert run["estimated_mean_s"] <= run["latency_s"]


def test_stalls_are_waited_for_in_bounds_estimates_and_replays(tmp_path):
    """M/G/1 again: 2 ms, an exponential of 2 ms, and 1 % of 100 ms."""
    columns = {"node_id": ["a"], "delta_s": [0.002], "delta_s_per_byte": [0.0], "psi_s": [0.002]}
    stalls = {"psi_s_per_byte": [0.0], "stall_probability": [0.01], "stall_s": [0.1]}
    _, files = one_node(0.01)
    tables = written(tmp_path, pa.table(columns | stalls), files)
    options = OptimizeOptions(**tables, theta=[1.0], out=str(tmp_path / "out"), figures=[])
    assert optimize_study(options, QUIET) == 0
    [run] = read_results(options.out, "runs").to_dict("records")
    mean, second = 0.004 + 0.001, 0.004**2 + 0.002**2 + 2 * 0.004 * 0.001 + 0.01 * 0.1**2
    exact = mean + 50 * second / (2 * (1 - 50 * mean))
    assert run["latency_s"] == pytest.approx(exact, rel=1e-6)
    assert run["estimated_mean_s"] == pytest.approx(exact, rel=2e-3)
    with ecjax.replay(plan=options.out, requests=400_000, estimate=False) as replayed:
        [row] = replayed.runs.to_dict("records")
    assert row["service"] == "shifted exponential with stalls"
    assert row["mean_s"] == pytest.approx(exact, abs=3 * row["ci_s"])
    assert run["estimated_p99_s"] == pytest.approx(row["p99_s"], rel=0.03)
    # the gamma law of the same mean and variance
    options = OptimizeOptions(
        **tables, theta=[1.0], service="gamma", out=str(tmp_path / "gamma"), figures=[], estimate=False
    )
    assert optimize_study(options, QUIET) == 0
    assert read_results(options.out, "runs")["latency_s"].iloc[0] == pytest.approx(exact, rel=1e-6)


def test_affine_laws_are_replaced_at_the_mean_chunk_size(tmp_path):
    """Gamma keeps mean and variance there, and grows with the mean elsewhere: second moments with its square."""
    nodes = pa.table({"node_id": ["a"], "delta_s": [0.002], "delta_s_per_byte": [1e-4]})
    nodes = nodes.append_column("psi_s", pa.array([0.001])).append_column("psi_s_per_byte", pa.array([0.0]))
    nodes = read_input(nodes, "nodes")
    size = 40.0
    mean, spread = 0.002 + 1e-4 * size + 0.001, 0.001
    served = np.asarray(served_nodes(nodes, size, "gamma").service)[:, :, 0]
    for factor in (1.0, 2.0):
        powers = (factor * size) ** np.arange(4)
        first = 0.003 + 1e-4 * factor * size
        assert served[0] @ powers == pytest.approx(first)
        assert served[1] @ powers == pytest.approx(first**2 * (1 + (spread / mean) ** 2))
    plain = np.asarray(served_nodes(nodes, size).service)[:, :, 0]
    assert plain[1] @ (2 * size) ** np.arange(4) == pytest.approx((0.003 + 2e-4 * size) ** 2 + spread**2)


def test_laws_of_one_size_do_not_go_with_several(tmp_path):
    nodes = pa.table({"node_id": ["a"], "delta_s": [0.002], "delta_s_per_byte": [1e-4]})
    nodes = nodes.append_column("psi_s", pa.array([0.001])).append_column("psi_s_per_byte", pa.array([0.0]))
    _, files = one_node(0.01)
    options = OptimizeOptions(
        **written(tmp_path, nodes, files),
        theta=[1.0],
        service="gamma",
        size_scale=[1.0, 2.0],
        out=str(tmp_path / "out"),
    )
    with pytest.raises(UserError, match="size_scale: found 2 values with service=gamma.*allowed: one value"):
        optimize_study(options, QUIET)


def test_mean_chunk_size_is_of_the_chunks_that_are_read():
    two = pa.table({"file_id": ["a", "b"], "bytes": [10.0, 40.0], "k": [1, 2], "rate_per_s": [3.0, 1.0]})
    assert mean_chunk_bytes(files_arrays(read_input(two, "files"))) == pytest.approx((3 * 10 + 2 * 20) / 5)


def test_files_with_small_reads_alone_have_laws_of_their_data_chunks():
    """Not of a byte, where what a chunk takes beside its bytes would be all of it."""
    two = pa.table({"file_id": ["a", "b"], "bytes": [10.0, 40.0], "k": [1, 2], "rate_per_s": [0.0, 0.0]})
    two = two.append_column("small_rate_per_s", pa.array([1.0, 1.0])).append_column(
        "small_bytes", pa.array([4.0, 4.0])
    )
    assert mean_chunk_bytes(files_arrays(read_input(two, "files"))) == pytest.approx((10 + 2 * 20) / 3)
