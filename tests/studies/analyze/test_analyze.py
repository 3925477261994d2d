import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.studies.analyze.tables import TABLES
from ecjax.studies.optimize.tables import TABLES as PLANS
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

TRACES = Path(__file__).parents[3] / "traces"
CLOUDPHYSICS = Path(__file__).parents[4] / "shared" / "data" / "cloudphysics-a.csv"


def run(trace, out, **options):
    """Exit code and what was printed."""
    console = Console(file=io.StringIO(), width=160)
    code = analyze_study(
        AnalyzeOptions(trace=str(trace), out=str(out), **({"figures": False} | options)), console
    )
    return code, console.file.getvalue()


@pytest.fixture(scope="module")
def chunks(tmp_path_factory):
    out = tmp_path_factory.mktemp("chunks")
    code, text = run(TRACES / "requests_chunks.parquet", out, figures=True)
    assert code == 0
    return out, text


def frame_of(name):
    return pq.read_table(TRACES / name).to_pandas()


def test_datasets_and_figures_of_a_chunk_trace(chunks):
    out, text = chunks
    for dataset in set(TABLES.datasets) - {"rejects"}:  # of malformed lines: a table has none
        assert len(read_results(out, dataset)), dataset
    figures = {path.stem for path in (out / "figures").glob("*.png")}
    delays = {"service_cdf", "node_ccdf", "delay_vs_size"}
    assert figures == delays | {"popularity", "arrivals", "class_rates", "burstiness", "node_load"}
    run_row = read_results(out, "runs").iloc[0]
    assert run_row["job"] == "analyze" and run_row["status"] == "ok" and run_row["node_count"] == 12
    for words in ("provides rates, sojourn, service", "Zipf exponent", "agrees with Poisson", "tokyo-3"):
        assert words in text


def test_files_are_those_that_made_the_trace(chunks):
    files = read_input(chunks[0] / "files", "files").to_pandas().set_index("file_id")
    truth, rows = frame_of("files.parquet").set_index("file_id"), frame_of("requests_chunks.parquet")
    truth = truth.loc[files.index]
    for name in ("bytes", "k", "stored_bytes"):
        np.testing.assert_array_equal(files[name], truth[name])
    span = rows["arrival_s"].max() - rows["arrival_s"].min()
    requests = rows.drop_duplicates("request_id")
    reads = requests[requests["op"] == "read"].groupby("file_id").size().reindex(files.index, fill_value=0)
    np.testing.assert_allclose(files["rate_per_s"], reads / span)
    error = np.sqrt(truth["rate_per_s"] / span)
    assert np.mean(np.abs(files["rate_per_s"] - truth["rate_per_s"]) < 2 * error) > 0.9


def test_nodes_have_the_moments_and_loads_of_their_rows(chunks):
    nodes = read_results(chunks[0], "nodes").set_index("node_id")
    rows = frame_of("requests_chunks.parquet")
    span = rows["arrival_s"].max() - rows["arrival_s"].min()
    rows["service"] = rows["finish_s"] - rows["start_s"]
    reads = rows[rows["op"] == "read"].groupby("node_id")["service"]
    for power, column in ((1, "mean_s"), (2, "second_s2"), (3, "third_s3")):
        np.testing.assert_allclose(
            nodes[f"observed_{column}"], reads.apply(lambda x, p=power: (x**p).mean()), rtol=1e-9
        )
    np.testing.assert_allclose(
        nodes["observed_mean_error_s"], reads.std(ddof=1) / np.sqrt(reads.size()), rtol=1e-6
    )
    by_node = rows.groupby("node_id")
    np.testing.assert_allclose(nodes["load"], by_node["service"].sum() / span, rtol=1e-9)
    sojourn = (rows["finish_s"] - rows["arrival_s"]).groupby(rows["node_id"]).sum()
    np.testing.assert_allclose(nodes["concurrency"], sojourn / span, rtol=1e-9)
    assert 0.4 < nodes["load"].mean() < 0.6 and (nodes["load"] < 1).all()
    assert set(nodes["service_source"]) == {"logged"}


