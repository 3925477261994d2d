import io
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sample_tables
from rich.console import Console

from ecjax.adaptation.delays import BUILT_IN, mean_delay, quantile
from ecjax.adaptation.proxy import EMPIRICAL, EXPONENTIAL, LOGNORMAL
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.adapt import logs as adapt_logs
from ecjax.studies.adapt.delays import fingerprint_of, read_laws
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.tables.importers import open_trace

TRACES = Path(__file__).parents[3] / "traces"
READ, WRITE = 0, 1


def laws(*delays, **options):
    return read_laws(checked(AdaptOptions(delays=[str(path) for path in delays], **options)))


def chunk_log(path, requests=600, tasks=3, **columns):
    """Accesses of chunks of two sizes; reads of 0.1 s and more, writes twice as long, waits before the start."""
    random = np.random.default_rng(1)
    rows = requests * tasks
    request = np.repeat(np.arange(requests), tasks)
    write = request % 4 == 3
    size = np.where(request % 2, 1e6, 2e6)
    arrival = np.repeat(np.cumsum(random.exponential(1.0, requests)), tasks)
    start = arrival + random.exponential(5.0, rows)
    seconds = (0.1 + random.exponential(0.05, rows)) * np.where(write, 2, 1)
    table = {
        "request_id": [f"r{i}" for i in request],
        "arrival_s": arrival,
        "file_id": request,
        "op": np.where(write, "write", "read"),
        "bytes": size,
        "node_id": np.tile(np.arange(tasks), requests),
        "start_s": start,
        "finish_s": start + seconds,
    }
    table |= columns
    pq.write_table(pa.table({name: column for name, column in table.items() if column is not None}), path)
    return seconds, size, write


def test_names_are_built_in_laws():
    one, other = laws("correlated", "shifted_exp")
    assert one.name == "correlated" and one.of("write") is one.of("read") is BUILT_IN["correlated"]
    assert other.of("read") is BUILT_IN["shifted_exp"]


def test_a_table_has_laws_by_name_and_operation():
    near, far = laws(TRACES / "delays.parquet")
    assert (near.name, far.name) == ("near", "far")
    read, write = near.of("read"), near.of("write")
    assert read.kind == EXPONENTIAL
    assert mean_delay(read, 1e6) == pytest.approx(0.004 + 0.008 + 0.006 + 0.002)
    assert mean_delay(write, 1e6) == pytest.approx(0.009 + 0.012 + 0.015 + 0.003)
    assert far.of("read") == far.of("write")
    assert (far.of("read").kind, far.of("read").shape, far.of("read").rho) == (LOGNORMAL, 1.3, 0.2)
    assert quantile(far.of("read"), 1e6, np.array(0.5)) == pytest.approx(0.05 + 0.024 + 0.02 + 0.004)


def test_a_table_is_one_beside_a_mapping_of_the_trace_s_columns():
    near, _ = laws(TRACES / "delays.parquet", columns={"arrival_s": "at", "file_id": "key", "bytes": "size"})
    assert near.name == "near" and near.description == "delays table delays.parquet"


