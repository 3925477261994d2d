"""Figures of ``ecjax cache``: what is drawn is what the tables say."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from ecjax.plotting.looks import MARKS
from ecjax.studies.cache.figures import kinds as cache
from ecjax.studies.cache.figures import sampling as cache_sampling
from ecjax.studies.cache.figures.bars import decisions, edges, failures, policies, throughput
from ecjax.studies.cache.figures.lines import neighbours, sweep
from ecjax.studies.cache.recommend import recommend, recommend_sampling
from ecjax.studies.cache.summary import show, show_plans
from ecjax.studies.cache.tables import TABLES
from ecjax.studies.cache.words import over_seeds, planned, policy_name, replayed, varying
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

POLICIES = [("optimal_static", None), ("exact", None), ("samplex", 1), ("samplex", 5), ("none", None)]
CAPACITIES = (10, 20)
FAILED = (None, "a/0", "a/1", "b/0", "b/1")
SEEDS = 2


def value(place, capacity, down, seed):
    return 1.0 + place + 1 / capacity + 0.5 * down + 0.2 * seed


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Five policies at two capacities, all up and each of four buckets down, two seeds, two edges."""
    folder = tmp_path_factory.mktemp("figures")
    with ResultStore(folder, TABLES, {}) as store:
        rows, latencies = [], []
        for capacity in CAPACITIES:
            for down, failed in enumerate(FAILED):
                for seed in range(SEEDS):
                    for place, (policy, samples) in enumerate(POLICIES):
                        name = f"{place}-{capacity}-{down}-{seed}"
                        mean = value(place, capacity, down, seed)
                        row = {"run_id": name, "status": "ok", "policy": policy, "samples": samples}
                        row |= {
                            "k": 6,
                            "capacity": capacity,
                            "copies": 0,
                            "items": 9,
                            "failed": failed,
                            "half_life_s": 60.0,
                            "zipf": 1.0,
                        }
                        row |= dict.fromkeys(("mean_s", "p50_s", "p90_s", "p99_s", "p999_s"), mean)
                        row |= dict.fromkeys(("ci_s", "p50_ci_s", "p90_ci_s", "p99_ci_s"), 0.1)
                        row |= {"chunk_hit_ratio": 0.1 * place, "full_hit_ratio": 0.05 * place}
                        row |= {"decision_mean_s": 1e-6, "decision_p99_s": 2e-6, "decision_p9999_s": 9e-6}
                        row |= {"requests_per_s": 1000.0 * (place + 1), "above_optimum": 0.01 * place}
                        row |= {"filled_chunks": 3, "failed_reads": 0, "seed": seed}
                        rows.append(row)
                        latencies += [
                            {"run_id": name, "group": "edge", "edge": e, "mean_s": mean + i}
                            for i, e in enumerate(("x", "y"))
                        ]
        store.commit(rows, {"latencies": pa.Table.from_pylist(latencies)})
    return folder


@pytest.fixture(scope="module")
def runs(out):
    found = read_results(out, "runs").set_index("run_id", drop=False)
    order = [
        f"{place}-{capacity}-{down}-{seed}"
        for capacity in CAPACITIES
        for down in range(len(FAILED))
        for seed in range(SEEDS)
        for place in range(len(POLICIES))
    ]
    return replayed(found.loc[order].reset_index(drop=True))


def up(runs):
    return runs[runs["failed"].isna()]


def test_over_seeds_are_means(runs):
    told = over_seeds(runs)
    assert len(told) == len(POLICIES) * len(CAPACITIES) * len(FAILED) and (told["seeds"] == SEEDS).all()
    assert list(told["name"][:5]) == ["static optimum", "exact", "SampleX (1)", "SampleX (5)", "no cache"]
    assert_allclose(told["mean_s"].iloc[1], value(1, 10, 0, 0.5))
    # two seeds that differ by 0.2: a deviation of 0.2 / sqrt(2), and Student's quantile with one degree of freedom
    assert_allclose(told["ci_s"], 12.7062 * 0.1, rtol=1e-5)