def test_affine_law_of_each_node_is_that_of_the_simulation(chunks):
    nodes = read_input(chunks[0] / "nodes", "nodes").to_pandas().set_index("node_id")
    truth = frame_of("nodes.parquet").set_index("node_id").loc[nodes.index]
    assert "service_mean_s" not in nodes
    sizes = np.array([262144.0, 2097152.0])
    for constant, slope in (("delta_s", "delta_s_per_byte"), ("psi_s", "psi_s_per_byte")):
        fitted = nodes[[constant]].to_numpy() + nodes[[slope]].to_numpy() * sizes
        true = truth[[constant]].to_numpy() + truth[[slope]].to_numpy() * sizes
        np.testing.assert_allclose((fitted / true).mean(axis=0), 1, atol=0.1)
        np.testing.assert_allclose(fitted / true, 1, atol=0.6)


def test_delays_tell_size_by_size_what_the_rows_say(chunks):
    delays = read_results(chunks[0], "delays")
    rows = frame_of("requests_chunks.parquet")
    service = (rows["finish_s"] - rows["start_s"]).groupby([rows["node_id"], rows["op"], rows["bytes"]])
    found = delays[delays["quantity"] == "service"].set_index(["node_id", "op", "chunk_bytes"])
    np.testing.assert_array_equal(found["count"], service.size().loc[found.index])
    np.testing.assert_allclose(found["mean_s"], service.mean().loc[found.index], rtol=1e-9)
    np.testing.assert_allclose(found["std_s"], service.std().loc[found.index], rtol=1e-6)
    bins = read_results(chunks[0], "delay_bins")
    assert bins["count"].sum() == delays["count"].sum() == 2 * len(rows)
    assert (bins["lower_s"] < bins["upper_s"]).all()


def test_trace_row_and_arrivals(chunks):
    trace = read_results(chunks[0], "traces").iloc[0]
    arrivals = read_results(chunks[0], "arrivals")
    assert trace["requests"] == 2200 == arrivals["reads"].sum() + arrivals["writes"].sum()
    assert abs(trace["zipf_exponent"] - 0.8) < 4 * trace["zipf_error"]
    assert abs(trace["chunk_correlation"]) < 4 * trace["chunk_correlation_error"]
    assert abs(trace["interarrival_cv"] - 1) < 0.1 and trace["poisson_p"] > 0.01
    assert trace["delay_quantity"] == "service" and trace["notices"].startswith("The trace has no prices")
    assert "\n" not in trace["notices"]


def test_a_finished_analysis_is_not_done_again(chunks, monkeypatch):
    def gather(*_):
        raise AssertionError("read again")

    monkeypatch.setattr("ecjax.studies.analyze.run.gather", gather)
    code, text = run(TRACES / "requests_chunks.parquet", chunks[0])
    assert code == 0 and text == re.sub(r"figures in .*?\.png\n", "", chunks[1], flags=re.DOTALL)
    with pytest.raises(AssertionError, match="read again"):
        run(TRACES / "requests_chunks.parquet", chunks[0], resume=False)
    with pytest.raises(AssertionError, match="read again"):
        run(TRACES / "requests_chunks.parquet", chunks[0], k=3)


def test_a_given_k_keeps_the_chunk_size(tmp_path):
    run(TRACES / "requests_chunks.parquet", tmp_path, k=3)
    files = read_input(tmp_path / "files", "files").to_pandas().set_index("file_id")
    truth = frame_of("files.parquet").set_index("file_id").loc[files.index]
    assert set(files["k"]) == {3}
    for name in ("bytes", "stored_bytes"):
        np.testing.assert_allclose(files[name] / 3, truth[name] / 4)


def test_moments_at_a_reference_size(tmp_path):
    run(TRACES / "requests_chunks.parquet", tmp_path, reference_bytes=1e6)
    nodes = read_input(tmp_path / "nodes", "nodes").to_pandas().set_index("node_id")
    assert "delta_s" not in nodes and set(nodes["reference_bytes"]) == {1e6}
    rows = frame_of("requests_chunks.parquet").query("op == 'read'")
    scaled = (rows["finish_s"] - rows["start_s"]) * 1e6 / rows["bytes"]
    for power, column in ((1, "service_mean_s"), (2, "service_second_s2"), (3, "service_third_s3")):
        summed = (rows["bytes"] * scaled**power).groupby(rows["node_id"]).sum()
        np.testing.assert_allclose(nodes[column], summed / rows.groupby("node_id")["bytes"].sum(), rtol=1e-9)


