"""What every command prints at 80 and 100 columns: lines fit, and every number is whole."""

from io import StringIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from ecjax import verify_command
from ecjax.studies.adapt import summary as adapt
from ecjax.studies.adapt.tables import TABLES as ADAPT
from ecjax.studies.analyze import summary as analyze
from ecjax.studies.bench import summary as bench
from ecjax.studies.bench.rows import Row
from ecjax.studies.cache import summary as cache
from ecjax.studies.cache.tables import TABLES as CACHE
from ecjax.studies.optimize import summary as optimize
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.tables import TABLES as OPTIMIZE
from ecjax.studies.replay import log as replay_log
from ecjax.studies.replay import summary as replay
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.tables import TABLES as REPLAY
from ecjax.studies.schedule import summary as schedule
from ecjax.studies.schedule.tables import TABLES as SCHEDULE

WIDE = 400
# with enough digits that a cut would show
LATENCIES = {"mean_s": 0.123456, "ci_s": 0.0012345, "std_s": 0.054321}
LATENCIES |= {"p50_s": 0.111111, "p90_s": 0.222222, "p95_s": 0.244444, "p99_s": 0.333333, "p999_s": 0.444444}


def frame(tables, rows, common):
    empty = {column.name: np.nan for column in tables.datasets["runs"]} | {"error": None, "status": "ok"}
    runs = pd.DataFrame([empty | LATENCIES | common | row for row in rows])
    return runs.assign(run_id=[f"run{place}" for place in range(len(runs))])


def show_optimize(console):
    common = {
        "objective": 123456.7,
        "latency_s": 123.4567,
        "cost_dollars_per_period": 23.45678,
        "file_count": 10,
    }
    common |= {"iterations": 1234, "solve_s": 0.012345, "mean_n": 6.543, "gap": 0.00012345}
    common |= {"mean_n_by_class": '{"1": 5.123, "2": 7.456, "3": 8.123, "4": 9.321}', "size_scale": 1.0}
    common |= {"files_without_redundancy": 0}
    rows = [
        {"method": method, "theta": theta, "rate_scale": scale, "k": k}
        for method in ("certified", "published", "oblivious_lb")
        for theta in (3.0, 1000.0)
        for scale in (0.875, 1.125)
        for k in (4, 6)
    ]
    optimize.show(frame(OPTIMIZE, rows, common), console, OptimizeOptions())


def show_analyze(console):
    node = {"service_source": "logged", "chunk_reads": 1234567, "chunk_writes": 7654321, "load": 0.54321}
    node |= {"observed_mean_s": 0.0123456, "observed_mean_error_s": 0.0002345, "observed_second_s2": 0.0002}
    node |= {"exponential_distance": 0.23456, "concurrency": 1.23456}
    nodes = [node | {"node_id": f"a-rather-long-name-of-a-node-in-some-region-{place}"} for place in range(3)]
    runs = pd.DataFrame({"error": [None]})
    analyze.show(runs, {"nodes": pa.Table.from_pylist(nodes)}, console, "out")


def replays():
    common = {"max_load": 0.87654, "requests": 123456, "latency_s": 0.234567, "promised_p99_s": 0.456789}
    common |= {
        "estimated_mean_s": 0.1234567,
        "estimated_p99_s": 0.345678,
        "queue": "fcfs",
        "service": "exponential",
    }
    common |= {"size_scale": 1.0, "method": "certified"}
    rows = [
        {"policy": policy, "theta": theta, "rate_scale": scale}
        for policy in ("probabilistic", "fork_join", "late_binding")
        for theta in (10.5, 1000.0)
        for scale in (0.875, 1.125)
    ]
    return frame(REPLAY, rows, common)


def show_replay(console):
    replay.show(replays(), console, ReplayOptions())


def show_replay_log(console):
    latencies = [
        LATENCIES | {"group": "all", "source": source, "requests": 1234567.0}
        for source in ("observed", "replayed", "estimated", "bound")
    ]
    reading = pytest.MonkeyPatch()
    with reading.context() as patch:
        patch.setattr(replay_log, "read_run", lambda *_: pa.Table.from_pylist(latencies))
        runs = replays().head(1).assign(prediction="Close.", notices="[]")
        replay_log.show_log(runs, console, ReplayOptions(trace="a.log"))


def show_schedule(console):
    common = {"improvement": 1.23456, "slowdown": 12.3456, "gap": 0.123456}
    common |= {"k": 4, "share_at_zero": 0.0, "size_scale": 1.0}
    rows = [
        {"sources": sources, "scheduler": scheduler, "seed": seed, "n": n, "rate_scale": scale}
        | {"mean_s": 0.123456 + seed / 1000, "improvement": 1.23456 + seed / 7}
        for n in (8, 12)
        for scale in (0.875, 1.125)
        for sources in ("random", "least_work_ahead")
        for scheduler in ("dtarget", "local_search")
        for seed in (1, 2)
    ]
    schedule.show(frame(SCHEDULE, rows, common), console, "out")