def test_policies_are_bars_of_means_and_hits(out, runs):
    figure = policies(out, up(runs))
    assert [axes.get_title() for axes in figure.axes] == [
        f"chunks kept = {count}" for count in (10, 10, 20, 20)
    ]
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert_allclose(heights, [value(place, 10, 0, 0.5) for place in range(5)])
    hits = [bar.get_height() for bar in figure.axes[1].patches]
    assert_allclose(hits, [0.1 * p for p in range(5)] + [0.05 * p for p in range(5)])


def test_sweep_has_a_line_per_policy(out, runs):
    figure = sweep(out, up(runs))
    latency, above, _, decide = figure.axes
    drawn = [line.get_xydata() for line in latency.get_lines() if line.get_marker() in MARKS]
    assert len(drawn) == 5
    for place, points in enumerate(drawn):
        assert_allclose(points, [[c, value(place, c, 0, 0.5)] for c in CAPACITIES])
    own = [line.get_ydata() for line in above.get_lines() if line.get_marker() in MARKS]
    assert_allclose(
        np.array(own, float), [[1, 1], [2, 2], [3, 3]]
    )  # per cent; not of what has nothing to decide
    times = [line.get_ydata() for line in decide.get_lines() if line.get_marker() in MARKS]
    assert_allclose(np.array(times, float), np.full((3, 2), 1e-6))
    assert decide.get_ylabel() == "mean time to decide (µs)"
    looks = [
        (line.get_marker(), line.get_linewidth(), str(line.get_linestyle())) for line in latency.get_lines()
    ]
    looks = [each for each in looks if each[0] in MARKS]
    assert (
        len({mark for mark, _, _ in looks}) == 5
        and sorted(w for _, w, _ in looks) == [w for _, w, _ in looks][::-1]
    )
    assert sweep(out, runs[runs["capacity"] == 10]) is None


def test_failures_span_what_is_down_in_turn(out, runs):
    figure = failures(out, runs[runs["capacity"] == 20])
    (axes,) = figure.axes
    points = [line.get_xydata() for line in axes.get_lines() if line.get_marker() == "o"]
    down = [value(0, 20, d, 0.5) for d in range(1, 5)]
    assert_allclose(points[0], [[0, np.mean(down)]])
    assert_allclose(points[1], [[0, value(0, 20, 0, 0.5)]])  # all up
    (low, high) = axes.collections[0].get_segments()[0][:, 1]
    assert_allclose([low, high], [min(down), max(down)])
    assert failures(out, up(runs)) is None


def test_decisions_and_throughput(out, runs):
    own = up(runs[runs["capacity"] == 10])
    (axes,) = decisions(out, own).axes
    assert not axes.patches  # a bar has no length on a logarithmic axis
    assert_allclose(
        [line.get_ydata() for line in axes.get_lines()], np.repeat([[1e-6], [2e-6], [9e-6]], 3, axis=1)
    )
    assert decisions(out, own[own["policy"].isin(["none", "optimal_static"])]) is None
    (axes,) = throughput(out, own).axes
    assert not axes.patches
    assert_allclose(
        [line.get_ydata() for line in axes.get_lines()], np.array([[1], [2], [3], [4], [5]], float)
    )


def test_edges_have_a_bar_each(out, runs):
    (axes,) = edges(out, up(runs[runs["capacity"] == 10])).axes
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(2, 5)
    assert_allclose(heights[1] - heights[0], 1.0)
    assert_allclose(heights[0], [value(place, 10, 0, 0.5) for place in range(5)])