def test_objects_have_no_nodes_and_ask_for_k(tmp_path):
    code, text = run(TRACES / "requests_objects.parquet", tmp_path / "a")
    assert code == 0
    assert "k is not in the trace: give k=" in text and "names no nodes" in text and "provides rates" in text
    assert not (tmp_path / "a" / "nodes").exists() and not (tmp_path / "a" / "delays").exists()
    assert read_results(tmp_path / "a", "files")["k"].isna().all()
    with pytest.raises(UserError, match="column k, row 0"):
        read_input(tmp_path / "a" / "files", "files")
    run(TRACES / "requests_objects.parquet", tmp_path / "b", k=5)
    files = read_input(tmp_path / "b" / "files", "files").to_pandas().set_index("file_id")
    rows = frame_of("requests_objects.parquet")
    assert set(files["k"]) == {5} and list(files.index) == list(rows["file_id"].unique())
    span = (rows["arrival_s"].max() - rows["arrival_s"].min()).total_seconds()
    for op, column in (("read", "rate_per_s"), ("write", "write_rate_per_s")):
        counts = rows[rows["op"] == op].groupby("file_id").size().reindex(files.index, fill_value=0)
        np.testing.assert_allclose(files[column], counts / span)
    np.testing.assert_array_equal(files["bytes"], rows.groupby("file_id")["bytes"].first().loc[files.index])


@pytest.mark.skipif(not CLOUDPHYSICS.exists(), reason="the CloudPhysics trace is not here")
def test_a_real_block_trace(tmp_path):
    code, text = run(CLOUDPHYSICS, tmp_path, extent_bytes=65536, k=4, figures=True)
    assert code == 0 and "ticks of 1 s" in text
    assert "too coarse to tell whether they are Poisson" in " ".join(text.split())
    files = read_input(tmp_path / "files", "files").to_pandas()
    rows = pd.read_csv(CLOUDPHYSICS, dtype={"op": str})
    first, last = rows["lbn"] * 512 // 65536, (rows["lbn"] * 512 + rows["size"] - 1) // 65536
    assert set(files["file_id"]) == {e for a, b in zip(first, last, strict=True) for e in range(a, b + 1)}
    asked = (files["bytes"] * files["reads"]).sum()
    # bytes of files that were read are means over reads alone
    assert asked == pytest.approx(rows.loc[rows["op"] == "28", "size"].sum(), rel=1e-12)
    assert set(files["stored_bytes"]) == {65536.0}
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == {
        "popularity",
        "arrivals",
        "burstiness",
    }


def chunk_log(**columns):
    base = {
        "request_id": [0, 0, 1, 1, 2, 2],
        "arrival_s": [0.0, 0.0, 2.0, 2.0, 4.0, 4.0],
        "file_id": ["a", "a", "b", "b", "a", "a"],
        "op": ["read"] * 6,
        "bytes": [100.0] * 6,
        "node_id": ["x", "y"] * 3,
        "start_s": [0.0, 0.0, 2.0, 2.0, 4.0, 4.0],
        "finish_s": [1.0, 0.5, 3.0, 2.5, 5.0, 4.5],
    }
    return {name: values for name, values in (base | columns).items() if values is not None}


def analysed(folder, log, **options):
    pq.write_table(pa.table(log), folder / "log.parquet")
    return run(folder / "log.parquet", folder / "out", **options)


def recommended(out):
    return json.loads((out / "recommended.json").read_text())["sentence"]


def test_one_chunk_size_gives_moments(tmp_path):
    analysed(tmp_path, chunk_log())
    nodes = read_input(tmp_path / "out" / "nodes", "nodes").to_pandas().set_index("node_id")
    assert nodes.loc["x", ["service_mean_s", "service_second_s2", "service_third_s3"]].tolist() == [1, 1, 1]
    assert nodes.loc["y", ["service_mean_s", "service_second_s2", "service_third_s3"]].tolist() == [
        0.5,
        0.25,
        0.125,
    ]
    assert nodes["reference_bytes"].tolist() == [100, 100]
    assert read_results(tmp_path / "out", "files")["k"].tolist() == [2, 2]


