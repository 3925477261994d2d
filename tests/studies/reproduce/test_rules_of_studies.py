"""What rules make of the tables of studies, where those are made by hand."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
import pytest

from ecjax.studies.reproduce.claim import Finding, Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.evidence import Evidence, Made


@dataclass(frozen=True)
class _ByHand(Made):
    """Runs and datasets that no study made."""

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def dataset(self, name: str) -> pd.DataFrame:
        return self.tables[name]


def _made(runs: list[dict], **tables: list[dict]) -> Made:
    return _ByHand("", pd.DataFrame(runs), {name: pd.DataFrame(rows) for name, rows in tables.items()})


def _found(claim: str, **studies: Made) -> Finding:
    rules = {each.id: each.rule for each in paper(claim.partition("-")[0]).claims}
    return rules[claim](Evidence("small", studies))


def _fig4a(gains: list[float]) -> Made:
    """TCP takes twice as long as D-Target at n = 4, and so much longer at n = 18, a number for each seed."""
    times = {
        ("fair", "random"): lambda n, gain: 2.0 + gain * (n == 18),
        ("dtarget", "smallest_load"): lambda *_: 1.0,
    }
    return _made(
        [
            {"scheduler": scheduler, "sources": sources, "seed": seed, "n": n, "mean_s": time(n, gain)}
            for (scheduler, sources), time in times.items()
            for seed, gain in enumerate(gains)
            for n in (4, 18)
        ]
    )


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [([0.3] * 99 + [-0.1], Verdict.IN_SHAPE), ([0.1, -0.1] * 50, Verdict.FAILS), ([-0.3] * 3, Verdict.FAILS)],
)
def test_growth_with_n_is_that_of_the_mean_over_seeds(gains, verdict):
    """One seed of a hundred that says otherwise does not refute a difference of far more than two standard errors."""
    finding = _found("dtarget-fig4a-n-trend", fig4a=_fig4a(gains))
    assert finding.verdict == verdict
    assert f"{sum(gain > 0 for gain in gains)} of {len(gains)}" in finding.why


def test_lengths_of_one_theta_are_told_apart_by_method():
    """The printed lengths are 12, 10, 10, 8: off by at most 1 under one method only, at a theta that both have."""
    lengths = {
        ("certified", 5.0): (9, 9, 9, 5),
        ("published", 5.0): (12, 9, 10, 7),
        ("published", 50.0): (7, 7, 7, 4),
    }
    rows = [
        {
            "method": method,
            "theta": theta,
            "mean_n_by_class": json.dumps({str(place): n for place, n in enumerate(found, start=1)}),
        }
        for (method, theta), found in lengths.items()
    ]
    for runs in (rows, rows[::-1]):
        finding = _found("jlcm-fig10-codes", fig10_lengths=_made(runs))
        assert (finding.verdict, finding.ours) == (Verdict.HOLDS, 1.0)
        assert "certified at theta 5: 9, 9, 9, 5" in finding.why
        assert "published at theta 5: 12, 9, 10, 7" in finding.why


class _Weighted(_ByHand):
    """Replays of plans whose weights are made by hand, too."""

    def of_plans(self, name: str) -> pd.DataFrame:
        return self.dataset(name)


def _of_classes(*runs: dict, kind: type[_ByHand] = _ByHand, bound: float = 1.5, **tables: list[dict]) -> Made:
    """Replays with means of both classes, half intervals of 0.1 s, and bounds that many times as large."""
    named = [{"run_id": f"replay {place}"} | run for place, run in enumerate(runs)]
    latencies = [
        {
            "run_id": run["run_id"],
            "group": "class",
            "source": source,
            "class": label,
            "mean_s": mean,
            "ci_s": 0.1,
        }
        for run in named
        for source, times in (("replayed", 1.0), ("bound", bound))
        for label, mean in (("1", times * run["1"]), ("2", times * run["2"]))
    ]
    columns = pd.DataFrame(named).drop(columns=["1", "2"]).assign(ci_s=0.1)
    frames = {name: pd.DataFrame(rows) for name, rows in (tables | {"latencies": latencies}).items()}
    return kind("", columns, frames)


def _fig8(shares: dict[float, float]) -> Made:
    """Class 1 has so much of two nodes at each importance of class 2, and half its latency."""
    runs = [
        {"plan_run": f"plan {two}", "importance": json.dumps([1, two]), "1": 1.0, "2": 2.0} for two in shares
    ]
    weights = [
        {"run_id": f"plan {two}", "service_class": label, "node_id": node, "weight": weight}
        for two, share in shares.items()
        for node in ("slow", "fast")
        for label, weight in (("1", share), ("2", 1 - share))
    ]
    nodes = [{"node_id": "slow", "service_mean_s": 2.0}, {"node_id": "fast", "service_mean_s": 1.0}]
    return _of_classes(*runs, kind=_Weighted, **{"class_weights": weights, "inputs/nodes": nodes})


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [({0.1: 0.6, 0.9: 0.5, 1.0: 0.4}, Verdict.HOLDS), ({0.1: 0.9, 0.9: 0.4999}, Verdict.FAILS)],
)
def test_class_1_comes_first_by_the_plans_that_are_replayed(shares, verdict):
    """At every importance of class 2 up to 0.9, not on average, and at none above."""
    finding = _found("differentiated-fig8-class1-first", fig8=_fig8(shares))
    assert finding.verdict == verdict
    assert ", ".join(f"{share:.4f}" for two, share in shares.items() if two <= 0.9) in finding.why


def _saturated(busiest: float) -> Made:
    return _of_classes({"max_load": 0.5, "1": 10.0, "2": 15.0}, {"max_load": busiest, "1": 10.0, "2": 80.0})


@pytest.mark.parametrize(("busiest", "verdict"), [(0.96, Verdict.IN_SHAPE), (0.9, Verdict.FAILS)])
def test_what_class_2_has_at_the_stated_load_is_computed(busiest, verdict):
    """Eight times class 1's latency is judged near saturation only, beside 13 / 10 at the load of Fig. 8."""
    stated = _of_classes({"max_load": 0.54, "importance": "[1, 0.4]", "1": 10.0, "2": 13.0})
    finding = _found(
        "differentiated-fig6-class2-scale", saturated_priority=_saturated(busiest), fig8_priority=stated
    )
    assert (finding.verdict, finding.ours) == (verdict, 8.0)
    assert "to 0.54, 1.30" in finding.why


