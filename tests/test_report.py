"""``ecjax report``: a page from result tables, opened in a browser where there is one."""

import base64
import json
import re
import shutil

import pyarrow as pa
import pytest

import ecjax
from ecjax.cli import main
from ecjax.report.difference import difference
from ecjax.report.drawing import bars, lines
from ecjax.report.page import document, embedded
from ecjax.report.parts import Listing, Section
from ecjax.report.results import Results, read_study
from ecjax.report.sections import (
    claims,
    durability,
    failures,
    inputs,
    jobs,
    latency,
    listed,
    placement,
    replay,
    tradeoff,
)
from ecjax.report.sections import trace as log_pages
from ecjax.report.sections.registry import kinds_of

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
    ecjax.optimize(pa.table(NODES), pa.table(FILES), method="max_ec", theta=[1, 2], estimate=False, out=out)
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
    # where plans of one may not spread as those of the other, no line is below both
    limited = rows[1] | {"params": json.dumps({"max_chunks_per_site": 2})}
    section = tradeoff.section(
        study("optimize", [plan | {"run_id": f"r{i}"} | row for i, row in enumerate([rows[0], limited])])
    )
    chart = titled(section, "Bound that plans are chosen by, against cost")
    assert all(trace["name"] != "no plan is below" for trace in chart.traces)


def test_distributions_count_up_and_bounds_stand_beside_them():
    bins = [
        {"group": "all", "source": source, "lower_s": lower, "upper_s": upper, "count": count}
        for source, counts in (("replayed", (6, 3, 1)), ("observed", (1, 1, 2)))
        for lower, upper, count in zip((0.0, 0.1, 0.3), (0.1, 0.2, 0.4), counts, strict=True)
    ]
    bins.append({"group": "class", "source": "replayed", "lower_s": 8.0, "upper_s": 9.0, "count": 99})
    quantiles = {"p50_s": 0.3, "p90_s": 0.4, "p99_s": None, "p999_s": float("inf")}
    latencies = [
        {"group": "all", "source": source} | quantiles for source in ("bound", "estimated", "replayed")
    ]
    results = study(
        "replay", [{"policy": "probabilistic", "mean_s": 0.1}], latency_bins=bins, latencies=latencies
    )
    chart = titled(replay.section(results), "Distribution of latency")
    drawn = {trace["name"]: (trace["x"], trace["y"]) for trace in chart.traces}
    # from 0.2 to 0.3 s there is no read: the line is level
    assert drawn["replayed"] == (
        pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4]),
        pytest.approx([0.0, 0.6, 0.9, 0.9, 1.0]),
    )
    assert drawn["observed"][1] == pytest.approx([0.0, 0.25, 0.5, 0.5, 1.0])
    assert drawn["bound"] == drawn["expected"] == ([0.3, 0.4], [0.5, 0.9])
    tail = titled(replay.section(results), "Tail of latency")
    above = {trace["name"]: trace["y"] for trace in tail.traces}
    assert above["observed"][:4] == pytest.approx([1.0, 0.75, 0.5, 0.5])
    assert above["replayed"][:4] == pytest.approx([1.0, 0.4, 0.1, 0.1])


def test_arrivals_of_estimates_under_rates_that_vary_are_those_that_come():
    """With rates=TABLE there is no log."""
    varying = {"policy": "probabilistic", "arrivals": "poisson", "mean_s": 0.1, "p99_s": 0.3}
    varying |= {"trace_estimated_mean_s": 0.2, "trace_estimated_p99_s": 0.4}
    bins = [{"group": "all", "source": "replayed", "lower_s": 0.0, "upper_s": 0.1, "count": 1}]
    quantiles = {"p50_s": 0.2, "p90_s": 0.3, "p99_s": 0.4, "p999_s": 0.5}
    latencies = [{"group": "all", "source": "trace_estimated"} | quantiles]
    section = replay.section(study("replay", [varying], latency_bins=bins, latencies=latencies))
    for title in ("Mean latency", "99th percentile", "Distribution of latency", "Tail of latency"):
        names = [trace["name"] for trace in titled(section, title).traces]
        assert names == ["replayed", "expected, arrivals as they come"]


