"""Claims of the TOFEC paper on reads replayed through a proxy: its Fig. 1 and 7 to 10."""

import json

import numpy as np
import pandas as pd

from ecjax.status import Status
from ecjax.studies.reproduce.claim import Claim, Finding, Study
from ecjax.studies.reproduce.claims.judging import in_shape, judge, refuted, rises, texts
from ecjax.studies.reproduce.evidence import Evidence

LIGHT_LOADS = (0.05, 0.1, 0.2, 0.4)
MEANS_MS = {"(1,1)": 205, "(2,1)": 151, "tofec": 84, "greedy": 89}
MEDIANS_MS = {"(1,1)": 156, "(2,1)": 138, "tofec": 74, "greedy": 79}
WINDOW_S, RISE_S, FALL_S = 5, 200, 400  # of the timeline; when the rate rises, and falls again
_M_M_1 = "its model of the queue is that of one server, which waits longer than 16 threads do"
_LOADS = "load=[0.01,0.05,0.1,0.2,0.4,0.6,0.75,0.8,0.9,0.95]"

STUDIES = (
    Study(
        "curves",
        ("adapt", "experiment=tofec_fig7"),
        (
            "codes=[[1,1],[2,1],[3,2],[3,3],[4,4],[6,6],[12,6]]",
            "load=[0.01,0.05,0.1,0.2,0.4,0.6,0.75,0.8,0.95]",
        )
        + ("requests=60000",),
        (_LOADS,),
    ),
    Study(
        "laws",
        ("adapt", "load=0.01", "delays=[shifted_exp,shifted_lognormal,correlated]", "capacity=false")
        + ("strategy=[static,tofec,greedy]", "codes=[[1,1],[2,1],[3,3],[4,3],[5,3],[6,3]]"),
        ("requests=100000",),
        ("requests=1000000",),
    ),
    Study(
        "layouts",
        ("adapt", "delays=[shifted_lognormal,correlated]", "strategy=best_static", "capacity=false"),
        ("load=[0.1,0.5,0.9]", "requests=40000"),
        ("load=[0.05,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9]", "requests=1000000"),
    ),
    Study(
        "steps",
        ("adapt", "experiment=tofec_fig10", "strategy=[static,greedy,tofec]", "capacity=false")
        + (f"timeline_s={WINDOW_S}",),
        ("seeds=8",),
        ("seeds=40",),
    ),
)


def _of(evidence: Evidence, strategy: str, code: tuple[int, int] | None = None) -> pd.DataFrame:
    """Rows of a strategy under the law of the paper, by load."""
    runs = evidence["curves"].runs
    rows = runs[runs["strategy"] == strategy]
    if code is not None:
        rows = rows[(rows["n"] == code[0]) & (rows["k"] == code[1])]
    return rows.set_index("load").sort_index()


def _capacity(evidence: Evidence, strategy: str, code: tuple[int, int] | None = None) -> float:
    """Capacity over that of the (1,1) code."""
    basic = _of(evidence, "static", (1, 1))["capacity_per_s"].iloc[0]
    return float(_of(evidence, strategy, code)["capacity_per_s"].iloc[0] / basic)


def _ratio(one: pd.DataFrame, other: pd.DataFrame, column: str) -> pd.Series:
    return one[column] / other[column]


def _high_code(evidence: Evidence) -> Finding:
    share = _capacity(evidence, "static", (12, 6))
    quick = float(
        _of(evidence, "static", (12, 6))["mean_s"][0.01] / _of(evidence, "static", (1, 1))["mean_s"][0.01]
    )
    factor = _capacity(evidence, "tofec") / share
    return in_shape(
        share <= 0.35 and quick <= 0.5 and factor >= 3,
        factor,
        f"(12,6) takes {quick:.2f} of the time of (1,1) at light load and serves {share:.2f} of its capacity; the "
        "printed factor is not in the text at hand, so its size is not judged",
    )


