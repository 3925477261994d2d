"""Figures of the differentiated-latency paper, judged by the tables of studies."""

import json

import numpy as np
import pandas as pd

from ecjax.plotting.class_values import class_names
from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import in_shape, judge, least_ratio, refuted, rises, texts
from ecjax.studies.reproduce.evidence import Evidence, Made

_EPS = 0.005  # of bounds: descents end at a relative change of 1e-4 a step
_STEP = 0.05  # local optima from point to point of a sweep
_NEAR_SATURATION = 0.95  # load of the busiest node
_ALONE = 0.9  # share of a node that hardly leaves the other class any of it
_BOUNDED = ("fairness", "fig12", "saturated_priority", "saturated_weighted")  # loads of 0.3 to 0.95


def _classes(made: Made, source: str = "replayed", column: str = "mean_s") -> pd.DataFrame:
    """A row per run in the order of the sweep, with columns 1 and 2 for the classes and ci_1, ci_2."""
    rows = made.joined("latencies")
    rows = rows[(rows["group"] == "class") & (rows["source"] == source)]
    label = rows["class"].astype(str)
    tables = [
        rows.assign(label=[f"{prefix}{value}" for value in label]).pivot(
            index="run_id", columns="label", values=name
        )
        for prefix, name in (("", column), ("ci_", "ci_s"))
    ]
    runs = made.runs.set_index("run_id")
    return runs.drop(columns=["ci_s"]).join(tables[0]).join(tables[1])


def _sweep(made: Made, column: str) -> pd.DataFrame:
    """The same, ordered by a number of the runs, or by one in a JSON list of them."""
    rows = _classes(made)
    values = rows[column]
    if values.dtype == object or pd.api.types.is_string_dtype(values):
        keys = {"importance": "2", "class_rate_scale": "1"}
        values = values.map(lambda text: _item(text, keys[column]))
    return rows.assign(at=values.astype(float)).sort_values("at")


def _item(text: str, name: str) -> float:
    values = json.loads(text)
    return float(values[name] if isinstance(values, dict) else values[int(name) - 1])


def _bound(evidence: Evidence) -> Finding:
    replayed, bounds, loads = [], [], []
    for name in _BOUNDED:
        means, bounded = _classes(evidence[name]), _classes(evidence[name], "bound")
        loads += list(means["max_load"])
        for label in ("1", "2"):
            replayed.append(means[[label, f"ci_{label}"]].to_numpy())
            bounds.append(bounded[label].to_numpy())
    mean, half = np.concatenate(replayed).T
    bound = np.concatenate(bounds)
    ratio, low, high = least_ratio(bound, mean, half)
    return judge(
        low >= 1,
        ratio,
        f"least of {len(bound)} classes and plans of both queues, whose busiest node is at {min(loads):.2f} to "
        f"{max(loads):.2f}; the largest is {(bound / mean).max():.2f}. Judged by the least lower end of all intervals",
        low,
        high,
    )


def _descent(evidence: Evidence) -> Finding:
    history = evidence["fig6"].joined("history").sort_values(["run_id", "iteration"], kind="stable")
    worst = {}
    for queue, rows in history.groupby("queue"):
        keys = [rows["run_id"], rows["service_class"].fillna("")]
        rise = rows.groupby(keys)["objective"].transform(lambda values: values.diff() / values.abs())
        worst[str(queue)] = float(rise.max())
    return judge(
        worst["weighted"] <= 1e-9 and worst["priority"] <= 0.01,
        worst["weighted"],
        f"largest relative rise from step to step: weighted {worst['weighted']:.1e}, priority "
        f"{worst['priority']:.1e}, where a "
        "class may rise by eps = 0.01 for a lower one. Stops are local optima, no more",
    )


def _iterations(evidence: Evidence) -> Finding:
    runs = evidence["fig6"].runs
    counts = runs.groupby("queue")["iterations"].max()
    ok = (runs["status"] == "ok").all()
    return judge(
        bool(ok and counts.max() <= 175),
        float(counts.max()),
        f"outer iterations, the larger of two workloads: priority {counts['priority']:.0f}, "
        f"weighted {counts['weighted']:.0f}",
    )


