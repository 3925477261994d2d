"""``stream=true``: a files table that is read in pieces gives the plan that its masks say, judged by plain NumPy."""

import json
import re

import numpy as np
import pandas as pd
import problems
import pytest
from planning.certified.untuned import untuned

from ecjax.errors import UserError
from ecjax.studies.optimize import streamed, streamed_inputs
from ecjax.tables import formats
from ecjax.tables.results import read_results


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    monkeypatch.setattr(formats, "_BATCH_ROWS", 700)


def with_sites(case: problems.Case, sites: int) -> problems.Case:
    return problems.Case(case.nodes.assign(site=np.arange(len(case.nodes)) % sites), case.files)


def masks_of(column: pd.Series, nodes: int) -> np.ndarray:
    """As the documentation of the column says."""
    raw = np.frombuffer(b"".join(column), np.uint8).reshape(len(column), -1)
    return np.unpackbits(raw, axis=1, bitorder="little")[:, :nodes]


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    case = with_sites(untuned(11, 2_000, 0.6), 6)
    out = tmp_path_factory.mktemp("streamed") / "out"
    options = {"method": ["certified"], "theta": [0.1, 0.5], "rate_scale": [0.8], "max_chunks_per_site": 2}
    code, text = problems.study(out, case, stream=True, figures=["tradeoff", "convergence"], **options)
    assert code == 0
    return case, out, text


def test_masks_are_plans_worth_what_the_rows_say(planned):
    case, out, _ = planned
    case = case.scaled(rate=0.8)
    runs = read_results(out, "runs")
    assert len(runs) == 2 and (runs["status"] == "ok").all()
    placements = read_results(out, "placement_masks")
    loads = read_results(out, "node_loads").set_index("run_id")
    for run in runs.itertuples():
        of_run = placements[placements["run_id"] == run.run_id]
        np.testing.assert_array_equal(of_run["file_id"], case.files["file_id"])
        read, stored = (masks_of(of_run[name], 12) for name in ("read_nodes", "stored_nodes"))
        np.testing.assert_array_equal(read.sum(axis=1), case.k)
        np.testing.assert_array_equal(stored.sum(axis=1), case.k + case.file("min_extra_chunks"))
        np.testing.assert_array_equal(of_run["n"], stored.sum(axis=1))
        assert np.all(stored >= read)
        of_site = np.stack([stored[:, case.nodes["site"] == site].sum(axis=1) for site in range(6)])
        assert of_site.max() <= 2
        expected = problems.outcome(case, read.astype(float), stored.astype(float))
        assert run.objective == pytest.approx(expected.objective(run.theta), rel=1e-6)
        assert run.latency_shared_z_s == pytest.approx(expected.latency_shared_z_s, rel=1e-6)
        assert run.latency_s == pytest.approx(expected.latency_s, rel=1e-6)
        assert run.cost_dollars_per_period == pytest.approx(expected.cost, rel=1e-12)
        np.testing.assert_allclose(loads.loc[run.run_id, "load"], expected.load, rtol=1e-9)
        assert loads.loc[run.run_id, "chunks"].sum() == stored.sum()
        assert run.lower_bound <= run.objective <= run.lower_bound * 1.01
        assert run.mean_n == pytest.approx(stored.sum() / len(stored))
        by_k = {str(k): stored[case.k == k].sum(axis=1).mean() for k in np.unique(case.k).astype(int)}
        assert json.loads(run.mean_n_by_class) == pytest.approx(by_k)
        assert run.files_without_redundancy == (stored.sum(axis=1) == case.k).sum()


def test_the_bound_holds_for_plans_of_the_whole_table(planned, tmp_path):
    case, out, _ = planned
    case = case.scaled(rate=0.8)
    problems.study(tmp_path / "whole", case, method=["certified"], theta=[0.1, 0.5], max_chunks_per_site=2)
    whole, runs = read_results(tmp_path / "whole", "runs"), read_results(out, "runs")
    pairs = pd.merge(whole, runs, on="theta", suffixes=("", "_streamed"))
    assert np.all(pairs["lower_bound_streamed"] <= pairs["objective"] * (1 + 1e-9))
    np.testing.assert_allclose(pairs["lower_bound_streamed"], pairs["lower_bound"], rtol=1e-3)


