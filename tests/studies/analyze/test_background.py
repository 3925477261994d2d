"""Writes and repairs of a log as the background load of its nodes, and as no requests of later jobs."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from channel_logs import single_starts
from rich.console import Console

import ecjax
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.adapt.logs import reading_of
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.replay.inputs import read_cases
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.logs import log_reading, open_log, open_reading
from ecjax.tables.importers import open_trace
from ecjax.tables.read import read_input
from ecjax.tables.requests import Edges, requests
from ecjax.tables.results import read_results
from ecjax.tables.statistics.scan import scan


def log(path, rows=4000, seed=0, starts=True):
    """Two single servers; every fifth access a write of three times the service, every seventh a repair."""
    random = np.random.default_rng(seed)
    arrival = np.cumsum(random.exponential(0.5, rows))
    node = random.integers(0, 2, rows)
    write, repair = np.arange(rows) % 5 == 0, np.arange(rows) % 7 == 3
    service = random.exponential(0.2, rows) * np.where(write, 3, 1) * np.where(repair, 2, 1)
    start = single_starts(arrival, node, service)
    frame = pd.DataFrame(
        {
            "request_id": np.arange(rows),
            "arrival_s": arrival,
            "file_id": np.where(repair, 99, np.arange(rows) % 6),
            "op": np.where(write, "write", "read"),
            "bytes": 1e6,
            "node_id": node,
            "service_class": np.where(repair, "repair", None),
            **({"start_s": start} if starts else {}),
            "finish_s": start + service,
        }
    )
    frame.to_parquet(path)
    return frame.assign(service=service, repair=repair, write=write)


def analysed(path, out, **options):
    ecjax.analyze(str(path), out=str(out), figures=False, **options)
    return [read_results(out, name) for name in ("nodes", "files", "traces")]


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("background", [["repair"], ["writes"], ["repair", "writes"]])
def test_background_is_the_work_that_made_the_log(background, starts, tmp_path):
    frame = log(tmp_path / "log.parquet", starts=starts)
    nodes, files, traces = analysed(tmp_path / "log.parquet", tmp_path / "out", background=background)
    repairs, writes = "repair" in background, "writes" in background
    users = frame[~frame["repair"]] if repairs else frame
    span = np.ptp(users["arrival_s"])
    for _, row in nodes.iterrows():
        mine = frame[frame["node_id"] == row["node_id"]]
        other = mine[(mine["repair"] & repairs) | (mine["write"] & writes)]["service"]
        for power, name in enumerate(("load", "second", "third"), 1):
            np.testing.assert_allclose(row[f"background_{name}"], np.sum(other**power) / span, rtol=1e-8)
        reads = mine[~mine["write"] & ~(mine["repair"] & repairs)]["service"]
        np.testing.assert_allclose(row["service_mean_s"], reads.mean(), rtol=1e-8)
        np.testing.assert_allclose(row["load"], mine["service"].sum() / span, rtol=1e-8)
    assert (99 in set(files["file_id"])) is not repairs
    counts = users[~users["write"]]["file_id"].value_counts()
    rates = files.set_index("file_id")["rate_per_s"]
    np.testing.assert_allclose(rates, (counts / span).reindex(rates.index), rtol=1e-12)
    assert files["write_rate_per_s"].isna().all() == writes
    assert ("Writes of chunks take" in traces["notices"][0]) is not writes


def test_background_is_of_the_time_of_the_rates(tmp_path):
    """Repairs all the time, users for a fifth of it with a long pause: what came before and after does not count."""
    frame = log(tmp_path / "log.parquet", rows=12000)
    place = np.arange(len(frame))
    users = ((place > 4000) & (place < 5200)) | ((place > 6200) & (place < 7400))
    frame = frame[frame["repair"] | users]
    frame.drop(columns=["service", "repair", "write"]).to_parquet(
        tmp_path / "part.parquet", row_group_size=61
    )
    nodes, _, _ = analysed(tmp_path / "part.parquet", tmp_path / "out", background=["repair"])
    times = frame[~frame["repair"]]["arrival_s"]
    during = frame[frame["repair"] & frame["arrival_s"].between(times.min(), times.max())]
    for _, row in nodes.iterrows():
        services = during[during["node_id"] == row["node_id"]]["service"]
        for power, name in enumerate(("load", "second", "third"), 1):
            expected = np.sum(services**power) / np.ptp(times)
            np.testing.assert_allclose(row[f"background_{name}"], expected, rtol=1e-8)


def test_what_the_log_does_not_have_is_refused(tmp_path):
    frame = log(tmp_path / "log.parquet", rows=50)
    frame.drop(columns="service_class").to_parquet(tmp_path / "other.parquet")
    with pytest.raises(UserError, match="background=repair.*no service_class.*allowed: writes, or classes"):
        analysed(tmp_path / "other.parquet", tmp_path / "out", background=["repair"])


@pytest.mark.parametrize("own_file", [True, False])
def test_rates_of_a_peak_are_those_of_users(own_file, tmp_path):
    """Repairs of a file of their own, and of those that users read."""
    path, window_s = tmp_path / "log.parquet", 20.0
    frame = log(path, rows=2000)
    if not own_file:
        frame["file_id"] = np.arange(len(frame)) % 6
        frame.drop(columns=["service", "repair", "write"]).to_parquet(path)
    _, files, _ = analysed(path, tmp_path / "out", background=["repair"], rate="peak", window_s=window_s)
    reads = frame[~frame["repair"] & ~frame["write"]]
    times = reads["arrival_s"].to_numpy()
    counts = [np.count_nonzero((times >= begin) & (times < begin + window_s)) for begin in times]
    begin = times[np.argmax(counts)]
    inside = reads[(times >= begin) & (times < begin + window_s)]
    rates = files.set_index("file_id")["rate_per_s"]
    expected = inside["file_id"].value_counts().reindex(rates.index, fill_value=0) / window_s
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


@pytest.mark.parametrize("background", [[], ["repair"], ["writes"], ["repair", "writes"]])
def test_later_jobs_read_the_log_without_it(background, tmp_path):
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    frame = log(path)
    _, files, _ = analysed(path, out, background=background or None)
    users = frame
    if "repair" in background:
        users = users[~users["repair"]]
    writes = users
    if "writes" in background:
        users = users[~users["write"]]
    ids = pa.array(files["file_id"])
    for trace, inputs in ((out, []), (path, [f"{out}/nodes"])):
        found = requests(open_log(LogOptions(trace=str(trace)), inputs=inputs), ids)
        assert ids.take(pa.array(found.file)).to_pylist() == users["file_id"].tolist()
        np.testing.assert_array_equal(found.write, users["write"])
        np.testing.assert_allclose(found.arrival, users["arrival_s"] - users["arrival_s"].iloc[0])
    reading = log_reading(LogOptions(trace=str(out)))
    assert reading.identity() == ({"background": sorted(background)} if background else {})
    assert requests(open_reading(log_reading(LogOptions(trace=str(out)), whole=True))).count == len(frame)
    # a proxy serves writes, whatever nodes are loaded with
    served = open_reading(reading_of(str(out), AdaptOptions(trace=str(out))))
    assert requests(served).count == len(writes)


def test_edges_are_those_of_the_requests_that_are_left(tmp_path):
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    frame = log(path, rows=300)
    frame["edge"] = [f"e{number % 3}" for number in range(len(frame))]
    frame.drop(columns=["service", "repair", "write"]).to_parquet(path)
    analysed(path, out, background=["repair", "writes"])
    edges = Edges(open_log(LogOptions(trace=str(out))), sort=False)
    assert requests(edges.trace).count == np.count_nonzero(~frame["repair"] & ~frame["write"])
    names = edges.index.ids.take(pa.array(np.concatenate(edges.numbers))).to_pylist()
    assert names == frame[~frame["repair"] & ~frame["write"]]["edge"].tolist()


def test_a_plan_for_the_log_bears_it_once(tmp_path):
    """All nodes together have the load of what they served in the time of the log."""
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    frame = log(path)
    analysed(path, out, background=["repair", "writes"], k=1)
    plan = str(tmp_path / "plan")
    given = {"trace": str(out), "objective": "trace", "theta": [0.0], "estimate": False, "figures": []}
    assert optimize_study(OptimizeOptions(out=plan, **given), Console(quiet=True)) == 0
    load = frame["service"].sum() / np.ptp(frame["arrival_s"])
    assert read_results(plan, "node_loads")["load"].sum() == pytest.approx(load, rel=0.03)
    replay = checked(ReplayOptions(plan=plan, trace=str(out), out=str(tmp_path / "replay")))
    (case,) = read_cases(replay)
    assert len(case.reads.times) == np.count_nonzero(~frame["repair"] & ~frame["write"])
    assert case.reads.writes is None


def test_services_without_starts_follow_from_all_that_nodes_did(tmp_path):
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    log(path, starts=False)
    analysed(path, out, background=["repair"], k=1)
    planning = OptimizeOptions(nodes=f"{out}/nodes", files=f"{out}/files")
    given = ReplayOptions(plan="none", trace=str(out), service=["empirical"], planning=planning)
    with pytest.raises(
        UserError, match="service=empirical: found trace=.* background=repair, and without start_s"
    ):
        read_cases(checked(given))


def test_analyses_with_other_background_do_not_say_what_to_leave_out(tmp_path):
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    log(path, rows=200)
    analysed(path, out, background=["repair"])
    analysed(path, out)
    with pytest.raises(
        UserError, match="differ in background= or in how it was read; allowed: the folder of one"
    ):
        open_log(LogOptions(trace=str(out)))
    assert log_reading(LogOptions(trace=str(out)), whole=True).path == str(path)
    # nor does the log itself beside a table of either
    with pytest.raises(
        UserError, match="found analyses of .* that differ in background= .*allowed: tables of one"
    ):
        open_log(LogOptions(trace=str(path)), inputs=[f"{out}/files"])
    runs = read_results(out, "runs")
    kept = {}
    for batch, params in zip(runs["batch_id"], runs["params"], strict=True):
        trace = open_log(LogOptions(trace=str(path)), inputs=[f"{out}/files/{batch}.parquet"])
        kept["repair" in params] = requests(trace).count
    assert kept == {True: 200 - 29, False: 200}  # every seventh from the fourth on is a repair


def test_words_of_a_log_read_without_repairs(tmp_path, caplog):
    """Jobs that have no option of that name do not print one."""
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    log(path, rows=200)
    analysed(path, out, background=["repair"])
    for trace, inputs in ((out, []), (path, [f"{out}/files"])):
        caplog.clear()
        with caplog.at_level("INFO", "ecjax"):
            open_log(LogOptions(trace=str(trace)), inputs=inputs)
        assert caplog.text.rstrip().endswith("without repair") and "background" not in caplog.text


def accesses(arrival, node, background, **columns):
    """A log of reads of a chunk by users, and repairs, each of half a second and begun at once."""
    rows = len(arrival)
    frame = {
        "request_id": np.arange(rows),
        "arrival_s": arrival,
        "file_id": ["a"] * rows,
        "op": ["read"] * rows,
        "bytes": [8.0] * rows,
        "node_id": node,
        "service_class": ["repair" if other else "gold" for other in background],
        "start_s": arrival,
        "finish_s": [time + 0.5 for time in arrival],
    }
    return pd.DataFrame(frame | columns)


def test_nodes_that_only_background_works_at(tmp_path):
    """Also where they come in a file of their own; users and repairs are in different files."""
    folder = tmp_path / "days"
    folder.mkdir()
    accesses([0.0, 1.0, 4.0], ["x"] * 3, [False] * 3).to_parquet(folder / "day1.parquet")
    accesses([5.0, 6.0], ["y"] * 2, [True] * 2).to_parquet(folder / "day2.parquet")
    statistics = scan(open_trace(folder), background=frozenset({"repair"}))
    assert statistics.node_ids.to_pylist() == ["x", "y"]
    assert statistics.node_accesses.tolist() == [[3, 0], [0, 0]]
    nodes, _, traces = analysed(folder, tmp_path / "out", background=["repair"])
    assert nodes[["node_id", "chunk_reads"]].to_numpy().tolist() == [["x", 3]]
    notices = traces["notices"][0]
    assert "1 node without service times is left out" in notices and "background class" not in notices


@pytest.mark.parametrize("lacking", [[], ["start_s", "finish_s"]])
def test_a_log_of_background_alone_is_refused(lacking, tmp_path):
    accesses([0.0, 1.0, 4.0], ["x"] * 3, [True] * 3).drop(columns=lacking).to_parquet(
        tmp_path / "log.parquet"
    )
    with pytest.raises(
        UserError, match="background=repair: found no other access among the 3 of .*allowed: classes"
    ):
        analysed(tmp_path / "log.parquet", tmp_path / "out", background=["repair"])
    assert not (tmp_path / "out" / "files").exists()


def test_a_log_without_a_span_tells_no_background_load(tmp_path):
    accesses([0.0] * 4, ["x", "y"] * 2, [False, False, True, True]).to_parquet(tmp_path / "log.parquet")
    for background in (["repair"], ["writes"]):
        out = tmp_path / background[0]
        nodes, _, traces = analysed(tmp_path / "log.parquet", out, background=background)
        assert (
            nodes[["load", "background_load", "background_second", "background_third"]].isna().all(axis=None)
        )
        assert "all at one time" in traces["notices"][0]


def test_classes_that_the_log_lacks(tmp_path):
    path = tmp_path / "log.parquet"
    accesses([0.0, 1.0, 4.0], ["x"] * 3, [False, True, False]).to_parquet(path)
    words = r"background=repiar: found no such access in .*allowed: writes, or classes of its service_class \(gold, rep"
    with pytest.raises(UserError, match=words):
        analysed(path, tmp_path / "wrong", background=["repiar"])
    _, _, traces = analysed(path, tmp_path / "out", background=["repair", "scrub", "writes"])
    assert "The log has no access of background class scrub." in traces["notices"][0]


def test_messages_number_the_rows_of_the_log(tmp_path):
    """Those of background count: request 5 has another file in the fourth row."""
    background = [True, False, True, False, True, True]
    columns = {"request_id": [0, 5, 1, 5, 2, 3], "file_id": ["a", "b", "a", "c", "a", "a"]}
    accesses(np.arange(6.0), ["x"] * 6, background, **columns).to_parquet(tmp_path / "log.parquet")
    with pytest.raises(UserError, match=r"row 3 \(request_id 5\): found another file"):
        analysed(tmp_path / "log.parquet", tmp_path / "out", background=["repair"])


def test_overload_is_that_of_all_work(tmp_path):
    """Users alone keep the node busy for 5.5 of 10 s, repairs for 7 more."""
    arrival = np.sort(np.concatenate([np.arange(11.0), np.arange(10) + 0.25]))
    background = np.arange(21) % 2 == 1
    service = np.where(background, 0.7, 0.5)
    start = single_starts(arrival, np.zeros(21, int), service)
    frame = accesses(arrival, ["x"] * 21, background, start_s=start, finish_s=start + service)
    frame.to_parquet(tmp_path / "log.parquet")
    nodes, _, traces = analysed(tmp_path / "log.parquet", tmp_path / "out", background=["repair"])
    assert nodes["load"].tolist() == pytest.approx([1.25])
    assert "1 node has a load of 1 or more (node x: rho = 1.25)" in traces["notices"][0]


def test_background_of_the_analysis_of_another_log_stays_there(tmp_path):
    """Writes are rates of files in the second log: its nodes do not bear those of the first besides."""
    log(tmp_path / "one.parquet", seed=1)
    log(tmp_path / "two.parquet", seed=2)
    analysed(tmp_path / "one.parquet", tmp_path / "one", background=["writes"])
    tables = {"nodes": f"{tmp_path}/one/nodes"}
    nodes, files, traces = analysed(tmp_path / "two.parquet", tmp_path / "two", **tables)
    assert nodes["background_load"].isna().all() and (files["write_rate_per_s"] > 0).any()
    assert "Left out: background_load of nodes=, which an analysis" in traces["notices"][0]
    nodes, _, traces = analysed(tmp_path / "two.parquet", tmp_path / "both", background=["writes"], **tables)
    alone, _, _ = analysed(tmp_path / "two.parquet", tmp_path / "alone", background=["writes"])
    assert nodes["background_load"].tolist() == alone["background_load"].tolist()
    assert "background_load of nodes= gives way to that which background= measures." in traces["notices"][0]
    # of a table of one's own it counts: work that no log has
    own = read_input(f"{tmp_path}/one/nodes", "nodes").select(
        ["node_id", "service_mean_s", "service_second_s2", "service_third_s3", "reference_bytes"]
        + ["background_load", "background_second", "background_third"]
    )
    pa.parquet.write_table(own.replace_schema_metadata(), tmp_path / "own.parquet")
    nodes, _, _ = analysed(tmp_path / "two.parquet", tmp_path / "third", nodes=str(tmp_path / "own.parquet"))
    assert nodes["background_load"].tolist() == own["background_load"].to_pylist()
