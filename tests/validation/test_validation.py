"""Logs made by a plain first-come first-served loop, and what a validation says of them."""

import heapq
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize_scalar

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace
from ecjax.tables.requests import requests
from ecjax.validation import theory as validation_theory
from ecjax.validation.halves import change_of_rate
from ecjax.validation.validate import validate

EXPONENTIAL = lambda rng, node, size: rng.exponential(0.1)  # noqa: E731


def make_log(
    count,
    service,
    rate,
    nodes=6,
    reads=3,
    files=1,
    sizes=(1000.0,),
    write_share=0.0,
    servers=1,
    seed=0,
    choose=None,
):
    """Rows of a log, and the latency of every request (NaN of writes).

    Files alternate between the sizes; ``service(rng, node, size)`` is a service time, ``choose(rng, request)`` the
    nodes of a request (default: any).
    """
    rng = np.random.default_rng(seed)
    free = [[-np.inf] * servers for _ in range(nodes)]
    rows = {name: [] for name in ("request_id", "arrival_s", "file_id", "op", "bytes", "node_id")}
    rows |= {"start_s": [], "finish_s": []}
    latencies, now = [], 0.0
    for request in range(count):
        now += rng.exponential(1 / rate)
        file = int(rng.integers(files))
        size = sizes[file % len(sizes)]
        write = rng.random() < write_share
        used = rng.permutation(nodes)[: reads + write] if choose is None else choose(rng, request)
        last = 0.0
        for node in used:
            begin = max(now, heapq.heappop(free[node]))
            finish = begin + service(rng, int(node), size)
            heapq.heappush(free[node], finish)
            last = max(last, finish)
            values = (request, now, file, "write" if write else "read", size, f"n{node}", begin, finish)
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
        latencies.append(np.nan if write else last - now)
    return rows, np.array(latencies)


def read(rows, tmp_path, without=()):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: values for name, values in rows.items() if name not in without}), path)
    return requests(open_trace(path))


def row_of(found, source, group="all", **names):
    table = found.table.to_pandas()
    chosen = (table["source"] == source) & (table["group"] == group)
    for name, value in names.items():
        chosen &= table[name] == value
    assert chosen.sum() == 1
    return table[chosen].iloc[0]


@pytest.fixture
def compiled_estimate():
    """For tests of the estimate, which takes seconds to compile for every new shape: others go without."""


@pytest.fixture(autouse=True)
def no_estimate(request, monkeypatch):
    def refuse(*_, **__):
        raise UserError("not in this test")

    if "compiled_estimate" not in request.fixturenames:
        monkeypatch.setattr(validation_theory, "ESTIMATE", refuse)


@pytest.fixture(scope="module")
def stationary():
    return make_log(20_000, EXPONENTIAL, rate=11.0, write_share=0.05, files=4, seed=3)


def test_observed_is_what_the_generator_saw(stationary, tmp_path):
    rows, latencies = stationary
    found = validate(read(rows, tmp_path), replications=2)
    late = latencies[10_000:]
    late = late[~np.isnan(late)]
    seen = row_of(found, "observed")
    assert seen["requests"] == len(late)
    np.testing.assert_allclose([seen["mean_s"], seen["std_s"]], [late.mean(), late.std()], rtol=1e-10)
    levels = np.quantile(late, [0.5, 0.9, 0.99, 0.999])
    np.testing.assert_allclose([seen[n] for n in ("p50_s", "p90_s", "p99_s", "p999_s")], levels, rtol=1e-10)
    frame = pd.DataFrame(rows).query("request_id >= 10000 and op == 'read'")
    frame["sojourn"] = frame["finish_s"] - frame["arrival_s"]
    for node, own in frame.groupby("node_id")["sojourn"]:
        seen = row_of(found, "observed", "node", node_id=node)
        assert seen["requests"] == len(own)
        np.testing.assert_allclose(seen["mean_s"], own.mean(), rtol=1e-9)
    by_file = frame.drop_duplicates("request_id").groupby("file_id").size()
    for file, count in by_file.items():
        assert row_of(found, "observed", "file", file_id=file)["requests"] == count
    bins = found.bins.to_pandas().query("group == 'all'")
    observed, replayed = (bins[bins["source"] == name] for name in ("observed", "replayed"))
    assert observed["count"].sum() == len(late) and replayed["count"].sum() == 2 * len(late)
    counts, _ = np.histogram(late, np.append(observed["lower_s"], np.inf))
    np.testing.assert_array_equal(counts, observed["count"])