def _fixed_k_loss(evidence: Evidence) -> Finding:
    loss = {k: 1 - _capacity(evidence, "static", (k, k)) for k in (3, 4, 6)}
    best = min(loss, key=lambda k: abs(loss[k] - 0.6))
    return in_shape(
        abs(loss[best] - 0.6) <= 0.05,
        loss[best],
        "loss with k = n = "
        + ", ".join(f"{k}: {value:.2f}" for k, value in loss.items())
        + f"; the k of the printed figure is not in the text at hand, k = {best} is nearest",
        min(loss.values()),
        max(loss.values()),
    )


def _envelope(evidence: Evidence) -> Finding:
    best = _of(evidence, "best_static")
    ratio = _ratio(_of(evidence, "tofec"), best, "mean_s")
    calibrated = _ratio(_of(evidence, "calibrated"), best, "mean_s")
    why = (
        f"mean over that of the best static code at loads {texts(ratio.index)}: {texts(ratio)}; {_M_M_1}. "
        f"Thresholds found by replay (calibrated): at most {calibrated.max():.3f}"
    )
    return judge(bool((ratio <= 1.03).all()), float(ratio.max()), why, float(ratio.min()), float(ratio.max()))


def _four(runs: pd.DataFrame, column: str) -> dict[str, float]:
    """A column in ms of (1,1), (2,1), TOFEC and Greedy at light load."""
    static = runs[runs["strategy"] == "static"].set_index(["n", "k"])[column]
    adaptive = runs[runs["strategy"] != "static"].set_index("strategy")[column]
    return {
        "(1,1)": 1e3 * static[1, 1],
        "(2,1)": 1e3 * static[2, 1],
        "tofec": 1e3 * adaptive["tofec"],
        "greedy": 1e3 * adaptive["greedy"],
    }


def _said(values: dict[str, float], printed: dict[str, int]) -> str:
    return ", ".join(f"{name} {value:.1f} ({printed[name]})" for name, value in values.items())


def _means(evidence: Evidence) -> Finding:
    runs = evidence["curves"].runs
    ours = _four(
        runs[(runs["load"] == 0.01) & ~runs["strategy"].isin(["best_static", "calibrated"])], "mean_s"
    )
    near = max(abs(value / MEANS_MS[name] - 1) for name, value in ours.items())
    order = ours["tofec"] < ours["greedy"] < ours["(2,1)"] < ours["(1,1)"]
    return judge(near <= 0.03 and order, ours["tofec"], f"ms (printed): {_said(ours, MEANS_MS)}")


def _medians(evidence: Evidence) -> Finding:
    runs = evidence["laws"].runs
    ours = _four(runs[runs["delays"] == "shifted_lognormal"], "p50_s")
    other = _four(runs[runs["delays"] == "correlated"], "p50_s")
    off = {name: abs(value / MEDIANS_MS[name] - 1) for name, value in ours.items()}
    return in_shape(
        max(off["(1,1)"], off["(2,1)"]) <= 0.03 and max(off["tofec"], off["greedy"]) <= 0.1,
        ours["tofec"],
        f"ms (printed) under shifted_lognormal, which was fitted to the static ones: {_said(ours, MEDIANS_MS)}; "
        "allowed: 3 % for static, 10 % for adaptive ones. Under correlated, fitted alike: "
        f"{_said(other, MEDIANS_MS)}; the "
        "law of the store is not public",
    )


def _full(evidence: Evidence) -> Finding:
    shares = [_capacity(evidence, name) for name in ("tofec", "greedy")]
    calm = all(_of(evidence, name)["status"][0.95] == Status.OK for name in ("tofec", "greedy"))
    return judge(
        min(shares) >= 0.99 and calm,
        min(shares),
        f"TOFEC {shares[0]:.3f} and Greedy {shares[1]:.3f} of the capacity of (1,1); at load 0.95 "
        f"{'both are' if calm else 'not both are'} stationary",
    )