def test_times_of_accesses_are_level_where_there_are_none():
    bins = [
        {"quantity": "service", "op": "read", "lower_s": lower, "upper_s": upper, "count": count}
        for lower, upper, count in ((1.0, 2.0, 1), (8.0, 9.0, 3), (8.0, 9.0, 0))
    ]
    chart = titled(log_pages.section(study("analyze", [{}], delay_bins=bins)), "Times of accesses")
    (line,) = chart.traces
    assert (line["x"], line["y"]) == ([1.0, 2.0, 8.0, 9.0], pytest.approx([0.0, 0.25, 0.25, 1.0]))


def test_chunks_of_files_beside_groups_are_drawn_and_nodes_go_by_number():
    rows = [
        {"file_id": None, "group": "g", "node_id": "node-10", "chunks": 3},
        {"file_id": "f", "group": None, "node_id": "node-2", "chunks": 1},
        {"file_id": "f", "group": None, "node_id": "node-10", "chunks": 2},
    ]
    drawn = placement.section(study("optimize", [{}], placements=rows))
    (groups, files) = drawn.charts
    assert (groups.title, files.title) == ("Chunks by node and group", "Chunks by node and file")
    assert groups.traces[0]["z"] == [[3]]
    assert files.traces[0]["y"] == ["node-2", "node-10"] and files.traces[0]["z"] == [[1], [2]]


def test_codes_claims_failures_and_benchmarks_have_sections():
    codes = [
        {
            "code": code,
            "overhead": overhead,
            "nines": nines,
            "durable": nines > 11,
            "any_loss_probability": 1e-9,
            "healthy_mean_s": mean,
            "down_mean_s": None,
        }
        for code, overhead, nines, mean in (("8+3", 1.375, 14.0, 0.1), (HOSTILE, 3.0, 9.0, None))
    ]
    section = durability.section(study("codes", [{}], codes=codes))
    assert [trace["name"] for trace in section.charts[0].traces] == ["durable enough", "not durable enough"]
    chart = {chart.title: chart for chart in section.charts}
    assert [trace["y"] for trace in chart["Latency against overhead"].traces] == [[0.1]]
    states = chart["Mean latency of full reads"].traces
    assert {trace["name"]: trace["x"] for trace in states} == {"healthy": [0.1, None]}  # lying bars
    many = [codes[0] | {"code": f"{k}+2"} for k in range(2, 20)]
    section = durability.section(study("codes", [{}], codes=many))
    assert {trace["mode"] for trace in section.charts[0].traces} == {"markers"}
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
    plan = {"cost_dollars_per_period": 1.0, "method": "m", "theta": 1.0}
    nodes = kinds_of(study("optimize", [plan], scenarios=[{"x": 1}]))["Failures"]
    assert "another version" in nodes.warnings[0]


def test_bars_are_in_the_order_of_their_numbers():
    osds = [{"osd": osd, "load_before": float(osd), "load": 1.0} for osd in range(40)]
    chart = jobs.section(study("ceph", [{}], osds=osds[::-1])).charts[0]
    assert chart.traces[0]["x"] == [str(osd) for osd in range(40)]
    assert chart.traces[0]["y"] == list(range(40))


def drawn(job, title, runs, **datasets):
    """What the bars of a chart are called, with the first value of each."""
    rows = [{"run_id": f"r{place}", "input_id": "i"} | row for place, row in enumerate(runs)]
    chart = titled(jobs.section(study(job, rows, **datasets)), title)
    first = chart.table.column_names[1]
    return dict(zip(chart.table["label"].to_pylist(), chart.table[first].to_pylist(), strict=True))


