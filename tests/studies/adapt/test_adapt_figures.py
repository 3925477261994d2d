"""Figures of ``ecjax adapt``: what is drawn is what the tables say."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from ecjax.plotting.looks import MARKS
from ecjax.status import Status
from ecjax.studies.adapt.figures import kinds as adapt
from ecjax.studies.adapt.figures.bars import composition
from ecjax.studies.adapt.figures.lines import delay, deviation, tradeoff
from ecjax.studies.adapt.figures.tails import ccdf
from ecjax.studies.adapt.figures.timeline import timeline
from ecjax.studies.adapt.summary import show
from ecjax.studies.adapt.tables import TABLES
from ecjax.studies.adapt.words import over_seeds, replayed, strategy_name
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

LATENCIES = ("mean_s", "p50_s", "p90_s", "p99_s", "std_s")
HALVES = ("ci_s", "p50_ci_s", "p90_ci_s", "p99_ci_s", "std_ci_s")
STRATEGIES = [
    ("static", 1, 1),
    ("static", 2, 1),
    ("static", 3, 2),
    ("best_static", 1, 1),
    ("tofec", None, None),
    ("greedy", None, None),
]
SEEDS = 2


def value(place, rate, seed):
    return 1.0 + place + rate + 0.2 * seed


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Six strategies at two rates, two seeds, one law; (3, 2) is overloaded at the higher one."""
    folder = tmp_path_factory.mktemp("figures")
    with ResultStore(folder, TABLES, {}) as store:
        for rate in (1.0, 2.0):
            for seed in range(SEEDS):
                rows, codes, times = [], [], []
                for place, (method, n, k) in enumerate(STRATEGIES):
                    name = f"{method}{n}{rate}{seed}"
                    over = rate == 2 and n == 3
                    row = {"run_id": name, "strategy": method, "n": n, "k": k, "seed": seed, "delays": "law"}
                    row |= {"arrivals": "poisson", "rate_per_s": rate, "load": rate / 4, "rate_scale": 1.0}
                    row |= {"params": "{}", "input_id": "i"}
                    row |= {"status": str(Status.NOT_STATIONARY if over else Status.OK), "utilisation": 0.5}
                    row |= dict.fromkeys(LATENCIES, value(place, rate, seed)) | dict.fromkeys(HALVES, 0.1)
                    if method == "best_static":
                        least = {"value": 0.5 * rate, "n": 2, "k": 1}
                        row["envelope"] = json.dumps(dict.fromkeys(("p50_s", "p90_s", "p99_s"), least))
                    rows.append(row)
                    used = [(1, 30), (2, 70)] if method == "tofec" else [(1, 100)]
                    used = [(6, 20), (1, 80)] if method == "greedy" else used
                    codes += [
                        {"run_id": name, "class": "c", "n": d, "k": d, "requests": count} for d, count in used
                    ]
                    told = [(0, None), (2, 4.0)] if seed == 0 else [(1, 2.0 + place), (1, 7.0)]
                    times += [
                        {"run_id": name, "start_s": 5.0 * i, "requests": count, "mean_s": mean, "mean_k": 2.0}
                        for i, (count, mean) in enumerate(told)
                    ]
                tables = {"codes": pa.Table.from_pylist(codes), "timeline": pa.Table.from_pylist(times)}
                store.commit(rows, tables)
    return folder


@pytest.fixture(scope="module")
def runs(out):
    found = read_results(out, "runs").set_index("run_id", drop=False)
    order = [f"{m}{n}{rate}{seed}" for rate in (1.0, 2.0) for seed in range(SEEDS) for m, n, _ in STRATEGIES]
    return replayed(found.loc[order].reset_index(drop=True))


def lines(axes):
    """x and y of every line with points, by colour and style."""
    return [line.get_xydata() for line in axes.get_lines() if len(line.get_xydata())]


def test_delay_has_the_means_over_seeds(out, runs):
    figure = delay(out, runs)
    assert len(figure.axes) == 4
    for axes, name in zip(figure.axes, LATENCIES, strict=False):
        drawn = [line.get_xydata() for line in axes.get_lines() if line.get_marker() in MARKS]
        assert len(drawn) == len(STRATEGIES)
        # strategies in the order of the table; the middle of the two seeds
        for place, (points, (method, n, _)) in enumerate(zip(drawn, STRATEGIES, strict=True)):
            rates = [1.0] if n == 3 else [1.0, 2.0]
            right = [value(place, rate, 0.5) for rate in rates]
            if method == "best_static" and name != "mean_s":
                right = [0.5, 1.0]  # the envelope
            assert_allclose(points, np.column_stack([rates, right]))
    assert deviation(out, runs) is not None