def _replication(evidence: Evidence) -> Finding:
    share = _capacity(evidence, "replication")
    unstable = _of(evidence, "replication")["status"][0.75] != Status.OK
    return judge(
        0.65 <= share <= 0.70 and unstable,
        share,
        f"at load 0.75 it is {'not ' if unstable else ''}stationary",
    )


def _fixed_k(evidence: Evidence) -> Finding:
    share = _capacity(evidence, "fast_cloud")
    return judge(0.25 <= share <= 0.305, share, "of the capacity of (1,1), k = 6, thresholds of FAST CLOUD")


def _greedy_mean(evidence: Evidence) -> Finding:
    ratio = _ratio(_of(evidence, "greedy"), _of(evidence, "tofec"), "mean_s")
    return refuted(
        bool((ratio - 1).abs().max() > 0.1),
        float(ratio.max()),
        f"mean of Greedy over that of TOFEC at loads {texts(ratio.index)}: {texts(ratio)}. Greedy takes every idle "
        "thread, so the next request finds few and gets a short code with a large chunk",
        float(ratio.min()),
        float(ratio.max()),
    )


def _quantiles(evidence: Evidence) -> Finding:
    tofec, greedy = _of(evidence, "tofec"), _of(evidence, "greedy")
    loads = list(LIGHT_LOADS)
    ratios = {column: _ratio(greedy, tofec, f"{column}_s")[loads].to_numpy() for column in ("p90", "p99")}
    every = np.concatenate(list(ratios.values()))
    return judge(
        bool(every.min() > 1),
        float(every.min()),
        f"Greedy over TOFEC at loads {texts(loads)}: p90 {texts(ratios['p90'])}, p99 {texts(ratios['p99'])}",
        float(every.min()),
        float(every.max()),
    )


def _quantiles_of_best(evidence: Evidence) -> Finding:
    tofec = _of(evidence, "tofec")
    least = _of(evidence, "best_static")["envelope"].map(json.loads)
    ratios = {
        name: pd.Series({load: tofec[name][load] / least[load][name]["value"] for load in tofec.index})
        for name in ("p90_s", "p99_s")
    }
    every = pd.concat(ratios.values())
    why = (
        f"over the least of all static codes at loads {texts(tofec.index)}: p90 {texts(ratios['p90_s'])}, p99 "
        f"{texts(ratios['p99_s'])}; {_M_M_1}"
    )
    low, high = float(every.min()), float(every.max())
    return judge(high <= 1.05, high, why, low, high)


def _dimensions(evidence: Evidence, strategy: str) -> pd.DataFrame:
    runs = evidence["curves"].runs
    chosen = runs[runs["strategy"] == strategy][["run_id", "load"]]
    rows = chosen.merge(evidence["curves"].dataset("codes"), on="run_id")
    shares = rows.pivot_table(index="load", columns="k", values="share", aggfunc="sum").fillna(0.0)
    return shares.reindex(columns=range(1, 7), fill_value=0.0)


def _heavy(evidence: Evidence) -> Finding:
    mean = _of(evidence, "tofec")["mean_k"]
    last = [float(_dimensions(evidence, name)[1][0.95]) for name in ("tofec", "greedy")]
    return judge(
        rises(-mean.to_numpy(), -1e-9) and min(last) >= 0.8,
        min(last),
        f"mean k of TOFEC by load: {texts(mean)}; k = 1 serves {last[0]:.0%} under TOFEC, "
        f"{last[1]:.0%} under Greedy, at load 0.95",
    )


def _neighbours(evidence: Evidence) -> Finding:
    shares = _dimensions(evidence, "tofec").to_numpy()
    two = (shares[:, 1:] + shares[:, :-1]).max(axis=1)
    return judge(
        bool(two.min() > 0.8),
        float(two.min()),
        f"at loads {texts(_dimensions(evidence, 'tofec').index)}: {texts(two)}",
        float(two.min()),
        float(two.max()),
    )