def test_a_stationary_log_is_predicted(stationary, tmp_path, compiled_estimate):
    rows, _ = stationary
    found = validate(read(rows, tmp_path), replications=4)
    assert found.predicted and found.own_times_difference_s < 1e-9
    seen, told, bound = (row_of(found, source) for source in ("observed", "replayed", "bound"))
    assert abs(told["mean_s"] / seen["mean_s"] - 1) < 0.05
    assert abs(told["p99_s"] / seen["p99_s"] - 1) < 0.10
    for name in ("mean_s", "p50_s", "p90_s", "p99_s", "p999_s"):
        assert bound[name] > seen[name]
    guess = row_of(found, "estimated")
    assert abs(guess["mean_s"] / seen["mean_s"] - 1) < 0.08
    assert abs(guess["p99_s"] / seen["p99_s"] - 1) < 0.15
    for group, column in (("file", "file_id"), ("node", "node_id")):
        table = found.table.to_pandas().query("group == @group").set_index(column)
        means = {source: own["mean_s"] for source, own in table.groupby("source")}
        assert len(means["observed"]) == (4 if group == "file" else 6)
        np.testing.assert_allclose(means["replayed"] / means["observed"], 1, atol=0.15)
        np.testing.assert_allclose(means["estimated"] / means["observed"], 1, atol=0.2)
        assert group == "node" or (means["bound"] > means["observed"]).all()
    files = found.table.to_pandas().query("group == 'file'")
    promised, seen_there = (files[files["source"] == name]["p99_s"] for name in ("bound", "observed"))
    assert (promised.to_numpy() > seen_there.to_numpy()).all()
    arrived = row_of(found, "trace_estimated")
    assert abs(arrived["mean_s"] / seen["mean_s"] - 1) < 0.08
    assert abs(arrived["p99_s"] / seen["p99_s"] - 1) < 0.15
    assert np.isnan(arrived["ci_s"])
    numbers = re.fullmatch(
        r"predicted mean (\S+) s \((\S+) s to (\S+) s\), observed (\S+) s \(([+-]\S+) %\); "
        r"predicted p99 (\S+) s \((\S+) s to (\S+) s\), observed (\S+) s \(([+-]\S+) %\)",
        found.text,
    )
    assert float(numbers[1]) == pytest.approx(arrived["mean_s"], rel=5e-3)
    assert float(numbers[2]) < float(numbers[4]) < float(numbers[3])
    assert float(numbers[4]) == pytest.approx(seen["mean_s"], rel=5e-3)
    assert float(numbers[5]) == pytest.approx(100 * (arrived["mean_s"] / seen["mean_s"] - 1), abs=0.06)
    assert float(numbers[9]) == pytest.approx(seen["p99_s"], rel=5e-3)
    brackets = [float(numbers[place]) for place in (2, 3, 7, 8)]
    assert [*found.trace.interval(0), *found.trace.interval(3)] == pytest.approx(brackets, rel=5e-3)
    assert found.trace.branch in ("raw", "denoised")
    # and with the second half's own arrivals
    own = re.search(r"own arrivals: mean (\S+) s \(([+-]\S+) %\), p99 (\S+) s", " ".join(found.notices))
    assert float(own[1]) == pytest.approx(told["mean_s"], rel=5e-3)
    assert float(own[2]) == pytest.approx(100 * (told["mean_s"] / seen["mean_s"] - 1), abs=0.06)
    assert float(own[3]) == pytest.approx(told["p99_s"], rel=5e-3)
    assert not any("serve" in sentence for sentence in found.notices)


