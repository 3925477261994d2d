"""Histograms of monitoring: moments against linear programs over fine grids, and laws that made the counts."""

import json

import numpy as np
import pytest
from scipy.optimize import linprog

from ecjax.errors import UserError
from ecjax.tables.histogram_moments import Histogram, moment_interval
from ecjax.tables.histograms import LOW, MOMENTS, histogram_nodes

EDGES = np.array([0.0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0])


def counted(values, edges=EDGES, mean=True):
    count = np.histogram(values, edges)[0]
    return Histogram(edges[:-1], edges[1:], count, float(values.mean()) if mean else None)


def extreme(histogram, power, sign):
    """The extreme of E[X^power] over laws on a grid, by a linear program."""
    points = [np.linspace(low, high, 81) for low, high in zip(histogram.lower, histogram.upper, strict=True)]
    bucket = np.repeat(np.arange(len(points)), 81)
    grid = np.concatenate(points)
    rows = (bucket == np.arange(len(points))[:, None]).astype(float)
    weights = histogram.counts / histogram.counts.sum()
    bounds = np.vstack([rows, grid])
    found = linprog(sign * grid**power, A_eq=bounds, b_eq=[*weights, histogram.mean])
    return sign * found.fun


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_moments_are_the_extremes_of_linear_programs(seed):
    values = np.random.default_rng(seed).gamma(1 + seed, 0.03, 200)
    histogram = counted(values)
    found = moment_interval(histogram, "times")
    for place, power in enumerate((1, 2, 3)):
        least, most = extreme(histogram, power, 1), extreme(histogram, power, -1)
        # grids have both ends of every bucket, but the least law has a point between
        assert found.high[place] == pytest.approx(most, rel=1e-6)
        assert found.low[place] == pytest.approx(least, rel=2e-3) and found.low[place] <= least * (1 + 1e-9)
        assert found.low[place] <= np.mean(values**power) * (1 + 1e-12)
        assert np.mean(values**power) <= found.high[place] * (1 + 1e-12)
    # either end is moments of a law: Cauchy-Schwarz
    for first, second, third in found:
        assert second >= first**2 and third * first >= second**2 * (1 - 1e-12)
    wide = moment_interval(counted(values, mean=False), "times")
    assert np.all(wide.low <= found.low) and np.all(wide.high >= found.high)


def test_moments_that_cannot_be_given():
    open_ = Histogram(np.array([0.0, 1.0]), np.array([1.0, np.inf]), np.array([9.0, 1.0]), 0.9)
    with pytest.raises(
        UserError, match="times: 0.1 of what it counts is above 1 s, in a bucket without an upper"
    ):
        moment_interval(open_, "times")
    # an open bucket that is empty does not matter
    assert moment_interval(open_._replace(counts=np.array([9.0, 0.0])), "times").high[1] == pytest.approx(0.9)
    with pytest.raises(UserError, match="its buckets allow 0 to 1 s"):
        moment_interval(open_._replace(counts=np.array([9.0, 0.0]), mean=2.0), "times")
    with pytest.raises(UserError, match="counts nothing"):
        moment_interval(open_._replace(counts=np.zeros(2)), "times")


def samples(values, **labels):
    """Series of a histogram: name, labels, value."""
    below = [(f"{edge:g}", int(np.sum(values <= edge))) for edge in EDGES[1:]] + [("+Inf", len(values))]
    yield from (("disk_read_seconds_bucket", {**labels, "le": le}, value) for le, value in below)
    yield "disk_read_seconds_sum", labels, float(values.sum())
    yield "disk_read_seconds_count", labels, len(values)


def text_of(series):
    lines = ["# HELP disk_read_seconds Reads.", "# TYPE disk_read_seconds histogram", 'up{job="disks"} 1']
    for name, labels, value in series:
        inner = ",".join(f'{key}="{each}"' for key, each in labels.items())
        lines.append(f"{name}{{{inner}}} {value!r}")
    return "\n".join(lines) + "\n"


def test_prometheus_text_and_json_give_one_table(tmp_path):
    random = np.random.default_rng(3)
    values = {name: random.gamma(2, scale, 500) for name, scale in (("a:9100", 0.01), ("b:9100", 0.03))}
    series = [each for name, times in values.items() for each in samples(times, instance=name, job="disks")]
    (tmp_path / "disks.prom").write_text(text_of(series))
    result = [
        {"metric": {"__name__": name, **labels}, "value": [0, str(value)]} for name, labels, value in series
    ]
    (tmp_path / "disks.json").write_text(json.dumps({"status": "success", "data": {"result": result}}))
    tables = [
        histogram_nodes(tmp_path / f"disks.{end}", "disk_read_seconds", 1e6) for end in ("prom", "json")
    ]
    assert tables[0].equals(tables[1])
    assert tables[0]["node_id"].to_pylist() == list(values) and set(
        tables[0]["reference_bytes"].to_pylist()
    ) == {1e6}
    low = histogram_nodes(tmp_path / "disks.prom", "disk_read_seconds", 1e6, LOW)
    for place, times in enumerate(values.values()):
        for power, name in enumerate(MOMENTS, 1):
            least, most = (table[name][place].as_py() for table in (low, tables[0]))
            assert least * (1 - 1e-12) <= np.mean(times**power) <= most * (1 + 1e-12)
        assert tables[0][MOMENTS[0]][place].as_py() == pytest.approx(times.mean())


