"""Code lengths that follow from a durability: floors of candidates and of files with k's of their own."""

import json

import pytest

from ecjax.cli import main
from ecjax.errors import UserError
from ecjax.options import checked, identifying
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