def test_bars_are_means_over_seeds_and_nothing_else():
    far = [{"policy": "cooperative", "neighbour_s": s, "mean_s": 4 * s} for s in (0.25, 0.5)]
    sizes = [{"policy": "lru", "items": n, "mean_s": float(n)} for n in (10, 20)]
    policies = [{"policy": "exact", "half_life_s": None}, {"policy": "lru", "half_life_s": 1800.0}]
    title = "Latency by policy"
    assert drawn("cache", title, far) == {"neighbour_s 0.25": 1.0, "neighbour_s 0.5": 2.0}
    assert drawn("cache", title, sizes) == {"items 10": 10.0, "items 20": 20.0}
    # what goes with the policy is not said again, and seeds have nothing that tells them apart
    seeds = [row | {"mean_s": mean} for row in policies for mean in (1.0, 3.0)]
    assert drawn("cache", title, seeds) == {"exact": 2.0, "lru": 2.0}
    codes = [
        {
            "strategy": "static",
            "n": n,
            "k": 2,
            "rate_per_s": rate,
            "mean_s": rate * n,
            "capacity_per_s": 9.0 / n,
        }
        for n in (3, 4)
        for rate in (1.0, 2.0)
    ]
    assert len(drawn("adapt", "Latency by strategy", codes)) == 4
    assert drawn("adapt", "Rate that can be served", codes) == {"n 3": 3.0, "n 4": 2.25}
    lines = titled(jobs.section(study("adapt", codes)), "Latency against rate").traces
    assert [(line["name"], line["y"]) for line in lines] == [("n 3", [3.0, 6.0]), ("n 4", [4.0, 8.0])]


def test_settings_of_a_proxy_are_no_seeds():
    def run(place, params, **own):
        row = {"strategy": "static", "n": 1, "k": 1, "rate_per_s": 1.0, "mean_s": 1.0, "capacity_per_s": 9.0}
        return row | {"seed": place, "params": json.dumps(params)} | own

    title = "Rate that can be served"
    threads = [run(0, {"threads": count}, capacity_per_s=5.0 * count) for count in (8, 16)]
    assert drawn("adapt", title, threads) == {"threads 8": 40.0, "threads 16": 80.0}
    memory = [
        run(0, {"memory": value}, strategy="tofec", n=None, k=None, capacity_per_s=1 + value)
        for value in (0.0, 0.5)
    ]
    assert drawn("adapt", title, memory) == {"memory 0": 1.0, "memory 0.5": 1.5}
    lengths = [run(0, {"requests": count}, mean_s=count / 1000) for count in (1000, 2000)]
    assert drawn("adapt", "Latency by strategy", lengths) == {"requests 1000": 1.0, "requests 2000": 2.0}
    assert drawn("adapt", title, lengths) == {"static": 9.0}
    # steps have as many requests as come, another number with every seed
    seeds = [run(seed, {"threads": 8}, requests=100 + seed, mean_s=1.0 + seed) for seed in range(3)]
    assert drawn("adapt", "Latency by strategy", seeds) == {"static": 2.0}
    # the best static code is another one at another rate
    best = [run(0, {}, strategy="best_static", n=3 - n, rate_per_s=float(n), mean_s=2.0 * n) for n in (1, 2)]
    (line,) = titled(jobs.section(study("adapt", best)), "Latency against rate").traces
    assert line["y"] == [2.0, 4.0]


def test_settings_of_caches_are_no_seeds():
    def run(mean, params=None, **own):
        return {"policy": "lru", "mean_s": mean, "params": json.dumps(params or {})} | own

    title = "Latency by policy"
    parities = [run(mean, {"parity": n}) for n, mean in ((2, 1.0), (2, 3.0), (3, 7.0))]
    assert drawn("cache", title, parities) == {"parity 2": 2.0, "parity 3": 7.0}
    scales = [run(1.0, rate_scale=1.0, rate_per_s=5.0), run(2.0, rate_scale=2.0, rate_per_s=10.0)]
    assert drawn("cache", title, scales) == {"rate_scale 1": 1.0, "rate_scale 2": 2.0}
    rates = [run(rate / 10, rate_per_s=rate) for rate in (10.0, 20.0)]
    assert drawn("cache", title, rates) == {"rate_per_s 10": 1.0, "rate_per_s 20": 2.0}
    # what belongs to one policy tells that one apart, and goes with it where it is the same
    agar = [run(period / 30, {"period_s": period}, policy="agar") for period in (30.0, 60.0)]
    assert drawn("cache", title, [*agar, run(9.0)]) == {
        "agar, period_s 30": 1.0,
        "agar, period_s 60": 2.0,
        "lru": 9.0,
    }
    assert drawn("cache", title, [agar[0], run(9.0)]) == {"agar": 1.0, "lru": 9.0}
    # of distances one number has a column
    matrices = [run(mean, {"neighbours": [[0.0, mean], [mean, 0.0]]}) for mean in (1.0, 2.0)]
    assert sorted(drawn("cache", title, matrices).values()) == [1.0, 2.0]


