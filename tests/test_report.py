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
