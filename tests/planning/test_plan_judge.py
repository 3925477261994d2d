"""The judge of plans: accepts what is right, by hand and from the package, and names each thing made wrong."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import problems
import pytest
from planning.plan_judge import judge, judge_folder

from ecjax import read_results

PERIOD = 30 * 86400.0


def hand_made(current=("a", "c")):
    """A file with k = 2 on two of three alike nodes, worked out on paper: arguments of ``judge``.

    Every read takes a chunk from either node: rho = 0.5 at both. Service mean 1, second moment 1.5, third 3:
    E[W] = 0.75, Var[W] = 1 + 0.75^2, and T = E + sqrt(V) with E = 1.75 and V = 0.5 + 1.5625.
    """
    nodes = pd.DataFrame(
        {
            "node_id": ["a", "b", "c"],
            "site": ["x", "y", "y"],
            "service_mean_s": 1.0,
            "service_second_s2": 1.5,
            "service_third_s3": 3.0,
            "reference_bytes": 1e6,
            "cost_per_chunk_dollars": [1.0, 2.0, 3.0],
            "cost_per_byte_dollars": [0.0, 1e-6, 0.0],
        }
    )
    files = pd.DataFrame(
        {
            "file_id": [5],
            "bytes": 2e6,
            "stored_bytes": 4e6,
            "k": 2,
            "rate_per_s": 0.5,
            "nodes": [list(current)],
            "client_site": ["home"],
        }
    )
    network = pd.DataFrame(
        {
            "client_site": ["home", None, "home", "away"],
            "node_id": [None, "b", None, "a"],
            "node_site": [None, None, "x", None],
            "dollars_per_byte": [3e-12, 9e-12, 1e-12, 7e-12],
        }
    )
    latency = 1.75 + np.sqrt(2.0625)
    chunks = 1.0 + 2.0 + 1e-6 * 2e6  # b has a price per byte and keeps 2e6 bytes
    moved = 0.0 if "b" in current else 0.25e-6 * 2e6  # paid where b is new
    # bytes read from either node, at x by the row of that site, at b by the row of the client
    read = 0.5 * PERIOD * 1e6 * (1e-12 + 3e-12)
    cost = chunks + moved + read
    run = SimpleNamespace(
        run_id="r",
        status="ok",
        theta=0.5,
        theta_per="file",
        rate_scale=1.0,
        size_scale=1.0,
        objective=latency + 0.5 * cost,
        latency_s=latency,
        latency_shared_z_s=latency,
        z_s=1.75,
        cost_dollars_per_period=cost,
        lower_bound=4.0,
        gap=(latency + 0.5 * cost) / 4 - 1,
        max_load=0.5,
        mean_n=2.0,
        file_count=1,
        files_without_redundancy=1,
        node_count=3,
    )
    placements = pd.DataFrame(
        {"run_id": "r", "file_id": 5, "node_id": ["a", "b"], "probability": 1.0, "chunks": 1}
    )
    file_plans = pd.DataFrame(
        {"run_id": "r", "file_id": [5], "n": 2, "k": 2, "latency_s": latency, "cost_dollars_per_period": cost}
    )
    return [nodes, files, run, placements, file_plans], {"migration": 0.25e-6, "network": network}


def test_accepts_a_plan_worked_out_on_paper():
    tables, options = hand_made()
    figures = judge(*tables, per_site=1, **options)
    assert figures["latency_s"] == pytest.approx(1.75 + np.sqrt(2.0625), rel=1e-12)
    np.testing.assert_allclose(figures["load"], [0.5, 0.5, 0.0])


@pytest.mark.parametrize("option, cost", [("migration", 0.0), ("network", None)])
def test_charges_count(option, cost):
    tables, options = hand_made()
    with pytest.raises(AssertionError, match="runs: cost_dollars_per_period is"):
        judge(*tables, **options | {option: cost})


CHANGES = {  # table, column, row, value -> sentence
    "probability below 0": (3, {"probability": [1.0, -1.0]}, "b: probability -1.0 is outside"),
    "probability above 1": (3, {"probability": [1.2, 0.8]}, "a: probability 1.2 is outside"),
    "no number": (3, {"probability": [1.0, np.nan]}, "probability nan is outside"),
    "sum": (3, {"probability": [1.0, 1.0 - 1e-8]}, "file_id 5: probabilities sum to 1.99.*, not 2"),
    "two chunks on a node": (3, {"chunks": [1, 2]}, "row 1 keeps 2 chunks on a node"),
    "a read where no chunk is": (3, {"chunks": [0, 1]}, "row 0 keeps 0 chunks on a node"),
    "a chunk twice": (3, {"node_id": ["a", "a"]}, "two chunks of file_id 5 on node_id a"),
    "no such node": (3, {"node_id": ["a", "z"]}, "node_id z is no node"),
    "no such file": (3, {"file_id": [5, 6]}, "file_id 6 is no file of its own"),
    "a file of a group": (1, {"group": ["g"]}, "file_id 5 is no file of its own"),
    "floor": (1, {"min_extra_chunks": [1]}, "file_id 5: n = 2 is below its floor 3"),
    "d": (1, {"d": [3]}, "probabilities sum to 2.0, not 3"),
    "capacity": (0, {"capacity_chunks": [1.0, 0.0, None]}, "node_id b holds 1 chunks, .* capacity 0"),
    "forbidden": (1, {"forbidden_nodes": [["c", "b"]]}, "file_id 5 on node_id b: that node is forbidden"),
    "load": (1, {"rate_per_s": [1.0]}, "node 0 has a load of 1.0"),
    "prices": (0, {"cost_per_chunk_dollars": [1.0, 2.1, 3.0]}, "runs: cost_dollars_per_period is"),
    "moments": (0, {"service_third_s3": [3.0, 3.00001, 3.0]}, "runs: latency_shared_z_s is"),
    "writes": (1, {"write_rate_per_s": [1e-6]}, "runs: max_load is"),
    "n": (4, {"n": [3]}, "file_plans: n of file_id 5 is 3.0; the tables give 2"),
    "k": (4, {"k": [1]}, "file_plans: k of file_id 5"),
    "latency of a file": (4, {"latency_s": [3.2]}, "file_plans: latency_s of file_id 5 is 3.2"),
    "cost of a file": (
        4,
        {"cost_dollars_per_period": [5.0]},
        "file_plans: cost_dollars_per_period of file_id 5 is 5.0",
    ),
    "files": (4, {"file_id": [6]}, "file_plans: the files are not those"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_names_what_is_wrong_in_a_table(name):
    tables, options = hand_made()
    index, columns, sentence = CHANGES[name]
    tables[index] = tables[index].assign(**columns)
    with pytest.raises(AssertionError, match=sentence):
        judge(*tables, **options)


@pytest.mark.parametrize(
    "name, change, sentence",
    [
        *(
            (name, lambda value: value * (1 + 1e-7), f"runs: {name} is")
            for name in (
                "objective",
                "latency_s",
                "latency_shared_z_s",
                "cost_dollars_per_period",
                "max_load",
                "mean_n",
            )
        ),
        ("file_count", lambda value: value + 1, "runs: file_count is"),
        ("node_count", lambda value: value + 1, "runs: node_count is"),
        ("files_without_redundancy", lambda value: 0, "runs: files_without_redundancy is"),
        ("z_s", lambda value: value + 1e-2, "runs: the bound is"),
        ("z_s", lambda value: -np.inf, "runs: the bound is inf at z_s = -inf"),
        ("lower_bound", lambda value: 1e3, "runs: lower_bound 1000.0 is above the objective"),
        ("gap", lambda value: value + 1e-6, "runs: gap is"),
        ("gap", lambda value: np.nan, "runs: gap is"),
        ("status", lambda value: "unstable", "status unstable has no plan"),
    ],
)
def test_names_what_is_wrong_in_the_run(name, change, sentence):
    tables, options = hand_made()
    setattr(tables[2], name, change(getattr(tables[2], name)))
    with pytest.raises(AssertionError, match=sentence):
        judge(*tables, **options)


def test_names_what_breaks_a_limit():
    tables, options = hand_made()
    with pytest.raises(AssertionError, match="file_id 5 has a chunk outside the nodes that it is fixed to"):
        judge(*tables, fixed_groups=True, **options)
    tables[1]["nodes"] = [["a", "b", "c"]]
    with pytest.raises(AssertionError, match="file_id 5 has 2 chunks and is fixed to 3 nodes"):
        judge(*tables, fixed_groups=True, network=options["network"])
    tables[0]["site"] = "x"
    with pytest.raises(AssertionError, match="file_id 5: 2 chunks at one site, not at most 1"):
        judge(*tables, per_site=1, **options)


def test_a_fixed_file_is_where_it_was():
    tables, options = hand_made(current=("a", "b"))
    judge(*tables, fixed_groups=True, **options)


def test_an_earlier_plan_stands_in_for_the_current_placement():
    tables, options = hand_made()
    earlier = pd.DataFrame(
        {"file_id": [5, 5, 8], "node_id": ["a", "gone", "b"], "probability": 1.0, "chunks": 1}
    )
    tables[1] = tables[1].drop(columns="nodes")
    judge(*tables, earlier=earlier, **options)
    with pytest.raises(AssertionError, match="runs: cost_dollars_per_period is"):
        judge(*tables, earlier=earlier.assign(node_id=["a", "b", "b"]), **options)


STUDIES = {
    "mixed": (problems.mixed, {"method": "published", "rate_scale": [0.5, 1.2], "size_scale": 0.7}),
    "affine": (problems.affine, {"method": "published", "theta_per": "total", "theta": 0.4}),
    "fixed": (problems.fixed, {"method": "published"}),
    "idle": (problems.idle, {"method": "published"}),
    "replicated": (problems.replicated, {"method": "published"}),
    "grouped": (problems.grouped, {"method": "oblivious_lb"}),
    "written": (problems.written, {"method": "random_cp"}),
}


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.slow
def test_accepts_plans_of_the_package_and_agrees_with_the_other_recomputation(name, tmp_path):
    make, options = STUDIES[name]
    problems.study(tmp_path / "out", make(), **options)
    found = judge_folder(tmp_path / "out")
    runs = read_results(tmp_path / "out", "runs")
    assert set(found) == set(runs["run_id"])
    for run in runs.itertuples():
        figures = found[run.run_id]
        expected = problems.outcome(*problems.written_plan(tmp_path / "out", run))
        np.testing.assert_allclose(figures["load"], expected.load, rtol=1e-12)
        np.testing.assert_allclose(figures["file_latency"], expected.file_latency, rtol=1e-9)
        np.testing.assert_allclose(figures["file_cost"], expected.file_cost, rtol=1e-12)
        assert figures["latency_shared_z_s"] == pytest.approx(expected.latency_shared_z_s, rel=1e-9)
        assert figures["latency_s"] == pytest.approx(expected.latency_s, rel=1e-9)


@pytest.fixture(scope="module")
def constrained(tmp_path_factory):
    """A study with every constraint and charge, and the charges' network table."""
    out, case = tmp_path_factory.mktemp("judge") / "out", problems.alike()
    nodes = case.nodes.assign(site=list("aabbcc"), capacity_chunks=[12.0, 11.0, 12.0, 12.0, 12.0, 12.0])
    files = case.files.assign(
        forbidden_nodes=[["n1"], None] * 6,
        nodes=[["n1", "n2", "n3", "n4"], None, ["n0", "n5", "n3"]] * 4,
        client_site=["x", "y", None] * 4,
        d=[3, 4, 4] * 4,
    )
    network = pd.DataFrame(
        {
            "client_site": ["x", "x", "y", None],
            "node_id": ["n0", None, None, None],
            "node_site": [None, "b", None, "c"],
            "dollars_per_byte": [1e-13, 5e-13, 2e-13, 1e-12],
        }
    )
    network.to_parquet(out.parent / "network.parquet")
    problems.study(
        out,
        problems.Case(nodes, files).at_load(0.5),
        method="published",
        theta=2.0,
        max_chunks_per_site=2,
        migration_dollars_per_byte=1e-6,
        network=str(out.parent / "network.parquet"),
    )
    return out, network


@pytest.mark.slow
def test_accepts_a_plan_under_every_constraint(constrained):
    out, network = constrained
    (figures,) = judge_folder(out, network=network).values()
    assert figures["gap"] is None and np.all(figures["n"] >= 3)


@pytest.mark.parametrize(
    "options", [{"migration": 0.0}, {"network": None}, {"per_site": 1}, {"fixed_groups": True}]
)
@pytest.mark.slow
def test_rejects_it_under_others(constrained, options):
    out, network = constrained
    with pytest.raises(AssertionError, match="runs: cost|at one site|fixed to"):
        judge_folder(out, **{"network": network} | options)