def test_what_is_printed_names_the_masks_and_no_missing_dataset(planned):
    _, _, text = planned
    assert "placement_masks" in text and "was not written" not in text


def test_a_second_run_computes_nothing(planned):
    case, out, _ = planned
    before = read_results(out, "runs")
    options = {"method": ["certified"], "theta": [0.1, 0.5], "rate_scale": [0.8], "max_chunks_per_site": 2}
    assert problems.study(out, case, stream=True, **options)[0] == 0
    pd.testing.assert_frame_equal(before, read_results(out, "runs"))


def test_rows_of_other_types_and_overrides(tmp_path):
    case = untuned(12, 2_000, 0.4)
    files = case.files.assign(
        k=4.0, bytes=(4 * 10**6), rate_per_s=case.files["rate_per_s"].where(lambda s: s > 0.3, 0)
    )
    files.loc[:800, "rate_per_s"] = 0.0  # a piece that nobody reads
    case = problems.Case(case.nodes, files)
    code, _ = problems.study(
        tmp_path / "out", case, method=["certified"], stream=True, d=[4, 5], rate_scale=[0.3]
    )
    # chunks of 4 MB / 5 are all alike, too
    assert code == 0
    runs = read_results(tmp_path / "out", "runs")
    assert sorted(runs["d"]) == [4, 5]


@pytest.mark.parametrize("kind", ["category", "int16"])
def test_ids_come_in_other_pieces_than_numbers(tmp_path, kind):
    """A column of categories begins anew in every row group; ids are written as text or int64."""
    case = untuned(14, 2_000, 0.4)
    names = np.array([f"f{i:04d}" for i in range(2_000)]) if kind == "category" else np.arange(2_000)
    files = case.files.assign(file_id=pd.Series(names).astype(kind))
    (tmp_path / "in").mkdir()
    files.to_parquet(tmp_path / "in" / "files.parquet", index=False, row_group_size=1_100)
    options = {"method": ["certified"], "stream": True, "files": str(tmp_path / "in" / "files.parquet")}
    assert problems.study(tmp_path / "out", case, **options)[0] == 0
    masks = read_results(tmp_path / "out", "placement_masks")
    np.testing.assert_array_equal(masks["file_id"], names)
    stored = masks_of(masks["stored_nodes"], 12)
    np.testing.assert_array_equal(stored.sum(axis=1), case.k + case.file("min_extra_chunks"))


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"bytes": 3e6}, {}, "allowed: one chunk size"),
        ({"group": "a"}, {}, "has a column group"),
        ({"write_rate_per_s": 0.1}, {}, "has a column write_rate_per_s"),
        ({"small_rate_per_s": 0.1, "small_bytes": 1e4}, {}, "has a column small_rate_per_s"),
        ({"rate_per_s": 0.0}, {}, "no file is read"),
        ({"k": 20, "bytes": 20e6}, {}, "needs 20 nodes; nodes has 12"),
        ({"k": 3_000_000, "bytes": 3e12}, {}, "k=3000000 needs 3000000 nodes; nodes has 12"),
        ({"k": 0}, {}, "column k, row 0 (file_id 0): found 0; allowed: integers >= 1"),
        ({"write_rate_per": 0.1}, {}, "column write_rate_per: unknown, and almost write_rate_per_s"),
        (
            {"write_rate_per_s": "many"},
            {},
            "column write_rate_per_s, row 0 (file_id 0): found 'many'; allowed: finite",
        ),
        (
            {"small_rate_per_s": True},
            {},
            "column small_rate_per_s: found type bool; allowed: finite numbers >= 0",
        ),
        ({}, {"rate_scale": [50.0]}, "load rho"),
        ({}, {"method": ["published"]}, "found ['published'] with stream=true"),
        ({}, {"device": "jax"}, "device: found jax with stream=true; allowed with it: auto, host"),
        ({}, {"max_chunks_per_site": 1}, "has no column site"),
        ({"d": 1}, {}, "allowed: at least k"),
    ],
)
def test_mistakes_end_in_one_line(tmp_path, change, options, says):
    case = untuned(13, 900, 0.5)
    if "k" not in change:
        case.files["k"], case.files["bytes"] = 2, 2e6
    if "bytes" in change and "k" not in change:
        case.files.loc[800, "bytes"] = change["bytes"]
    else:
        for name, value in change.items():
            case.files[name] = value
    case.files["min_extra_chunks"] = 0
    with pytest.raises(UserError, match=re.escape(says)) as error:
        problems.study(tmp_path / "out", case, **({"method": ["certified"], "stream": True} | options))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out" / "runs").exists() or not list((tmp_path / "out" / "runs").iterdir())


