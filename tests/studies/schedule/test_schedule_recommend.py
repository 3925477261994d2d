"""Which schedulers a recommendation calls equal."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ecjax.intervals import half_width
from ecjax.studies.schedule.recommend import _by_pairs
from ecjax.studies.schedule.words import POINT
from ecjax.studies.spine.winners import winners


def runs_of(seeds, slower):
    """Replays of workloads that differ twofold, the second scheduler so many times as slow in each."""
    rng = np.random.default_rng(0)
    means = rng.uniform(1.0, 2.0, seeds)
    rows = [
        dict.fromkeys(POINT, 1.0)
        | {"sources": "random", "scheduler": name, "seed": seed, "mean_s": mean * times, "way": name}
        for seed, mean in enumerate(means)
        for name, times in (("varys", 1.0), ("fair", slower[seed % len(slower)]))
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("seeds", "slower", "equals"),
    [
        # every workload says the same, whatever they differ by among themselves
        (6, [1.1], []),
        # seeds do not agree
        (6, [1.1, 0.92], ["fair"]),
        (6, [1.0], ["fair"]),
        # one workload, replayed once by each
        (1, [1.01], []),
        (1, [1.0], ["fair"]),
    ],
)
def test_schedulers_are_compared_workload_by_workload(seeds, slower, equals):
    runs = runs_of(seeds, slower)
    table = runs.groupby([*POINT, "sources", "scheduler", "way"], as_index=False)["mean_s"].mean()
    (winner,) = winners(table.assign(ci_s=0.3), [], "way")
    assert _by_pairs(runs, winner).equals == [
        name for name in ("fair", "varys") if equals and name != winner.best["way"]
    ]


def test_equal_means_have_no_interval_of_rounding():
    assert half_width(np.full(10, 0.1)) == 0.0
    assert half_width(np.array([1.0, 2.0, 3.0])) == pytest.approx(
        stats.t.ppf(0.975, 2) * stats.sem([1.0, 2.0, 3.0])
    )
