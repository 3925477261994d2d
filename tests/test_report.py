"""``ecjax report``: a page from result tables, opened in a browser where there is one."""

import base64
import json
import re
import shutil

import pyarrow as pa
import pytest

import ecjax
from ecjax.cli import main
from ecjax.report.drawing import bars
from ecjax.report.page import document, embedded
from ecjax.report.parts import Listing, Section
from ecjax.report.results import Results
from ecjax.report.sections import claims, durability, failures, jobs, replay, tradeoff
from ecjax.report.sections.registry import sections_of

HOSTILE = "<script>alert(1)</script>"
NODES = {
    "node_id": ["a", "<img src=x onerror=alert(2)>", "c"],
    "delta_s": [0.01, 0.02, 0.02],
    "delta_s_per_byte": [1e-8, 1e-8, 2e-8],
    "psi_s": [0.01, 0.01, 0.03],
    "psi_s_per_byte": [1e-8, 1e-8, 1e-8],
    "cost_per_chunk_dollars": [3.0, 2.0, 1.0],
}
FILES = {"file_id": [HOSTILE, "x\u2028y"], "bytes": [2e6, 1e6], "k": [2, 1], "rate_per_s": [1.0, 2.0]}


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    out = tmp_path_factory.mktemp("reported") / "plans"
    ecjax.optimize(pa.table(NODES), pa.table(FILES), method="max_ec", theta=[1, 2], out=out)
    assert main(["report", str(out)]) == 0
    return out


def figures(page):
    return [
        json.loads(text) for text in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)
    ]


def test_the_page_holds_sections_charts_and_tables(plans):
    page = (plans / "report.html").read_text("utf-8")
    assert len(page) < 10e6
    for title in ("Recommendation", "Latency against cost", "Nodes", "Placement", "What was asked"):
        assert f">{title}</h2>" in page
    runs = ecjax.read_results(plans, "runs")
    points = {value for trace in figures(page)[0]["data"] for value in trace["y"]}
    assert set(runs["latency_s"]) <= points
    assert all(
        figure["layout"][axis]["title"]["text"] for figure in figures(page) for axis in ("xaxis", "yaxis")
    )


def test_ids_are_data(plans):
    page = (plans / "report.html").read_text("utf-8")
    assert HOSTILE not in page and "<img src" not in page.split("<footer>")[0]
    assert "&lt;img src=x onerror=alert(2)&gt;" in page
    names = [name for figure in figures(page) for trace in figure["data"] for name in trace["x"]]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in names  # Plotly shows entities as their characters


RUN = {"run_id": "r1", "status": "ok", "error": None, "params": "{}"}


def study(job, runs, **datasets):
    """A study in memory; rows of datasets are of run r1 where they say nothing else."""
    tables = {
        (name,): pa.Table.from_pylist([{"run_id": "r1"} | row for row in rows])
        for name, rows in datasets.items()
    }
    for (name, *_), table in list(tables.items()):
        for columns in (("run_id", *table.column_names[1:]),):
            tables[name, *columns] = table
    rows = pa.Table.from_pylist([RUN | row for row in runs])
    tables["runs",] = rows
    return Results("out", job, rows, ["runs", *datasets], None, tables)


def titled(section, title):
    return next(chart for chart in section.charts if chart.title == title)


def test_no_plan_is_below_the_line_of_lower_bounds():
    # two lower bounds on T + theta C / 10 of ten files: T >= 4 - C and T >= 3 - C / 2, which cross at C = 2
    plan = {
        "method": "certified",
        "theta_per": "file",
        "file_count": 10,
        "moved_chunks": None,
        "input_id": "i",
    }
    rows = [
        {
            "theta": 10.0,
            "cost_dollars_per_period": 1.0,
            "latency_shared_z_s": 3.5,
            "objective": 4.5,
            "lower_bound": 4.0,
        },
        {
            "theta": 5.0,
            "cost_dollars_per_period": 3.0,
            "latency_shared_z_s": 2.0,
            "objective": 3.5,
            "lower_bound": 3.0,
        },
        # an objective with something else in it says nothing about latency and cost
        {
            "theta": 1.0,
            "cost_dollars_per_period": 3.0,
            "latency_shared_z_s": 2.0,
            "objective": 9.0,
            "lower_bound": 9.0,
        },
    ]
    section = tradeoff.section(
        study("optimize", [plan | {"run_id": f"r{i}"} | row for i, row in enumerate(rows)])
    )
    chart = titled(section, "Bound that plans are chosen by, against cost")
    line = chart.traces[-1]
    assert line["name"] == "no plan is below"
    assert line["y"] == pytest.approx([max(4 - cost, 3 - cost / 2) for cost in line["x"]], rel=1e-12)
    assert (line["x"][0], line["x"][-1]) == (1.0, 3.0)


def test_distributions_count_up_and_bounds_stand_beside_them():
    bins = [
        {"group": "all", "source": source, "upper_s": upper, "count": count}
        for source, counts in (("replayed", (6, 3, 1)), ("observed", (1, 1, 2)))
        for upper, count in zip((0.1, 0.2, 0.4), counts, strict=True)
    ]
    bins.append({"group": "class", "source": "replayed", "upper_s": 9.0, "count": 99})
    quantiles = {"p50_s": 0.3, "p90_s": 0.4, "p99_s": None, "p999_s": float("inf")}
    latencies = [
        {"group": "all", "source": source} | quantiles for source in ("bound", "estimated", "replayed")
    ]
    results = study(
        "replay", [{"policy": "probabilistic", "mean_s": 0.1}], latency_bins=bins, latencies=latencies
    )
    chart = titled(replay.section(results), "Distribution of latency")
    drawn = {trace["name"]: (trace["x"], trace["y"]) for trace in chart.traces}
    assert drawn["replayed"] == ([0.1, 0.2, 0.4], pytest.approx([0.6, 0.9, 1.0]))
    assert drawn["observed"][1] == pytest.approx([0.25, 0.5, 1.0])
    assert drawn["bound"] == drawn["expected"] == ([0.3, 0.4], [0.5, 0.9])
    tail = titled(replay.section(results), "Tail of latency")
    assert tail.traces[0]["y"][:2] == pytest.approx([0.75, 0.5]) or tail.traces[0]["y"][:2] == pytest.approx(
        [0.4, 0.1]
    )


