"""Our own strategy against every static code and TOFEC, and the order of codes that it climbs against brute force."""

import numpy as np
import pytest
from drawn_proxies import delays
from hypothesis import given
from hypothesis import strategies as st

from ecjax.adaptation import arrivals, strategies
from ecjax.adaptation.calibrated import calibrated
from ecjax.adaptation.delays import BUILT_IN, DelayModel, mean_delay, tasks_of
from ecjax.adaptation.proxy import IN_SYSTEM, LOGNORMAL, RequestClass
from ecjax.adaptation.replay import replay
from ecjax.adaptation.static_code import all_codes
from ecjax.adaptation.thread_price import plans_by_price, profile

READ = RequestClass("read", "read", 3e6, 1.0, 6, 2.0, False)
SMALL = RequestClass("small", "read", 1e6, 0.4, 3, 2.0, False)
WRITE = RequestClass("write", "write", 4e6, 0.6, 2, 2.0, True)
FEW = READ._replace(k_max=2)
SEED = 7  # another than that of the calibration


@pytest.fixture(scope="module")
def few():
    """The strategy of few threads."""
    return calibrated([FEW], [BUILT_IN["shifted_exp"]], 4)


def latencies(strategy, classes, models, threads, load, requests):
    """Mean and 99 % quantile at a load relative to the capacity of (1, 1)."""
    shares = np.array([c.share for c in classes])
    work = sum(c.share * mean_delay(model, c.bytes) for c, model in zip(classes, models, strict=True))
    drawn = arrivals.poisson(arrivals.constant(load * threads / work, shares), requests, SEED)
    found = replay(*drawn, tasks_of(classes, models), strategy, threads, SEED).latency_s[requests // 20 :]
    return np.array([found.mean(), np.quantile(found, 0.99)])


def judge(own, classes, models, threads, loads, requests, static):
    """Within 3 % of the best static code for the mean and of the best for the quantile; 1 % of TOFEC."""
    tofec = strategies.tofec(classes, models, threads)
    usage = {
        plan: sum(
            c.share * profile(c, model, 1)[code][1]
            for c, model, code in zip(classes, models, plan, strict=True)
        )
        for plan in static
    }
    work = sum(c.share * mean_delay(model, c.bytes) for c, model in zip(classes, models, strict=True))
    for load in loads:
        found = latencies(own, classes, models, threads, load, requests)
        best = np.min(
            [
                latencies(strategies.static(list(plan)), classes, models, threads, load, requests)
                for plan in static
                if load * usage[plan] < 0.99 * work
            ],
            axis=0,
        )
        assert (found <= 1.03 * best).all(), f"load {load}: {found} s, best static {best} s"
        peer = latencies(tofec, classes, models, threads, load, requests)
        assert (found <= 1.01 * peer).all(), f"load {load}: {found} s, TOFEC {peer} s"


def test_few_threads(few):
    static = [(code,) for code in all_codes(2, 2.0)]
    judge(few, [FEW], [BUILT_IN["shifted_exp"]], 4, [0.05, 0.3, 0.6, 0.9], 60_000, static)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_reads_of_the_paper(name):
    loads = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    own = calibrated([READ], [BUILT_IN[name]], 16)
    judge(own, [READ], [BUILT_IN[name]], 16, loads, 300_000, [(code,) for code in all_codes(6, 2.0)])


@pytest.mark.slow
def test_classes_of_several_sizes():
    models = [BUILT_IN["shifted_lognormal"], BUILT_IN["shifted_exp"]]
    static = [(one, two) for one in all_codes(3, 2.0) for two in all_codes(2, 2.0)]
    own = calibrated([SMALL, WRITE], models, 8)
    judge(own, [SMALL, WRITE], models, 8, [0.05, 0.3, 0.6, 0.9], 100_000, static)


def test_nothing_to_choose():
    only = calibrated([READ._replace(k_max=1, r_max=1.0)], [BUILT_IN["shifted_exp"]], 3)
    assert (only.n.tolist(), only.k.tolist(), only.edges.shape) == ([[1]], [[1]], (1, 0))


def test_more_in_the_system_shorter_codes(few):
    assert few.signal == IN_SYSTEM and 0 <= few.weight <= 1
    known = profile(FEW, BUILT_IN["shifted_exp"], 0)
    usage = [known[n, k][1] for n, k in zip(few.n[0], few.k[0], strict=True)]
    assert (np.diff(few.edges[0]) >= 0).all() and (np.diff(usage) < 0).all()


def test_codes_are_profiled_without_a_queue_however_long_the_tail():
    """One delay of the law is longer than 10^4 times its median and all others: requests are told apart by no gap."""
    request_class = RequestClass("read", "read", 1.0, 1.0, 2, 1.5, False)
    law = DelayModel("x", LOGNORMAL, shape=10.0, rho=0.3, shift_s=0.5, scale_s=1.0)
    tasks = tasks_of([request_class], [law])
    delay = delays(tasks, np.zeros(20_000, np.int64), 3)
    drawn = np.array([[delay(i, j, 2) for j in range(3)] for i in range(20_000)])
    least, second = np.sort(drawn, axis=1)[:, :2].T
    found = profile(request_class, law, 3)
    assert set(found) == {(1, 1), (2, 2), (3, 2)}
    assert found[3, 2] == pytest.approx((second.mean(), (least + 2 * second).mean()))
    assert found[1, 1] == pytest.approx((drawn[:, 0].mean(),) * 2)
    # what is not needed goes on to its end
    whole = profile(request_class._replace(background=True), law, 3)[3, 2]
    assert whole == pytest.approx((second.mean(), drawn.sum() / 20_000))


drawn_profiles = st.lists(
    st.dictionaries(
        st.tuples(st.integers(1, 9), st.integers(1, 4)),
        st.tuples(st.integers(1, 40), st.integers(1, 40)),
        min_size=1,
        max_size=8,
    ),
    min_size=2,
    max_size=3,
)


@given(drawn_profiles, st.floats(0.0, 50.0))
def test_every_price_has_its_best_plan(profiles, price):
    plans = plans_by_price(profiles)
    if len(plans) >= 12:
        return  # some prices stand for their neighbours
    costs = [
        sum(own[code][0] + price * own[code][1] for own, code in zip(profiles, plan, strict=True))
        for plan in plans
    ]
    best = sum(min(delay + price * used for delay, used in own.values()) for own in profiles)
    assert min(costs) <= best * (1 + 1e-6)
    used = [sum(own[code][1] for own, code in zip(profiles, plan, strict=True)) for plan in plans]
    assert used == sorted(used, reverse=True) and len(set(plans)) == len(plans)