def test_a_line_over_rates_goes_through_means_over_seeds():
    rows = [
        {"strategy": name, "rate_per_s": 10 * scale, "rate_scale": scale, "mean_s": factor * scale + seed}
        for seed in (0.0, 1.0)
        for name, factor in (("greedy", 2.0), ("tofec", 1.0))
        for scale in (1.0, 2.0, 3.0)
    ]
    chart = titled(jobs.section(study("adapt", rows)), "Latency against rate")
    found = {line["name"]: (line["x"], line["y"]) for line in chart.traces}
    assert found == {
        "greedy": ([10.0, 20.0, 30.0], [2.5, 4.5, 6.5]),
        "tofec": ([10.0, 20.0, 30.0], [1.5, 2.5, 3.5]),
    }


def test_notices_are_those_of_the_log_that_is_drawn():
    logs = [{"run_id": name, "notices": f"{name} is odd.", "loses": None} for name in ("r1", "r2")]
    files = [{"run_id": name, "rate_per_s": 1.0} for name in ("r1", "r2")]
    runs = [{"run_id": name} for name in ("r1", "r2")]
    assert log_pages.section(study("analyze", runs, traces=logs, files=files)).sentences == ["r1 is odd."]


def test_widths_of_coflows_are_those_of_their_run():
    runs = [
        {"scheduler": "fair", "sources": "given", "rate_scale": scale, "mean_s": 1.0} for scale in (1.0, 2.0)
    ]
    widths = [
        {
            "run_id": f"r{run}",
            "scheduler": "fair",
            "sources": "given",
            "width_class": "1",
            "mean_s": 5.0 + run,
        }
        for run in (0, 1)
    ]
    found = drawn("schedule", "By width", runs, coflow_widths=widths)
    assert found == {"rate_scale 1": 5.0, "rate_scale 2": 6.0}


def test_datasets_that_lack_a_column_are_named():
    kinds = kinds_of(study("optimize", [{}], file_plans=[{"n": 3}]))
    assert (
        "The dataset file_plans has no latency_s: another version wrote it."
        in kinds["What was asked"].warnings
    )


def test_only_rows_and_columns_of_the_run_are_read(plans):
    results = read_study(str(plans))
    run = results.run["run_id"]
    every = ecjax.read_results(plans, "placements")
    wanted = every.loc[every["run_id"] == run, ["run_id", "file_id", "chunks"]].reset_index(drop=True)
    rows = results.of_run("placements", ("file_id", "chunks"))
    assert rows.column_names == ["run_id", "file_id", "chunks"]
    assert rows.to_pandas().equals(wanted)
    assert len(every) > len(wanted) > 0
    # datasets without rows are no section
    kinds = kinds_of(results)
    assert "Failures" not in kinds and "scenarios" in results.datasets
    assert not any("cannot be shown" in warning for section in kinds.values() for warning in section.warnings)


def test_an_empty_and_a_partly_failed_study_say_so():
    results = study("optimize", [{"status": "failed", "error": "node a is overloaded"}, {}])
    recommendation = kinds_of(results)["Recommendation"]
    assert "1 of 2 runs failed: has no result." in recommendation.warnings
    assert "1x: node a is overloaded" in recommendation.warnings
    results = study("optimize", [{}])
    empty = Results("out", "optimize", results.runs.slice(0, 0), ["runs"], None, {})
    assert "This study is empty: no run was finished." in kinds_of(empty)["Recommendation"].warnings


def test_sentences_about_runs_are_a_warning_each():
    """A JSON list of them, as of a log that is predicted; one per line, as of dumps; or one alone."""
    rows = [
        {"notices": json.dumps(["Halves differ.", "[n1] is slow."]), "trace_remarks": "Few reads."},
        {"notices": json.dumps(["Halves differ."]), "notes": "no sizes\nno rates"},
        {"notices": "[]"},
    ]
    rows = [{"notices": None, "trace_remarks": None, "notes": None} | row for row in rows]
    section = kinds_of(study("replay", rows))["Recommendation"]
    words = ["Halves differ.", "[n1] is slow.", "Few reads.", "no sizes", "no rates"]
    assert list(section.warnings) == words