def test_codes_claims_failures_and_benchmarks_have_sections():
    codes = [
        {
            "code": code,
            "overhead": overhead,
            "nines": nines,
            "durable": nines > 11,
            "any_loss_probability": 1e-9,
        }
        for code, overhead, nines in (("8+3", 1.375, 14.0), (HOSTILE, 3.0, 9.0))
    ]
    section = durability.section(study("codes", [{}], codes=codes))
    assert [trace["name"] for trace in section.charts[0].traces] == ["durable enough", "not durable enough"]
    claim = {"paper": "p", "claim": "c", "why": "w", "ours_low": 1.0, "ours_high": 4.0}
    rows = [
        claim | {"id": "a", "verdict": "holds", "paper_value": "2.0", "ours": 3.0},
        claim | {"id": "b", "verdict": "does not hold", "paper_value": "12 %", "ours": 3.0},
    ]
    section = claims.section(study("reproduce", [{}], claims=rows))
    assert section.charts[1].traces[0]["x"] == [1.5]
    assert section.charts[1].traces[0]["error_x"] == {"type": "data", "array": [0.5], "arrayminus": [1.0]}
    assert any("b does not hold: w" in sentence for sentence in section.sentences)
    down = {"kind": "node", "latency_s": 0.2, "max_load": 0.5, "unavailable_share": 0.0}
    scenarios = [down | {"scenario": "a", "status": "ok"}, down | {"scenario": "b", "status": "unstable"}]
    section = failures.section(study("optimize", [{"latency_s": 0.1}], scenarios=scenarios))
    assert section.warnings == ["node b down: unstable."]
    bench = [{"case": "c", "variant": name, "size": "s", "median_s": 1.0} for name in ("ecjax", "a solver")]
    section = jobs.section(study("bench", [{"case": "c"}], bench=bench))
    assert section.charts[0].traces[0]["x"] == ["ecjax", "a solver"]


def test_tables_of_another_version_are_said_to_be():
    sections = sections_of(
        study(
            "optimize", [{"cost_dollars_per_period": 1.0, "method": "m", "theta": 1.0}], scenarios=[{"x": 1}]
        )
    )
    nodes = next(section for section in sections if section.title == "Failures")
    assert "another version" in nodes.warnings[0]


def test_an_empty_and_a_partly_failed_study_say_so():
    recommendation = sections_of(
        study("optimize", [{"status": "failed", "error": "node a is overloaded"}, {}])
    )[0]
    assert "1 of 2 runs failed: has no result." in recommendation.warnings
    assert "1x: node a is overloaded" in recommendation.warnings
    results = study("optimize", [{}])
    empty = Results("out", "optimize", results.runs.slice(0, 0), ["runs"], None, {})
    assert "This study is empty: no run was finished." in sections_of(empty)[0].warnings


def test_embedded_json_ends_no_script():
    text = embedded({"id": "</script>\u2028<!--"})
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == {"id": "</script>\u2028<!--"}


def test_tables_can_be_saved():
    table = pa.table({"id": [HOSTILE, 'say "so"'], "list": [[1], None], "value": [1.5, None]})
    page = document("t", [Section("s", listings=[Listing("l", table)])], "0")
    link = re.search(r'href="data:text/csv;base64,([^"]+)"', page)
    assert base64.b64decode(link[1]).decode().splitlines()[1] == f'"{HOSTILE}","[1]",1.5'


def test_of_many_bars_the_largest_are_drawn():
    table = pa.table({"name": [str(place) for place in range(500)], "value": range(500)})
    chart = bars("t", table, "name", [("value", "v")], ("n", "v"))
    assert len(chart.table) == 60 and chart.table.column("value")[0].as_py() == 499


def test_two_studies_stand_side_by_side(plans, tmp_path):
    page = tmp_path / "both.html"
    assert main(["report", str(plans), str(plans), f"page={page}"]) == 0
    assert ">Difference</h2>" in page.read_text("utf-8")


@pytest.mark.parametrize("words", [[], ["nowhere"], ["--x"], ["a", "page=b", "page=c"]])
def test_what_is_no_study_is_one_line(words, capsys):
    assert main(["report", *words]) == 2
    assert re.fullmatch(r"ecjax: report: .*allowed: .*\n", capsys.readouterr().err)


def test_in_a_browser(plans):
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        wrong, requests = [], []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.goto((plans / "report.html").as_uri())
        page.wait_for_selector(".chart .main-svg")
        marks = "box => box.querySelectorAll('.point, .hm image, .js-line').length"
        charts = page.query_selector_all(".chart")
        assert charts and all(chart.evaluate(marks) for chart in charts)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        loads = page.query_selector("figure:has(figcaption:text-is('Load of nodes'))")
        loads.query_selector(".chart").focus()
        page.keyboard.press("ArrowRight")
        hover = loads.wait_for_selector(".hoverlayer .hovertext text.nums").text_content()
        row = loads.eval_on_selector("tbody tr", "row => row.children[1].textContent")
        assert float(hover.split()[-1]) == float(row)
        page.keyboard.press("Tab")
        assert wrong == [] and len(requests) == 1
        browser.close()