@pytest.mark.parametrize(("of_weighted", "verdict"), [(30.0, Verdict.IN_SHAPE), (50.0, Verdict.FAILS)])
def test_both_queues_say_at_which_load_class_2_starves(of_weighted, verdict):
    stated = _of_classes({"max_load": 0.54, "importance": "[1, 0.4]", "1": 10.0, "2": 13.0})
    weighted = _of_classes({"max_load": 0.97, "1": 20.0, "2": of_weighted})
    finding = _found(
        "differentiated-fig8-priority-starves",
        saturated_priority=_saturated(0.96),
        saturated_weighted=weighted,
        fig8=_fig8({0.4: 0.5}),
        fig8_priority=stated,
    )
    assert (finding.verdict, finding.ours) == (verdict, 80 / of_weighted)
    for load in ("at 0.96", "at 0.97"):
        assert load in finding.why


@pytest.mark.parametrize(("bound", "verdict"), [(1.5, Verdict.HOLDS), (0.9, Verdict.FAILS)])
def test_the_bound_is_judged_up_to_saturation(bound, verdict):
    """The largest load is that of nodes, and a bound that is too small there alone is found."""
    low = _of_classes({"max_load": 0.31, "1": 10.0, "2": 15.0})
    near = _of_classes({"max_load": 0.96, "1": 10.0, "2": 80.0}, bound=bound)
    finding = _found(
        "differentiated-lemma1-bound",
        **{"fairness": low, "fig12": low, "saturated_priority": near, "saturated_weighted": low},
    )
    assert finding.verdict == verdict
    assert "0.31 to 0.96" in finding.why