def test_columns_of_a_table_may_be_left_out(tmp_path):
    table = sample_tables.delays().select(["name", "law", "shift_s", "scale_s"]).slice(0, 1)
    pq.write_table(table, tmp_path / "delays.parquet")
    (law,) = laws(tmp_path / "delays.parquet")
    assert mean_delay(law.of("write"), 1e9) == pytest.approx(0.010)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "law",
            ["normal"] * 3,
            "column law, row 0: found 'normal'; allowed: shifted_exponential, shifted_lognormal",
        ),
        ("sigma", [None] * 3, "column sigma, row 2: found an empty cell; allowed: a number > 0"),
        ("sigma", [0.5, None, 1.0], "column sigma, row 0: found 0.5; allowed: an empty cell"),
        ("sigma", [None, None, 40.0], "column sigma, row 2: found 40.0; allowed: numbers up to 10"),
        ("rho", [None, 1.0, 0.2], "column rho, row 1: found 1.0; allowed: numbers from 0 to below 1"),
        ("rho", [None, -0.1, 0.2], "column rho, row 1: found -0.1; allowed: finite numbers >= 0"),
        ("scale_s", [-1.0, 1.0, 1.0], "column scale_s, row 0: found -1.0; allowed: finite numbers >= 0"),
        (
            "shift_s",
            [float("nan"), 1.0, 1.0],
            "column shift_s, row 0: found nan; allowed: finite numbers >= 0",
        ),
        ("op", ["read", "remove", None], "column op, row 1: found 'remove'; allowed: read or write"),
        ("op", ["read", "read", None], "column name, row 1: found 'near' again for read, first in row 0"),
        (
            "op",
            ["read", None, None],
            "column name, row 1: found 'near' again for both operations, first in row 0",
        ),
        ("op", [None, "write", None], "column name, row 1: found 'near' again for write, first in row 0"),
    ],
)
def test_mistakes_in_a_table_are_named(tmp_path, column, values, message):
    table = sample_tables.delays()
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    pq.write_table(table, tmp_path / "delays.parquet")
    with pytest.raises(UserError) as error:
        laws(tmp_path / "delays.parquet")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_delays_that_never_vary_are_refused(tmp_path):
    table = pa.table({"name": ["x"], "law": ["shifted_exponential"], "shift_s": [1.0], "scale_s": [0.0]})
    pq.write_table(table, tmp_path / "delays.parquet")
    with pytest.raises(UserError, match="column scale_s, row 0: found 0, .* allowed: delays that vary"):
        laws(tmp_path / "delays.parquet")


def test_a_log_tells_the_laws_of_its_reads_and_writes(tmp_path, caplog):
    seconds, size, write = chunk_log(tmp_path / "log.parquet")
    with caplog.at_level("INFO"):
        (found,) = laws(tmp_path / "log.parquet")
    assert found.name == "log.parquet"
    for op, chosen in (("read", ~write), ("write", write)):
        model = found.of(op)
        assert model.kind == EMPIRICAL
        for bytes_ in model.sizes:
            own = seconds[chosen & (size == bytes_)]
            # start to finish, not arrival to finish
            assert mean_delay(model, bytes_) == pytest.approx(own.mean(), rel=1e-3)
            assert quantile(model, bytes_, np.array(0.5)) == pytest.approx(np.median(own), rel=1e-2)
    np.testing.assert_array_equal(found.of("read").sizes, [1e6, 2e6])
    assert found.of("write").sizes == [1e6]
    assert "writes have one chunk size" in caplog.text


def test_batches_do_not_matter(tmp_path):
    """Requests go on from one record batch to the next."""
    chunk_log(tmp_path / "log.parquet", requests=300)
    table = pq.read_table(tmp_path / "log.parquet")
    whole, pieces = adapt_logs._Sample(0), adapt_logs._Sample(0)
    code = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(900) // 3 % 4 == 3).cast(pa.int8()), ["read", "write"]
    )
    table = table.set_column(3, "op", code)
    for sample, rows in ((whole, 900), (pieces, 7)):
        for batch in table.to_batches(max_chunksize=rows):
            sample.add(batch)
    one, other = whole.delays("x"), pieces.delays("x")
    for op in ("read", "write"):
        np.testing.assert_array_equal(one[op].seconds, other[op].seconds)
        np.testing.assert_array_equal(one[op].request, other[op].request)
    requests, tasks = np.unique(one["read"].request, return_counts=True)
    np.testing.assert_array_equal(requests, np.flatnonzero(np.arange(300) % 4 != 3))
    assert np.all(tasks == 3)


