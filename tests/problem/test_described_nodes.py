"""Nodes without a log: a description in numbers, and what fio measured, become ordinary nodes tables."""

import json
from pathlib import Path

import numpy as np
import pytest
import sample_histograms
from numpy.testing import assert_allclose

from ecjax.console import say_once
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.problem.arrays import nodes_arrays
from ecjax.problem.described_nodes import read_nodes
from ecjax.studies.optimize.inputs import fingerprint_of, input_tables
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay.options import ReplayOptions

TRACES = Path(__file__).parents[2] / "traces"
TWELVE = {"count": 12, "per_rack": 4, "seek_ms": 8, "MBps": 180, "dollars_per_TB": 20}


def columns(description):
    return read_nodes(checked(OptimizeOptions(nodes=description)).nodes).to_pydict()


def fio_job(latencies_s, name="sda", options=None, size=1 << 20, percentiles=True):
    """A job as fio reports it that measured these latencies of reads, each of one size."""
    shares = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
    nanoseconds = np.asarray(latencies_s) * 1e9
    latency = {
        "min": int(nanoseconds.min()),
        "max": int(nanoseconds.max()),
        "mean": float(nanoseconds.mean()),
        "stddev": float(nanoseconds.std()),
        "N": len(nanoseconds),
    }
    if percentiles:
        latency["percentile"] = {f"{share:f}": int(np.percentile(nanoseconds, share)) for share in shares}
    read = {"io_bytes": size * len(nanoseconds), "total_ios": len(nanoseconds), "clat_ns": latency}
    return {"jobname": name, "job options": {"name": name, **(options or {})}, "read": read}


def fio_file(path, *jobs, **general):
    content = {
        "fio version": "fio-3.36",
        "global options": {"bs": "1M", "iodepth": "1", **general},
        "jobs": jobs,
    }
    path.write_text("fio: a line that is no JSON\n" + json.dumps(content, indent=2) + "\n")
    return path


def test_a_description_is_a_table_of_racks():
    table = columns(TWELVE)
    assert table["node_id"][:5] == ["rack1-1", "rack1-2", "rack1-3", "rack1-4", "rack2-1"]
    assert table["site"] == ["rack1"] * 4 + ["rack2"] * 4 + ["rack3"] * 4
    assert_allclose(table["cost_per_byte_dollars"], 20e-12)


def test_moments_are_those_of_exponential_positioning_and_constant_transfer():
    nodes = nodes_arrays(read_nodes(TWELVE))
    size, seek, transfer = 9e6, 0.008, 0.05
    powers = size ** np.arange(4)
    first, second, third = np.asarray(nodes.service)[:, :, 0] @ powers
    assert_allclose(first, seek + transfer)
    assert_allclose(second - first**2, seek**2)
    assert_allclose(third - 3 * first * second + 2 * first**3, 2 * seek**3)


def test_lists_are_per_rack_or_per_node():
    table = columns(TWELVE | {"MBps": [180, 90, 90], "per_rack": [2, 4, 6], "seek_ms": list(range(1, 13))})
    assert table["site"].count("rack3") == 6
    assert_allclose(1e-6 / np.array(table["delta_s_per_byte"]), [180] * 2 + [90] * 10)
    assert_allclose(table["psi_s"], np.arange(1, 13) / 1000)
    assert "site" not in columns({key: value for key, value in TWELVE.items() if key != "per_rack"})


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"racks": 3},
            "nodes: found key 'racks'; allowed: count, per_rack, seek_ms, MBps, dollars_per_TB, channels, fio, "
            "histogram, metric, chunk_bytes, moments",
        ),
        ({"count": 0}, "nodes: found count=0; allowed: a whole number from 1 to 100000"),
        ({"MBps": [1, 0, 3]}, "nodes: found MBps=0; allowed: a number above 0"),
        ({"MBps": [1, 2]}, "nodes: MBps: found 2 numbers; allowed: 12, one per node, or 3, one per rack"),
        ({"per_rack": 5}, "nodes: found per_rack=5; allowed: racks that add up to 12 nodes, or a list"),
        ({"per_rack": [4, 4]}, "nodes: found per_rack=[4, 4]; allowed: racks that add up to 12 nodes"),
        (
            {"fio": "a.json"},
            "nodes: found seek_ms beside fio; allowed: fio, count, per_rack, dollars_per_TB, channels",
        ),
    ],
)
def test_mistakes_in_a_description_are_named(change, line):
    with pytest.raises(UserError) as error:
        columns(TWELVE | change)
    assert str(error.value) == line


def test_what_is_missing_is_named():
    with pytest.raises(UserError, match=r"nodes: found no MBps in .*; allowed: count, seek_ms, MBps"):
        columns({"count": 3, "seek_ms": 8})