def test_inferred_service_predicts_as_logged_service_does(stationary, tmp_path):
    rows, _ = stationary
    log = read(rows, tmp_path)
    logged = validate(log, replications=1)
    inferred = validate(read(rows, tmp_path, without=["start_s"]), replications=1)
    assert inferred.own_times_difference_s is None
    for column in ("mean_s", "p50_s"):
        a, b = (found.table.to_pandas()[column] for found in (logged, inferred))
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_constant_service_is_predicted_exactly(tmp_path):
    # any error in arrivals, queues at the split, writes or the laws of nodes shows in every digit
    def service(rng, node, size):
        return 0.03 + 0.01 * node + 1e-5 * size

    sizes = (1000.0, 3000.0, 5000.0)
    rows, latencies = make_log(1500, service, rate=12.0, files=3, sizes=sizes, write_share=0.2, seed=5)
    found = validate(read(rows, tmp_path), replications=2)
    table = found.table.to_pandas()
    late = latencies[750:]
    assert np.nanmean(late) > 0.14  # they do wait
    seen, told = (table[table["source"] == name].reset_index() for name in ("observed", "replayed"))
    for column in ("requests", "mean_s", "std_s"):
        np.testing.assert_allclose(told[column], seen[column], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(told["ci_s"], 0, atol=1e-12)
    check_loads(found, rows, 750)


def check_loads(found, rows, half):
    """Loads and shares of the nodes, from the services of the first half of a log one by one."""
    frame = pd.DataFrame(rows)
    arrivals = frame.drop_duplicates("request_id")["arrival_s"].to_numpy()
    early = frame[frame["request_id"] < half]
    service = (early["finish_s"] - early["start_s"]).groupby(early["node_id"]).sum()
    reads = early[early["op"] == "read"].groupby("node_id").size()
    loads = found.loads.to_pandas().set_index("node_id").sort_index()
    np.testing.assert_allclose(loads["load"], service / (arrivals[half] - arrivals[0]), rtol=1e-9)
    np.testing.assert_allclose(loads["read_share"], reads / reads.sum(), rtol=1e-12)


def test_classes_and_two_chunk_sizes(tmp_path):
    def service(rng, node, size):
        return (1 + 0.5 * (node % 2)) * (0.02 + 2e-5 * size) * rng.gamma(3.0) / 3

    rows, latencies = make_log(20_000, service, rate=9.0, files=4, sizes=(1000.0, 5000.0), seed=2)
    found = validate(read(rows, tmp_path), classes=["gold", "silver"] * 2, replications=4)
    assert any("affine in the size, as" in sentence for sentence in found.notices)
    files = pd.DataFrame(rows).drop_duplicates("request_id")["file_id"].to_numpy()
    order = list(dict.fromkeys(files.tolist()))  # the trace's own order of files
    for name in ("gold", "silver"):
        number = ["gold", "silver"].index(name)
        late = latencies[10_000:][
            np.isin(files[10_000:], [f for i, f in enumerate(order) if i % 2 == number])
        ]
        told, seen, bound = (
            row_of(found, source, "class", **{"class": name}) for source in ("replayed", "observed", "bound")
        )
        np.testing.assert_allclose(seen["mean_s"], late.mean(), rtol=1e-9)
        assert abs(told["mean_s"] / seen["mean_s"] - 1) < 0.05
        assert abs(told["p99_s"] / seen["p99_s"] - 1) < 0.10
        assert bound["mean_s"] > seen["mean_s"]


def test_bound_is_that_of_the_first_half_by_hand(tmp_path):
    rows, _ = make_log(4000, EXPONENTIAL, rate=9.0, nodes=4, reads=2, files=2, seed=8)
    found = validate(read(rows, tmp_path), replications=1)
    frame = pd.DataFrame(rows)
    early = frame[frame["request_id"] < 2000]
    arrivals = frame.drop_duplicates("request_id")["arrival_s"].to_numpy()
    span = arrivals[2000] - arrivals[0]
    service = early["finish_s"] - early["start_s"]
    m = {node: [np.sum(own**p) / span for p in (1, 2, 3)] for node, own in service.groupby(early["node_id"])}
    counts = early.groupby("node_id").size() / span
    means, variances = {}, {}
    for node, (rho, second, third) in m.items():
        wait = second / (2 * (1 - rho))
        means[node] = rho / counts[node] + wait
        squares = second / counts[node] - (rho / counts[node]) ** 2
        variances[node] = squares + third / (3 * (1 - rho)) + wait**2
    total, weight = 0.0, 0
    for file, own in early.groupby("file_id"):
        reads = own["request_id"].nunique()
        share = own.groupby("node_id").size() / reads
        e, v = (np.array([values[node] for node in share.index]) for values in (means, variances))
        pi = share.to_numpy()

        def at(z, e=e, v=v, pi=pi):
            return z + np.sum(pi / 2 * (e - z + np.sqrt((e - z) ** 2 + v)))

        bound = minimize_scalar(at, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10}).fun
        np.testing.assert_allclose(row_of(found, "bound", "file", file_id=file)["mean_s"], bound, rtol=1e-6)
        total, weight = total + reads * bound, weight + reads
    np.testing.assert_allclose(row_of(found, "bound")["mean_s"], total / weight, rtol=1e-6)
    for node, mean in means.items():
        row = row_of(found, "estimated", "node", node_id=node)
        np.testing.assert_allclose([row["mean_s"], row["std_s"]], [mean, variances[node] ** 0.5], rtol=1e-6)
    check_loads(found, rows, 2000)


