"""The fastest way at every point."""

import pandas as pd

from ecjax.studies.spine.winners import differing, tally, winners

TABLE = pd.DataFrame(
    {
        "load": [0.1, 0.1, 0.1, 0.5, 0.5],
        "way": ["a", "b", "c", "a", "b"],
        "mean_s": [1.0, 1.05, 2.0, 3.0, float("nan")],
        "ci_s": [0.1, float("nan"), 0.1, 0.1, 0.1],
    }
)


def test_the_least_mean_wins_and_intervals_that_touch_are_equal():
    first, second = winners(TABLE, ["load"], "way")
    assert first.best["way"] == "a" and first.others["way"].tolist() == ["b", "c"]
    assert first.equals == ["b"]
    assert second.best["way"] == "a" and second.others.empty


def test_without_points_all_rows_are_one():
    (only,) = winners(TABLE, [], "way")
    assert only.best["mean_s"] == 1.0 and len(only.others) == 3


def test_who_wins_most():
    assert tally(winners(TABLE, ["load"], "way"), "way") == ("a", 2)


def test_columns_that_tell_rows_apart():
    assert differing(TABLE.assign(k=4), ["k", "load"]) == ["load"]