def _scale(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["saturated_priority"], "max_load")
    ratio = (rows["2"] / rows["1"]).to_numpy()
    stated = _classes(evidence["fig8_priority"])
    return in_shape(
        bool(rises(ratio, _STEP) and ratio[-1] >= 5 and rows["max_load"].iloc[-1] >= _NEAR_SATURATION),
        float(ratio[-1]),
        f"class 2 / class 1 where the busiest node is at {texts(rows['max_load'])}: {texts(ratio)}. It is a matter of "
        f"load alone: at the stated 0.6, at which plans bring the busiest node to {stated['max_load'].max():.2f}, "
        f"{(stated['2'] / stated['1']).max():.2f}; at the printed rates, a load of 2.05, no mean exists",
        float(ratio.min()),
        float(ratio.max()),
    )


def _trend(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["fig8"], "importance")
    rows = rows[rows["at"] > 0]
    one, two = rows["1"].to_numpy(), rows["2"].to_numpy()
    ends = two[0] > two[-1] and one[0] < one[-1]
    ratio = float(two[0] / two[-1])
    why = (
        f"class 1 {texts(one)} s, class 2 {texts(two)} s for C2 = {texts(rows['at'], '.1f')}: steps where classes "
        f"get nodes of their own. "
        "Runs go on from each other's plans, so that no point is beaten by the plan of another"
    )
    if not (rises(one, _STEP) and rises(-two, -_STEP)):
        return in_shape(bool(ends), ratio, f"the ends are in order, single steps are not. {why}")
    return judge(bool(ends), ratio, why)


def _first(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["fig8"], "importance")
    rows = rows[(rows["at"] > 0) & (rows["at"] <= 0.9)]
    ratio = (rows["2"] / rows["1"]).to_numpy()
    made = evidence["fig8"]
    service = made.dataset("inputs/nodes").drop_duplicates("node_id").set_index("node_id")["service_mean_s"]
    weights = made.of_plans("class_weights")
    weights = weights[weights["service_class"].astype(str) == "1"].pivot(
        index="node_id", columns="run_id", values="weight"
    )[rows["plan_run"]]
    service = service[weights.index]
    shares, work = weights.mean(), weights.div(service, axis=0).sum() / (1 / service).sum()
    why = (
        f"class 2 / class 1 for C2 = {texts(rows['at'], '.1f')}: {texts(ratio)}; class 1 has {texts(shares, '.4f')} of "
        f"the nodes, on average, and {texts(work, '.3f')} of their speed"
    )
    first, left = (each.mul(service, axis=0).sum() / each.sum() for each in (weights, 1 - weights))
    if (shares < 0.5).any() and (first < left).all():
        alone = (weights > _ALONE).sum()
        why += (
            f". Plans give it nodes of its own, the faster ones: {texts(alone, '.0f')} of {len(weights)} serve it "
            f"nearly alone, a reference chunk takes {texts(first)} s at its nodes and {texts(left)} s at those of "
            "class 2, so that it is faster with fewer of them"
        )
    return judge(
        bool((ratio > 1).all() and (shares >= 0.5).all()),
        float(ratio.min()),
        why,
        float(ratio.min()),
        float(ratio.max()),
    )


def _flat(evidence: Evidence) -> Finding:
    made = evidence["fig8_priority"]
    means, bounds = _sweep(made, "importance"), _classes(made, "bound")
    spread = max(float(bounds[label].max() / bounds[label].min() - 1) for label in ("1", "2"))
    replayed = max(float(means[label].max() / means[label].min() - 1) for label in ("1", "2"))
    return judge(
        max(spread, replayed) <= _EPS,
        replayed,
        f"at C2 = 0, 0.4 and 1 the bounds that are planned for differ by {spread:.2g}, but plans with equal bounds are "
        f"not one plan: replayed, class 1 has {texts(means['1'])} s and class 2 {texts(means['2'])} s, half intervals "
        f"{means['ci_2'].max():.1f} s",
    )


def _starves(evidence: Evidence) -> Finding:
    low = _sweep(evidence["saturated_priority"], "max_load").iloc[-1]
    fair = _classes(evidence["saturated_weighted"]).iloc[0]
    stated = _classes(evidence["fig8_priority"])["2"].max(), _sweep(evidence["fig8"], "importance")["2"].min()
    ratio, against = float(low["2"] / low["1"]), float(low["2"] / fair["2"])
    return in_shape(
        ratio > 5 and against > 2 and min(low["max_load"], fair["max_load"]) >= _NEAR_SATURATION,
        against,
        f"priority, rates 1:22: class 2 is {ratio:.1f} times slower than class 1 near saturation, {low['2']:.0f} and "
        f"{low['1']:.0f} s where the busiest node is at {low['max_load']:.2f}. At the same total rate weighted queues, "
        f"rates 1:1 as in the paper, have {fair['2']:.0f} and {fair['1']:.0f} s, at C2 = 0.4 and with the busiest node "
        f"at {fair['max_load']:.2f}: a strict partition lends nobody its idle share. At the stated load of 0.6 class 2 "
        f"has {stated[0]:.0f} s under priority, and at least {stated[1]:.0f} s over C2 in weighted queues",
    )


