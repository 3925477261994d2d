"""Lanes side by side: each goes the way that it goes alone, whatever the others do, and none is left behind."""

import threading
from functools import partial

import numpy as np
import problems
import pytest
from planning.classes.plain_classes import class_problem, latencies, plain_classes
from problems import FILES

from ecjax.planning.classes import together
from ecjax.planning.classes.alternate import Alternation, Settings, plan_classes
from ecjax.planning.classes.exchange import LEAST_GAIN, Planned, exchanged
from ecjax.planning.classes.search import search_start
from ecjax.planning.classes.start import start_plan
from ecjax.planning.classes.together import alone, lanes_per_program, run_together, width_of

TWO = np.arange(FILES) % 2
SAME = 1e-8


def double(values):
    return 2 * values


def add(values, more):
    return values + more


def refuse(values):
    raise ValueError("refused")


@pytest.fixture
def rounds(monkeypatch):
    """What programs are asked for: the step, and the first number of each lane; steps are plain functions."""
    asked = []

    def several(step, static):
        def run(lanes):
            asked.append((step.__name__, [float(arguments[0][0]) for arguments in lanes]))
            return tuple(step(*arguments, **dict(static)) for arguments in lanes)

        return run

    monkeypatch.setattr(together, "_several", several)
    yield asked
    assert not [thread for thread in threading.enumerate() if thread.name == "lane"]


def doubled(begin, times, call):
    values = np.array([float(begin)])
    for _ in range(times):
        values = call(double, values)
    return float(values[0])


def test_steps_are_taken_when_all_lanes_wait_and_by_as_many_lanes_while_they_end(rounds):
    lanes = [partial(doubled, *each) for each in ((1, 1), (3, 0), (5, 3))]
    assert run_together(lanes, 4) == [2.0, 3.0, 40.0]
    assert rounds == [("double", [1, 5, 5, 5]), ("double", [10] * 4), ("double", [20] * 4)]


def test_steps_of_other_kinds_shapes_or_static_arguments_are_other_programs(rounds):
    def lane(values, step, call, **static):
        return call(step, np.array(values), **static).tolist()

    lanes = [
        partial(lane, [1.0], double),
        partial(lane, [2.0], add, more=1),
        partial(lane, [3.0], double),
        partial(lane, [4.0], add, more=2),
        partial(lane, [5.0, 6.0], double),
        partial(lane, [7.0], add, more=1),
    ]
    assert run_together(lanes, 8) == [[2], [3], [6], [6], [10, 12], [8]]
    assert rounds == [
        ("double", [1] + [3] * 7),
        ("add", [2] + [7] * 7),
        ("add", [4] * 8),
        ("double", [5] * 8),
    ]


def test_lanes_take_turns(rounds):
    events = []

    def lane(name, steps, call):
        for step in range(steps):
            events.append((name, step))
            call(double, np.ones(1))
        events.append((name, "ends"))

    run_together([partial(lane, "a", 2), partial(lane, "b", 1), partial(lane, "c", 2)], 4)
    assert events == [
        *(("a", 0), ("b", 0), ("c", 0)),
        *(("a", 1), ("b", "ends"), ("c", 1)),
        *(("a", "ends"), ("c", "ends")),
    ]


def test_more_lanes_than_a_program_has_go_in_groups(rounds):
    assert run_together([partial(doubled, begin, 1) for begin in range(5)], 2) == [0, 2, 4, 6, 8]
    assert [lanes for _, lanes in rounds] == [[0, 1], [2, 3], [4, 4]]


def test_at_a_width_of_one_lanes_go_one_after_the_other(rounds):
    assert run_together([partial(doubled, 1, 2), partial(doubled, 3, 1)], 1) == [4, 6]
    assert run_together([], 4) == [] and not rounds


@pytest.mark.parametrize("failing", ["lane", "step"])
def test_what_fails_ends_all_lanes(rounds, failing):
    closed = []

    def waiting(call):
        try:
            while True:
                call(double, np.ones(1))
        except Exception:  # the end of a lane is none of its own errors
            closed.append("caught")
        finally:
            closed.append("closed")
            call(double, np.ones(1))  # nobody answers any more
            closed.append("answered")

    def wrong(call):
        call(double, np.ones(1))
        if failing == "lane":
            raise ValueError("refused")
        call(refuse, np.ones(1))

    with pytest.raises(ValueError, match="refused"):
        run_together([waiting, wrong, waiting], 4)
    assert closed == ["closed", "closed"]


@pytest.mark.parametrize(
    ("lanes", "widest", "width"),
    [(1, 9, 1), (2, 9, 2), (3, 9, 4), (16, 100, 16), (17, 100, 32), (5, 4, 4), (5, 3, 2), (9, 1, 1)],
)
def test_widths_are_powers_of_two_within_what_there_is_room_for(lanes, widest, width):
    assert width_of(lanes, widest) == width


def test_lanes_that_fit_into_memory():
    problem = class_problem(problems.mixed(), TWO, "weighted").problem
    most = lanes_per_program(problem, 1e9)
    assert lanes_per_program(problem, 1.0) == 1 < most
    assert lanes_per_program(problem, 1e10) == pytest.approx(10 * most, rel=0.2)