def test_of_many_edges_the_first_are_shown(tmp_path):
    row = {"run_id": "a", "status": "ok", "policy": "lru", "k": 6, "capacity": 10, "items": 9, "mean_s": 1.0}
    means = [{"run_id": "a", "group": "edge", "edge": f"edge-{e}", "mean_s": 1.0 + e} for e in range(30)]
    with ResultStore(tmp_path, TABLES, {}) as store:
        store.commit([row], {"latencies": pa.Table.from_pylist(means[::-1])})
    figure = edges(tmp_path, replayed(read_results(tmp_path, "runs")))
    assert_allclose([bar.get_height() for bar in figure.axes[0].patches], 1.0 + np.arange(12))
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [f"edge-{e}" for e in range(12)]
    assert figure.get_suptitle() == "Latency by edge (12 of 30 edges)"


def test_neighbours_are_a_line_beside_level_ones(out, runs):
    own = up(runs[runs["capacity"] == 10])
    assert neighbours(out, own) is None
    near = own[own["policy"] == "exact"]
    parts = [near.assign(policy="cooperative", neighbour_s=h, mean_s=h + near["mean_s"]) for h in (0.5, 0.1)]
    (axes,) = neighbours(out, replayed(pd.concat([own, *parts]))).axes
    line = next(each for each in axes.get_lines() if each.get_marker() == "o")
    assert_allclose(line.get_xydata(), [[h, h + value(1, 10, 0, 0.5)] for h in (0.1, 0.5)])
    level = [each.get_ydata()[0] for each in axes.get_lines() if list(each.get_xdata()) == [0, 1]]
    assert_allclose(np.array(level, float), [value(place, 10, 0, 0.5) for place in range(5)])


def test_the_table_tells_what_is_down_in_turn_together(out, runs):
    console = Console(file=StringIO(), width=140)
    show(runs, console, "out")
    text = console.file.getvalue()
    assert "4 in turn" in text and "a/0" not in text and "2 seeds" in text
    mean = np.mean([value(1, 20, d, 0.5) for d in range(1, 5)])
    assert f"{mean:.4g}" in text
    console = Console(file=StringIO(), width=140)
    show(runs[runs["failed"].isin(["a/0", "a/1"])], console, "out")
    assert "a/0" in console.file.getvalue()


def test_what_cannot_be_drawn_is_said(out, runs, capsys):
    cache.draw(out, up(runs[runs["capacity"] == 10]), ["sweep", "failures", "edges"], Console(width=200))
    words = capsys.readouterr().out
    assert "figure sweep: needs runs that differ in k, capacity" in words
    assert "figure failures: needs nodes or buckets" in words and "edges.png" in words


def test_names():
    assert policy_name("samplex", 5.0) == "SampleX (5)" and policy_name("decayed_lfu") == "decayed LFU"
    assert policy_name("cooperative", np.nan, 0.05) == "neighbours (50 ms)"
    assert policy_name("exact", np.nan) == "exact" and policy_name("of_ours") == "of ours"


def row_of(policy, half_life_s, mean_s):
    point = {"k": 2, "capacity": 6, "copies": 0, "items": 9, "zipf": 1.0, "failed": None, "seed": 0}
    point |= {"arrivals": "poisson", "rate_per_s": 1.0, "rate_scale": np.nan, "params": "{}", "input_id": "i"}
    times = dict.fromkeys(("p50_s", "p90_s", "p99_s", "p999_s", "chunk_hit_ratio", "full_hit_ratio"), 0.5)
    others = ("neighbour_hit_ratio", "filled_chunks", "failed_reads", "requests_per_s", "above_optimum")
    others += ("ci_s", "p50_ci_s", "p90_ci_s", "p99_ci_s")
    times |= dict.fromkeys((*others, "decision_mean_s", "decision_p99_s", "decision_p9999_s"), 0.0)
    names = {"run_id": f"{policy}{half_life_s}", "policy": policy, "samples": np.nan, "neighbour_s": np.nan}
    return point | times | names | {"half_life_s": half_life_s, "mean_s": mean_s}


