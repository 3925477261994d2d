"""``ecjax replay LOG`` on disks as Google's Thesios traces have them: what the node model predicts of a known disk."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
SAMPLE = Path(__file__).parents[3] / "traces" / "logs" / "thesios.csv.gz"
HEADER = (
    "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,cache_hit,"
    "request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,"
    "simulated_latency"
)
LEAST_S, SEEK_S, PER_BYTE = 0.002, 0.004, 1 / 150e6  # s, mean of an exponential seek beyond that, s/B
SIZES, SHARES = np.array([65536, 1048576]), np.array([0.7, 0.3])
RATE, WRITES, CACHED, COUNT = 55.0, 0.1, 0.2, 40_000  # 1/s at the disk; shares


def service_moments(size):
    """E X and E X^2 (s, s^2) of a disk's service of so many bytes: a seek and a transfer."""
    mean = LEAST_S + SEEK_S + size * PER_BYTE
    return mean, mean**2 + SEEK_S**2


def disk_log(path, seed=0):
    """Accesses of one first-come first-served disk in the layout of Thesios; what arrived and ended at the disk.

    One read in five finds its data in a cache, and never comes to the disk.
    """
    rng = np.random.default_rng(seed)
    accesses = int(COUNT / (1 - CACHED))
    arrival = 1.7e9 + np.cumsum(rng.exponential((1 - CACHED) / RATE, accesses))
    size, hit = rng.choice(SIZES, accesses, p=SHARES), rng.random(accesses) < CACHED
    write = rng.random(accesses) < WRITES
    disk = LEAST_S + rng.exponential(SEEK_S, accesses) + size * PER_BYTE
    disk[hit] = 0.0
    free, rows, served = 0.0, [HEADER], []
    for number in range(accesses):
        begin, latency = 0.0, 0.0005
        if not hit[number]:
            begin = max(arrival[number], free)
            free = begin + disk[number]
            latency = free - arrival[number]
            served.append((write[number], size[number], disk[number], latency))
        rows.append(
            f"{number % 50:08x},0,app,1700000000,WARM,ERASURE_CODED,{'WRITE' if write[number] else 'READ'},OTHER,0,"
            f"{int(hit[number])},{size[number]},{0 if hit[number] else size[number]},{size[number]},"
            f"{arrival[number]:.6f},{disk[number]:.6f},{begin:.6f},{latency:.6f}"
        )
    path.write_bytes(gzip.compress("\n".join([*rows, ""]).encode(), compresslevel=1))
    return pd.DataFrame(served, columns=["write", "bytes", "disk_s", "latency_s"])


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A log, and what happened."""
    path = tmp_path_factory.mktemp("disk") / "thesios.csv.gz"
    return str(path), disk_log(path)


def test_the_second_half_of_a_disk_is_where_the_first_predicts_it(disk, tmp_path):
    path, served = disk
    given = ReplayOptions(trace=path, format="thesios", out=str(tmp_path / "out"), figures=[])
    assert replay_study(given, QUIET) == 0
    run = read_results(tmp_path / "out", "runs").iloc[0]
    # observed is what happened: a read takes from its arrival to the end of its disk time
    late = served.iloc[len(served) // 2 :]
    late = late.loc[~late["write"], "latency_s"]
    assert run["observed_mean_s"] == pytest.approx(late.mean(), abs=2e-6)
    assert run["observed_p99_s"] == pytest.approx(late.quantile(0.99), abs=2e-6)
    for name in ("mean", "p99"):
        low, high = (run[f"trace_estimated_{name}_{end}_s"] for end in ("low", "high"))
        assert low <= run[f"observed_{name}_s"] <= high
        assert run[f"trace_estimated_{name}_s"] == pytest.approx(run[f"observed_{name}_s"], rel=0.08)
    # Pollaczek and Khinchine: all accesses wait alike, reads and writes have the same services
    first, second = SHARES @ np.array([service_moments(size) for size in SIZES])
    mean = first + RATE * second / (2 * (1 - RATE * first))
    assert 0.4 < RATE * first < 0.6
    assert run["trace_estimated_mean_s"] == pytest.approx(mean, rel=0.05)
    # Poisson arrivals: what mean rates say is as good
    assert run["estimated_mean_s"] == pytest.approx(mean, rel=0.05)
    assert run["mean_s"] == pytest.approx(late.mean(), rel=0.03)  # of the replay, of these arrivals


def test_the_law_that_is_learned_of_a_disk_has_its_times(disk, tmp_path):
    path, served = disk
    given = AnalyzeOptions(trace=path, format="thesios", out=str(tmp_path / "out"), figures=False)
    assert analyze_study(given, QUIET) == 0
    (node,) = read_input(tmp_path / "out" / "nodes", "nodes").to_pandas().fillna(0.0).to_dict("records")
    assert node["node_id"] == "disk"
    for size in SIZES:
        mean, _ = service_moments(size)
        learned = node["delta_s"] + node["psi_s"] + size * (node["delta_s_per_byte"] + node["psi_s_per_byte"])
        assert learned == pytest.approx(mean, rel=0.02)
        observed = served.loc[~served["write"] & (served["bytes"] == size), "disk_s"]
        assert learned == pytest.approx(observed.mean(), rel=0.02)


def test_the_sample_of_a_disk(tmp_path):
    """Few accesses, at whole seconds: observed is its column of latencies, of the reads that came to the disk."""
    given = ReplayOptions(trace=str(SAMPLE), out=str(tmp_path / "out"), figures=[])
    assert replay_study(given, QUIET) == 0
    rows = pd.read_csv(SAMPLE)
    rows = rows[rows["disk_time"] > 0]
    late = rows.iloc[len(rows) // 2 :]
    run = read_results(tmp_path / "out", "runs").iloc[0]
    assert run["observed_mean_s"] == pytest.approx(late["simulated_latency"].mean(), abs=1e-6)
    low, high = run["trace_estimated_mean_low_s"], run["trace_estimated_mean_high_s"]
    assert low <= run["observed_mean_s"] <= high
    # an idle disk serves at once
    assert late["simulated_latency"].mean() == pytest.approx(late["disk_time"].mean(), rel=0.02)