def test_a_table_without_ids_is_said_before_its_files_are_counted(tmp_path, monkeypatch):
    case = untuned(13, 900, 0.5)
    monkeypatch.setattr(streamed_inputs, "_counted", None)
    without = problems.Case(case.nodes, case.files.drop(columns="file_id"))
    with pytest.raises(UserError, match=r"files table \(.*\): missing columns: file_id; found: bytes, k, "):
        problems.study(tmp_path / "out", without, method=["certified"], stream=True)


@pytest.mark.parametrize("kind", ["str", "category"])
def test_empty_ids_are_said_before_anything_is_planned(tmp_path, monkeypatch, kind):
    case = untuned(13, 900, 0.5)
    monkeypatch.setattr(streamed, "relaxed", None)
    ids = pd.Series([f"f{i}" if i != 800 else None for i in range(900)], dtype=kind)
    empty = problems.Case(case.nodes, case.files.assign(file_id=ids))
    with pytest.raises(
        UserError, match=r"column file_id, row 800: found an empty cell \(null\); allowed: a value"
    ):
        problems.study(tmp_path / "out", empty, method=["certified"], stream=True)


def test_without_prices_one_plan_is_made(tmp_path, caplog):
    case = untuned(15, 900, 0.5)
    free = problems.Case(case.nodes.drop(columns="cost_per_chunk_dollars"), case.files)
    with caplog.at_level("INFO", logger="ecjax"):
        code, _ = problems.study(tmp_path / "out", free, method=["certified"], stream=True, theta=[0.1, 0.5])
    assert code == 0
    assert len(read_results(tmp_path / "out", "runs")) == 1
    assert "theta has no effect: one plan is made" in caplog.text


@pytest.mark.parametrize(("k", "latency"), [(1, 2000.0), (2, 4000.0)])
def test_nodes_that_are_nearly_full_wait_as_long_as_they_do(tmp_path, k, latency):
    """M/M/1 nodes at a load of 0.9995: sojourns of mean and deviation 1 / (1 - rho), of two E + sqrt(V)."""
    nodes = pd.DataFrame(
        {
            "node_id": np.arange(k),
            "service_mean_s": 1.0,
            "service_second_s2": 2.0,
            "service_third_s3": 6.0,
            "reference_bytes": 1e6,
            "cost_per_chunk_dollars": 1.0,
        }
    )
    files = pd.DataFrame({"file_id": [0], "bytes": [1e6 * k], "k": [k], "rate_per_s": [0.9995]})
    case = problems.Case(nodes, files)
    code, _ = problems.study(tmp_path / "out", case, method=["certified"], stream=True, theta=[0.0])
    assert code == 0
    (run,) = read_results(tmp_path / "out", "runs").itertuples()
    assert run.objective == pytest.approx(latency, rel=1e-6)
    assert run.latency_shared_z_s == pytest.approx(latency, rel=1e-6)
    assert run.latency_s == pytest.approx(latency, rel=1e-6)
    assert run.lower_bound <= latency
    assert run.gap == pytest.approx(latency / run.lower_bound - 1, rel=1e-5)
    if k == 2:
        assert run.z_s == pytest.approx(2000.0, rel=1e-6)
    else:
        assert run.z_s == -np.inf