def test_who_has_no_half_life_is_at_the_point_of_the_others():
    rows = [row_of("exact", np.nan, 2.0), row_of("lru", 1800.0, 3.0), row_of("belady", 1800.0, 1.0)]
    means = over_seeds(pd.DataFrame(rows))
    assert varying(means) == [] and list(means["name"]) == ["exact", "LRU", "Belady, a bound"]
    # what knows all reads is not recommended
    assert recommend(pd.DataFrame(rows)).sentence.startswith("Recommended: policy exact: 2")
    both = over_seeds(pd.DataFrame([*rows, row_of("exact", 1800.0, 2.5)]))
    assert list(both["name"]) == ["exact", "LRU", "Belady, a bound", "exact, counters"]
    swept = over_seeds(pd.DataFrame([row_of("exact", 5.0, 2.0), row_of("exact", 60.0, 3.0)]))
    assert varying(swept) == ["half_life_s"] and set(swept["name"]) == {"exact"}


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        ((7, 7, 7), None),
        ((4, 7, 7), "4 failed with it, 7 with the"),
        ((7, 7, 1234), "7 failed with it, 7 to 1,234"),
    ],
)
def test_policies_that_fail_different_reads_are_told(failed, words):
    names, means = ("exact", "lru", "none"), (1.0, 2.0, 3.0)
    rows = [row_of(name, 60.0, mean) for name, mean in zip(names, means, strict=True)]
    rows = [row | {"failed_reads": count} for row, count in zip(rows, failed, strict=True)]
    sentence = recommend(pd.DataFrame(rows)).sentence
    assert "did not fail" not in sentence if words is None else f"did not fail: {words}" in sentence


def test_partitions_are_drawn_in_order(tmp_path):
    latency = np.array([5.0, 4.0, 3.0, 3.5])
    with ResultStore(tmp_path, TABLES, {}) as store:
        point = {
            "status": "ok",
            "k": 2,
            "capacity": 6,
            "copies": 0,
            "items": 9,
            "seed": 0,
            "half_life_s": 60.0,
            "zipf": 1.0,
        }
        rows = [{"run_id": "all", "scheme": "optimal", "mean_s": 3.0, "above_optimum": 0.0} | point]
        for samples, mean in ((1, 3.5), (4, 3.0)):
            row = {"run_id": f"s{samples}", "scheme": "samplex", "samples": samples, "mean_s": mean}
            rows.append(row | point | {"ci_s": 0.2, "above_optimum": mean / 3 - 1, "solve_s": 1e-3})
        table = pa.table({"run_id": ["all"] * 4, "place": np.linspace(0, 1, 4), "mean_s": latency})
        store.commit(rows, {"partitions": table})
    runs = planned(read_results(tmp_path, "runs"))
    (axes,) = cache_sampling.sequence(tmp_path, runs).axes
    points, best = axes.get_lines()
    assert_allclose(points.get_ydata(), latency)
    assert_allclose(best.get_ydata(), 3.0)
    (axes,) = cache_sampling.sampling(tmp_path, runs).axes
    line = next(each for each in axes.get_lines() if each.get_marker() == "o")
    assert_allclose(line.get_xydata(), [[1, 3.5], [4, 3.0]])
    (axes,) = cache_sampling.distribution(tmp_path, runs).axes
    assert_allclose(axes.get_lines()[0].get_xydata(), [[3, 0.25], [3.5, 0.5], [4, 0.75], [5, 1]])
    console = Console(file=StringIO(), width=120)
    show_plans(runs, console, "out")
    assert "+16.67%" in console.file.getvalue()


def seeds_of(arrivals, means, half_width_s):
    """Replays of one policy, a seed each."""
    return pd.DataFrame(
        row_of("lru", 60.0, mean) | {"seed": seed, "arrivals": arrivals, "ci_s": half_width_s}
        for seed, mean in enumerate(means)
    )