def test_files_read_rarely_share_the_row_of_their_class():
    rng = np.random.default_rng(0)
    file = np.append(np.zeros(40, int), [1, 2, 1, 3])
    need = np.append(np.full(40, 2), [2, 2, 2, 1])
    request = np.repeat(np.arange(44), need)
    node = np.concatenate([rng.permutation(3)[:n] for n in need])
    reads = validation_theory.Reads(file, np.zeros(44, int), request, node, np.full(len(node), 10.0))
    rows = validation_theory.dispatch(reads, 8.0, 3, 4)
    assert rows.file.tolist() == [0, -1, -1] and rows.need.tolist() == [2, 1, 2]
    np.testing.assert_allclose(rows.rates, [5.0, 1 / 8, 3 / 8])
    np.testing.assert_allclose(rows.probabilities.sum(axis=1), rows.need)
    np.testing.assert_allclose(rows.probabilities[0], np.bincount(node[:80], minlength=3) / 40)
    np.testing.assert_allclose(rows.probabilities[2], np.bincount(node[80:86], minlength=3) / 3)
    np.testing.assert_allclose(rows.powers, np.tile([1.0, 10.0, 100.0, 1000.0], (3, 1)))


def test_rows_of_one_file_by_chunk_size():
    request = np.repeat(np.arange(60), 3)
    node = np.tile([0, 1, 2, 0, 1, 3], 30)
    size = np.repeat(np.tile([0.1, 0.7], 30), 3)
    reads = validation_theory.Reads(np.zeros(60, int), np.zeros(60, int), request, node, size)
    rows = validation_theory.dispatch(reads, 10.0, 4, 1)
    assert rows.file.tolist() == [0, 0]
    np.testing.assert_allclose(rows.probabilities, [[1, 1, 0.5, 0.5]] * 2)  # of the file, whatever the size
    np.testing.assert_allclose(rows.powers, [[0.1**p for p in range(4)], [0.7**p for p in range(4)]])
    np.testing.assert_allclose(rows.rates, 3.0)


def test_nodes_with_several_servers_are_noticed(tmp_path):
    rows, _ = make_log(1000, EXPONENTIAL, rate=20.0, servers=3)
    found = validate(read(rows, tmp_path), replications=1)
    text = " ".join(found.notices)
    assert "6 nodes serve several accesses at a time (" in text and "up to 3 at a time" in text
    assert found.own_times_difference_s > 0.1 and "nodes serve otherwise" in text
    unknown = validate(read(rows, tmp_path, without=["start_s"]))
    assert not unknown.predicted
    assert unknown.text.startswith("no prediction: start_s is missing, and accesses do not finish in order")
    assert set(unknown.table["source"].to_pylist()) == {"observed"}


