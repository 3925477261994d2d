"""Figures of replayed transfers: every kind shows the numbers of its tables."""

import json
from io import StringIO

import matplotlib.image
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from ecjax.studies.schedule.figures import kinds as schedule
from ecjax.studies.schedule.tables import TABLES
from ecjax.studies.schedule.words import by_setting, groups, scheduler_name, sources_name
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

SCHEDULERS = {"fair": 1.0, "dtarget": 2.0, "aalo": 1.5}  # improvement with random sources
RULES = {"random": 1.0, "smallest_load": 1.25}
SEEDS = (0, 1, 2)
CLASSES = ("[10,14)", "[2,6)")  # not in their order


def run(scheduler="dtarget", sources="random", seed=0, n=8, **own) -> dict:
    """A run whose numbers tell scheduler, source rule, seed and n apart."""
    better = 1.0 if scheduler == "fair" else SCHEDULERS[scheduler] * (1 + 0.1 * seed) * n / 8
    mean = 10.0 / RULES[sources] / better
    row = {"run_id": f"{scheduler}-{sources}-{seed}-{n}", "job": "schedule", "status": "ok"}
    row |= {"scheduler": scheduler, "sources": sources, "seed": seed, "n": n, "k": 4, "share_at_zero": 0.0}
    row |= {"rate_scale": 1.0, "size_scale": 1.0, "mean_s": mean, "improvement": better}
    row |= {"lower_bound": 4.0, "gap": mean / 4.0 - 1}
    return row | own


def tables(row: dict) -> dict[str, pa.Table]:
    """Coflows of completion times mean / 2, mean, mean and 3 mean / 2, each half of it alone; two classes of widths."""
    named = {"run_id": row["run_id"], "scheduler": row["scheduler"], "sources": row["sources"]}
    times = row["mean_s"] * np.array([0.5, 1.0, 1.0, 1.5])
    coflows = [named | {"coflow_id": i, "completion_s": t, "isolation_s": t / 2} for i, t in enumerate(times)]
    widths = [
        named | {"width_class": name, "improvement": row["improvement"] * factor}
        for name, factor in zip(CLASSES, (1.2, 0.8), strict=True)
    ]
    return {"coflows": pa.Table.from_pylist(coflows), "coflow_widths": pa.Table.from_pylist(widths)}


def stored(folder, rows, write=None):
    with ResultStore(folder, TABLES, {"coflow_id": pa.int64()}, write) as store:
        for row in rows:
            store.commit([row], tables(row))
    found = read_results(folder, "runs").set_index("run_id").loc[[row["run_id"] for row in rows]]
    return by_setting(found.reset_index())


