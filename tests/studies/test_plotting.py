"""What all figures share: units of axes, order of ids, looks of lines, words beside points."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from ecjax.natural_order import natural
from ecjax.plotting.grid import MOST_PANELS, beside, telling
from ecjax.plotting.labels import label_points
from ecjax.plotting.looks import COLOURS, ink, line_look
from ecjax.plotting.panels import panels
from ecjax.plotting.units import plain_numbers, time_axis, time_unit


@pytest.mark.parametrize(
    ("largest", "name", "text"),
    [(3600.0, "s", "3,600"), (1.0, "s", "1"), (0.9, "ms", "900"), (2e-3, "ms", "2"), (9e-4, "µs", "900")],
)
def test_the_unit_fits_the_largest_time(largest, name, text):
    unit = time_unit([1e-7, largest], np.array([np.nan, np.inf]))
    assert unit.name == name and unit.text(largest) == text


def test_without_times_the_unit_is_seconds():
    assert time_unit([]).name == time_unit().name == time_unit([0.0]).name == "s"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_axis_shows_its_unit_and_keeps_its_data(scale):
    figure, (axes,) = panels()
    axes.plot([1, 2], [0.02, 0.4])
    axes.set_yscale(scale)
    time_axis(axes.yaxis, "latency", time_unit([0.4]))
    figure.draw_without_rendering()
    assert axes.get_ylabel() == "latency (ms)"
    shown = [(tick.get_loc(), tick.label1.get_text()) for tick in axes.yaxis.get_major_ticks()]
    assert len(shown) > 1 and all(
        float(text.replace("\N{MINUS SIGN}", "-")) == pytest.approx(1e3 * at) for at, text in shown
    )
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [0.02, 0.4])


@pytest.mark.parametrize(
    ("values", "labels"),
    [((2.1, 6.3), {"2", "3", "4", "5", "6"}), ((1.5, 60.0), {"2", "5", "20", "50"}), ((1.0, 1e5), set())],
)
def test_a_logarithmic_axis_has_as_many_labels_as_have_room(values, labels):
    figure, (axes,) = panels()
    axes.plot([1, 2], values)
    axes.set_yscale("log")
    plain_numbers(axes.yaxis)
    figure.draw_without_rendering()
    low, high = axes.get_ylim()
    ticks = axes.yaxis.get_minor_ticks()
    assert {tick.label1.get_text() for tick in ticks if low <= tick.get_loc() <= high} - {""} == labels


def test_ids_are_sorted_as_people_count():
    assert natural(["node-10", "b", "node-2", "node-2a", "10", "9"]) == [
        "9",
        "10",
        "b",
        "node-2",
        "node-2a",
        "node-10",
    ]
    assert natural([10, 9]) == [9, 10] and natural(["a", "1", "a1", ""]) == ["", "1", "a", "a1"]


def test_lines_that_lie_on_each_other_differ_in_more_than_colour():
    looks = [line_look(place, 6) for place in range(6)]
    assert [look["linewidth"] for look in looks] == sorted(
        (look["linewidth"] for look in looks), reverse=True
    )
    assert len({(look["marker"], str(look["linestyle"])) for look in looks}) == 6
    assert len(set(COLOURS)) == len(COLOURS) and ink("#000000") == "white" and ink("#FFFFFF") == "black"


def test_words_beside_points_hide_neither_each_other_nor_lines():
    figure = Figure(figsize=(4, 3))
    axes = figure.add_subplot()
    points = [(0.0, 0.0), (0.5, 0.5), (0.505, 0.5), (1.0, 1.0)]
    (line,) = axes.plot(*zip(*points, strict=True), "o-")
    label_points(figure, axes, points, ["a", "bbbbbb", "bbbbbb", "d"])
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) >= 3
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    for x, y in axes.transData.transform(line.get_xydata()):
        assert not any(box.contains(x, y) for box in boxes)


def test_words_without_room_are_left_out():
    figure = Figure(figsize=(2, 2))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1])
    label_points(figure, axes, [(0.5, 0.5)], ["w" * 200])
    assert not axes.texts


def test_panels_are_those_in_which_ways_differ():
    parts = [
        (str(place), pd.DataFrame({"way": ["a", "b"], "mean_s": [1.0, 1.0 + place % 3]}))
        for place in range(9)
    ]
    assert [title for title, _ in telling(parts, "mean_s", "way")] == list("124578")
    assert telling(parts[:MOST_PANELS], "mean_s", "way") == parts[:MOST_PANELS]


@pytest.mark.parametrize("logarithmic", [True, False])
def test_points_of_lines_stand_beside_each_other_at_equal_steps(logarithmic):
    swept = np.array([1.0, 30.0, 300.0])
    left, middle, right = (beside(swept, swept, steps, logarithmic) for steps in (-1, 0, 1))
    np.testing.assert_allclose(middle, swept)
    on_axis = np.log if logarithmic else np.asarray
    np.testing.assert_allclose(on_axis(right) - on_axis(middle), on_axis(middle) - on_axis(left))
    assert np.ptp(on_axis(right) - on_axis(middle)) < 1e-9 and np.all(left < right)
    assert np.all(left > 0) if logarithmic else np.all(np.isfinite(left))