def test_reads_of_more_chunks_than_63(tmp_path):
    """Two reads of 80 chunks of 10 B: 80 rebuild the file, or as many as are said to, each of 10 B."""
    log = {
        "request_id": np.repeat([0, 1], 80),
        "arrival_s": np.repeat([0.0, 1.0], 80),
        "file_id": ["a"] * 160,
    }
    log |= {"op": ["read"] * 160, "bytes": [10.0] * 160, "node_id": np.tile(np.arange(80), 2)}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    for given, k in ((None, 80), (80, 80), (40, 40)):
        run(tmp_path / "log.parquet", tmp_path / str(given), k=given)
        (file,) = read_input(tmp_path / str(given) / "files", "files").to_pylist()
        assert (file["k"], file["bytes"], file["stored_bytes"]) == (k, 10 * k, 10 * k)


def test_an_overloaded_node_is_named_with_what_would_fix_it(tmp_path):
    _, text = analysed(tmp_path, chunk_log(finish_s=[3.0, 0.5, 5.0, 2.5, 7.0, 4.5]))
    note = " ".join(text.split())
    assert "1 node has a load of 1 or more (node x: rho = 2.25)" in note
    assert "start_s must be the start of service after queueing" in note


def test_notices_know_the_channels_of_a_table(tmp_path):
    """A load of 2.25 is one of 0.5625 of four channels, which nobody needs to be asked for."""
    log = chunk_log(finish_s=[3.0, 0.5, 5.0, 2.5, 7.0, 4.5])
    _, text = analysed(tmp_path, log)
    assert "give channels in nodes=TABLE" in " ".join(text.split())
    law = {"service_mean_s": 1.0, "service_second_s2": 1.0, "service_third_s3": 1.0, "reference_bytes": 100.0}
    frame = pd.DataFrame({"node_id": ["x", "y"], **law, "channels": [4, 1]})
    frame.to_parquet(tmp_path / "nodes.parquet")
    _, text = run(tmp_path / "log.parquet", tmp_path / "given", nodes=str(tmp_path / "nodes.parquet"))
    words = " ".join(text.split())
    assert "a load of 1 or more" not in words and "give channels in nodes=TABLE" not in words
    assert "Channels of 1 node (x) cannot be told" in words and "Those of nodes= count." in words
    loads = read_results(tmp_path / "given", "nodes").set_index("node_id")["load"]
    assert loads.to_dict() == pytest.approx({"x": 9 / 4 / 4, "y": 1.5 / 4})


def test_what_cannot_be_told_is_said(tmp_path):
    _, text = analysed(tmp_path, chunk_log(finish_s=[1.0, 0.5, None, 2.5, 5.0, 4.5], start_s=None))
    assert "Service moments are unavailable: start_s is missing, and row 2 has no finish_s" in " ".join(
        text.split()
    )
    assert not (tmp_path / "out" / "nodes").exists()
    assert set(read_results(tmp_path / "out", "delays")["quantity"]) == {"sojourn"}


def test_inferred_service_times_are_called_so(tmp_path):
    _, text = analysed(tmp_path, chunk_log(start_s=None))
    assert "service times (inferred)" in text and "provides rates, sojourn, service" in text
    assert set(read_results(tmp_path / "out", "nodes")["service_source"]) == {"inferred"}


def test_files_that_were_only_written(tmp_path):
    log = chunk_log(op=["read"] * 2 + ["write"] * 2 + ["read"] * 2)
    _, text = analysed(tmp_path, log)
    assert "1 file was never read: k = 2, which all files read have, is taken" in " ".join(text.split())
    files = read_input(tmp_path / "out" / "files", "files").to_pandas().set_index("file_id")
    assert files.loc["b", ["bytes", "k", "rate_per_s", "write_rate_per_s"]].tolist() == [200, 2, 0, 0.25]


def test_nodes_without_service_times_and_nodes_only_written_to(tmp_path):
    log = chunk_log(
        node_id=["x", "y", "z", "y", "x", "y"],
        start_s=[0.0, None, 2.0, None, 4.0, None],
        op=["read"] * 2 + ["write"] * 2 + ["read"] * 2,
    )
    _, text = analysed(tmp_path, log, k=2)
    note = " ".join(text.split())
    assert "1 node without service times is left out" in note
    assert "1 node was only written to (z): the service law is that of writes there" in note
    assert read_results(tmp_path / "out", "nodes")["node_id"].tolist() == ["x", "z"]