def drawn(out, runs, kinds) -> str:
    console = Console(file=StringIO(), width=300)
    schedule.draw(out, runs, kinds, console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """All schedulers and both rules at two n."""
    out = tmp_path_factory.mktemp("figures") / "out"
    rows = [
        run(scheduler, sources, seed, n)
        for n in (8, 16)
        for seed in SEEDS
        for sources in RULES
        for scheduler in SCHEDULERS
    ]
    return out, stored(out, rows)


def test_every_kind_is_drawn(study):
    out, runs = study
    text = drawn(out, runs, list(schedule.KINDS))
    for kind in schedule.KINDS:
        pixels = matplotlib.image.imread(out / "figures" / f"{kind}.png")
        assert pixels.shape[0] > 300 and pixels.shape[1] > 600
        assert np.mean(pixels[..., :3].min(axis=-1) < 0.9) > 0.005, "something other than white is on it"
        assert f"{kind}.png" in text


def test_what_is_missing_is_said(tmp_path):
    out = tmp_path / "out"
    runs = stored(out, [run("fair", gap=None, lower_bound=None)], write=["coflow_widths"])
    text = drawn(out, runs, list(schedule.KINDS))
    assert "figure improvement: needs a scheduler besides fair" in text
    assert "figure sources: needs two rules of source selection" in text
    assert "figure cdf: needs the dataset coflows, which was not written" in text
    assert "figure sweep: needs a scheduler besides fair, and runs that differ in n" in text
    assert "figure gap: needs lower_bound=true" in text
    assert not (out / "figures").exists()
    assert drawn(out, runs.assign(mean_s=np.nan), list(schedule.KINDS)) == ""


def test_improvement_by_width(study):
    out, runs = study
    own = runs[(runs["n"] == 8)]
    random, smallest = schedule.improvement(out, own).axes
    # dtarget before aalo; over the seeds 1, 1.1, 1.2 times; all, then narrow, then wide
    for axes in (random, smallest):
        heights = [bar.get_height() for bar in axes.patches]
        np.testing.assert_allclose(heights, 1.1 * np.array([2, 1.6, 2.4, 1.5, 1.2, 1.8]))
        assert [label.get_text() for label in axes.get_xticklabels()] == ["all", "[2,6)", "[10,14)"]
    assert [random.get_title(), smallest.get_title()] == ["random sources", "smallest load first"]
    ends = np.array([line.get_segments()[0][:, 1] for line in random.collections])
    np.testing.assert_allclose(ends[0], [2.0, 2.4])


def test_one_class_of_widths_is_all(tmp_path):
    rows = [run("dtarget"), run("fair")]
    out = tmp_path / "out"
    with ResultStore(out, TABLES, {"coflow_id": pa.int64()}) as store:
        for row in rows:
            store.commit([row], {"coflow_widths": tables(row)["coflow_widths"].slice(0, 1)})
    runs = by_setting(read_results(out, "runs"))
    axes = schedule.improvement(out, runs).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["all"] and len(axes.patches) == 1


def test_source_rules_side_by_side(study):
    out, runs = study
    first, second = schedule.sources(out, runs).axes
    assert [first.get_title(), second.get_title()] == ["chunks kept, n = 8", "chunks kept, n = 16"]
    seeds = np.mean([1 / (1 + 0.1 * seed) for seed in SEEDS])
    expected = np.array([10, 5 * seeds, 10 / 1.5 * seeds])  # fair, dtarget, aalo
    heights = [bar.get_height() for bar in first.patches]
    np.testing.assert_allclose(heights, [*expected, *expected / 1.25])
    assert [label.get_text() for label in first.get_xticklabels()] == ["max-min fair", "D-Target", "Aalo"]


def test_distance_to_the_bound(study):
    out, runs = study
    one = runs[(runs["n"] == 8) & (runs["seed"] == 0) & (runs["sources"] == "random")]
    axes = schedule.gap(out, one).axes[0]
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], [1.5, 0.25, 10 / 1.5 / 4 - 1])


def test_distribution_of_all_seeds_together(study):
    out, runs = study
    own = runs[(runs["n"] == 8) & (runs["scheduler"] == "fair") & (runs["sources"] == "random")]
    fair, alone = schedule.cdf(out, own).axes[0].get_lines()
    times = np.repeat([5, 10, 10, 15], 3)
    np.testing.assert_allclose(fair.get_xdata()[::2], times)
    np.testing.assert_allclose(fair.get_ydata()[::2], np.arange(1, 13) / 12)
    np.testing.assert_allclose(alone.get_xdata()[::2], times / 2)


