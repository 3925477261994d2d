"""Code lengths that follow from a durability: floors of candidates and of files with k's of their own."""

import json

import pytest

from ecjax.cli import main
from ecjax.durability import floors as judged_floors
from ecjax.durability.assessment import loss_states
from ecjax.durability.floors import mds
from ecjax.durability.repair_times import RepairCluster
from ecjax.errors import UserError
from ecjax.options import checked, identifying
from ecjax.studies.optimize import floors
from ecjax.studies.optimize.inputs import read_tables
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.tables.results import read_results


def test_runs_without_a_durability_are_what_they_were():
    names = set(identifying(checked(OptimizeOptions())))
    assert not names & {"durability_nines", "max_any_loss", "afr", "domains", "domain", "groups", "codes"}
    judged = set(identifying(checked(OptimizeOptions(durability_nines=11.0))))
    assert {"durability_nines", "max_any_loss", "afr", "domains", "domain"} <= judged


def test_every_code_is_planned_with_its_floor_and_what_has_none_is_a_row(tmp_path, capsys):
    """Of the document's cluster: 11 nines take two chunks more than k = 4, three more than 8; 10 has no room."""
    out = str(tmp_path / "out")
    words = [
        "codes=4+1,8+3,6+4,10+2",
        "durability_nines=11",
        "cluster.files=8",
        "theta=1000",
        "method=random_cp",
        "estimate=false",
    ]
    assert main(["optimize", *words, f"out={out}", "figures=[]"]) == 1
    runs = read_results(out, "runs").set_index("code")
    assert list(runs["status"].loc[["4+1", "8+3", "6+4"]]) == ["ok"] * 3
    lengths = {
        code: set(json.loads(text).values()) for code, text in runs["mean_n_by_class"].dropna().items()
    }
    assert lengths["4+1"] == {6} and lengths["8+3"] == {11} and lengths["6+4"] == {10}
    assert runs.loc["10+2", "status"] == "infeasible" and "with 10+2" in runs.loc["10+2", "error"]
    assert runs.loc["8+3", "floor_nines"] == pytest.approx(14.3, abs=0.05)
    floors = read_results(out, "floors").set_index("k")
    assert dict(floors["min_extra_chunks"]) == {4: 2, 8: 3, 6: 3}
    printed = " ".join(capsys.readouterr().out.split())
    assert "min_extra_chunks for 11 nines per object and year: k=4: 2 (11.1 nines)" in printed
    assert "with twice the afr it has" in printed and "Every file has" in printed


def test_files_keep_a_larger_floor_of_their_own(tmp_path):
    files = {
        "file_id": [0, 1, 2],
        "bytes": [8e6] * 3,
        "k": [4, 8, 4],
        "rate_per_s": [0.1] * 3,
        "min_extra_chunks": [1, 0, 5],
    }
    path = tmp_path / "files.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [files, *zip(*files.values(), strict=True)]))
    options = checked(OptimizeOptions(files=str(path), durability_nines=11.0))
    (tables,) = read_tables(options)
    assert tables.files["min_extra_chunks"].to_pylist() == [2, 3, 5]
    assert [floor.floor.code.name for floor in tables.floors] == ["4+2", "8+3"]


def test_sites_are_failure_domains():
    """Three sites of four nodes, two chunks of a file in each at most: four chunks more than two outlive two sites."""
    options = OptimizeOptions(
        codes=["2+1"], durability_nines=4.0, domain="site", max_chunks_per_site=2, user_bytes=1e13
    )
    (tables,) = read_tables(checked(options))
    (judged,) = tables.floors
    assert (judged.cluster.domains, judged.cluster.disks) == (3, 4)
    assert judged.floor.assessment.most_per_domain == 2
    assert set(tables.files["min_extra_chunks"].to_pylist()) == {judged.floor.code.parity}
    assert judged.floor.code.parity >= 2


