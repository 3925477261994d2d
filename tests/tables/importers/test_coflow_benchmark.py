"""Coflow-Benchmark text: what its lines become, the real trace of Facebook, and every way in which a line is wrong."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sample_coflows
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.importers.coflow_benchmark import read_coflow_benchmark, recognises
from ecjax.tables.importers.detect import read_head

FACEBOOK = Path(__file__).parents[4] / "shared" / "data" / "FB2010-1Hr-150-0.txt"
PORT_BYTES_PER_S = 125e6
SAMPLE = Path(__file__).parents[3] / "traces" / "coflows.txt"
SMALL = "4 3\n7 0 2 0 1 2 2:3.0 0:1\n3 1500 1 3 1 3:2.5\n5 1500 1 1 1 0:4\n"


def read(tmp_path, text, **options):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    return read_coflow_benchmark(path, **options)


def rows(found):
    return list(zip(*(found.table[name].to_pylist() for name in found.table.column_names), strict=True))


def test_a_reducer_gets_its_megabytes_in_equal_parts_from_every_mapper(tmp_path):
    found = read(tmp_path, SMALL)
    assert found.table.column_names == ["coflow_id", "arrival_s", "src", "dst", "bytes"]
    assert rows(found) == [
        (7, 0.0, 0, 2, 1.5e6),
        (7, 0.0, 1, 2, 1.5e6),
        (7, 0.0, 0, 0, 0.5e6),
        (7, 0.0, 1, 0, 0.5e6),
        (3, 1.5, 3, 3, 2.5e6),
        (5, 1.5, 1, 0, 4e6),
    ]
    np.testing.assert_array_equal(found.first_flow, [0, 4, 5, 6])
    assert found.coflow_ids.to_pylist() == [7, 3, 5]
    assert found.ports.to_pylist() == [0, 1, 2, 3]


@st.composite
def benchmarks(draw):
    """Ports and coflows (id, arrival in ms, mappers, reducers with megabytes) in order of arrival."""
    ports = draw(st.integers(1, 6))
    port, size = st.integers(0, ports - 1), st.integers(1, 400).map(lambda quarters: quarters / 4)
    ids = draw(st.lists(st.integers(0, 10**12), min_size=1, max_size=6, unique=True))
    arrivals = sorted(draw(st.lists(st.integers(0, 20), min_size=len(ids), max_size=len(ids))))
    several = st.lists(port, min_size=1, max_size=5)
    sized = st.lists(st.tuples(port, size), min_size=1, max_size=5)
    return ports, [(i, at, draw(several), draw(sized)) for i, at in zip(ids, arrivals, strict=True)]


def text_of(ports, coflows):
    lines = [f"{ports} {len(coflows)}"]
    for name, arrival, mappers, reducers in coflows:
        words = [name, arrival, len(mappers), *mappers, len(reducers), *(f"{p}:{mb}" for p, mb in reducers)]
        lines.append(" ".join(map(str, words)))
    return "\n".join(lines) + "\n"


@given(benchmarks(), st.randoms(use_true_random=False))
def test_flows_are_those_of_a_plain_reading_in_any_order_of_lines(tmp_path_factory, drawn, random):
    ports, coflows = drawn
    folder = tmp_path_factory.mktemp("drawn")
    found = read(folder, text_of(ports, coflows))
    expected = [
        (name, arrival / 1000, mapper, reducer, megabytes * 1e6 / len(mappers))
        for name, arrival, mappers, reducers in coflows
        for reducer, megabytes in reducers
        for mapper in mappers
    ]
    assert rows(found) == expected
    total = 1e6 * sum(megabytes for *_, reducers in coflows for _, megabytes in reducers)
    np.testing.assert_allclose(np.sum(found.table["bytes"].to_numpy()), total, rtol=1e-12)
    shuffled = random.sample(coflows, len(coflows))
    sorted_ = read(folder, text_of(ports, shuffled), sort=True)
    in_time = sorted(shuffled, key=lambda coflow: coflow[1])
    assert rows(sorted_) == rows(read(folder, text_of(ports, in_time)))


def test_compressed_with_blank_lines_and_without_a_last_line_end(tmp_path):
    path = tmp_path / "trace.txt.gz"
    path.write_bytes(gzip.compress(SMALL.replace("\n", "\r\n\r\n").strip().encode()))
    assert rows(read_coflow_benchmark(path)) == rows(read(tmp_path, SMALL))


def test_it_is_recognised_by_its_first_line(tmp_path):
    for text, expected in (
        (SMALL, True),
        ("4 x\n", False),
        ("1,2\n", False),
        ("", False),
        ("1 2 3\n", False),
    ):
        (tmp_path / "head.txt").write_text(text)
        assert recognises(read_head(tmp_path / "head.txt")) is expected


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: found 'no words'; allowed: the numbers of ports and of coflows, both above 0"),
        ("4\n", "line 1: found '4'; allowed: the numbers of ports and of coflows, both above 0"),
        ("0 3\n", "line 1: found '0 3'; allowed: the numbers of ports and of coflows, both above 0"),
        ("4 2\n1 0 1 0 1 0:1\n", "found 1 coflows; allowed: 2, as line 1 says"),
        ("4 1\n1 0\n", "line 2: found 2 words; allowed: id arrival_ms M mappers R reducers"),
        ("4 1\na 0 1 0 1 0:1\n", "line 2: found 'a' as the coflow's id; allowed: a whole number"),
        ("4 1\n1 x 1 0 1 0:1\n", "line 2: found 'x' as arrival_ms; allowed: a number, at least 0"),
        ("4 1\n1 nan 1 0 1 0:1\n", "line 2: found 'nan' as arrival_ms; allowed: a number, at least 0"),
        ("4 1\n1 -1 1 0 1 0:1\n", "line 2: found '-1' as arrival_ms; allowed: a number, at least 0"),
        (
            "4 2\n1 0 1 0 1 0:1\n\n1 0 1 0 1 0:1\n",
            "line 4: found coflow 1 again; allowed: every coflow once",
        ),
        (
            "4 2\n1 5 1 0 1 0:1\n2 4 1 0 1 0:1\n",
            "line 3: found arrival_ms 4 after 5; allowed: coflows in order of arrival (or give sort=true)",
        ),
        ("4 1\n1 0 0 1 0:1\n", "line 2: found '0' as the number of mappers; allowed: a whole number above 0"),
        (
            "4 1\n1 0 2 0\n",
            "line 2: found 1 words after 2 mappers were announced; allowed: at least 2",
        ),
        (
            "4 1\n1 0 1 0\n",
            "line 2: found the line's end as the number of reducers; allowed: a whole number above 0",
        ),
        (
            "4 1\n1 0 1 0 2 0:1\n",
            "line 2: found 1 words after 2 reducers were announced; allowed: at least 2",
        ),
        ("4 1\n1 0 1 0 1 0:1 1:1\n", "line 2: found '1:1' after 1 reducers; allowed: the line's end"),
        ("4 1\n1 0 1 4 1 0:1\n", "line 2: found port '4'; allowed: 0 to 3"),
        ("4 1\n1 0 1 0 1 -1:1\n", "line 2: found port '-1'; allowed: 0 to 3"),
        ("4 1\n1 0 1 0 1 0\n", "line 2: found reducer '0'; allowed: port:megabytes"),
        ("4 1\n1 0 1 0 1 0:x\n", "line 2: found 'x' as megabytes; allowed: a number, above 0"),
        ("4 1\n1 0 1 0 1 0:inf\n", "line 2: found 'inf' as megabytes; allowed: a number, above 0"),
        (
            "4 1\n1 0 1 0 1 0:0.0\n",
            "line 2: found reducer '0:0.0'; allowed: megabytes above 0, at most 1e+24",
        ),
    ],
)
def test_malformed_lines(tmp_path, text, message):
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert str(error.value) in (
        f"{tmp_path / 'trace.txt'}, {message}",
        f"{tmp_path / 'trace.txt'}: {message}",
    )


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_coflow_benchmark(tmp_path / "none.txt")
    with pytest.raises(UserError, match="found a folder; allowed: one file of Coflow-Benchmark text"):
        read_coflow_benchmark(tmp_path)
    (tmp_path / "binary.txt").write_bytes(b"4 1\n\xff\xfe\n")
    with pytest.raises(UserError, match="damaged or of another format"):
        read_coflow_benchmark(tmp_path / "binary.txt")
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(SMALL.encode())[:20])
    with pytest.raises(UserError, match=r"cut\.txt\.gz"):
        read_coflow_benchmark(tmp_path / "cut.txt.gz")


@pytest.mark.skipif(not FACEBOOK.exists(), reason="needs ../shared/data")
def test_the_trace_of_facebook():
    """Published counts, and the times that coflows take alone, of 8 ms per megabyte on the fullest of their ports."""
    found = read_coflow_benchmark(FACEBOOK)
    flows = found.table.to_pandas()
    assert len(found.ports) == 150 and len(found.coflow_ids) == 526 and len(flows) == 706_397
    np.testing.assert_allclose(flows["bytes"].sum(), 35_533_534e6, rtol=1e-12)
    assert flows.groupby("coflow_id")["bytes"].sum().max() == pytest.approx(8.50e12, rel=1e-3)
    loads = [
        flows.groupby(["coflow_id", side])["bytes"].sum().groupby("coflow_id").max()
        for side in ("src", "dst")
    ]
    alone = pd.concat(loads, axis=1).max(axis=1) / PORT_BYTES_PER_S
    assert alone.mean() == pytest.approx(14.721, abs=5e-4)
    assert alone.quantile(0.95) == pytest.approx(35.524, abs=5e-4)


def test_the_sample_is_what_its_script_writes():
    assert SAMPLE.read_text().splitlines() == list(sample_coflows.lines())


@pytest.mark.parametrize("path", [SAMPLE, FACEBOOK], ids=["sample", "facebook"])
def test_classes_have_their_published_shares(path):
    """Of coflows and of bytes: Varys, SIGCOMM 2014."""
    if not path.exists():
        pytest.skip(f"{path} is not here")
    found = read_coflow_benchmark(path)
    size = found.table["bytes"].to_numpy()
    starts = found.first_flow[:-1]
    short, narrow = np.maximum.reduceat(size, starts) < 5e6, np.diff(found.first_flow) <= 50
    total = np.add.reduceat(size, starts)
    for members, share, byte_share in [
        (short & narrow, 0.60, 0.0001),
        (~short & narrow, 0.16, 0.0011),
        (short & ~narrow, 0.12, 0.0088),
        (~short & ~narrow, 0.12, 0.99),
    ]:
        assert members.mean() == pytest.approx(share, abs=0.015)
        assert total[members].sum() / total.sum() == pytest.approx(byte_share, rel=0.1)


def test_the_sample_loads_ports_as_the_trace_does():
    found = read_coflow_benchmark(SAMPLE)
    load = found.table["bytes"].to_numpy().sum() / PORT_BYTES_PER_S / len(found.ports) / found.arrival_s[-1]
    assert load == pytest.approx(35_533_534e6 / PORT_BYTES_PER_S / 150 / 3600, rel=0.05)


def test_a_byte_order_mark_is_no_word(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_bytes(b"\xef\xbb\xbf4 1\n1 0 1 0 1 1:5\n")
    assert read_coflow_benchmark(path).table["bytes"].to_pylist() == [5e6]


def test_sizes_that_no_number_holds_are_refused(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text("4 1\n1 0 1 0 1 1:1e300\n")
    with pytest.raises(
        UserError, match="line 2: found reducer '1:1e300'; allowed: megabytes above 0, at most 1e"
    ):
        read_coflow_benchmark(path)