def test_a_description_counts_as_the_table_that_it_makes(tmp_path, caplog):
    say_once.cache_clear()
    with caplog.at_level("INFO", "ecjax"):
        described = input_tables(checked(OptimizeOptions(nodes=TWELVE)))
        again = input_tables(checked(ReplayOptions(planning=OptimizeOptions(nodes=TWELVE))).planning)
    assert sum("12 described in 3 racks" in line for line in caplog.messages) == 1
    described[0].to_pandas().to_csv(tmp_path / "nodes.csv", index=False)
    read = input_tables(checked(OptimizeOptions(nodes=str(tmp_path / "nodes.csv"))))
    assert fingerprint_of(*described) == fingerprint_of(*again) == fingerprint_of(*read)


def test_the_built_in_nodes_are_named_beside_files_of_the_user(caplog):
    say_once.cache_clear()
    options = checked(OptimizeOptions(files=str(TRACES / "files.parquet")))
    with caplog.at_level("INFO", "ecjax"):
        input_tables(options)
        input_tables(options)
    assert caplog.text.count("nodes: none are set; planned on the 12 of the built-in cluster") == 1
    caplog.clear()
    input_tables(checked(OptimizeOptions()))
    assert "none are set" not in caplog.text


def test_fio_tells_mean_deviation_and_skewness(tmp_path):
    latencies = 0.004 + np.random.default_rng(1).exponential(0.003, 200_000)
    path = fio_file(tmp_path / "disks.json", fio_job(latencies), fio_job(latencies * 2, "sdb"))
    table = read_nodes(str(path)).to_pydict()
    assert table["node_id"] == ["sda", "sdb"]
    assert_allclose(table["reference_bytes"], 1 << 20)
    for power, name in enumerate(("service_mean_s", "service_second_s2", "service_third_s3"), start=1):
        # mean and deviation are those of fio; between its percentiles the tail is not known as well
        assert_allclose(table[name][0], np.mean(latencies**power), rtol=1e-9 if power < 3 else 0.02)
        assert_allclose(table[name][1], table[name][0] * 2**power, rtol=1e-6)


def test_without_percentiles_the_law_is_a_gamma(tmp_path):
    latencies = np.random.default_rng(2).gamma(4, 0.002, 1000)
    path = fio_file(tmp_path / "disks.json", fio_job(latencies, percentiles=False))
    table = read_nodes(str(path)).to_pydict()
    mean, shape = latencies.mean(), (latencies.mean() / latencies.std()) ** 2
    assert_allclose(table["service_third_s3"][0], mean**3 * (1 + 1 / shape) * (1 + 2 / shape))


def test_nodes_like_the_only_one_that_fio_measured(tmp_path):
    path = fio_file(tmp_path / "disk.json", fio_job([0.004, 0.006, 0.005]))
    table = columns({"fio": str(path), "count": 6, "per_rack": 2, "dollars_per_TB": [20, 10, 30]})
    assert table["node_id"] == ["rack1-1", "rack1-2", "rack2-1", "rack2-2", "rack3-1", "rack3-2"]
    assert_allclose(table["service_mean_s"], [0.005] * 6)
    assert_allclose(table["cost_per_byte_dollars"], np.array([20, 20, 10, 10, 30, 30]) / 1e12)
    assert columns({"fio": str(path), "count": 2})["node_id"] == ["node1", "node2"]
    several = fio_file(tmp_path / "disks.json", fio_job([0.004]), fio_job([0.006], "sdb"))
    with pytest.raises(UserError, match="found count=6 beside fio of 2 jobs; allowed: beside that of one"):
        columns({"fio": str(several), "count": 6})


def test_a_folder_of_fio_has_a_node_per_file_and_prices_beside_it(tmp_path):
    for number in range(4):
        fio_file(tmp_path / f"disk{number}.json", fio_job([0.004, 0.006, 0.005], "read"))
    assert read_nodes(str(tmp_path))["node_id"].to_pylist() == ["disk0", "disk1", "disk2", "disk3"]
    table = columns({"fio": str(tmp_path), "per_rack": 2, "dollars_per_TB": [20, 10]})
    assert table["site"] == ["rack1", "rack1", "rack2", "rack2"]
    assert_allclose(table["cost_per_byte_dollars"], [20e-12, 20e-12, 10e-12, 10e-12])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"iodepth": "32"},
            "found iodepth=32, whose latencies include the wait for other requests; allowed: iodepth=1",
        ),
        ({"numjobs": "4"}, "found numjobs=4"),
        ({"bsrange": "4k-1M"}, "found bsrange=4k-1M; allowed: one size"),
    ],
)
def test_latencies_that_are_no_service_times_are_refused(tmp_path, options, words):
    path = fio_file(tmp_path / "disks.json", fio_job([0.004, 0.006], options=options))
    with pytest.raises(UserError) as error:
        read_nodes(str(path))
    assert str(error.value).startswith(f"{path}: job sda: {words}")


