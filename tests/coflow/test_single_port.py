"""One port against slots of time: plain shortest remaining time, a linear program, and all orders."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ecjax.coflow.single_port import mean_busy, shortest_remaining


@st.composite
def jobs(draw, most=6):
    """Whole arrivals and loads, and weights."""
    count = draw(st.integers(1, most))
    arrival = np.sort(draw(st.lists(st.integers(0, 12), min_size=count, max_size=count)))
    load = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    weight = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=count, max_size=count))
    return arrival.astype(float), np.array(load, dtype=float), np.array(weight)


def slot_by_slot(arrival, load):
    remaining, flow_time, now = load.copy(), np.zeros(len(load)), 0
    while remaining.any():
        there = [j for j in range(len(load)) if arrival[j] <= now and remaining[j] > 0]
        now += 1
        if there:
            j = min(there, key=lambda i: remaining[i])
            remaining[j] -= 1
            flow_time[j] = now - arrival[j]
    return flow_time


def busy(arrival, load, weight):
    n = len(load)
    flow_time, start, end, served = np.empty(n), np.empty(2 * n), np.empty(2 * n), np.empty(2 * n, np.int64)
    total, pieces = mean_busy(arrival, load, weight, flow_time, start, end, served)
    return total, flow_time, start[:pieces], end[:pieces], served[:pieces]


@given(jobs())
def test_shortest_remaining_time_first(drawn):
    arrival, load, _ = drawn
    flow_time = np.empty(len(load))
    total = shortest_remaining(arrival, load, flow_time)
    assert total == slot_by_slot(arrival, load).sum() == flow_time.sum()


@given(jobs())
def test_mean_busy_times_against_a_linear_program(drawn):
    """Slots of one second to jobs: the least weighted sum of mean busy times, plus half the loads."""
    arrival, load, weight = drawn
    slots = int(arrival[-1] + load.sum())
    middle = np.arange(slots) + 0.5
    cost = weight[:, None] * (middle - arrival[:, None] + load[:, None] / 2) / load[:, None]
    n = len(load)
    found = linprog(
        cost.ravel(),
        A_ub=np.tile(np.eye(slots), n),
        b_ub=np.ones(slots),
        A_eq=np.kron(np.eye(n), np.ones(slots)),
        b_eq=load,
        bounds=[(0, 0 if m < arrival[j] else 1) for j in range(n) for m in middle],
    )
    total, flow_time, start, end, served = busy(arrival, load, weight)
    assert total == pytest.approx(found.fun, abs=1e-7)
    assert total == pytest.approx(weight @ flow_time)
    # the pieces are a schedule with these mean busy times
    assert (start[1:] >= end[:-1]).all() and (start >= arrival[served]).all()
    for j in range(n):
        own = served == j
        length = end[own] - start[own]
        assert length.sum() == pytest.approx(load[j])
        mean = (length * (start[own] + end[own]) / 2).sum() / load[j]
        assert flow_time[j] == pytest.approx(mean + load[j] / 2 - arrival[j])


@given(jobs(most=5))
def test_mean_busy_times_are_not_above_any_order(drawn):
    """Preemptive schedules by fixed priority."""
    arrival, load, weight = drawn
    total = busy(arrival, load, weight)[0]
    for order in permutations(range(len(load))):
        remaining, end, now = load.copy(), np.zeros(len(load)), 0
        while remaining.any():
            there = [j for j in order if arrival[j] <= now and remaining[j] > 0]
            now += 1
            if there:
                remaining[there[0]] -= 1
                end[there[0]] = now
        assert total <= weight @ (end - arrival) + 1e-9


def test_all_at_once_is_exact():
    """Without preemption mean busy time + load / 2 is when a job ends."""
    load, weight = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0])
    assert busy(np.zeros(3), load, weight)[1].tolist() == [6.0, 3.0, 2.0]