def nodes_table(path, sites):
    """A node for each name of a site."""
    rows = [f"n{at},{site},0.01,0.0002,0.000006,1000000,0" for at, site in enumerate(sites)]
    header = (
        "node_id,site,service_mean_s,service_second_s2,service_third_s3,reference_bytes,cost_per_byte_dollars"
    )
    path.write_text("\n".join([header, *rows]))
    return str(path)


@pytest.mark.parametrize(
    ("sites", "per_site", "k", "disks", "extra"), [(12, 2, 4, 10, 2), (12, 2, 8, 10, 3), (6, 3, 5, 10, 1)]
)
def test_sites_hold_no_more_chunks_than_they_have_nodes(tmp_path, sites, per_site, k, disks, extra):
    """Of a node each: the document's floors, whatever a site might hold; of six there is room for a parity."""
    nodes = nodes_table(tmp_path / "nodes.csv", [f"s{at}" for at in range(sites)])
    options = OptimizeOptions(
        nodes=nodes,
        k=[k],
        durability_nines=11.0 if sites == 12 else 1.0,
        domain="site",
        max_chunks_per_site=per_site,
        disks=disks,
    )
    (tables,) = read_tables(checked(options))
    (judged,) = tables.floors
    assert judged.floor.code.parity == extra and judged.floor.assessment.most_per_domain == 1


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (
            64,
            "found k=64, of which no code can be judged, where codes have at most 64 chunks; allowed: a smaller k",
        ),
        (62, "with 62+2, where codes have at most 64 chunks and repairs run"),
    ],
)
def test_codes_end_at_64_chunks(tmp_path, k, words):
    nodes = nodes_table(tmp_path / "nodes.csv", ["s"] * 100)
    with pytest.raises(UserError) as error:
        list(read_tables(checked(OptimizeOptions(nodes=nodes, k=[k], durability_nines=11.0))))
    assert words in str(error.value) and "more nodes" not in str(error.value)


def test_codes_of_too_many_states_of_loss_are_not_tried(tmp_path, monkeypatch):
    """Fifteen sites of four nodes, four chunks in each at most: over 4000 states from nine chunks beyond 32."""
    assert floors.MOST_STATES == judged_floors.MOST_STATES == 4000
    cluster = RepairCluster(15, 4, 1, 1e13, 1e8, 1e10, 60.0)
    assert [loss_states(mds(32, extra), cluster) for extra in (8, 9)] == [2905, 4661]
    # chains of nearly 4000 states are long to solve, and refused in the same way
    for module in (floors, judged_floors):
        monkeypatch.setattr(module, "MOST_STATES", 400)
    nodes = nodes_table(tmp_path / "nodes.csv", [f"s{at % 15}" for at in range(60)])
    options = OptimizeOptions(
        nodes=nodes, k=[32], durability_nines=30.0, domain="site", max_chunks_per_site=4, user_bytes=1e13
    )
    with pytest.raises(UserError) as error:
        list(read_tables(checked(options)))
    assert "more than 400 states of loss and repairs run" in str(error.value)
    assert "allowed: a smaller k, fewer nines" in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codes": ["lrc(12,2,2)"]}, "codes: found ['lrc(12,2,2)']; allowed: K+M as 8+3, copies as 3x"),
        ({"codes": ["8+3"], "k": [4]}, "k: found 4 with codes"),
        ({"durability_nines": 11.0, "domain": "site"}, "domain=site: max_chunks_per_site is missing"),
        ({"durability_nines": 11.0, "domains": 20}, "domains: found 20; allowed: 12, the nodes"),
        ({"durability_nines": 40.0, "k": [4]}, "durability_nines=40: found k=4, which has"),
        (
            {"max_any_loss": 1e-6, "k": [4], "repair_bytes_per_s": 10.0},
            "max_any_loss=1e-06: found k=4, whose repairs",
        ),
    ],
)
def test_wrong_options_are_one_line(options, message):
    with pytest.raises(UserError) as error:
        list(read_tables(checked(OptimizeOptions(**options))))
    assert message in str(error.value) and "\n" not in str(error.value)
