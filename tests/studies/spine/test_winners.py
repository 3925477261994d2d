"""The fastest way at every point."""

import pandas as pd

from ecjax.studies.spine.winners import alike, at_most, beside, differing, run_of, tally, widest, winners

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
    points, words = tally(winners(TABLE, ["load"], "way"), "way")
    assert [winner.best["way"] for winner in points] == ["a", "a"] and words == ", fastest at 2 of 2 points"


def test_others_stand_beside_it_once():
    first, _ = winners(TABLE, ["load"], "way")
    assert beside(first, [1, 2, 1], "way") == "b is 5 % slower and c is slower by a factor of 2"


def test_the_run_is_one_of_the_point_that_has_a_latency():
    runs = TABLE.assign(run_id=list("uvwxy"), k=float("nan"))
    assert run_of(runs, runs.iloc[3], ["load", "way", "k"]) == "x"
    runs.loc[0, "mean_s"] = float("nan")
    assert run_of(runs, runs.iloc[0], ["load", "k"]) == "v"


def test_columns_that_tell_rows_apart():
    assert differing(TABLE.assign(k=4), ["k", "load"]) == ["load"]


def test_numbers_are_of_the_point_where_it_matters_most():
    rows = [(0.1, "a", 1.0), (0.1, "b", 1.0), (0.9, "a", 2.0), (0.9, "b", 5.0)]
    table = pd.DataFrame(rows, columns=["load", "way", "mean_s"]).assign(ci_s=0.1)
    points, most = tally(winners(table, ["load"], "way"), "way")
    assert widest(points).best["load"] == 0.9
    assert at_most(most, " at load=0.9") == ", fastest at 2 of 2 points; at load=0.9"
    assert at_most("", " at k=4") == " at k=4" and at_most(most, "") == most


def test_those_that_cannot_be_told_apart_are_not_all_listed():
    table = pd.DataFrame({"way": list("abcdef"), "mean_s": [1.0] * 5 + [9.0], "ci_s": 0.1})
    (some,) = winners(table, [], "way")
    assert alike(some, "By this") == " By this b, c, d and 1 more cannot be told from it."
    (every,) = winners(table.head(3), [], "way")
    assert alike(every, "By this") == " By this none of the others can be told from it."
    (none,) = winners(table.tail(2), [], "way")
    assert alike(none, "By this") == ""