def settings(order="joint", importance=(1.0, 0.4), **changes):
    return Settings(order, importance, eps=0.01, **changes)


def test_steps_of_lanes_are_those_of_each_alone():
    """Shares of nodes by importance, with a lane that is not stable and asks for one step less."""
    loads = (0.6, 30.0, 0.6)
    models = [class_problem(problems.mixed(load=load), TWO, "weighted") for load in loads]
    importances = ((1.0, 0.4), (1.0, 0.4), (0.1, 1.0))

    def shares(model, importance, call):
        begin = start_plan(model.problem, 0.0, "uniform", 0)
        run = Alternation(model, begin, settings(importance=importance), None, call)
        if np.isfinite(np.asarray(run.state.latency)).all():
            run.weigh(1, None, run.together(run.limits))
        return run.point, run.steps

    lanes = [partial(shares, *each) for each in zip(models, importances, strict=True)]
    both = zip(run_together(lanes, 4), run_together(lanes, 1), loads, strict=True)
    for (point, steps), (expected, steps_alone), load in both:
        assert [step.name for step in steps] == [step.name for step in steps_alone]
        assert len(steps) == (1 if load < 1 else 0)
        plain = plain_classes(problems.mixed(load=load), TWO, "weighted")
        reads, stored, weights = (
            np.asarray(part) for part in (point.probabilities, point.stored, point.weights)
        )
        np.testing.assert_allclose(point.latency, latencies(plain, reads, stored, weights)[0], rtol=SAME)
        for own, other in zip(point, expected, strict=True):
            np.testing.assert_allclose(np.asarray(own, float), np.asarray(other, float), rtol=SAME)


SWEEPS = {
    "importances, searched": ("weighted", "joint", [(1.0, 1.0), (1.0, 0.3), (0.1, 1.0)], [0.0], [1.0]),
    "theta": ("weighted", "joint", [(1.0, 0.4)], [0.0, 0.3, 3.0], [1.0]),
    "rates, one unstable": ("priority", "lexicographic", [(1.0, 1.0)], [0.1], [0.3, 1.0, 50.0]),
    "joint priority": ("priority", "joint", [(1.0, 1.0), (0.1, 1.0)], [0.0], [1.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_plans_side_by_side_are_those_made_one_after_the_other(name):
    queue, order, importances, thetas, rates = SWEEPS[name]
    case = problems.mixed(load=0.6)
    points = [(c, theta, rate) for c in importances for theta in thetas for rate in rates]

    def planned(importance, theta, rate, call):
        model = class_problem(case.scaled(rate, 1.0), TWO, queue)
        begin = start_plan(model.problem, theta, "uniform", 0)
        if "searched" in name:
            begin = search_start(model, begin, importance, theta, 0, call)
        return plan_classes(model, begin, settings(order, importance, theta=theta), call=call)

    lanes = [partial(planned, *point) for point in points]
    ours, expected = run_together(lanes, width_of(len(lanes), 4)), run_together(lanes, 1)
    for plan, other, (_, _, rate) in zip(ours, expected, points, strict=True):
        assert [step[:3] for step in plan.steps] == [step[:3] for step in other.steps]
        assert (plan.iterations, plan.converged) == (other.iterations, other.converged)
        np.testing.assert_allclose(plan.latency, other.latency, rtol=SAME)
        plain = plain_classes(case.scaled(rate, 1.0), TWO, queue)
        reads, stored, weights = (
            np.asarray(part) for part in (plan.probabilities, plan.stored, plan.weights)
        )
        np.testing.assert_allclose(plan.latency, latencies(plain, reads, stored, weights)[0], rtol=SAME)
        if rate < 10:
            assert plan.objective == pytest.approx(other.objective, rel=SAME)
            np.testing.assert_allclose(plan.gaps, other.gaps, rtol=1e-3, atol=1e-6)
    # most sweeps have lanes that end before others
    assert "searched" in name or len({len(plan.steps) for plan in ours}) > 1


@pytest.mark.slow
def test_plans_are_exchanged_side_by_side_as_in_turn():
    """After one iteration from starts of their own, plans of neighbours are often better than their own."""
    model = class_problem(problems.mixed(load=0.6), TWO, "weighted")

    def planned(seed, importance):
        hurried = settings(importance=importance, max_iterations=1)
        plan = plan_classes(model, start_plan(model.problem, 0.0, "uniform", seed), hurried)
        return Planned(model, settings(importance=importance), plan)

    points = [planned(seed, (1.0, second)) for seed, second in enumerate((1.0, 0.7, 0.4, 0.2))]
    told = []
    ours = exchanged(points, lambda number, step: told.append(number), width=4)
    expected = exchanged(points)
    assert len(set(told)) > 1
    for number, (plan, other, point) in enumerate(zip(ours, expected, points, strict=True)):
        assert plan.objective == pytest.approx(other.objective, rel=SAME), number
        # none is beaten by that of another point
        parts = np.asarray(point.settings.importance) * np.asarray(model.share)
        values = [float(parts @ np.asarray(each.latency)) for each in ours]
        assert values[number] <= min(values) * (1 + 2 * LEAST_GAIN)


def test_alone_is_the_step_itself():
    assert alone(add, np.ones(1), more=2).tolist() == [3.0]
