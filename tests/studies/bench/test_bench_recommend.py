"""The sentence of a benchmark: the fastest at the largest size, how far the others are behind, where, and its price."""

import io
import json

import pytest
from rich.console import Console

from ecjax.studies.bench import study
from ecjax.studies.bench.measured import Measured
from ecjax.studies.bench.options import BenchOptions
from ecjax.studies.bench.recommend import recommend
from ecjax.studies.bench.rows import Row
from ecjax.tables.recommendation import read_recommendation


def row(variant, median_s, size="large", rows=1000, least=0.99, **more):
    return Row(variant, size, median_s, least * median_s, 3, rows=rows, **more)


def case(*rows, name="projection"):
    return Measured(name, list(rows), 1.0, "abacus", None)


def test_the_fastest_at_the_largest_size_with_its_price():
    measured = case(
        row("ecjax", 0.1, "small", 10),
        row("loop", 0.001, "small", 10),
        row("ecjax", 0.2, dtype="float64", gap=2e-5, compile_s=1.5, peak_rss_bytes=10**9, target_s=1.0),
        row("loop", 0.5),
        row("other", 2.0),
        row("slow", 3.0),
        row("slower", 4.0),
    )
    advice = recommend([("r1", measured)], 2)
    assert advice.run_id == "r1"
    assert advice.sentence == (
        "projection: large on abacus (2 cores): ecjax is the fastest, 200 ms (float64, gap 2e-05, 1,000 MB, compiled "
        "in 1.5 s); loop takes 2.5, other 10, slow 15 and 1 more at least 20 times as long. It is within its target."
    )


def test_what_cannot_be_told_apart_and_missed_targets():
    measured = case(row("loop", 1.0), row("ecjax", 1.005, least=0.98), row("scan", 1.5))
    text = recommend([("r1", measured)], 1).sentence
    assert "(1 core): loop is the fastest, 1 s; ecjax takes 1, scan 1.5 times as long" in text.replace(
        " and", ","
    )
    assert "Over these repeats ecjax cannot be told from it." in text
    alone = case(row("ecjax", 1.0, target_s=0.5))
    assert recommend([("r1", alone)], 2).sentence.endswith("ecjax takes 1 s. It misses its target.")


@pytest.mark.parametrize(("theirs", "words"), [(951.0, "equal to"), (1902.0, "50 % less than")])
def test_solutions_are_compared_too(theirs, words):
    measured = case(row("ecjax", 1.0, objective=951.0), row("scipy", 9.0, objective=theirs))
    assert f"(objective {words} the best of theirs)" in recommend([("r1", measured)], 2).sentence


def test_several_cases():
    won = case(row("ecjax", 1.0), row("loop", 9.0), name="matching")
    lost = case(row("ecjax", 4.0, target_s=1.0), row("loop", 2.0), name="coflows")
    alone = case(row("ecjax", 1.0, target_s=2.0), name="startup")
    failed = Measured("jlcm", [], 1.0, None, "no luck")
    advice = recommend([("a", lost), ("b", won), ("c", alone), ("d", failed)], 2)
    assert advice.run_id == "b"
    assert advice.sentence.startswith(
        "3 of 4 cases were measured, 1 of 2 within their targets (not coflows). ecjax is the fastest in 1 of the 2 "
        "that time something else beside it. The widest gap: matching: large on abacus"
    )
    assert recommend([("d", failed)], 2) is None


def test_the_study_ends_with_it_and_keeps_it(tmp_path, monkeypatch):
    rows = [{"variant": name, "size": "small", "median_s": s, "min_s": s, "repeats": 1} for name, s in
            (("ecjax", 0.2), ("loop", 2.0))]  # fmt: skip
    monkeypatch.setattr(study, "run_fresh", lambda *_: {"rows": rows, "device": "abacus"})
    console = Console(file=io.StringIO(), width=200)
    assert study.bench_study(BenchOptions(out=str(tmp_path), cases=["projection"]), console) == 0
    stored = read_recommendation(tmp_path)
    assert console.file.getvalue().splitlines()[-1].strip() == stored.sentence
    assert "ecjax is the fastest, 200 ms; loop takes 10 times as long." in stored.sentence
    assert json.loads((tmp_path / "recommended.json").read_text())["run_id"] == stored.run_id