def test_replays_that_differ_are_told_apart():
    """By what was swept, whichever it was; by plans only where nothing else differs."""
    plain = {"policy": "probabilistic", "mean_s": 0.1, "plan_run": "abcdefgh", "size_scale": 1.0}
    plain |= {"slow": None, "importance": None, "class_rate_scale": None}
    changes = {
        "slow": (json.dumps({"x": 5.0}), json.dumps({"y": 5.0})),
        "size_scale": (1.0, 2.0),
        "importance": (json.dumps({"gold": 1.0, "silver": 0.5}), json.dumps({"gold": 1.0, "silver": 2.0})),
        "class_rate_scale": (json.dumps({"gold": 1.0}), json.dumps({"gold": 3.0})),
        "plan_run": ("abcdefgh", "hgfedcba"),
    }
    labels = {
        "slow": ["slow x 5", "slow y 5"],
        "size_scale": ["1", "2"],
        "importance": ["importance gold 1, silver 0.5", "importance gold 1, silver 2"],
        "class_rate_scale": ["class rates gold 1", "class rates gold 3"],
        "plan_run": ["plan abcdef", "plan hgfedc"],
    }
    for name, values in changes.items():
        runs = [plain | {"run_id": f"r{place}", name: value} for place, value in enumerate(values)]
        chart = titled(replay.section(study("replay", runs)), "Mean latency")
        assert chart.table["replay"].to_pylist() == labels[name]
    scaled = [plain | {"run_id": each, "plan_run": each, "rate_scale": float(each)} for each in "12"]
    chart = titled(replay.section(study("replay", scaled)), "Mean latency")
    assert chart.table["replay"].to_pylist() == ["1", "2"]


def test_embedded_json_ends_no_script():
    text = embedded({"id": "</script>\u2028<!--"})
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == {"id": "</script>\u2028<!--"}


def test_tables_can_be_saved():
    table = pa.table({"id": [HOSTILE, 'say "so"'], "list": [[1], None], "value": [1.5, None]})
    page = document("t", [[Section("s", listings=[Listing("l", table)])]], "0")
    link = re.search(r'href="data:text/csv;base64,([^"]+)"', page)
    assert base64.b64decode(link[1]).decode().splitlines()[1] == f'"{HOSTILE}","[1]",1.5'


def test_of_many_bars_the_largest_are_drawn():
    table = pa.table({"name": [str(place) for place in range(500)], "value": range(500)})
    chart = bars("t", table, "name", [("value", "v")], ("n", "v"))
    assert len(chart.table) == 60 and chart.table.column("value")[0].as_py() == 499


def test_the_largest_bars_may_lack_another_value():
    rows = [{"name": str(place), "value": place, "other": None if place >= 40 else 1} for place in range(100)]
    chart = bars("t", pa.Table.from_pylist(rows), "name", [("value", "v"), ("other", "o")], ("n", "v"))
    assert [trace["name"] for trace in chart.traces] == ["v"]


@pytest.mark.parametrize("values", ([0.2] * 5, [0.1 + 0.2, 0.3, 0.3]))
def test_files_of_one_latency_are_one_bar(values):
    files = [{"file_id": str(place), "latency_s": value} for place, value in enumerate(values)]
    (chart,) = latency.section(study("optimize", [{}], file_plans=files)).charts
    (row,) = chart.table.to_pylist()
    assert row["files"] == len(files)
    assert 0 <= row["lower_s"] <= min(values) <= max(values) <= row["upper_s"] <= 1.01 * max(values)


def test_tables_say_how_many_rows_they_leave_out():
    nodes = [{"node_id": str(place)} for place in range(300)]
    commands = [{"command": str(place)} for place in range(2500)]
    results = study("optimize", [{}], **{"inputs/nodes": nodes, "commands": commands})
    page = document("t", [[inputs.section(results)], [listed.section(results)]], "0")
    assert "200 of 300 rows" in page and "200 of 2500 rows" in page
    sizes = [
        len(base64.b64decode(each).splitlines())
        for each in re.findall(r'href="data:text/csv;base64,([^"]+)"', page)
    ]
    assert sizes[-2:] == [301, 2501]  # with the line of names