def test_tradeoff_has_a_line_per_code_and_the_least(out, runs):
    (axes,) = tradeoff(out, runs).axes
    drawn = lines(axes)
    assert [len(own) for own in drawn] == [2, 2, 1, 2]
    assert_allclose(drawn[-1][:, 1], [value(0, 1.0, 0.5), value(0, 2.0, 0.5)])
    assert axes.get_yscale() == "log"
    assert tradeoff(out, runs[runs["strategy"] != "static"]) is None
    assert tradeoff(out, runs[runs["rate_per_s"] == 1]) is None


def test_composition_shows_strategies_that_change_k(out, runs):
    panels = composition(out, runs).axes
    assert [axes.get_title() for axes in panels] == ["TOFEC", "Greedy"]
    heights = [bar.get_height() for bar in panels[0].patches]
    assert_allclose(heights, [0.3, 0.3, 0.7, 0.7])
    assert_allclose([bar.get_height() for bar in panels[1].patches], [0.8, 0.8, 0.2, 0.2])
    assert composition(out, runs[runs["strategy"].isin(["static", "best_static"])]) is None


def test_timeline_weighs_seeds_by_their_requests(out, runs):
    one = runs[runs["rate_per_s"] == 1]
    latency, dimension, rate = timeline(out, one).axes
    first = lines(latency)[0]
    # one request with 2 s at 0, of the second seed; at 5 two with 4 s and one with 7 s
    assert_allclose(first, [[0, 2], [5, 5]])
    assert_allclose(lines(dimension)[0][:, 1], 2.0)
    assert_allclose(lines(rate)[0][0], [0, 1 / SEEDS / 5])


def test_what_cannot_be_drawn_is_said(out, runs, capsys):
    console = Console(width=200)
    adapt.draw(out, runs[runs["load"] == 0.25], ["tradeoff", "delay", "composition"], console)
    words = capsys.readouterr().out
    assert "figure tradeoff: needs two static codes and two rates" in words
    assert "figure delay: needs two rates" in words and "composition.png" in words
    adapt.draw(out, runs.assign(batch_id="none"), ["timeline"], console)
    assert "figure timeline: needs the dataset timeline, which was not written" in capsys.readouterr().out


def test_names():
    assert strategy_name("static", 3.0, 2.0) == "(3, 2)" and strategy_name("tofec") == "TOFEC"
    assert strategy_name("static", np.nan, np.nan) == "static"


def test_without_replays_there_is_nothing_to_tell(runs):
    assert over_seeds(runs.assign(mean_s=np.nan)).empty


def test_many_static_codes_alone_are_all_shown(out, runs):
    codes = [(2, 1), (2, 2), (3, 2), (3, 3), (4, 4), (5, 5)]
    one = runs[(runs["strategy"] == "static") & (runs["n"] == 1)]
    alone = replayed(pd.concat([one.assign(n=n, k=k) for n, k in codes]))
    for figure in (delay(out, alone), deviation(out, alone)):
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["static codes"]
        # seeds of one place: the middle of the two values at the higher rate, and the interval around it
        assert all(axes.get_ylim()[1] > value(0, 2.0, 0.5) for axes in figure.axes)
    console = Console(file=StringIO(), width=200)
    show(alone, console, "here")
    words = console.file.getvalue()
    assert all(f"{n}, {k}" in words for n, k in codes) and "more static codes" not in words


@pytest.mark.parametrize(
    ("counts", "rates"),
    [
        # requests of one seed in intervals of 5 s; steps go on to the end of the last one
        ([10, 0, 5], [2.0, 0.0, 1.0, 1.0]),
        ([10], [2.0, 2.0]),
    ],
)
def test_intervals_without_requests_are_gaps(tmp_path, counts, rates):
    name = "a"
    run = {
        "run_id": name,
        "strategy": "tofec",
        "seed": 0,
        "delays": "law",
        "arrivals": "poisson",
        "mean_s": 4.0,
    }
    run |= {"rate_per_s": 1.0, "load": 0.25, "rate_scale": 1.0, "status": str(Status.OK)}
    run |= {"params": json.dumps({"timeline_s": 5.0})}
    times = [
        {
            "run_id": name,
            "start_s": 5.0 * i,
            "requests": count,
            "mean_s": 4.0 if count else None,
            "mean_k": 2.0,
        }
        for i, count in enumerate(counts)
    ]
    with ResultStore(tmp_path, TABLES, {}) as store:
        store.commit([run], {"timeline": pa.Table.from_pylist(times)})
    stored = replayed(read_results(tmp_path, "runs"))
    latency, _, rate = timeline(tmp_path, stored).axes
    assert_allclose(lines(rate)[0], np.column_stack([5.0 * np.arange(len(rates)), rates]))
    assert_allclose(lines(latency)[0][:, 1], [4.0 if count else np.nan for count in counts])
    assert latency.get_lines()[0].get_marker() == "."  # a line of one point is not seen