def _extremes(evidence: Evidence) -> Finding:
    shares = _dimensions(evidence, "greedy").loc[[0.2, 0.4]]
    both = (shares[1] + shares[6]).to_numpy()
    largest = all(set(row.nlargest(2).index) == {1, 6} for _, row in shares.iterrows())
    return judge(
        largest and bool(both.min() > 0.5),
        float(both.min()),
        f"k = 1 and k = 6 together at loads 0.2 and 0.4: {texts(both)}",
    )


def _deviation(evidence: Evidence) -> Finding:
    ratio = _ratio(_of(evidence, "greedy"), _of(evidence, "tofec"), "std_s")[list(LIGHT_LOADS)]
    return judge(
        bool(ratio.min() > 1.5),
        float(ratio.min()),
        f"deviation of Greedy over that of TOFEC at loads {texts(LIGHT_LOADS)}: {texts(ratio)}",
        float(ratio.min()),
        float(ratio.max()),
    )


def _timeline(evidence: Evidence, strategy: str, column: str) -> pd.Series:
    """Means over the seeds by time, weighted by requests."""
    runs = evidence["steps"].runs
    chosen = runs[runs["strategy"] == strategy][["run_id"]]
    rows = chosen.merge(evidence["steps"].dataset("timeline"), on="run_id").dropna(subset=[column])
    rows["weighted"] = rows[column] * rows["requests"]
    sums = rows.groupby("start_s")[["weighted", "requests"]].sum()
    return sums["weighted"] / sums["requests"]


def _recovery(series: pd.Series, factor: float) -> float:
    """Seconds after the rate's fall from which on the mean stays below ``factor`` times its calm value."""
    calm = series[(series.index >= 50) & (series.index < RISE_S)].mean()
    after = series[(series.index >= FALL_S) & (series.index < FALL_S + 190)]
    above = after.index[after > factor * calm]
    return float(above.max() + WINDOW_S - FALL_S) if len(above) else 0.0


def _backlog(evidence: Evidence) -> Finding:
    took = _recovery(_timeline(evidence, "static", "mean_s"), 2.0)
    return judge(
        took > 100, took, f"(3,2) stays above twice its calm mean for {took:g} s after the rate fell"
    )


def _recovers(evidence: Evidence) -> Finding:
    took = {name: _recovery(_timeline(evidence, name, "mean_s"), 1.1) for name in ("tofec", "greedy")}
    k = _timeline(evidence, "tofec", "mean_k")
    calm_k = k[(k.index >= 50) & (k.index < RISE_S)].mean()
    grown = float(k.index[(k.index >= FALL_S) & (k >= 0.9 * calm_k)].min() - FALL_S)
    why = (
        f"above 1.1 times the calm mean for {took['tofec']:g} s (TOFEC) and {took['greedy']:g} s (Greedy) after the "
        f"rate fell; TOFEC's mean k takes {grown:g} s to nine tenths of its calm value, as its average remembers 100 "
        f"arrivals, 10 s at 10 requests/s; windows of {WINDOW_S} s"
    )
    if max(took.values()) <= 20:
        return judge(True, took["tofec"], why)
    return in_shape(max(took.values()) <= 50, took["tofec"], why)