@pytest.mark.parametrize(("busiest", "verdict"), [(0.4, Verdict.HOLDS), (0.56, Verdict.FAILS)])
def test_intervals_are_asked_of_loads_that_nodes_have(busiest, verdict):
    """From a load of 0.5 on late binding is faster beyond the intervals: 9 + 1 s is not below 10.5 - 1 s."""
    runs = [
        {
            "service": "auto",
            "policy": policy,
            "rate_scale": 0.9,
            "max_load": load,
            "mean_s": mean,
            "ci_s": 1.0,
        }
        for policy, load, mean in (("probabilistic", busiest, 10.5), ("late_binding", None, 9.0))
    ]
    finding = _found("jlcm-lemma1-optimal-not-slower", loads=_made(runs))
    assert finding.verdict == verdict
    assert f"busiest node is at {busiest:g}" in finding.why


@pytest.mark.parametrize(
    ("estimated", "said"), [(10.8, "within"), (11.0, "not within"), (None, "with size=full only")]
)
def test_what_is_said_of_estimates_is_computed(estimated, said):
    """10.8 s of 10 s are within 9 %, 11 s are not; where there is no estimate nothing is said of its error."""
    runs = [{"size_scale": 1.0, "latency_s": 15.0, "mean_s": 10.0, "estimated_mean_s": estimated}]
    finding = _found("jlcm-fig11-bound-9-percent", fig11=_made(runs))
    assert finding.verdict == Verdict.FAILS
    assert (f", {said} the printed 9%" if estimated else said) in finding.why


def test_half_intervals_of_means_are_no_interval_of_a_loss():
    runs = [
        {"policy": policy, "samples": samples, "mean_s": mean, "ci_s": 0.02}
        for policy, samples, mean in (("samplex", 5, 1.01), ("near_optimal_dp", None, 1.0))
    ]
    finding = _found("samplex-fig9a-loss", fig9=_made(runs))
    assert (finding.verdict, finding.low, finding.high) == (Verdict.HOLDS, None, None)
    assert finding.ours == pytest.approx(1.0) and "half interval of 2.00 %" in finding.why


@pytest.mark.parametrize(("wide", "verdict"), [(0.5, Verdict.HOLDS), (2.0, Verdict.FAILS)])
def test_baraat_is_judged_at_both_ranges_of_sizes(wide, verdict):
    """Faster than TCP, which takes 1 s, where sizes are within one decade; and where they are within five, or not."""
    studies = {
        name: _made(
            [
                {"scheduler": scheduler, "sources": "random", "seed": 0, "n": 8, "mean_s": mean}
                for scheduler, mean in (("fair", 1.0), ("baraat", baraat))
            ]
        )
        for name, baraat in (("fig3", 0.8), ("fig3_wide", wide))
    }
    finding = _found("dtarget-fig3a-barrat-above-tcp", **studies)
    assert (finding.verdict, finding.ours) == (verdict, 1.25)
    assert {finding.low, finding.high} == {1.25, 1 / wide}


def _timed_plans(factors: dict[tuple[int, int], list[float]]) -> dict[str, Made]:
    """RandS takes so many times as long as SampleX, a number for each S, by capacity and K."""
    runs = [
        {"capacity": capacity, "k": k, "scheme": scheme, "samples": samples, "solve_s": seconds}
        for (capacity, k), each in factors.items()
        for samples, factor in enumerate(each, start=1)
        for scheme, seconds in (("samplex", 1e-3), ("rands", factor * 1e-3))
    ]
    return {
        name: _made([run for run in runs if run["k"] == k])
        for name, k in (("sampled_6", 6), ("sampled_8", 8))
    }


@pytest.mark.parametrize(("slowest", "verdict"), [(1.2, Verdict.IN_SHAPE), (0.8, Verdict.FAILS)])
def test_single_points_do_not_decide_which_scheme_is_faster(slowest, verdict):
    """A point of three may scatter to the other side in every setting; the median of a setting may not."""
    few = [0.9, 1.1, 1.2]
    settings = {(40, 6): few, (100, 6): [2.0, 3.0, 4.0], (100, 8): [0.7, slowest, 1.3]}
    finding = _found("samplex-tab3-order", **_timed_plans(settings))
    assert finding.verdict == verdict
    assert (finding.ours, finding.low, finding.high) == pytest.approx((3.0, min(1.1, slowest), 3.0))