TAILS = ("p50_s", "p90_s", "p99_s", "p999_s")
HALF_WIDTH_S = 0.25


def two_settings(folder, arrivals):
    """TOFEC with k_max of 1, and of 6 in half the time, two seeds each at two rates."""
    point = {"delays": "law", "arrivals": arrivals, "rate_scale": 1.0, "status": str(Status.OK)}
    with ResultStore(folder, TABLES, {}) as store:
        for k_max, faster in ((1, 1.0), (6, 2.0)):
            for rate in (1.0, 2.0):
                for seed in range(2):
                    name, mean = f"{k_max}-{rate}-{seed}", (3.0 + seed) * rate / faster
                    own = {"run_id": name, "strategy": "tofec", "seed": seed, "rate_per_s": rate}
                    params = json.dumps({"k_max": k_max, "timeline_s": 5.0})
                    run = point | own | {"load": rate / 4, "mean_s": mean, "params": params}
                    tail = {"run_id": name, "group": "all"} | dict.fromkeys(TAILS, mean)
                    tail |= {column.replace("_s", "_ci_s"): HALF_WIDTH_S for column in TAILS}
                    time = {"run_id": name, "start_s": 0.0, "requests": 10, "mean_s": mean, "mean_k": 1.0}
                    codes = [{"run_id": name, "class": "c", "k": k, "n": k} for k in (1, k_max + 1)]
                    codes = [row | {"requests": count} for row, count in zip(codes, (k_max, 1), strict=True)]
                    tables = {"latencies": [tail], "timeline": [time], "codes": codes}
                    tables = {each: pa.Table.from_pylist(rows) for each, rows in tables.items()}
                    store.commit([run], tables)
    return replayed(read_results(folder, "runs").sort_values("run_id"))


@pytest.mark.parametrize(
    ("arrivals", "half_width_s"), [("poisson", HALF_WIDTH_S / 2**0.5), ("trace", HALF_WIDTH_S)]
)
def test_tails_of_settings_are_apart_and_seeds_of_a_log_are_no_more_than_one(
    tmp_path, arrivals, half_width_s
):
    panels = ccdf(tmp_path, two_settings(tmp_path, arrivals)).axes
    assert [axes.get_title() for axes in panels] == ["k_max=1", "k_max=6"]
    # the middle of two seeds at the least rate
    for axes, mean in zip(panels, (3.5, 1.75), strict=True):
        ((line, _, (bars,)),) = axes.containers
        assert_allclose(line.get_xdata(orig=False), mean)
        for segment in bars.get_segments():
            assert_allclose(segment[:, 0], [mean - half_width_s, mean + half_width_s])


def test_settings_have_panels_of_their_own(tmp_path):
    runs = two_settings(tmp_path, "poisson")
    figure = timeline(tmp_path, runs[runs["rate_per_s"] == 1])
    first, second = figure.axes[:2]
    assert [first.get_title(), second.get_title()] == ["k_max=1", "k_max=6"]
    assert [lines(axes)[0].tolist() for axes in (first, second)] == [[[0.0, 3.5]], [[0.0, 1.75]]]
    # ten requests of each seed in 5 s
    assert_allclose([lines(axes)[0][0] for axes in figure.axes[4:6]], [[0, 2], [0, 2]])
    panels = composition(tmp_path, runs).axes
    assert [axes.get_title() for axes in panels] == ["TOFEC, k_max=1", "TOFEC, k_max=6"]
    for axes, k_max in zip(panels, (1, 6), strict=True):
        heights = np.array([bar.get_height() for bar in axes.patches])
        assert_allclose(heights, np.repeat([k_max / (k_max + 1), 1 / (k_max + 1)], 2))