def test_of_a_long_log_whole_requests_are_sampled(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(adapt_logs, "_MOST_DELAYS", 1000)
    chunk_log(tmp_path / "log.parquet", requests=4000)
    with caplog.at_level("INFO"):
        found = adapt_logs.task_delays(open_trace(tmp_path / "log.parquet"), 0)
    rows = sum(len(delays.bytes) for delays in found.values())
    assert 400 < rows <= 1000
    for delays in found.values():
        assert np.all(np.unique(delays.request, return_counts=True)[1] == 3)
    assert "those of 1 in 16 requests" in caplog.text
    # a quarter of the requests are writes, early and late ones alike
    requests = np.unique(found["read"].request)
    assert 0.6 < len(requests) / (rows / 3) < 0.9
    assert 0.3 < np.mean(requests < 2000) < 0.7


def test_accesses_without_both_times_are_left_out(tmp_path, caplog):
    start = np.arange(1800) // 3 * 1.0
    finish = [None if i % 5 == 0 else start[i] + 1 + i % 7 for i in range(1800)]
    chunk_log(tmp_path / "log.parquet", arrival_s=start, start_s=start, finish_s=finish, op=["read"] * 1800)
    with caplog.at_level("INFO"):
        (found,) = laws(tmp_path / "log.parquet")
    assert "360 of 1800 accesses" in caplog.text
    assert mean_delay(found.of("read"), 1e6) == pytest.approx(4, rel=0.05)
    with caplog.at_level("INFO"):
        assert found.of("write") is found.of("read")
    assert "log.parquet has none of writes, which take those of reads" in caplog.text


def test_logs_of_other_columns_are_mapped(tmp_path):
    chunk_log(tmp_path / "log.parquet", op=None)
    table = pq.read_table(tmp_path / "log.parquet").rename_columns(
        ["id", "at", "key", "size", "disk", "begin", "end"]
    )
    pq.write_table(table, tmp_path / "mapped.parquet")
    columns = {"request_id": "id", "arrival_s": "at", "file_id": "key", "bytes": "size", "node_id": "disk"}
    (found,) = laws(tmp_path / "mapped.parquet", columns=columns | {"start_s": "begin", "finish_s": "end"})
    np.testing.assert_array_equal(found.of("read").sizes, [1e6, 2e6])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"start_s": None}, "found no service times; allowed: a log with start_s and finish_s"),
        ({"start_s": None, "finish_s": None}, "found no service times"),
        ({"bytes": np.zeros(1800)}, "found too few accesses with start_s and finish_s; allowed: 100 or more"),
    ],
)
def test_a_log_without_delays_is_refused(tmp_path, columns, message):
    chunk_log(tmp_path / "log.parquet", **columns)
    with pytest.raises(UserError) as error:
        laws(tmp_path / "log.parquet")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_delays_of_nothing_are_refused(tmp_path):
    times = np.arange(1800.0)
    chunk_log(tmp_path / "log.parquet", arrival_s=times, start_s=times, finish_s=times)
    with pytest.raises(UserError, match="found reads whose finish_s is start_s"):
        laws(tmp_path / "log.parquet")


def test_an_unknown_name_lists_those_that_are_known():
    with pytest.raises(
        UserError, match="delays: found 'exp'; allowed: shifted_exp, shifted_lognormal, correlated, or"
    ):
        laws("exp")


def test_two_laws_of_one_name_are_refused(tmp_path):
    table = pa.table(
        {"name": ["shifted_exp"], "law": ["shifted_exponential"], "shift_s": [1.0], "scale_s": [1.0]}
    )
    pq.write_table(table, tmp_path / "delays.parquet")
    with pytest.raises(UserError, match="found two laws of the name 'shifted_exp'"):
        laws("shifted_exp", tmp_path / "delays.parquet")


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    out = tmp_path_factory.mktemp("analysed")
    options = AnalyzeOptions(trace=str(TRACES / "requests_chunks.parquet"), out=str(out), figures=False)
    analyze_study(options, Console(file=io.StringIO()))
    return out