def test_reads_that_never_finished_are_not_counted(tmp_path):
    rows, latencies = make_log(400, EXPONENTIAL, rate=10.0)
    rows["finish_s"][-1] = rows["finish_s"][-6] = None
    found = validate(read(rows, tmp_path), replications=1)
    assert any(s.startswith("2 reads of the second half with chunks without") for s in found.notices)
    kept = np.append(latencies[200:398], [])
    np.testing.assert_allclose(row_of(found, "observed")["mean_s"], kept.mean(), rtol=1e-9)
    assert row_of(found, "replayed")["requests"] == row_of(found, "observed")["requests"] == 198
    rows["finish_s"][2] = None
    found = validate(read(rows, tmp_path, without=["start_s"]))
    assert found.text == (
        "no prediction: start_s is missing, and row 2 has no finish_s to infer service times from"
    )


@pytest.mark.parametrize(
    ("count", "without", "text"),
    [
        (10, ["finish_s", "start_s"], "no validation: the trace has no finish times (finish_s)"),
        (10, ["node_id"], "no validation: the trace names no nodes (node_id)"),
        (1, [], "no validation: the trace has 1 request; at least one in each half is needed"),
    ],
)
def test_logs_that_cannot_be_validated_on(tmp_path, count, without, text):
    found = validate(read(make_log(count, EXPONENTIAL, rate=5.0)[0], tmp_path, without))
    assert found.text == text and not found.predicted and not found.notices
    assert found.table.num_rows == found.bins.num_rows == 0
    assert {"group", "class", "file_id", "node_id", "source", "mean_s"} <= set(found.table.column_names)


def test_no_read_in_the_second_half(tmp_path):
    rows, _ = make_log(20, EXPONENTIAL, rate=5.0)
    rows["op"] = ["read" if request < 10 else "write" for request in rows["request_id"]]
    assert validate(read(rows, tmp_path)).text.startswith("no validation: no read of the second half")
    rows["op"] = ["write" if request < 10 else "read" for request in rows["request_id"]]
    found = validate(read(rows, tmp_path))
    assert found.predicted
    text = " ".join(found.notices)
    assert "those of writes are taken for them" in text and "have no reads: there is no estimate" in text


def test_two_requests_at_one_time(tmp_path):
    rows, _ = make_log(2, EXPONENTIAL, rate=5.0)
    rows["arrival_s"] = [rows["arrival_s"][0]] * 6
    found = validate(read(rows, tmp_path))
    assert found.predicted and any("arrive at one time: there is no" in s for s in found.notices)


@pytest.mark.parametrize("count", [2, 3])
def test_a_single_read_tells_of_no_interval(tmp_path, compiled_estimate, count):
    rows, _ = make_log(count, EXPONENTIAL, rate=0.1)
    found = validate(read(rows, tmp_path), replications=1)
    bracket = r"\(\S+ s or more\), observed \S+ s \(\S+ %\)"
    assert re.fullmatch(rf"predicted mean \S+ s {bracket}; predicted p99 \S+ s {bracket}", found.text)
    text = " ".join(found.notices)
    assert "come in one tenth of their time" in text and "nan" not in text
    # a log of two or three requests has one in its first half
    assert "The first half has 1 read:" in text


def test_a_node_of_the_second_half_only(tmp_path):
    def choose(rng, request):
        return rng.permutation(5 if request < 500 else 6)[:3]

    rows, _ = make_log(1000, EXPONENTIAL, rate=8.0, choose=choose)
    found = validate(read(rows, tmp_path), replications=2)
    assert any(s.startswith("1 node has too few service times") and "(n5)" in s for s in found.notices)
    assert row_of(found, "replayed", "node", node_id="n5")["mean_s"] > 0.05