@pytest.mark.parametrize(
    ("arrivals", "means", "half_width_s", "told"),
    [
        # a log's reads are the same sixteen times; generated ones are not
        ("trace", [2.0] * 16, 0.1, 0.1),
        ("poisson", [2.0] * 16, 0.1, 0.1 / 4),
        # other places shift the mean: a deviation of 1, and Student's quantile with two degrees of freedom
        ("trace", [1.0, 2.0, 3.0], 0.1, 4.302653 / np.sqrt(3)),
        ("poisson", [1.0, 2.0, 3.0], 0.1, 4.302653 / np.sqrt(3)),
        # too few reads for intervals of single replays: seeds tell it only where they draw the reads
        ("trace", [1.0, 2.0, 3.0], np.nan, np.nan),
        ("poisson", [1.0, 2.0, 3.0], np.nan, 4.302653 / np.sqrt(3)),
        ("trace", [2.0], 0.1, 0.1),
    ],
)
def test_what_seeds_tell_of_a_mean(arrivals, means, half_width_s, told):
    (row,) = over_seeds(seeds_of(arrivals, means, half_width_s)).to_dict("records")
    assert row["ci_s"] == pytest.approx(told, rel=1e-6, nan_ok=True)


def test_seeds_of_what_is_down_in_turn_count_once():
    first, second = (seeds_of("poisson", means, np.nan) for means in ([1.0, 2.0], [3.0, 4.0]))
    (row,) = over_seeds(pd.concat([first, second]).assign(failed="2 in turn")).to_dict("records")
    # means of 2 and 3
    assert row["ci_s"] == pytest.approx(12.7062 * 0.5, rel=1e-5)


def states(*rows):
    """Replays by policy, what is down, and mean."""
    return pd.DataFrame(
        row_of(policy, 60.0, mean) | {"failed": failed, "run_id": f"{policy}{failed}"}
        for policy, failed, mean in rows
    )


def test_recommended_numbers_are_with_all_up_or_name_what_is_down():
    up = [("exact", None, 2.0), ("lru", None, 3.0)]
    down = [("exact", "a", 4.0), ("lru", "a", 9.0)]  # where policies differ most
    told = recommend(states(*up, *down))
    assert told.run_id == "exactNone"
    assert told.sentence.startswith(
        "Recommended: policy exact, fastest at 2 of 2 points; with all up: 2 s mean"
    )
    # fastest only where something is down
    up = [("exact", None, 3.0), ("lru", None, 2.0)]
    told = recommend(states(*up, *down, ("exact", "b", 5.0), ("lru", "b", 6.0)))
    assert told.run_id == "exacta"
    assert told.sentence.startswith(
        "Recommended: policy exact, fastest at 2 of 3 points; with a down: 4 s mean"
    )
    assert recommend(states(*down)).sentence.startswith("Recommended: policy exact with a down: 4 s mean")
    assert recommend(states(*up)).sentence.startswith("Recommended: policy LRU: 2 s mean")


def plan_of(scheme, samples, above, seed=0, capacity=6):
    """A row of the study of sampling whose best mean is 2 s with seed 0, 1 s with seed 1."""
    point = {"status": "ok", "k": 2, "capacity": capacity, "copies": 0, "items": 9, "zipf": 1.0, "seed": seed}
    names = {"run_id": f"{scheme}{samples}-{capacity}-{seed}", "scheme": scheme, "samples": samples}
    times = {"mean_s": (1 + above) * (2.0 - seed), "above_optimum": above, "solve_s": 0.1 * (1 + seed)}
    inputs = dict.fromkeys(("arrivals", "rate_per_s", "rate_scale")) | {"params": "{}", "input_id": "i"}
    return point | names | times | inputs | {"failed": None, "half_life_s": None}


def test_the_way_to_sample_is_recommended_by_all_seeds():
    of_seeds = {("samplex", 5): (0.0, 0.1), ("rands", 5): (0.04, 0.04), ("exact", None): (0.0, 0.0)}
    rows = [
        plan_of(*way, above, seed) for way, values in of_seeds.items() for seed, above in enumerate(values)
    ]
    told = recommend_sampling(pd.DataFrame(rows))
    assert told.run_id == "rands5-6-0"
    assert told.sentence == (
        "Recommended: RandS of 5 partitions: 4 % above the best plan, found in 150 ms; exact finds the best in 150 ms."
    )