@pytest.mark.parametrize(
    ("unit", "per_second"),
    [("seconds", 1), ("milliseconds", 1e3), ("ms", 1e3), ("microseconds", 1e6), ("us", 1e6), ("ns", 1e9)],
)
def test_metrics_that_name_another_unit_are_converted(tmp_path, unit, per_second):
    """Milliseconds that count as seconds make moments 10^3 to 10^9 times as large."""
    values = np.random.default_rng(6).gamma(2, 0.01, 500)
    lines = []
    for name, labels, value in samples(values, instance="a"):
        name = name.replace("seconds", unit)
        if "le" in labels and labels["le"] != "+Inf":
            labels = labels | {"le": f"{float(labels['le']) * per_second:.9g}"}
        lines.append((name, labels, value * per_second if name.endswith("_sum") else value))
    (tmp_path / "disks.prom").write_text(text_of(lines))
    table = histogram_nodes(tmp_path / "disks.prom", f"disk_read_{unit}", 1e6)
    assert table[MOMENTS[0]][0].as_py() == pytest.approx(values.mean())
    interval = moment_interval(counted(values), "times")
    for place, name in enumerate(MOMENTS):
        assert table[name][0].as_py() == pytest.approx(interval.high[place], rel=1e-6)


def test_exemplars_are_no_labels_and_no_values(tmp_path):
    """OpenMetrics: an exemplar follows a bucket's value after "#"; labels may hold braces, quotation marks and "#"."""
    values = np.random.default_rng(5).gamma(2, 0.01, 500)
    plain = text_of(samples(values, path='/{id}# \\"a\\"', instance="a"))
    (tmp_path / "plain").write_text(plain)
    lines = [
        f'{line} # {{trace_id="ab"}} 0.054' if "_bucket" in line else line for line in plain.splitlines()
    ]
    (tmp_path / "exemplars").write_text("\n".join(lines))
    tables = [histogram_nodes(tmp_path / name, "disk_read_seconds", 1e6) for name in ("plain", "exemplars")]
    assert tables[0].equals(tables[1]) and tables[0]["node_id"].to_pylist() == ["a"]
    assert tables[0][MOMENTS[0]][0].as_py() == pytest.approx(values.mean())


def ceph_dump(values):
    """What an OSD would count: log2 buckets of 0.1 ms (in ns) by log2 buckets of 512 B."""

    def ranges(step, buckets):
        ends = [0, *(step << i for i in range(buckets - 2))]
        inner = [{"min": low, "max": high - 1} for low, high in zip(ends[:-1], ends[1:], strict=True)]
        return [{"max": -1}, *inner, {"min": ends[-1]}]

    axes = [
        {
            "name": name,
            "min": 0,
            "quant_size": step,
            "buckets": 32,
            "scale_type": "log2",
            "ranges": ranges(step, 32),
        }
        for name, step in (("Latency (usec)", 100000), ("Request size (bytes)", 512))
    ]
    table = np.zeros((32, 32), int)
    for value in np.floor(values * 1e9).astype(int):
        place = next(i for i, each in enumerate(axes[0]["ranges"]) if value <= each.get("max", value))
        table[place, 12] += 1
    return {"osd": {"op_r_latency_out_bytes_histogram": {"axes": axes, "values": table.tolist()}}}


def test_a_dump_of_ceph_counts_nanoseconds(tmp_path):
    values = np.random.default_rng(4).gamma(2, 0.004, 300)
    (tmp_path / "osd.0.json").write_text(json.dumps(ceph_dump(values)))
    metric = "osd.op_r_latency_out_bytes_histogram"
    low, high = (histogram_nodes(tmp_path / "osd.0.json", metric, 4e6, end) for end in ("low", "high"))
    assert high["node_id"].to_pylist() == ["osd.0"]
    for power, name in enumerate(MOMENTS, 1):
        assert low[name][0].as_py() <= np.mean(values**power) <= high[name][0].as_py()
        assert high[name][0].as_py() <= 2.1**power * low[name][0].as_py()
    with pytest.raises(
        UserError, match="found no histogram osd.x; allowed: osd.op_r_latency_out_bytes_histogram"
    ):
        histogram_nodes(tmp_path / "osd.0.json", "osd.x", 4e6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense\n", "line 1: no sample"),
        ('x_bucket{le="1"} 3\nx_bucket{le="+Inf"} 2\n', "do not add up"),
        ('x_bucket{le="1"} 3\nx_bucket{le="+Inf"} 3\nx_count 4\n', "one scrape"),
        ('x_bucket{le="1"} 3\nx_bucket{le="1.0"} 3\n', "two samples"),
        ('x_count 3\nx_bucket{le="1"} 3\nx_count 3\n', "two samples"),
        ('x_bucket{le="1"} -3\nx_bucket{le="+Inf"} 3\n', "do not add up"),
        ("y_total 3\n", "found no histogram x"),
        ("{", "no JSON"),
        ('{"data": {"result": [{}]}}', "an instant query of Prometheus"),
    ],
)
def test_files_that_are_no_histogram(tmp_path, text, words):
    (tmp_path / "file").write_text(text)
    with pytest.raises(UserError, match=words):
        histogram_nodes(tmp_path / "file", "x", 1.0)
    with pytest.raises(UserError, match="no such file"):
        histogram_nodes(tmp_path / "none", "x", 1.0)