def show_adapt(console):
    common = {"delays": "shifted_exp", "arrivals": "poisson", "utilisation": 0.54321, "mean_n": 5.4321}
    common |= {"mean_k": 3.21, "n": 12.0, "k": 10.0, "rate_scale": 1.0}
    rows = [
        {"strategy": strategy, "rate_per_s": rate, "load": rate / 20000, "seed": 0}
        for rate in (1234.5, 12345.6)
        for strategy in ("calibrated", "tofec", "best_static")
    ]
    adapt.show(frame(ADAPT, rows, common), console, "out")


def show_cache(console):
    common = {
        "k": 10,
        "copies": 0,
        "chunk_hit_ratio": 0.54321,
        "full_hit_ratio": 0.43210,
        "above_optimum": 0.1234,
    }
    common |= {"decision_mean_s": 1.2345e-5, "decision_p9999_s": 1.2345e-4, "requests_per_s": 1234567.0}
    common |= {"failed_reads": 0, "failed": None, "half_life_s": 30.0, "seed": 0}
    rows = [
        {"policy": policy, "capacity": capacity, "items": items, "zipf": zipf}
        for capacity in (100, 1000)
        for items in (1000, 10000)
        for zipf in (0.875, 1.125)
        for policy in ("samplex", "static_optimum", "near_optimal")
    ]
    cache.show(frame(CACHE, rows, common), console, "out")


def show_sampling(console):
    rows = [
        {"scheme": scheme, "samples": 100, "capacity": capacity, "items": items, "solve_s": 0.012345}
        for capacity in (100, 1000)
        for items in (1000, 10000)
        for scheme in ("samplex", "exact")
    ]
    cache.show_plans(frame(CACHE, rows, {"above_optimum": 0.0123}), console, "out")


def show_bench(console):
    row = {
        "median_s": 0.0123456,
        "min_s": 0.0112345,
        "repeats": 5,
        "compile_s": 12.3456,
        "objective": 123456.7,
    }
    row |= {"peak_rss_bytes": 1234567890, "target_s": 0.2345, "target_bytes": 9876543210, "gap": 0.001234}
    row |= {"target_gap": 0.002345, "iterations": 12345}
    variants = ("ecjax, many lanes at once", "scipy.optimize.linprog")
    rows = [Row(name, "100,000 files, 123 nodes, 16 lanes", **row) for name in variants]
    bench.show("plans: large", rows, console)


def show_verify(console):
    verified = SimpleNamespace(
        files={"inputs/files": [123456789, 987654321], "runs": [1234567] * 1234}, findings=[], sources={}
    )
    with pytest.MonkeyPatch().context() as patch:
        patch.setattr("ecjax.tables.verify.verify", lambda _: verified)
        patch.setattr(verify_command, "OUTPUT", console)
        verify_command.run_verify(
            ["a/rather/long/path/of/a/folder/with/results/of/a/study/of/some/cluster/or/other"]
        )


SHOWS = {
    name.removeprefix("show_"): value for name, value in dict(globals()).items() if name.startswith("show_")
}


def printed(show, width):
    console = Console(file=StringIO(), width=width)
    show(console)
    return console.file.getvalue()


def numbers(text):
    """Words that have a digit, without punctuation at their ends; not names that are cut."""
    words = (word.strip(".,;:()") for word in text.split() if "\N{HORIZONTAL ELLIPSIS}" not in word)
    return {word for word in words if any(letter.isdigit() for letter in word)}


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("job", SHOWS)
def test_lines_fit_and_numbers_are_whole(job, width):
    wide, narrow = printed(SHOWS[job], WIDE), printed(SHOWS[job], width)
    assert max(map(len, narrow.splitlines())) <= width
    text, _, line = narrow.partition("not shown in ")
    named, _, rest = line.partition("COLUMNS=")
    assert numbers(text) <= numbers(wide) and (not line or named.startswith(f"{width} columns: "))
    assert numbers(rest.partition(")")[2]) <= numbers(wide)


@pytest.mark.parametrize("job", SHOWS)
def test_nothing_goes_without_a_word(job):
    wide, narrow = printed(SHOWS[job], WIDE), printed(SHOWS[job], 80)
    assert "not shown" not in wide
    assert "not shown in 80 columns: " in narrow or numbers(wide) == numbers(narrow)