REPLAYS = (
    Claim(
        "tofec-fig1-high-code-capacity",
        "Fig. 1, Sec. I",
        "Static codes with many chunks are fast at light load but cut capacity, of which TOFEC has a multiple.",
        _high_code,
        ("curves",),
        quantity="capacity of TOFEC over that of (12,6)",
    ),
    Claim(
        "tofec-fixed-k-envelope-loss",
        "Sec. I-A",
        "With k fixed, nearly 60 % of the capacity is lost however n is adapted.",
        _fixed_k_loss,
        ("curves",),
        paper_value="0.6",
        quantity="share of the capacity of (1,1) that is lost",
    ),
    Claim(
        "tofec-envelope",
        "Sec. I-B",
        "TOFEC is on the lower envelope of the curves of all static codes.",
        _envelope,
        ("curves",),
        quantity="largest mean over that of the best static code",
    ),
    Claim(
        "tofec-light-means",
        "Sec. V-B, Fig. 7a",
        "Means at light load of (1,1), (2,1), TOFEC and Greedy.",
        _means,
        ("curves",),
        paper_value="205, 151, 84, 89 ms",
        quantity="mean of TOFEC, ms",
    ),
    Claim(
        "tofec-light-medians",
        "Sec. V-B, Fig. 7b",
        "Medians at light load of (1,1), (2,1), TOFEC and Greedy.",
        _medians,
        ("laws",),
        paper_value="156, 138, 74, 79 ms",
        quantity="median of TOFEC, ms",
    ),
    Claim(
        "tofec-capacity-full",
        "Sec. V-B",
        "TOFEC and Greedy keep the whole capacity of (1,1).",
        _full,
        ("curves",),
        quantity="least share of the capacity of (1,1)",
    ),
    Claim(
        "tofec-capacity-replication",
        "Sec. V-B",
        "(2,1) cannot serve more than 70 % of what (1,1) can.",
        _replication,
        ("curves",),
        paper_value="0.7",
        quantity="share of the capacity of (1,1)",
    ),
    Claim(
        "tofec-capacity-fixed-k",
        "Sec. V-B",
        "Adapting n alone with k = 6 serves under 30 % of the capacity.",
        _fixed_k,
        ("curves",),
        paper_value="0.3",
        quantity="share of the capacity of (1,1)",
    ),
    Claim(
        "tofec-greedy-equals-tofec-mean",
        "Sec. V-B, Fig. 7a",
        "Greedy and TOFEC have almost identical mean delays.",
        _greedy_mean,
        ("curves",),
        quantity="largest mean of Greedy over that of TOFEC",
    ),
    Claim(
        "tofec-p90-p99-order",
        "Sec. V-B, Fig. 7c, 7d",
        "TOFEC has smaller 90th and 99th percentiles than Greedy at light load.",
        _quantiles,
        ("curves",),
        quantity="least quantile of Greedy over that of TOFEC",
    ),
    Claim(
        "tofec-p90-p99-best-static",
        "Sec. V-B, Fig. 7c, 7d",
        "TOFEC's 90th and 99th percentiles are those of the best static codes.",
        _quantiles_of_best,
        ("curves",),
        quantity="largest quantile over the least of all static codes",
    ),
    Claim(
        "tofec-heavy-convergence",
        "Sec. V-B",
        "With the load both adaptive strategies go to (1,1).",
        _heavy,
        ("curves",),
        quantity="share of requests with k = 1 at load 0.95",
    ),
    Claim(
        "tofec-fig8-two-neighbours",
        "Fig. 8",
        "TOFEC serves over 80 % of the requests with two neighbouring dimensions at any rate.",
        _neighbours,
        ("curves",),
        paper_value="0.8",
        quantity="least share of two neighbours",
    ),
    Claim(
        "tofec-fig8-greedy-extremes",
        "Fig. 8",
        "Greedy serves most requests with the smallest or the largest dimension.",
        _extremes,
        ("curves",),
        quantity="share of k = 1 and k = 6",
    ),
    Claim(
        "tofec-fig9-deviation",
        "Fig. 9",
        "TOFEC's delays deviate far less than Greedy's.",
        _deviation,
        ("curves",),
        quantity="least deviation of Greedy over that of TOFEC",
    ),
    Claim(
        "tofec-fig10-static-backlog",
        "Fig. 10",
        "After 200 s at 70 requests/s a static (3,2) code needs over 100 s for its backlog.",
        _backlog,
        ("steps",),
        paper_value="100 s",
        quantity="seconds above twice the calm mean",
    ),
    Claim(
        "tofec-fig10-adaptive-recovers",
        "Fig. 10",
        "TOFEC and Greedy follow changes of the rate at once.",
        _recovers,
        ("steps",),
        quantity="seconds until TOFEC's mean stays within 10 % of its calm value",
    ),
)