def test_what_the_theory_cannot_have_is_said(tmp_path):
    rows, _ = make_log(600, EXPONENTIAL, rate=8.0, choose=lambda rng, request: [0, 1, 1])
    found = validate(read(rows, tmp_path), replications=1)
    assert any("several chunks from one node" in s for s in found.notices)
    rows, _ = make_log(600, EXPONENTIAL, rate=40.0)
    found = validate(read(rows, tmp_path), replications=1)
    (full,) = (
        s for s in found.notices if s.startswith("6 nodes are loaded to 1 or more in the first half (")
    )
    assert re.search(r"\(n\d, n\d", full) and full.endswith("there is no estimate under its arrivals.")
    assert found.trace is None
    assert found.text.endswith("; by a replay of the second half's own arrivals, without an interval")
    # delays and bounds that are infinite have no rows
    table = found.table.to_pandas()
    assert set(table["source"]) == {"observed", "replayed"} and np.isfinite(table["mean_s"]).all()


def test_changed_rates_are_told(tmp_path):
    rows, _ = make_log(600, EXPONENTIAL, rate=2.0)
    early = np.array(rows["request_id"]) < 300
    middle = rows["arrival_s"][int(np.argmin(early))]
    for name in ("arrival_s", "start_s", "finish_s"):
        values = np.array(rows[name])
        rows[name] = np.where(early, values, middle + 3 * (values - middle))
    found = validate(read(rows, tmp_path), replications=1)
    assert any(re.match(r"Requests come 6\d % less often in the second half", s) for s in found.notices)