def test_lines_of_long_names_are_told_apart():
    # names that are cut to the same letters; the bound of the one demand, T >= 5 - C, is none of the other
    demands = ["a" * 50 + letter + "z" * 50 for letter in "xy"]
    rows = [
        {
            "run_id": f"r{place}",
            "method": "certified",
            "what_if": demand,
            "theta": 1.0,
            "theta_per": "dollar",
            "file_count": 1,
            "moved_chunks": None,
            "cost_dollars_per_period": cost,
            "latency_shared_z_s": bound - cost,
            "objective": bound,
            "lower_bound": bound,
        }
        for place, (demand, bound, cost) in enumerate(
            (demand, bound, cost)
            for demand, bound in zip(demands, (5.0, 4.0), strict=True)
            for cost in (1.0, 2.0)
        )
    ]
    chart = titled(tradeoff.section(study("optimize", rows)), "Bound that plans are chosen by, against cost")
    assert len({trace["name"] for trace in chart.traces}) == len(chart.traces) == 4
    limits = [trace["y"] for trace in chart.traces if "no plan" in trace["name"]]
    assert [(values[0], values[-1]) for values in limits] == [(4.0, 3.0), (3.0, 2.0)]
    table = pa.table({"name": demands, "x": [1.0, 1.0], "y": [1.0, 2.0]})
    first, second = lines("t", table, "x", "y", ("name",), ("x", "y")).traces
    assert first["name"] != second["name"] and (first["y"], second["y"]) == ([1.0], [2.0])


def test_two_studies_stand_side_by_side(plans, tmp_path):
    page = tmp_path / "both.html"
    assert main(["report", str(plans), str(plans), f"page={page}"]) == 0
    assert ">Difference</h2>" in page.read_text("utf-8")


def test_a_page_that_cannot_be_written_is_one_line(plans, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["report", str(plans), f"page={tmp_path}/file/page.html"]) == 2
    assert re.fullmatch(r"ecjax: out=.*: cannot be written: .*\n", capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "job", ["optimize", "replay", "analyze", "adapt", "cache", "ceph", "codes", "reproduce", "bench"]
)
@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_or_one_row_of_nothing_are_shown(job, rows):
    whole = STUDIES[job]()
    tables = {}
    for (name,), table in whole.tables.items():
        kept = table.slice(0, rows)
        keep = ("run_id", "status", "params")
        columns = [
            kept[each] if each in keep else pa.nulls(len(kept), kept[each].type) for each in kept.column_names
        ]
        tables[name,] = pa.table(columns, names=kept.column_names)
    nothing = Results("out", job, tables["runs",], whole.datasets, None, tables)
    kinds = kinds_of(nothing)
    assert not any("cannot be shown" in warning for section in kinds.values() for warning in section.warnings)
    assert document("t", [[section] for section in kinds.values()], "0")


def test_a_page_takes_the_place_of_no_other_file(plans, tmp_path, capsys):
    log = tmp_path / "access.log"
    log.write_text("a read\n")
    assert main(["report", str(plans), f"page={log}"]) == 2
    assert capsys.readouterr().err == f"ecjax: report: found page={log}; allowed: a file that ends in .html\n"
    assert log.read_text() == "a read\n"


@pytest.mark.parametrize("words", [[], ["nowhere"], ["--x"], ["a", "page=b", "page=c"]])
def test_what_is_no_study_is_one_line(words, capsys):
    assert main(["report", *words]) == 2
    assert re.fullmatch(r"ecjax: report: .*allowed: .*\n", capsys.readouterr().err)


def test_studies_that_differ_in_kind_are_told_apart(plans, tmp_path):
    adapted = [study("adapt", [{"mean_s": mean}]) for mean in (0.2, 0.1)]
    assert difference(*adapted) == "B has a mean latency, in s, of 0.1, A 0.2 (-50.00%)."
    timings = [
        study("bench", [{}], bench=[{"case": "c", "variant": v, "size": "s", "median_s": t} for v, t in rows])
        for rows in ((("a", 1.0), ("b", 1.0)), (("a", 4.0), ("b", 1.0), ("c", 9.0)))
    ]
    assert "the 2 timings that both have, B takes 2 times as long as A" in difference(*timings)
    assert "no number stands for both" in difference(adapted[0], timings[0])