def test_varying_sizes_too_few_for_a_fit_give_scaled_moments(tmp_path):
    _, text = analysed(tmp_path, chunk_log(bytes=[100.0, 100.0, 200.0, 200.0, 100.0, 100.0]))
    assert "taken to be proportional" in " ".join(text.split())
    nodes = read_input(tmp_path / "out" / "nodes", "nodes").to_pandas().set_index("node_id")
    reference = 800 / 6
    assert nodes["reference_bytes"].tolist() == pytest.approx([reference] * 2)
    # as much work by byte as there was: 3 s for 400 bytes
    assert nodes.loc["x", "service_mean_s"] == pytest.approx(3 / 400 * reference)


def test_a_chunk_of_next_to_no_bytes_counts_as_one_of_none(tmp_path):
    frame = frame_of("requests_chunks.parquet")
    node = frame["node_id"] == frame["node_id"][0]
    outs = []
    for tiny in (0.0, 1e-308):
        frame.loc[frame.index[node][0], "bytes"] = tiny
        frame.to_parquet(tmp_path / "log.parquet")
        code, _ = run(tmp_path / "log.parquet", tmp_path / f"{tiny:g}", reference_bytes=2e6)
        assert code == 0
        outs.append(read_input(tmp_path / f"{tiny:g}" / "nodes", "nodes").to_pandas().drop(columns="run_id"))
    pd.testing.assert_frame_equal(*outs, check_exact=False)


def stalling_log(share, stall_s):
    """Reads of two sizes of one node, and their services, s: 30 ms, and of a share of them a stall more."""
    random = np.random.default_rng(0)
    count = 400
    sizes = np.tile([1e5, 1e6], count // 2)
    service = 0.03 + stall_s * (random.random(count) < share)
    arrival = np.arange(count) * 10.0
    log = {
        "request_id": np.arange(count),
        "arrival_s": arrival,
        "file_id": np.arange(count) % 3,
        "op": ["read"] * count,
        "bytes": sizes,
        "node_id": [1] * count,
        "start_s": arrival,
        "finish_s": arrival + service,
    }
    return log, service


def test_the_next_command_names_files_where_there_are_several_logs(tmp_path):
    def next_words(out):
        return shlex.split(recommended(out).partition("Next: ")[2])

    for name, size in (("one", 100.0), ("two", 300.0)):
        # as many nodes as chunks of a file: k = 2, and two more
        log = chunk_log(bytes=[size] * 6, node_id=["x", "y", "v", "w", "x", "y"])
        pq.write_table(pa.table(log), tmp_path / f"{name}.parquet")
        run(tmp_path / f"{name}.parquet", tmp_path / "out")
        if name == "one":
            assert next_words(tmp_path / "out")[:3] == ["ecjax", "optimize", str(tmp_path / "out")]
    named = dict(word.split("=", 1) for word in next_words(tmp_path / "out")[2:])
    for table in ("files", "nodes"):
        assert len(read_input(named[table], table))
    # nothing to plan with is written: no command that would fail
    run(tmp_path / "one.parquet", tmp_path / "rows", write=["runs"])
    assert next_words(tmp_path / "rows") == []


def test_the_next_command_describes_as_many_nodes_as_a_code_needs(tmp_path):
    """Racks of four for k chunks and two more."""
    log = chunk_log(node_id=None, start_s=None, finish_s=None, request_id=list(range(6)))
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    for k, count in ((10, 12), (11, 16), (19, 24)):
        run(tmp_path / "log.parquet", tmp_path / str(k), k=k)
        sentence = recommended(tmp_path / str(k))
        assert f"nodes='{{count: {count}, per_rack: 4, " in sentence and "min_extra_chunks=2" in sentence


# file a is read from two nodes and b from one; c is written, or in the catalog alone
SEVERAL_K = {
    "request_id": [0, 0, 1, 2, 2, 2],
    "arrival_s": [0.0, 0.0, 2.0, 3.0, 3.0, 3.0],
    "file_id": ["a", "a", "b", "c", "c", "c"],
    "op": ["read"] * 3 + ["write"] * 3,
    "node_id": ["x", "y", "x", "x", "y", "z"],
    "start_s": [0.0, 0.0, 2.0, 3.0, 3.0, 3.0],
    "finish_s": [1.0, 0.5, 3.0, 3.5, 3.5, 3.5],
}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"arrival_s": [0.0] * 6, "start_s": [0.0] * 6},
            "All requests come at one time: there are no rates to plan for.",
        ),
        ({"op": ["write"] * 6}, "There are no reads to plan for."),
        (
            SEVERAL_K,
            "1 file has no k to plan with: analyze the log again with k=, which is that of all files then.",
        ),
    ],
)
def test_no_command_is_named_that_would_be_refused(columns, sentence, tmp_path):
    analysed(tmp_path, chunk_log(**columns))
    assert recommended(tmp_path / "out").endswith(f" {sentence}")