def test_the_way_to_sample_is_recommended_by_most_points():
    at_points = {("samplex", 5): (0.0, 0.05, 0.06), ("rands", 5): (0.01, 0.02, 0.03)}
    rows = [
        plan_of(*way, above, capacity=capacity)
        for way, values in at_points.items()
        for capacity, above in zip((6, 8, 10), values, strict=True)
    ]
    rows.append(plan_of("exact", None, 0.0, capacity=10) | {"solve_s": 0.7})
    told = recommend_sampling(pd.DataFrame(rows))
    assert told.run_id == "rands5-10-0"
    assert told.sentence == (
        "Recommended: RandS of 5 partitions, closest at 2 of 3 points; at chunks kept = 10: 3 % above the best plan, "
        "found in 100 ms; exact finds the best in 700 ms."
    )


def test_partitions_and_plans_of_a_figure_are_of_one_seed(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as store:
        for seed in (0, 1):
            rows = [plan_of("optimal", None, 0.0, seed), plan_of("samplex", 1, 0.5, seed)]
            latency = rows[0]["mean_s"] * np.array([2.0, 1.0])
            places = {"run_id": [rows[0]["run_id"]] * 2, "place": [0.0, 1.0], "mean_s": latency}
            store.commit(rows, {"partitions": pa.table(places)})
    runs = planned(read_results(tmp_path, "runs").sort_values("seed", kind="stable"))
    figure = cache_sampling.sequence(tmp_path, runs)
    points, best = figure.axes[0].get_lines()
    assert_allclose(points.get_ydata(), [4.0, 2.0])
    assert_allclose(best.get_ydata(), 2.0)
    assert "one of 2 seeds" in figure.get_suptitle()
    figure = cache_sampling.distribution(tmp_path, runs)
    values, line = figure.axes[0].get_lines()
    assert_allclose(values.get_xdata(), [2.0, 4.0])
    assert_allclose(line.get_xdata(), 3.0)
    assert "one of 2 seeds" in figure.get_suptitle()


def test_of_ways_to_sample_that_lead_equally_often_the_nearest_is_recommended():
    at_points = {("samplex", 5): (0.0, 0.05), ("rands", 5): (0.04, 0.0)}
    rows = [
        plan_of(*way, above, capacity=capacity)
        for way, values in at_points.items()
        for capacity, above in zip((6, 8), values, strict=True)
    ]
    assert recommend_sampling(pd.DataFrame(rows)).sentence == (
        "Recommended: RandS of 5 partitions, closest at 1 of 2 points; at chunks kept = 8: as good as the best plan, "
        "found in 100 ms."
    )


@pytest.mark.parametrize(
    ("first", "second", "settings"),
    [
        ({"params": '{"parity": 2}'}, {"params": '{"parity": 3}'}, ["parity=2", "parity=3"]),
        ({"params": '{"jitter": 0.0}'}, {"params": '{"jitter": 0.5}'}, ["jitter=0", "jitter=0.5"]),
        ({"rate_per_s": 1.0}, {"rate_per_s": 2.0}, ["rate_per_s=1", "rate_per_s=2"]),
        # the rate of a log follows from its scale
        (
            {"arrivals": "trace", "rate_per_s": 1.0, "rate_scale": 1.0},
            {"arrivals": "trace", "rate_per_s": 2.0, "rate_scale": 2.0},
            ["rate_scale=1", "rate_scale=2"],
        ),
        ({"input_id": "0123456789"}, {"input_id": "fed"}, ["input 012345", "input fed"]),
    ],
)
def test_runs_that_differ_in_more_than_their_seed_are_no_seeds(first, second, settings):
    # by policy, as a folder has them in no order
    runs = pd.DataFrame(
        row_of(policy, 60.0, mean + seed) | {"seed": seed, "requests": 100, "error": None} | own
        for policy, faster in (("lru", 0.0), ("arc", 0.5))
        for own, mean in ((first, 4.0 - faster), (second, 8.0 - faster))
        for seed in (0, 1)
    )
    told = over_seeds(runs)
    assert told["setting"].tolist() == [settings[0]] * 2 + [settings[1]] * 2
    assert told["name"].tolist() == ["LRU", "ARC"] * 2 and told["seeds"].tolist() == [2] * 4
    assert_allclose(told["mean_s"], [4.5, 4.0, 8.5, 8.0])
    # Student's quantile with one degree of freedom times the deviation of two means that are 1 apart, by sqrt(2)
    assert_allclose(told["ci_s"], 12.7062 / 2, rtol=1e-5)
    console = Console(file=StringIO(), width=200)
    show(runs, console, "out")
    text = console.file.getvalue()
    assert "2 seeds" in text and all(word in text for word in settings)
    figure = policies("out", replayed(runs))
    assert [axes.get_title() for axes in figure.axes] == [word for word in settings for _ in range(2)]
    assert_allclose([bar.get_height() for bar in figure.axes[2].patches], [8.5, 8.0])


def test_a_sweep_has_a_row_of_panels_per_setting():
    runs = pd.DataFrame(
        row_of("lru", 60.0, 10.0 * parity + capacity)
        | {"capacity": capacity, "params": json.dumps({"parity": parity, "capacity": capacity})}
        | {"decision_mean_s": 1e-6}
        for parity in (2, 3)
        for capacity in (4, 8)
    )
    figure = sweep("out", replayed(runs))
    assert [axes.get_title() for axes in figure.axes[::4]] == ["parity=2", "parity=3"]
    for axes, parity in zip(figure.axes[::4], (2, 3), strict=True):
        (line,) = [line for line in axes.get_lines() if line.get_marker() in MARKS]
        assert_allclose(line.get_xydata(), [[4, 10 * parity + 4], [8, 10 * parity + 8]])


def test_a_parameter_of_one_policy_is_in_its_name():
    periods = [
        row_of("agar", 60.0, mean) | {"params": json.dumps({"period_s": mean})} for mean in (30.0, 60.0)
    ]
    told = over_seeds(pd.DataFrame([row_of("lru", 60.0, 3.0), *periods]))
    assert told["name"].tolist() == ["LRU", "Agar, period_s=30", "Agar, period_s=60"]
    assert varying(told) == [] and told["mean_s"].tolist() == [3.0, 30.0, 60.0]
    # a policy has one colour, also beside fewer others
    runs = pd.DataFrame([*periods, periods[1] | {"k": 3}])
    first, _, second, _ = policies("out", replayed(runs)).axes
    assert first.patches[1].get_facecolor() == second.patches[0].get_facecolor()
    # all with the same: there is nothing to tell apart
    assert over_seeds(pd.DataFrame(periods[:1]))["name"].tolist() == ["Agar"]


def test_plans_that_differ_in_more_than_their_seed_are_no_seeds(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as store:
        for rounds in (4, 8):
            own = {"params": json.dumps({"rounds": rounds})}
            rows = [
                plan_of(*way, above, seed) | own | {"run_id": f"{way[0]}-{rounds}-{seed}"}
                for seed in (0, 1)
                for way, above in ((("optimal", None), 0.0), (("samplex", 1), 1 / rounds))
            ]
            places = {"run_id": [f"optimal-{rounds}-0"], "place": [0.0], "mean_s": [float(rounds)]}
            store.commit(rows, {"partitions": pa.table(places)})
    runs = read_results(tmp_path, "runs").sort_values(["scheme", "seed"], kind="stable")
    console = Console(file=StringIO(), width=120)
    show_plans(runs, console, "out")
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    told = [(line[0], line[-2]) for line in lines if "SampleX" in line]
    assert sorted(told) == [("rounds=4", "+25.00%"), ("rounds=8", "+12.50%")]
    figure = cache_sampling.sequence(tmp_path, planned(runs))
    drawn = {axes.get_title(): axes.get_lines()[0].get_ydata().tolist() for axes in figure.axes}
    assert drawn == {"rounds=4": [4.0], "rounds=8": [8.0]}