def _fairness(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["fairness"], "class_rate_scale")
    ratio = rows.assign(ratio=rows["2"] / rows["1"]).pivot(index="at", columns="queue", values="ratio")
    weighted, priority = ratio["partitioned"].to_numpy(), ratio["priority"].to_numpy()
    sizes = evidence["fairness_sizes"]
    load = sizes.runs.set_index("queue")["max_load"]
    by_size = {str(queue): _by_size(sizes, run) for run, queue in sizes.runs[["run_id", "queue"]].to_numpy()}
    of_size = {queue: (table["2"] / table["1"]).to_numpy() for queue, table in by_size.items()}
    return in_shape(
        bool(weighted[-1] < priority[-1] and (of_size["partitioned"] < of_size["priority"]).all()),
        float(weighted[-1] / priority[-1]),
        f"class 2 / class 1 as class 1 grows to four times class 2: weighted {texts(weighted)}, "
        f"priority {texts(priority)}. At "
        "low load a strict partition idles, which priority never does. By the sizes of Fig. 9 and 11 "
        f"({texts(by_size['priority'].index / 1e6)} MB), rates 4:1, where the busiest node is at "
        f"{load['partitioned']:.2f} and {load['priority']:.2f}: weighted {texts(of_size['partitioned'])}, "
        f"priority {texts(of_size['priority'])}",
    )


def _super(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["sizes"], "size_scale")
    two = rows["2"].to_numpy()
    bends = np.diff(two, 2)
    return in_shape(
        bool((bends > 0).all()),
        float(bends.min()),
        f"class 2 with all files at 50, 75, 100, 125, 150 MB and fixed rates: {texts(two)} s. "
        f"With mixed sizes, as printed, "
        "the wait of class 2 does not depend on the own size and growth is at most linear",
        float(bends.min()),
        float(bends.max()),
    )


def _by_size(made: Made, run: str | None = None) -> pd.DataFrame:
    """Mean latency over the reads of the files of a size: sizes in bytes, rising, by classes, s; of one run, or all."""
    latencies = made.dataset("latencies")
    if run is not None:
        latencies = latencies[latencies["run_id"].astype(str) == run]
    files = latencies[(latencies["group"] == "file") & (latencies["source"] == "replayed")]
    inputs = made.dataset("inputs/files")
    inputs = inputs.assign(**{"file_id": inputs["file_id"].astype(str), "class": class_names(inputs)})
    files = (
        files.drop(columns="class")
        .assign(file_id=files["file_id"].astype(str))
        .merge(inputs[["file_id", "bytes", "class"]], on="file_id")
    )
    files = files[files["requests"] > 0].assign(total=files["mean_s"] * files["requests"])
    sums = files.groupby(["bytes", files["class"].astype(str)])[["total", "requests"]].sum()
    return (sums["total"] / sums["requests"]).unstack().sort_index()


def _linear(evidence: Evidence) -> Finding:
    rows = _by_size(evidence["fig9"])
    size, one = rows.index.to_numpy(float), rows["1"].to_numpy()
    slope, start = np.polyfit(size, one, 1)
    fit = 1 - float(np.var(one - slope * size - start) / np.var(one))
    return in_shape(
        fit >= 0.98 and slope > 0,
        fit,
        f"class 1 at {texts(size / 1e6)} MB: {texts(one)} s, R^2 of a straight line {fit:.3f}. Sizes are mixed in one "
        "run, so that growth is that of the own service; and plans keep sizes on different nodes, which bends it: a "
        f"reference chunk takes {texts(_service(evidence['fig9'], '1'))} s where they are read",
    )