def test_k_is_named_where_no_file_has_one(tmp_path):
    """It would count for all files, also those of another k."""
    analysed(tmp_path, chunk_log(**SEVERAL_K), k=2)
    assert "Next: ecjax optimize" in recommended(tmp_path / "out") and " k=" not in recommended(
        tmp_path / "out"
    )
    reads = {name: values[:3] for name, values in chunk_log(**SEVERAL_K).items()}
    pq.write_table(pa.table(reads), tmp_path / "log.parquet")
    for name, k in (("lacking", ""), ("known", "3")):
        (tmp_path / f"{name}.csv").write_text(f"file_id,bytes,k\na,200,2\nb,100,1\nc,50,{k}\n")
        run(tmp_path / "log.parquet", tmp_path / name, catalog=str(tmp_path / f"{name}.csv"))
    known = recommended(tmp_path / "known")
    assert "Next: ecjax optimize" in known and " k=" not in known
    assert recommended(tmp_path / "lacking").endswith(
        "1 file has no k to plan with: analyze the log again with k=, which is that of all files then, or with k in "
        "the catalog."
    )


def test_stalls_are_part_of_the_law(tmp_path):
    log, service = stalling_log(0.05, 5.0)
    _, text = analysed(tmp_path, log)
    text = " ".join(text.split())
    assert "Services of 1 node stall" in text and "misses the service" not in text
    [node] = read_input(tmp_path / "out" / "nodes", "nodes").to_pylist()
    assert node["stall_probability"] == pytest.approx(np.mean(service > 1))
    assert node["stall_s"] == pytest.approx(5.0)
    assert node["delta_s"] == pytest.approx(0.03)
    for name, power in (("law_mean_s", 1), ("law_second_s2", 2)):
        assert node[name] == pytest.approx(np.mean(service**power))


def test_services_that_are_not_in_proportion_to_the_size_are_said_to_be_so(tmp_path):
    """As of a disk that seeks, read in sizes that hardly come again."""
    log, service = stalling_log(0.0, 0.0)
    sizes = np.geomspace(4096, 2**21, len(service))
    _, text = analysed(tmp_path, log | {"bytes": sizes})
    per_byte = np.average((service / sizes) ** 2, weights=sizes)
    times = per_byte * np.mean(sizes**2) / np.mean(service**2)
    line = f"the second moment at node 1, which waits depend on, {times:.2g} times what it was"
    assert line in " ".join(text.split())
    _, text = run(tmp_path / "log.parquet", tmp_path / "other", reference_bytes=1e6)
    assert line in " ".join(text.split())
    [node] = read_input(tmp_path / "other" / "nodes", "nodes").to_pylist()
    assert node["service_mean_s"] == pytest.approx(np.sum(service) / np.sum(sizes) * 1e6)
    in_proportion = log["arrival_s"] + sizes * 1e-8
    (tmp_path / "third").mkdir()
    _, text = analysed(tmp_path / "third", log | {"bytes": sizes, "finish_s": in_proportion})
    assert "are not in proportion" not in " ".join(text.split())


def test_heavy_tails_are_said_not_to_fit(tmp_path):
    # too many for stalls: the kept nine tenths are of both kinds
    log, service = stalling_log(0.2, 0.4)
    sizes = log["bytes"]
    _, text = analysed(tmp_path, log)
    text = " ".join(text.split())
    assert "misses the service times of 1 node (node 1: its mean by +" in text
    [node] = read_input(tmp_path / "out" / "nodes", "nodes").to_pylist()
    means = [
        node["delta_s"] + node["psi_s"] + size * (node["delta_s_per_byte"] + node["psi_s_per_byte"])
        for size in sizes
    ]
    random_s = node["psi_s"] + sizes * node["psi_s_per_byte"]
    assert node["law_mean_s"] == pytest.approx(np.mean(means))
    # a fixed and an exponential part
    assert node["law_second_s2"] == pytest.approx(np.mean(np.square(means) + random_s**2))
    assert node["observed_second_s2"] == pytest.approx(np.mean(service**2))
    assert f"is {np.mean(service**2) / node['law_second_s2']:.2g} times that of the law" in text