def test_a_depth_without_effect_is_taken(tmp_path):
    job = fio_job([0.004, 0.006], options={"iodepth": "32", "ioengine": "psync"}) | {
        "iodepth_level": {"1": 100.0}
    }
    assert len(read_nodes(str(fio_file(tmp_path / "disks.json", job)))) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nothing", "no JSON"),
        ("{}", "found no jobs in it"),
        ('{"jobs": []}', "found no jobs"),
        ('{"jobs": [{"jobname": "x"}]}', "job x: no 'read'"),
        ('{"jobs": [{"jobname": "x", "read": {"total_ios": 0, "clat_ns": {"mean": 0}}}]}', "found no reads"),
    ],
)
def test_other_files_are_refused_in_a_line(tmp_path, content, words):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError, match=words):
        read_nodes(str(tmp_path / "x.json"))


def test_two_jobs_of_a_name_are_refused(tmp_path):
    path = fio_file(tmp_path / "x.json", fio_job([0.1, 0.2]), fio_job([0.1, 0.2]))
    with pytest.raises(UserError, match="job sda: found twice"):
        read_nodes(str(path))


HISTOGRAM = {
    "histogram": str(TRACES / "histograms" / "disks.prom"),
    "metric": "disk_read_seconds",
    "chunk_bytes": 1048576,
    "per_rack": 4,
    "dollars_per_TB": 20,
}


def test_histograms_are_nodes_between_their_least_and_largest_moments():
    high, low = columns(HISTOGRAM), columns({**HISTOGRAM, "moments": "low"})
    assert high["node_id"][0] == "disk01" and high["site"][0] == "rack1" and len(high["node_id"]) == 12
    for disk in range(12):
        times = sample_histograms.services(disk)
        assert high["service_mean_s"][disk] == pytest.approx(times.mean())
        for name, power in (("service_second_s2", 2), ("service_third_s3", 3)):
            assert low[name][disk] <= np.mean(times**power) <= high[name][disk] < 2 * low[name][disk]
    # either way both ends are beside them
    stem = {"service_mean_s": "service_mean_{}_s", "service_second_s2": "service_second_{}_s2"}
    for name, other in stem.items():
        for table in (high, low):
            assert table[other.format("high")] == high[name] and table[other.format("low")] == low[name]


def test_the_line_of_histograms_says_their_means(caplog):
    """A metric in another unit shows there."""
    say_once.cache_clear()
    with caplog.at_level("INFO", "ecjax"):
        columns(HISTOGRAM)
    means = [sample_histograms.services(disk).mean() for disk in range(12)]
    assert f"12 with means of {min(means):.3g} to {max(means):.3g} s, and the largest moments" in caplog.text


def test_the_wait_lies_between_those_of_the_least_and_the_largest_moments():
    times = sample_histograms.services(0)
    rate = 0.6 / times.mean()
    tables = [columns({**HISTOGRAM, "moments": end}) for end in ("low", "high")]
    waits = [rate * table["service_second_s2"][0] / 2 / 0.4 for table in tables]
    assert waits[0] <= rate * np.mean(times**2) / 2 / 0.4 <= waits[1]


def test_whole_reads_of_ceph_are_warned_of(caplog):
    given = {
        "histogram": str(TRACES / "histograms" / "ceph"),
        "metric": "osd.op_r_latency_out_bytes_histogram",
    }
    table = columns({**given, "chunk_bytes": 1048576, "dollars_per_TB": 20})
    assert table["node_id"] == ["osd.0", "osd.1", "osd.2"]
    assert "counts whole reads with their time in the queue" in caplog.text


def test_sample_histograms_are_what_the_generator_makes(tmp_path):
    sample_histograms.write(tmp_path)
    for path in (TRACES / "histograms").rglob("*"):
        if path.is_file():
            assert path.read_text() == (tmp_path / path.relative_to(TRACES / "histograms")).read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metric": None}, "no metric in"),
        ({"count": 12}, "count beside histogram"),
        ({"moments": "mean"}, "high, low"),
        ({"chunk_bytes": 0}, "above 0"),
    ],
)
def test_descriptions_of_histograms_that_are_wrong(change, words):
    value = {key: each for key, each in {**HISTOGRAM, **change}.items() if each is not None}
    with pytest.raises(UserError, match=words):
        checked(OptimizeOptions(nodes=value))
    with pytest.raises(UserError, match="metric beside count"):
        checked(OptimizeOptions(nodes={**TWELVE, "metric": "x"}))