def test_an_analysed_log_tells_the_affine_laws_of_its_nodes(analysed):
    (found,) = laws(analysed)
    model = found.of("read")
    assert found.name == analysed.name and model.kind == EXPONENTIAL
    slow = np.mean(sample_tables.SLOWDOWN)
    for size in (262144, 1048576):
        fixed = slow * (sample_tables.DELTA_S + sample_tables.DELTA_S_PER_BYTE * size)
        random = slow * (sample_tables.PSI_S + sample_tables.PSI_S_PER_BYTE * size)
        assert mean_delay(model, size) == pytest.approx(fixed + random, rel=0.05)
    # the nodes of the sample are independent
    assert model.rho < 0.05


def analysis_of(path, out):
    """The results of an analysis of a log."""
    analyze_study(AnalyzeOptions(trace=str(path), out=str(out), figures=False), Console(file=io.StringIO()))
    return out


@pytest.mark.parametrize(("share", "misses"), [(0.0, False), (0.05, True)])
def test_an_analysis_that_misses_what_it_measured_is_said(tmp_path, caplog, share, misses):
    """Of reads of 0.1 s and an exponential of 0.05 s on average, one in twenty takes 2 s longer."""
    random = np.random.default_rng(2)
    start = np.repeat(np.arange(3000) * 10.0, 3)
    seconds = 0.1 + random.exponential(0.05, 9000) + 2.0 * (random.random(9000) < share)
    columns = {"op": ["read"] * 9000, "arrival_s": start, "start_s": start, "finish_s": start + seconds}
    chunk_log(tmp_path / "log.parquet", requests=3000, **columns)
    folder = analysis_of(tmp_path / "log.parquet", tmp_path / "out")
    with caplog.at_level("INFO"):
        (found,) = laws(folder)
    # without the worst 10 %
    law = mean_delay(found.of("read"), 1e6)
    assert law == pytest.approx(0.15, rel=0.1)
    said = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(said) == misses
    if misses:
        assert said[0].startswith(
            f"delays={folder}: the affine law of reads misses the delays measured: its mean by -"
        )
        off, ratio = (float(word) for word in re.findall(r"by ([-+]\d+) %.* is ([\d.]+) times", said[0])[0])
        assert off == pytest.approx(100 * (0.15 / 0.25 - 1), abs=4)
        square = 0.15**2 + 0.05**2
        assert ratio == pytest.approx((0.95 * square + 0.05 * (2.15**2 + 0.05**2)) / square, rel=0.2)
        assert "delays=LOG has the delays as measured" in said[0]


def test_nodes_of_one_chunk_size_are_not_among_those_of_the_law(tmp_path, caplog):
    node = np.tile(np.arange(3), 3000)
    size = np.where(node == 2, 1e6, np.where(np.repeat(np.arange(3000), 3) % 2, 1e6, 2e6))
    chunk_log(tmp_path / "log.parquet", requests=3000, op=["read"] * 9000, bytes=size)
    folder = analysis_of(tmp_path / "log.parquet", tmp_path / "out")
    with caplog.at_level("INFO"):
        (found,) = laws(folder)
    assert found.description == "affine laws of 2 nodes, averaged"
    assert "left out: 1 node of one chunk size" in caplog.text


def test_results_of_another_kind_are_refused(analysed, tmp_path):
    log = TRACES / "requests_objects.parquet"
    options = AnalyzeOptions(trace=str(log), out=str(tmp_path / "a"), figures=False)
    analyze_study(options, Console(file=io.StringIO()))
    with pytest.raises(UserError, match="found no laws of service times"):
        laws(tmp_path / "a")
    with pytest.raises(UserError, match="no file|runs"):
        (tmp_path / "b" / "runs").mkdir(parents=True)
        laws(tmp_path / "b")


def test_a_fingerprint_depends_on_the_law_and_not_on_its_name():
    one = BUILT_IN["shifted_exp"]
    assert fingerprint_of(one) == fingerprint_of(one._replace(name="x"))
    assert fingerprint_of(one) != fingerprint_of(one._replace(scale_s=1.0))
    sampled = one._replace(quantiles=np.ones((1, 3)), sizes=np.ones(1))
    assert fingerprint_of(sampled) != fingerprint_of(sampled._replace(quantiles=np.full((1, 3), 2.0)))