def test_simultaneous_requests_have_no_rates(tmp_path):
    log = chunk_log(arrival_s=[0.0] * 6, start_s=[0.0] * 6)
    code, text = analysed(tmp_path, log)
    assert code == 0 and "3 requests arrive, all at one time" in " ".join(text.split())
    assert read_results(tmp_path / "out", "files")["rate_per_s"].isna().all()


def test_files_of_no_bytes_are_left_out(tmp_path):
    _, text = analysed(tmp_path, chunk_log(bytes=[100.0, 100.0, 0.0, 0.0, 100.0, 100.0]))
    assert "1 file of which no byte was asked for is left out" in " ".join(text.split())
    assert read_results(tmp_path / "out", "files")["file_id"].tolist() == ["a"]


def test_a_log_of_which_no_file_is_left_has_nothing_to_plan(tmp_path):
    code, text = analysed(tmp_path, chunk_log(bytes=[0.0] * 6))
    assert code == 0 and "2 files of which no byte was asked for are left out" in " ".join(text.split())
    sentence = recommended(tmp_path / "out")
    # x serves three requests for 1 s each in the 4 s of the log
    assert "x is the busiest: load 0.75" in sentence and sentence.endswith("There is no file to plan for.")


def test_files_of_unknown_size_are_not_those_of_no_bytes(tmp_path):
    """a is read from two nodes, b, of no bytes, from one: nobody knows what c, only written, would be read from."""
    log = chunk_log(
        request_id=[0, 0, 1, 2, 3, 3],
        file_id=["a", "a", "b", "b", "c", "c"],
        op=["read"] * 4 + ["write"] * 2,
        bytes=[100.0, 100.0, 0.0, 0.0, 100.0, 100.0],
    )
    _, text = analysed(tmp_path, log)
    assert "1 file of which no byte was asked for is left out" in " ".join(text.split())
    files = read_results(tmp_path / "out", "files").set_index("file_id")
    assert files["bytes"].to_dict() == {"a": 200.0, "c": pytest.approx(np.nan, nan_ok=True)}


def test_interleaved_requests_are_noticed(tmp_path):
    _, text = analysed(tmp_path, chunk_log(request_id=[0, 1, 0, 1, 2, 2], file_id=["a"] * 6))
    assert "2 requests have rows that do not follow each other" in " ".join(text.split())


def test_only_what_is_asked_for_is_written(tmp_path):
    analysed(tmp_path, chunk_log(), write=["files"])
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == {"files", "runs"}
    assert run(tmp_path / "log.parquet", tmp_path / "out", write=["files"])[0] == 0


def test_what_is_not_written_is_printed_nevertheless(tmp_path):
    _, text = analysed(tmp_path, chunk_log(), write="files")
    assert "provides rates, sojourn, service" in text and "note: The trace has no prices" in text
    assert not (tmp_path / "out" / "traces").exists()


def test_out_is_checked_before_the_log_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("ecjax.studies.analyze.study.open_reading", None)
    with ResultStore(tmp_path / "plans", PLANS, {}) as store:
        store.commit([{"run_id": "a", "job": "optimize", "status": "ok"}], {})
    (tmp_path / "file").write_text("")
    for name, words in (
        ("plans", "holds results of ecjax optimize; choose a new out"),
        ("file", "is a file"),
    ):
        with pytest.raises(UserError, match=f"^out={tmp_path}/{name}: {words}"):
            run(TRACES / "requests_chunks.parquet", tmp_path / name)


def test_every_column_of_runs_is_filled_and_datasets_have_their_columns(chunks):
    runs = read_results(chunks[0], "runs")
    assert set(runs.columns[runs.isna().all()]) == {"error"}
    trace = read_results(chunks[0], "traces").iloc[0]
    assert trace["path"] == str(TRACES / "requests_chunks.parquet")
    assert json.loads(trace["reading"]) == {
        "format": "auto",
        "columns": None,
        "extent_bytes": None,
        "sort": False,
    }
    assert trace[trace.isna()].empty


