"""Data chunks move to where small reads wait little, in turn with the spread of reads; several sizes have bounds."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.studies.optimize import kinds_spread
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, str]:
    """Twelve files of 2 + 2 on six nodes that differ, with full reads and small reads of two sizes."""
    folder, random = tmp_path_factory.mktemp("kinds"), np.random.default_rng(3)
    mean = random.uniform(0.003, 0.012, 6)
    nodes = {"node_id": [f"n{j}" for j in range(6)], "delta_s": mean / 2, "psi_s": mean / 2}
    nodes |= {"delta_s_per_byte": [1e-9] * 6, "psi_s_per_byte": [0.0] * 6}
    files = {"file_id": list(range(12)), "bytes": [2e6] * 12, "k": [2] * 12, "min_extra_chunks": [2] * 12}
    files |= {"rate_per_s": random.uniform(2, 6, 12), "small_rate_per_s": random.uniform(5, 25, 12)}
    files |= {"small_bytes": [4e3, 64e3] * 6}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    pq.write_table(pa.table(files), folder / "files.parquet")
    return {"nodes": str(folder / "nodes.parquet"), "files": str(folder / "files.parquet")}


def planned(tables, out) -> dict:
    options = OptimizeOptions(**tables, out=str(out), theta=[0.0], gap=0.2, estimate=False, figures=[])
    assert optimize_study(options, QUIET) == 0
    [run] = read_results(str(out), "runs").to_dict("records")
    return run


def test_moved_data_chunks_have_less_latency_and_stay_on_the_placement(tables, tmp_path, monkeypatch):
    run = planned(tables, tmp_path / "turns")
    monkeypatch.setattr(kinds_spread, "_MOST_TURNS", 0)
    once = planned(tables, tmp_path / "once")
    assert run["latency_s"] <= 0.98 * once["latency_s"]
    # small reads of two sizes
    assert 0 <= run["scheduling_gap"] <= 0.25
    placed = read_results(str(tmp_path / "turns"), "placements")
    nodes = placed.groupby("file_id")["node_id"].agg(set)
    kinds = read_results(str(tmp_path / "turns"), "read_kinds")
    direct = kinds[kinds["kind"] == "direct"]
    for file, chunks in direct.groupby("file_id"):
        assert chunks["node_id"].nunique() == chunks["data_chunk"].nunique() == 2
        assert set(chunks["node_id"]) <= nodes[file]
