"""The fastest way at every point."""

import pandas as pd

from ecjax.studies.spine.winners import (
    alike,
    at_most,
    beside,
    by_intervals,
    differing,
    run_of,
    tally,
    widest,
    winners,
)

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


def test_of_means_without_intervals_nobody_knows_which_is_less():
    table = pd.DataFrame(
        {"way": ["a", "b", "c"], "mean_s": [1.0, 1.1, 9.0], "ci_s": [0.01, float("nan"), 0.1]}
    )
    (partly,) = winners(table, [], "way")
    assert partly.best["way"] == "a" and partly.equals == ["b"] and not partly.known
    (unknown,) = winners(table.assign(ci_s=float("nan")), [], "way")
    assert unknown.equals == ["b", "c"]
    words = alike(unknown, by_intervals(unknown))
    assert words == " Without intervals, of too few reads, none of the others can be told from it."
    (known,) = winners(table.assign(ci_s=0.1), [], "way")
    assert known.equals == ["b"] and alike(known, by_intervals(known)).startswith(" Within their intervals b")


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


def test_a_way_that_ties_is_first_as_well():
    """b is never slower than a, which comes first in the table: at two of three points both are as fast."""
    rows = [(1, "a", 2.0), (1, "b", 1.0), (2, "a", 3.0), (2, "b", 3.0), (3, "a", 4.0), (3, "b", 4.0)]
    table = pd.DataFrame(rows, columns=["rate", "way", "mean_s"]).assign(ci_s=0.1)
    every = winners(table, ["rate"], "way")
    points, most = tally(every, "way")
    assert [each.best["way"] for each in points] == ["b"] * 3 and most == ", fastest at 3 of 3 points"
    assert widest(points).best["rate"] == 1 and [each.equals for each in every] == [[], ["a"], ["a"]]
    assert every[1].others["way"].tolist() == ["a"]


def test_of_ways_that_are_first_equally_often_the_one_that_is_less_slow_elsewhere():
    rows = [(1, "a", 1.0), (1, "b", 1.1), (1, "c", 1.0), (2, "a", 5.0), (2, "b", 1.0), (2, "c", 1.2)]
    table = pd.DataFrame(rows, columns=["rate", "way", "mean_s"]).assign(ci_s=0.1)
    assert [each.best["way"] for each in winners(table, ["rate"], "way")] == ["c", "b"]
    # one that is missing at a point serves no one there
    rest = table[~((table["way"] == "c") & (table["rate"] == 2))]
    assert winners(rest, ["rate"], "way")[0].best["way"] == "a"