def test_reproductions_are_compared_over_the_claims_that_both_judged():
    def judged(**verdicts):
        """Of runs by name: verdicts of claims ``id-size``."""
        runs = [{"run_id": run, "claim_count": len(claims)} for run, claims in verdicts.items()]
        rows = [
            {"run_id": run, "id": name.split("-")[0], "size": name.split("-")[1], "verdict": verdict}
            for run, claims in verdicts.items()
            for name, verdict in claims.items()
        ]
        return study("reproduce", runs, claims=rows)

    one = judged(
        r1={"a-small": "holds", "b-small": "does not hold", "c-small": "holds", "d-full": "holds"},
        # of an earlier version, with fewer claims
        r2={"a-small": "does not hold"},
    )
    # one claim was not judged, one at another size, and there is one more
    other = judged(
        r1={
            "a-small": "holds",
            "b-small": "holds",
            "c-small": "not judged",
            "d-small": "holds",
            "e-full": "holds",
        }
    )
    assert difference(one, other) == "Claims that hold, of the 2 that both judged: 2 in B, 1 in A (+100.00%)."
    alone = judged(r1={"a-small": "holds"})
    assert difference(one, alone) == "Claims that hold, of the 1 that both judged: 1 in B, 1 in A: the same."
    assert difference(judged(r1={"e-small": "holds"}), other) == "A and B judged no claim in common."