def _service(made: Made, label: str) -> np.ndarray:
    """Mean service time of a reference chunk at the nodes that files of a class read, by their sizes, s."""
    inputs = made.dataset("inputs/files")
    inputs = inputs.assign(**{"file_id": inputs["file_id"].astype(str), "class": class_names(inputs)})
    reads = made.of_plans("placements")[["file_id", "node_id", "probability"]]
    reads = reads.assign(file_id=reads["file_id"].astype(str)).merge(
        inputs[inputs["class"] == label][["file_id", "bytes"]], on="file_id"
    )
    reads = reads.merge(made.dataset("inputs/nodes")[["node_id", "service_mean_s"]], on="node_id")
    sums = reads.assign(work=reads["probability"] * reads["service_mean_s"]).groupby("bytes")
    return (sums["work"].sum() / sums["probability"].sum()).sort_index().to_numpy()


def _sizes(evidence: Evidence) -> Finding:
    rows = _by_size(evidence["fig11"])
    size, one, two = rows.index.to_numpy(float) / 1e6, rows["1"].to_numpy(), rows["2"].to_numpy()
    slopes = [float(np.polyfit(size, values, 1)[0]) for values in (one, two)]
    return judge(
        rises(one) and rises(two) and slopes[1] > slopes[0] > 0,
        slopes[1] / slopes[0],
        f"class 1 {texts(one)} s, class 2 {texts(two)} s at {texts(size)} MB",
    )


def _growth(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["fig10"], "class_rate_scale")
    one, two, half = (rows[name].to_numpy() for name in ("1", "2", "ci_2"))
    noise = float((half / two).max())
    rise = float(two[-1] - two[0])
    bends = np.diff(two, 2)
    sure = np.sqrt(half[:-2] ** 2 + 4 * half[1:-1] ** 2 + half[2:] ** 2)
    within = (abs(bends) <= sure).all()
    return in_shape(
        bool(rises(two, 2 * noise) and rise > one[-1] - one[0]),
        rise,
        f"class 1 {texts(one)} s, class 2 {texts(two)} s, at most {noise:.1%} off. Second differences of class 2 are "
        f"{texts(bends, '+.2g')} s, with half intervals of {texts(sure, '.2g')} s"
        f"{': these replays show that it rises, not how it bends' if within else ''}. By the formula it is no "
        "logarithm: the wait of class 2, residual / ((1 - rho1)(1 - rho)), is convex in lambda1",
    )


def _rates(evidence: Evidence) -> Finding:
    rows = _sweep(evidence["fig12"], "rate_scale")
    one, two = rows["1"].to_numpy(), rows["2"].to_numpy()
    rise = [float(values[-1] - values[0]) for values in (one, two)]
    noise = float(max((rows["ci_1"] / rows["1"]).max(), (rows["ci_2"] / rows["2"]).max()))
    steady = rises(one, 2 * noise) and rises(two, 2 * noise)
    why = f"class 1 {texts(one)} s, class 2 {texts(two)} s, at most {noise:.1%} off"
    if not steady:
        return in_shape(
            min(rise) > 0 and rise[1] > rise[0], rise[1] / rise[0], f"{why}; a step between local optima"
        )
    return judge(min(rise) > 0 and rise[1] > rise[0], rise[1] / rise[0], why)


def _shift(evidence: Evidence) -> Finding:
    rows = evidence["shares"].joined("class_weights")
    rows = rows[rows["service_class"].astype(str) == "1"]
    share = rows.groupby("rate_scale")["weight"].mean().to_numpy()
    return in_shape(
        bool(share[-1] >= share[0] - 1e-3),
        float(share[-1] - share[0]),
        f"mean share of class 1 at the lowest and the highest rate: {texts(share, '.3f')}; "
        f"plotted nowhere in the paper. "
        "Either plan was tried at both rates",
    )


def _tight(evidence: Evidence) -> Finding:
    runs = evidence["fig12"]
    means, bounds = _classes(runs), _classes(runs, "bound")
    ratios = [float(value) for label in ("1", "2") for value in bounds[label] / means[label]]
    estimates = _classes(runs, "estimated")
    apart = [float(value) for label in ("1", "2") for value in estimates[label] / means[label] - 1]
    meets = "within" if max(map(abs, apart)) <= 0.1 else "not within"
    return refuted(
        max(ratios) > 1.1,
        max(ratios),
        "bound / replayed over the rates of Fig. 12, both classes, with exact moments; no number "
        "is printed. The printed "
        "moments are too small, which hides the gap and is no bound. The estimate, no bound either, is "
        f"{min(apart):+.1%} to {max(apart):+.1%} off, {meets} the 10 % that are asked of the bound",
        min(ratios),
        max(ratios),
    )