def test_improvement_over_a_sweep(study):
    out, runs = study
    panels = schedule.sweep(out, runs[runs["scheduler"] != "aalo"]).axes
    titles = ["random sources", "smallest load first", "smallest load first over fair with random sources"]
    assert [axes.get_title() for axes in panels] == titles
    # fair takes 1.25 times as long with random sources
    for axes, factor in zip(panels, (1, 1, 1.25), strict=True):
        (line,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
        np.testing.assert_allclose(line.get_xdata(orig=False), [8, 16])
        np.testing.assert_allclose(line.get_ydata(orig=False), factor * np.array([2.2, 4.4]))
        assert axes.get_xlabel() == "chunks kept, n"
    assert len(schedule.sweep(out, runs[runs["scheduler"] != "fair"]).axes) == 2


def test_transfers_beside_generated_reads_have_no_place_in_their_sweep(tmp_path):
    generated = [run(scheduler, n=n) for n in (8, 16) for scheduler in ("fair", "dtarget")]
    transfers = [
        run(scheduler) | {"run_id": f"{scheduler}-given", "sources": "given", "n": None, "k": None}
        for scheduler in ("fair", "dtarget")
    ]
    (axes,) = schedule.sweep(tmp_path, stored(tmp_path, generated + transfers)).axes
    (line,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(line.get_xdata(orig=False), [8, 16])
    np.testing.assert_allclose(line.get_ydata(orig=False), [2, 4])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["8", "16"]


def test_names():
    assert scheduler_name("dtarget") == "D-Target" and scheduler_name("of_our_own") == "of our own"
    assert sources_name("smallest_load") == "smallest load first"


def test_groups_name_what_differs(study):
    _, runs = study
    assert [words for words, _ in groups(runs, ("n", "sources"))] == [
        f"chunks kept, n = {n}, {rule}" for n in (8, 16) for rule in ("random sources", "smallest load first")
    ]
    assert [words for words, _ in groups(runs, ("k",))] == [""]


def fabrics(*sizes):
    """Rows of two fabrics, on the second of which all takes ten times as long."""
    rows = [
        (run(scheduler, sources, n=n), speed, times)
        for speed, times in ((1e10, 1.0), (1e9, 10.0))
        for n in sizes
        for sources in RULES
        for scheduler in ("fair", "dtarget")
    ]
    return [
        row
        | {"run_id": f"{row['run_id']}-{speed:g}", "mean_s": times * row["mean_s"]}
        | {"params": json.dumps({"client_bytes_per_s": speed})}
        for row, speed, times in rows
    ]


def test_fabrics_have_panels_of_their_own(tmp_path):
    runs = stored(tmp_path, fabrics(8))
    names = [f"client_bytes_per_s={speed}" for speed in ("1e+10", "1e+09")]
    first, second = schedule.sources(tmp_path, runs).axes
    assert [first.get_title(), second.get_title()] == names
    # fair and dtarget with random sources, then with the smallest load first
    heights = np.array([[bar.get_height() for bar in axes.patches] for axes in (first, second)])
    np.testing.assert_allclose(heights, np.outer([1, 10], [10, 5, 8, 4]))
    titles = [f"{name}, {rule}" for name in names for rule in ("random sources", "smallest load first")]
    panels = schedule.improvement(tmp_path, runs).axes
    assert [axes.get_title() for axes in panels] == titles
    for axes in panels:
        np.testing.assert_allclose([bar.get_height() for bar in axes.patches], [2, 1.6, 2.4])
    panels = schedule.cdf(tmp_path, runs).axes
    assert [axes.get_title() for axes in panels] == titles
    for axes, mean in zip(panels, (10, 8, 100, 80), strict=True):
        np.testing.assert_allclose(axes.get_lines()[0].get_xdata()[::2], mean * np.array([0.5, 1, 1, 1.5]))


def test_a_gain_over_random_sources_is_that_on_one_fabric(tmp_path):
    runs = stored(tmp_path, fabrics(8, 16))
    panels = schedule.sweep(tmp_path, runs).axes
    assert [axes.get_title() for axes in panels[4:]] == [
        f"client_bytes_per_s={speed}, smallest load first over fair with random sources"
        for speed in ("1e+10", "1e+09")
    ]
    for axes in panels[4:]:
        (line,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
        np.testing.assert_allclose(line.get_ydata(orig=False), 1.25 * np.array([2, 4]))