def test_pictures_are_png_and_svg_and_the_same_again(plans, tmp_path, capsys):
    assert main(["report", str(plans), f"pictures={tmp_path}/a", "figures=tradeoff"]) == 0
    assert main(["report", str(plans), f"pictures={tmp_path}/b", "figures=tradeoff"]) == 0
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["tradeoff.png", "tradeoff.svg"]
    for name in ("tradeoff.png", "tradeoff.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert HOSTILE not in (tmp_path / "a" / "tradeoff.svg").read_text()
    capsys.readouterr()
    for words, allowed in ((["figures=nothing"], "tradeoff"), (["page=x"], "one of"), (["pictures="], "")):
        assert main(["report", str(plans), f"pictures={tmp_path}/c", *words]) == 2
        assert re.fullmatch(rf"ecjax: report: .*allowed: {allowed}.*\n", capsys.readouterr().err)
    assert not (tmp_path / "c").exists()


def latencies(place):
    return {"mean_s": 0.1 + place, "p50_s": 0.09 + place, "p99_s": 0.5 + place}


NAMES = (HOSTILE, "\u202eright to left \u05d0", "x" * 100_000)
STUDIES = {
    "codes": lambda: study(
        "codes",
        [{}],
        codes=[
            {
                "code": name,
                "overhead": 1.5 + place,
                "nines": 9.0 + place,
                "durable": True,
                "any_loss_probability": 1e-9,
            }
            for place, name in enumerate(NAMES)
        ],
    ),
    "reproduce": lambda: study(
        "reproduce",
        [{}],
        claims=[
            {"id": name, "paper": "p", "verdict": "holds", "paper_value": "2.0", "ours": 3.0, "why": "w"}
            | {"ours_low": 2.5, "ours_high": 3.5}
            for name in NAMES
        ],
    ),
    "replay": lambda: study(
        "replay",
        [{"policy": NAMES[0], "mean_s": 0.1, "latency_s": 0.2}],
        latency_bins=[
            {"group": "all", "source": "replayed", "upper_s": 0.1 * upper, "count": 5} for upper in (1, 2, 3)
        ],
        latencies=[
            {"group": "all", "source": "bound", "p50_s": 0.2, "p90_s": 0.3, "p99_s": 0.4, "p999_s": 0.5}
        ],
    ),
    "schedule": lambda: study(
        "schedule",
        [{"scheduler": name} | latencies(place) for place, name in enumerate(NAMES)],
        coflows=[
            {"scheduler": NAMES[0], "sources": "given", "completion_s": 0.1 * place} for place in range(1, 9)
        ],
    ),
    "adapt": lambda: study(
        "adapt",
        [{"strategy": NAMES[0], "rate_per_s": 1.0 + place} | latencies(place) for place in range(3)],
        codes=[{"class": NAMES[1], "n": 3, "k": 2, "share": 1.0}],
    ),
    "cache": lambda: study(
        "cache", [{"policy": name, "chunk_hit_ratio": 0.5} | latencies(1) for name in NAMES]
    ),
    "ceph": lambda: study(
        "ceph",
        [{}],
        osds=[{"osd": osd, "load_before": 1.5, "load": 1.0} for osd in range(12)],
        batches=[
            {"batch": batch, "max_over_mean": 1.5 - batch / 10, "moved_chunks": batch} for batch in range(3)
        ],
    ),
    "bench": lambda: study(
        "bench",
        [{}],
        bench=[
            {"case": "c", "variant": name, "size": "s", "median_s": 1e-3, "min_s": 1e-4} for name in NAMES
        ],
    ),
    "analyze": lambda: study(
        "analyze",
        [{}],
        nodes=[{"node_id": name, "load": 0.5} for name in NAMES],
        files=[{"rate_per_s": 1.0 / rank} for rank in range(1, 9)],
    ),
    "optimize": lambda: study(
        "optimize",
        [{"method": NAMES[0], "theta": 1.0, "cost_dollars_per_period": 2.0, "latency_s": 0.2}],
        placements=[{"file_id": name, "group": None, "node_id": HOSTILE, "chunks": 2} for name in NAMES],
    ),
}


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as browsers:
        launched = browsers.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


def opened(browser, path, width=390, scheme="light"):
    """A page, what went wrong on it, and what it asked for."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    wrong, requests = [], []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(path.as_uri())
    page.wait_for_function(
        "[...document.querySelectorAll('.chart')].every(box => box.querySelector('.main-svg'))"
    )
    return page, wrong, requests


MARKS = "box => box.querySelectorAll('.point, .hm image, .js-line').length"


@pytest.mark.parametrize("job", STUDIES)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1100, "light")])
def test_pages_of_every_job_in_a_browser(browser, tmp_path, job, width, scheme):
    kinds = kinds_of(STUDIES[job]())
    assert not any("cannot be shown" in warning for section in kinds.values() for warning in section.warnings)
    path = tmp_path / "report.html"
    path.write_text(document("t", [[section] for section in kinds.values()], "0"), "utf-8")
    page, wrong, requests = opened(browser, path, width, scheme)
    charts = page.query_selector_all(".chart")
    assert charts and all(chart.evaluate(MARKS) for chart in charts)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for chart in charts:
        chart.focus()
        page.keyboard.press("ArrowRight")
        chart.wait_for_selector(".hoverlayer .hovertext text.nums")
    buttons = {button.get_attribute("data-title") for button in page.query_selector_all(".modebar-btn")}
    assert buttons <= {"Download plot as a PNG", "Zoom", "Pan", "Reset axes"}  # none sends anything
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert wrong == [] and len(requests) == 1
    page.close()


def test_hovering_shows_what_the_table_has(browser, plans):
    page, wrong, requests = opened(browser, plans / "report.html")
    loads = page.query_selector("figure:has(figcaption:text-is('Load of nodes'))")
    loads.query_selector(".chart").focus()
    page.keyboard.press("ArrowRight")
    hover = loads.wait_for_selector(".hoverlayer .hovertext text.nums").text_content()
    row = loads.eval_on_selector("tbody tr", "row => [...row.children].map(cell => cell.textContent)")
    assert row[0] in hover and f"{float(row[1]):.5g}" in hover
    heat = page.query_selector("figure:has(.hm)")
    heat.query_selector(".chart").focus()
    page.keyboard.press("ArrowRight")
    hover = heat.wait_for_selector(".hoverlayer .hovertext text.nums").text_content()
    assert "chunks" in hover and "node" in hover
    page.keyboard.press("Tab")
    assert wrong == [] and len(requests) == 1
    page.close()


def test_an_empty_study_is_a_page_that_says_so(browser, tmp_path):
    results = study("optimize", [{}])
    empty = Results("out", "optimize", results.runs.slice(0, 0), ["runs"], None, {})
    path = tmp_path / "report.html"
    path.write_text(document("t", [[section] for section in kinds_of(empty).values()], "0"), "utf-8")
    page, wrong, requests = opened(browser, path)
    assert "This study is empty" in page.query_selector(".warning").text_content()
    assert wrong == [] and len(requests) == 1
    page.close()