def test_runs_that_differ_have_rows_that_differ(tmp_path):
    (tmp_path / "log.csv").write_text(
        "request_id,arrival_s,file_id,op,bytes\n0,1.0,a,read,8\n1,2.0,b,read,4\n"
    )
    columns = {"arrival_s": "arrival_s", "file_id": "file_id", "bytes": "bytes", "op": "op"}
    changes = [{}, {"k": 2}, {"seed": 1}, {"reference_bytes": 8}, {"sort": True}, {"columns": columns}]
    for change in changes + [{"format": "table"}, {"write": ["files"]}]:
        assert run(tmp_path / "log.csv", tmp_path / "out", **change)[0] == 0
    runs = read_results(tmp_path / "out", "runs")
    assert len(runs) == len(changes)
    assert not runs.duplicated(["format", "input_id", "seed", "params"]).any()
    assert json.loads(runs["params"][0])["algorithm_version"] == 2


def test_text_of_a_log_is_no_markup(tmp_path):
    log = chunk_log(node_id=["[red]x", "[/]y"] * 3)
    pq.write_table(pa.table(log), tmp_path / "[bold]log.parquet")
    _, text = run(tmp_path / "[bold]log.parquet", tmp_path / "out")
    assert "analyze: [bold]log.parquet" in text and "[red]x" in text and "[/]y" in text


def test_options_are_checked_once_for_all():
    options = checked(AnalyzeOptions(trace="log", write="files", k=3, reference_bytes=5))
    assert (options.write, options.reference_bytes) == (["files"], 5.0) and checked(options) == options


WRONG = {
    "trace": ({"trace": None}, "trace: missing"),
    "k": ({"k": 0}, "k: found 0; allowed: a whole number of at least 1"),
    "extent": ({"extent_bytes": -1}, "extent_bytes: found -1"),
    "reference": ({"reference_bytes": float("nan")}, "reference_bytes: found nan"),
    "seed": ({"seed": -1}, "seed: found -1"),
    "columns": ({"columns": "a"}, "columns: found 'a'; allowed: a mapping"),
    "write": ({"write": ["placements"]}, "write: found 'placements'; allowed: runs, traces, files"),
    "format": ({"format": "zip"}, "format: found 'zip'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_are_named_and_nothing_is_written(tmp_path, case):
    options, message = WRONG[case]
    given = {"trace": str(TRACES / "requests_objects.parquet"), "out": str(tmp_path / "out")} | options
    with pytest.raises(UserError, match=message) as error:
        analyze_study(AnalyzeOptions(**given), Console(file=io.StringIO()))
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


def test_a_trace_that_breaks_off_leaves_no_tables(tmp_path):
    table = pq.read_table(TRACES / "requests_objects.parquet")
    columns = table.to_pydict()
    columns["op"][4000] = "delete"
    with pytest.raises(UserError, match="column op, row 4000"):
        analysed(tmp_path, columns)
    assert not (tmp_path / "out" / "runs").exists() and not (tmp_path / "out" / "files").exists()


def test_a_clock_too_coarse_for_the_gaps_tells_nothing_of_poisson_arrivals(tmp_path):
    random = np.random.default_rng(5)
    for name, times in (
        ("regular", np.repeat(np.arange(40.0), 50)),
        ("poisson", random.uniform(0, 40, 2000)),
    ):
        log = {
            "request_id": np.arange(2000),
            "arrival_s": np.floor(np.sort(times)),
            "file_id": np.arange(2000) % 9,
        }
        (tmp_path / name).mkdir()
        _, text = analysed(tmp_path / name, log | {"bytes": np.full(2000, 1e6), "op": ["read"] * 2000}, k=1)
        words = " ".join(text.split())
        assert (
            "the clock is too coarse to tell whether they are Poisson (ticks of 1 s, 1,960 of 2,000 at the time of "
            "the one before" in words
        )
        assert "Poisson arrivals" not in words and "coefficient" not in words
        trace = read_results(tmp_path / name / "out", "traces").iloc[0]
        assert trace["poisson_blocks"] == 0 and np.isnan(trace["poisson_p"])


def test_a_window_without_the_peak_has_no_effect(monkeypatch, caplog):
    monkeypatch.setattr("ecjax.studies.analyze.study.run_study", lambda *_: 0)
    assert run("log.csv", "out", window_s=10.0) == (0, "")
    assert caplog.messages == ["window_s=10.0 has no effect beside rate=mean"]
    caplog.clear()
    assert run("log.csv", "out", window_s=10.0, rate="peak") == (0, "") and caplog.messages == []