FIGURES = (
    Claim(
        "differentiated-lemma1-bound",
        "Lemma 1, eq. 2",
        "The order-statistic bound holds with connection and queueing delay per node, for both queues.",
        _bound,
        _BOUNDED,
        quantity="least bound / replayed mean",
    ),
    Claim(
        "differentiated-descent",
        "Fig. 3-4, Sec. IV",
        "JLOP and JLWO produce objectives that never rise, and stop at local optima.",
        _descent,
        ("fig6",),
        quantity="largest relative rise, weighted",
    ),
    Claim(
        "differentiated-fig6-175-iterations",
        "Fig. 6",
        "Both algorithms converge within 175 iterations at tolerance 0.01.",
        _iterations,
        ("fig6",),
        paper_value="175",
        quantity="largest number of outer iterations",
    ),
    Claim(
        "differentiated-fig6-class2-scale",
        "Fig. 6",
        "Under priority at 1:22 class 2 is some twenty times slower than class 1.",
        _scale,
        ("saturated_priority", "fig8_priority"),
        paper_value="20",
        quantity="class 2 / class 1",
    ),
    Claim(
        "differentiated-fig8-c2-trend",
        "Fig. 8",
        "Weighted queues: as C2 falls class 2 gets slower and class 1 faster.",
        _trend,
        ("fig8",),
        quantity="class 2 at C2 = 0.1 / at 1",
    ),
    Claim(
        "differentiated-fig8-class1-first",
        "Fig. 8",
        "While C2 < C1 class 1 gets more bandwidth and lower latency.",
        _first,
        ("fig8",),
        quantity="least class 2 / class 1",
    ),
    Claim(
        "differentiated-fig8-priority-flat",
        "Fig. 8",
        "C2 does not matter under priority.",
        _flat,
        ("fig8_priority",),
        quantity="largest relative difference of a class",
    ),
    Claim(
        "differentiated-fig8-priority-starves",
        "Fig. 8",
        "Class 2 under priority is far slower than class 1 and than both classes of weighted queues.",
        _starves,
        ("saturated_priority", "saturated_weighted", "fig8", "fig8_priority"),
        quantity="class 2 under priority / in weighted queues",
    ),
    Claim(
        "differentiated-fig8-fairness",
        "Fig. 8, 9, 11, Sec. VI",
        "Weighted queues are fairer: class 2 / class 1 is smaller than under priority.",
        _fairness,
        ("fairness", "fairness_sizes"),
        quantity="weighted / priority, at the largest load",
    ),
    Claim(
        "differentiated-fig9-class1-linear",
        "Fig. 9",
        "Priority: class 1 latency grows almost linearly in file size.",
        _linear,
        ("fig9",),
        quantity="R^2 of a straight line",
    ),
    Claim(
        "differentiated-fig11-size",
        "Fig. 11",
        "Weighted queues: the latency of both classes rises with the size of files, that of class 2 faster.",
        _sizes,
        ("fig11",),
        quantity="slope of class 2 / of class 1",
    ),
    Claim(
        "differentiated-fig9-class2-super",
        "Fig. 9",
        "Priority: class 2 latency grows more than linearly in file size.",
        _super,
        ("sizes",),
        quantity="least second difference, s",
    ),
    Claim(
        "differentiated-fig10-growth",
        "Fig. 10",
        "Priority: raising class 1's rate raises class 2's latency, logarithmically.",
        _growth,
        ("fig10",),
        quantity="rise of class 2, s",
    ),
    Claim(
        "differentiated-fig12-rates",
        "Fig. 12",
        "Weighted: both latencies rise with the total rate, class 2's faster.",
        _rates,
        ("fig12",),
        quantity="rise of class 2 / of class 1",
    ),
    Claim(
        "differentiated-fig12-bandwidth-shift",
        "Fig. 12",
        "With higher rates class 1 is given more bandwidth and class 2 less.",
        _shift,
        ("shares",),
        quantity="growth of class 1's mean share",
    ),
    Claim(
        "differentiated-bound-tight",
        "Figs. 9-12",
        "The bound closely follows the measured latency of both classes.",
        _tight,
        ("fig12",),
        quantity="largest bound / replayed mean",
    ),
)