def test_rates_change_by_more_than_chance():
    """Requests at equal gaps; Poisson ones, of whose halves two standard errors are 23 %; and twice as many."""
    assert change_of_rate(np.arange(20.0), 10) == change_of_rate(np.arange(21.0), 10) == 0
    rng, count = np.random.default_rng(0), 300
    gaps = rng.exponential(size=(400, count))
    alike = [change_of_rate(np.cumsum(each), count // 2) for each in gaps]
    assert np.mean(np.array(alike) != 0) < 0.08  # 5 %, and three standard errors of that share
    gaps[:, count // 2 :] /= 2
    changed = [change_of_rate(np.cumsum(each), count // 2) for each in gaps]
    assert np.all(np.array(changed) > 0)
    assert np.median(changed) == pytest.approx(1, abs=0.05)
    assert change_of_rate(np.zeros(2), 1) == 0


def test_begins_of_service_that_are_missing_are_no_work_undone(stationary, tmp_path):
    """Of 10 % of the accesses; nodes are as ever."""
    rows, _ = stationary
    missing = np.random.default_rng(5).random(len(rows["start_s"])) < 0.1
    start = [None if lacks else begin for lacks, begin in zip(missing, rows["start_s"], strict=True)]
    found = validate(read(rows | {"start_s": start}, tmp_path), replications=1)
    assert found.own_times_difference_s < 1e-9
    assert not any("serve otherwise" in sentence for sentence in found.notices)


def test_a_coarse_clock_a_gap_and_a_single_file_are_told_beside_the_prediction(tmp_path, compiled_estimate):
    """An hour is missing in the first half, and arrivals are in whole seconds."""
    rows, _ = make_log(4000, EXPONENTIAL, rate=8.0)
    for name in ("arrival_s", "start_s", "finish_s"):
        values = np.array(rows[name])
        rows[name] = values + 3600.0 * (np.array(rows["request_id"]) >= 1000)
    rows["arrival_s"] = np.floor(rows["arrival_s"])
    told = " ".join(validate(read(rows, tmp_path), replications=1).notices)
    assert "Times are known to ticks of 1 s, longer than a service (" in told
    assert "All reads of the first half are of one file" in told
    # 2000 requests at 8 per s take 250 s
    share = float(re.search(r"No request comes for 60 min, (\S+) % of the first half", told)[1])
    assert share == pytest.approx(100 * 3600 / 3850, abs=0.5)


def of_one_node(now, write, size, service):
    """Rows of a log of chunks of one node, first come, first served."""
    begin, free = np.empty(len(now)), -np.inf
    for number, (arrival, time) in enumerate(zip(now.tolist(), service.tolist(), strict=True)):
        begin[number] = max(arrival, free)
        free = begin[number] + time
    return {
        "request_id": np.arange(len(now)),
        "arrival_s": now,
        "file_id": np.zeros(len(now), int),
        "op": np.where(write, "write", "read"),
        "bytes": size,
        "node_id": np.full(len(now), "n"),
        "start_s": begin,
        "finish_s": begin + service,
    }


@pytest.mark.parametrize("sizes", [False, True])
def test_writes_take_their_own_times_beside_reads(tmp_path, compiled_estimate, sizes):
    """M/G/1, by Pollaczek and Khinchine: twenty reads of 5 ms a second, and four writes of 100 ms, exponential.

    With sizes reads take as long as they are large, and writes, of no bytes, as long as before.
    """
    rng, count = np.random.default_rng(3), 40_000
    now, write = np.cumsum(rng.exponential(1 / 24, count)), rng.random(count) < 4 / 24
    size = np.where(write, 0.0, rng.choice([1e6, 4e6], count)) if sizes else np.full(count, 1e6)
    read_s = 2e-9 * size * rng.uniform(0.5, 1.5, count) if sizes else np.full(count, 0.005)
    service = np.where(write, rng.exponential(0.1, count), read_s)
    found = validate(read(of_one_node(now, write, size, service), tmp_path), replications=1)
    half = slice(0, count // 2)
    span = now[count // 2] - now[0]
    load, second = service[half].sum() / span, np.sum(service[half] ** 2) / span
    wait = second / (2 * (1 - load))
    mean = service[half][~write[half]].mean() + wait
    assert row_of(found, "trace_estimated")["mean_s"] == pytest.approx(mean, rel=0.05)


def test_a_second_half_that_is_slower_than_the_bound(tmp_path):
    calls = iter(range(10**6))

    def service(rng, node, size):
        return rng.exponential(0.1 if next(calls) < 3 * 1000 else 0.2)

    rows, _ = make_log(2000, service, rate=6.0)
    found = validate(read(rows, tmp_path), replications=4)
    assert any(s.startswith("The mean observed is above the bound") for s in found.notices)
    (chance,) = (s for s in found.notices if s.startswith("Of runs with these arrivals"))
    within = float(re.search(r"within (\S+) % of", chance)[1])
    told = row_of(found, "replayed")
    # t quantile of three degrees of freedom, for one more run
    np.testing.assert_allclose(within, 100 * told["ci_s"] / told["mean_s"] * np.sqrt(5), atol=0.06)


def test_requests_in_pieces_are_told(tmp_path):
    rows, _ = make_log(50, EXPONENTIAL, rate=5.0)
    rows["request_id"] = [request % 40 for request in rows["request_id"]]
    found = validate(read(rows, tmp_path), replications=1)
    assert any(s.startswith("10 requests have rows that do not follow each other") for s in found.notices)


def test_stalls_of_chunks_of_two_sizes_are_replayed_as_they_are(tmp_path):
    """2 % of all chunks take 80 ms longer; drawn in proportion to their sizes p99 was a fifth too long."""

    def service(rng, node, size):
        stall = 0.08 * (rng.random() < 0.02)
        return 0.002 + 2e-9 * size + rng.exponential(0.004 + 3e-9 * size) + stall

    rows, _ = make_log(40_000, service, 120.0, reads=2, files=10, sizes=(64e3, 64e3, 1e6))
    found = validate(read(rows, tmp_path), replications=4)
    observed, replayed = (row_of(found, source) for source in ("observed", "replayed"))
    assert replayed["mean_s"] == pytest.approx(observed["mean_s"], rel=0.08)
    assert replayed["p99_s"] == pytest.approx(observed["p99_s"], rel=0.08)


def test_service_families(tmp_path):
    rows, _ = make_log(3000, lambda rng, node, size: rng.lognormal(-3.0, 1.0), rate=8.0)
    log = read(rows, tmp_path)
    mean = row_of(validate(log, "lognormal", replications=2), "replayed")["mean_s"]
    assert abs(mean / row_of(validate(log, replications=2), "replayed")["mean_s"] - 1) < 0.1
    with pytest.raises(
        UserError,
        match=r"service: found shifted_exponential, which no .* of node n\d follow: a standard deviation",
    ) as error:
        validate(log, "shifted_exponential")
    assert "\n" not in str(error.value)
