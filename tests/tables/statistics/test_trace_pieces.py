import pickle
import re
from bisect import bisect_left

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace
from ecjax.tables.statistics.scan import Merge, scan, scan_piece

NAMES = ("request_id", "arrival_s", "file_id", "op", "bytes", "node_id", "start_s", "finish_s")
OFTEN = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))


def log(seed, rows, *, tick, ordered, interleaved):
    """Chunk accesses; nodes first-come first-served, or (not ``ordered``) with some rows out of order or unfinished."""
    random = np.random.default_rng(seed)
    clock, request, free, found = 0.0, 0, {}, []
    while len(found) < rows:
        clock += random.exponential(1.0) * (random.random() < 0.7)
        request = int(random.integers(4)) if interleaved else request + 1
        file, write = (request if interleaved else int(random.integers(6))), bool(random.random() < 0.3)
        if interleaved:
            write = request == 0
        arrival = np.floor(clock) if tick else clock
        for node in random.permutation(5)[: random.integers(1, 5)]:
            start = max(arrival, free.get(node, 0.0))
            free[node] = start + random.exponential(0.4)
            finish = free[node]
            if not ordered and random.random() < 0.05:
                finish = np.nan if random.random() < 0.3 else start + 0.5 * (finish - start)
            size = float(random.integers(0, 5)) * 1000
            found.append(
                (request, arrival, file, "write" if write else "read", size, int(node), start, finish)
            )
    return pd.DataFrame(found[:rows], columns=NAMES)


def written(folder, frame, groups, files):
    """A folder of Parquet files with row groups of these sizes, in turn."""
    for old in folder.glob("*.parquet"):
        old.unlink()
    ends = np.cumsum(np.resize(groups, len(frame)))
    cuts = [0, *(int(end) for end in ends[ends < len(frame)]), len(frame)]
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pieces = [table.slice(a, b - a) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    for number, own in enumerate(np.array_split(np.arange(len(pieces)), files)):
        with pq.ParquetWriter(folder / f"{number}.parquet", table.schema) as writer:
            for place in own:
                writer.write_table(pieces[place])
    return folder


def merged(trace, count, seed=0):
    merge = Merge()
    for piece in trace.pieces(count):
        part = scan_piece(pickle.loads(pickle.dumps(piece)), seed)
        # as a cluster does it: arrays come in memory that is shared and read-only
        buffers = []
        packed = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        merge.add(pickle.loads(packed, buffers=[bytes(buffer.raw()) for buffer in buffers]))
    return merge.finish()


def close(found, expected, scale=0.0):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale)


def same(found, expected):
    """Integers, ids and words exactly, floats to 1e-12."""
    for name in (
        "rows",
        "requests",
        "reads",
        "writes",
        "service_reason",
        "service_inferred",
        "returned",
        "file_ids",
        "node_ids",
    ):
        assert getattr(found, name) == getattr(expected, name), name
    close(found.bytes, expected.bytes)
    close(found.files, expected.files, expected.arrivals.span_s**2)
    np.testing.assert_array_equal(found.files[:, [0, 1, 5, 6]], expected.files[:, [0, 1, 5, 6]])
    np.testing.assert_array_equal(found.chunks_read, expected.chunks_read)
    np.testing.assert_array_equal(found.node_accesses, expected.node_accesses)
    for name in ("quantity", "node", "write", "bin_cell", "bin"):
        np.testing.assert_array_equal(getattr(found.cells, name), getattr(expected.cells, name))
    close(found.cells.bytes, expected.cells.bytes)
    # to the last bit: fits magnify roundings
    np.testing.assert_array_equal(found.cells.bin_sums, expected.cells.bin_sums)
    # central sums vanish for delays that do not vary: they are held against those of raw powers
    moments, power = expected.cells.moments, np.arange(7)
    close(found.cells.moments[:, :2], moments[:, :2])
    largest = np.abs(expected.cells.bin_sums[:, 1]).max(initial=0.0)
    assert np.all(np.abs(found.cells.moments - moments) <= 1e-12 * moments[:, :1] * (1 + largest) ** power)
    close(found.correlation, expected.correlation)
    mine, other = found.arrivals, expected.arrivals
    for name in ("count", "ties", "first_s", "last_s", "span_s"):
        assert getattr(mine, name) == getattr(other, name), name
    close(mine.interarrival_cv, other.interarrival_cv)
    for a, b in zip(
        (*mine.block_distances(), *mine.time_bins()),
        (*other.block_distances(), *other.time_bins()),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    mine, other = found.times, expected.times
    assert (mine.class_count, mine.step_s) == (other.class_count, other.step_s)
    assert list(mine.classes) == list(other.classes)
    np.testing.assert_array_equal(mine.silences, other.silences)
    pairs = zip(
        (mine.reads, mine.writes, *mine.classes.values()),
        (other.reads, other.writes, *other.classes.values()),
        strict=True,
    )
    for a, b in pairs:
        assert (a is None) == (b is None)
        for values, others in zip(a or (), b or (), strict=True):
            np.testing.assert_array_equal(values, others)


KINDS = {
    "logged": {},
    "inferred": {"without": ["start_s"]},
    "unfinished": {"without": ["start_s"], "ordered": False},
    "half logged": {"ordered": False},
    "rates alone": {"without": ["start_s", "finish_s"], "strings": True},
    "strings": {"strings": True, "without": ["start_s"]},
    "interleaved": {"interleaved": True, "strings": True},
    "ticks": {"tick": True, "without": ["start_s"]},
    "timestamps": {"timestamps": True},
    "classes": {"classes": True, "without": ["start_s"]},
    "classes, rates alone": {
        "classes": True,
        "strings": True,
        "tick": True,
        "without": ["node_id", "start_s", "finish_s"],
    },
    "objects": {"without": ["node_id", "start_s"]},
    "objects, logged": {"without": ["node_id"], "tick": True, "strings": True},
    "objects, rates alone": {"without": ["node_id", "start_s", "finish_s", "request_id"]},
}


def frame_of(kind, seed, rows):
    options = {"tick": False, "ordered": True, "interleaved": False} | KINDS[kind]
    names = ("without", "strings", "timestamps", "classes")
    without, strings, stamps, classes = (options.pop(name, None) for name in names)
    frame = log(seed, rows, **options)
    if classes:
        # by row: a request is of the class of its first row; some are of none
        frame["service_class"] = np.array(["gold", "silver", "bronze", None], object)[
            frame["bytes"].astype(int) % 7 % 4
        ]
    if kind == "objects, rates alone":
        without = without[:-1]  # the schema asks for request ids
    for name in ("request_id", "file_id", "node_id") if strings else ():
        frame[name] = name[0] + frame[name].astype(str)
    for name in ("arrival_s", "start_s", "finish_s") if stamps else ():
        frame[name] = pd.Timestamp("2024-02-03T04:05:06.789") + pd.to_timedelta(
            np.round(frame[name] * 1e6), unit="us"
        )
    return frame.drop(columns=without or [])


@pytest.mark.parametrize("kind", KINDS)
@OFTEN
@given(data=st.data())
def test_pieces_merge_to_what_one_pass_gives(tmp_path_factory, kind, data):
    folder = tmp_path_factory.getbasetemp() / "pieces"
    folder.mkdir(exist_ok=True)
    frame = frame_of(kind, data.draw(st.integers(0, 10**6)), data.draw(st.integers(1, 70)))
    groups = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    trace = open_trace(written(folder, frame, groups, data.draw(st.integers(1, 3))))
    seed = data.draw(st.integers(0, 3))
    same(merged(trace, data.draw(st.integers(2, 12)), seed), scan(trace, seed))


def renamed(frame):
    return frame.rename(columns={"arrival_s": "ts", "file_id": "key", "bytes": "size", "node_id": "host"})


@OFTEN
@given(data=st.data())
def test_mapped_columns_are_cut_too(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "mapped"
    folder.mkdir(exist_ok=True)
    frame = renamed(log(data.draw(st.integers(0, 99)), 50, tick=True, ordered=True, interleaved=False))
    frame["ts"] = (frame["ts"] + 1_700_000_000).astype(np.int64)
    trace = open_trace(
        written(folder, frame, data.draw(st.lists(st.integers(1, 9), min_size=1)), 2),
        columns={"arrival_s": "ts", "file_id": "key", "bytes": "size", "node_id": "host"},
    )
    same(merged(trace, data.draw(st.integers(2, 12))), scan(trace))


def spoiled(frame, row, how):
    frame = frame.copy()
    if how == "operation":
        frame.loc[row, "op"] = "delete"
    elif how == "bytes":
        frame.loc[row, "bytes"] = -1.0
    elif how == "file":
        frame.loc[row, "file_id"] = 77
    elif how == "order":
        frame.loc[row, "arrival_s"] = -5.0
    elif how == "finish":
        frame.loc[row, "finish_s"] = -9.0
    else:
        frame.loc[row, "bytes"] = np.nan
    return frame


def mistake_of(read, *arguments):
    with pytest.raises(UserError) as error:
        read(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@OFTEN
@given(data=st.data())
def test_of_several_mistakes_the_first_is_told_wherever_it_is_cut(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "mistakes"
    folder.mkdir(exist_ok=True)
    frame = log(data.draw(st.integers(0, 99)), 40, tick=False, ordered=True, interleaved=False)
    hows = st.sampled_from(["operation", "bytes", "file", "order", "finish", "missing"])
    for row, how in data.draw(st.lists(st.tuples(st.integers(1, 39), hows), min_size=1, max_size=3)):
        frame = spoiled(frame, row, how)

    def told(rows):
        """What is said of the first rows alone, in one batch; None where nothing is."""
        try:
            scan(open_trace(written(folder, frame[:rows], [1000], 1)))
        except UserError as error:
            return re.sub("mistakes/0.parquet", "mistakes", str(error))
        return None

    # of more rows something is said, too
    first = bisect_left(range(1, 41), True, key=lambda rows: told(rows) is not None) + 1
    expected = told(first) if first <= 40 else None
    groups = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    trace = open_trace(written(folder, frame, groups, 2))
    if expected is None:
        same(merged(trace, 7), scan(trace))
    else:
        assert f"row {first - 1}" in expected
        assert mistake_of(scan, trace) == expected
        assert mistake_of(merged, trace, data.draw(st.integers(2, 12))) == expected


def test_pieces_are_about_equal_and_follow_each_other(tmp_path):
    frame = log(0, 1000, tick=False, ordered=True, interleaved=False)
    trace = open_trace(written(tmp_path, frame, [7, 13], 3))
    for count in (1, 2, 5, 31):
        pieces = trace.pieces(count)
        assert len(pieces) == count and sum(piece.rows for piece in pieces) == 1000
        assert [piece.first_row for piece in pieces] == list(
            np.cumsum([0, *(piece.rows for piece in pieces)])[:-1]
        )
        assert all(abs(piece.rows - 1000 / count) <= 13 for piece in pieces)
        rows = pa.Table.from_batches([b for piece in pieces for b in piece.batches()])
        assert rows.equals(pa.Table.from_batches(list(trace.batches())))
    assert len(trace.pieces(10**6)) == 100


def test_a_piece_names_its_files_by_whole_paths(tmp_path, monkeypatch):
    frame = log(0, 30, tick=False, ordered=True, interleaved=False)
    (tmp_path / "log").mkdir()
    written(tmp_path / "log", frame, [10], 1)
    monkeypatch.chdir(tmp_path)
    pieces = open_trace("log").pieces(3)
    monkeypatch.chdir(tmp_path.parent)
    assert scan_piece(pieces[2]).rows == 10
    (tmp_path / "log" / "0.parquet").unlink()
    lost = scan_piece(pieces[0])
    assert str(lost.mistake) == "log/0.parquet: No such file or directory"


def test_what_cannot_be_cut(tmp_path):
    frame = log(0, 30, tick=False, ordered=True, interleaved=False)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet", index=False)
    assert open_trace(tmp_path / "log.csv").pieces(2) is None
    assert open_trace(tmp_path / "log.parquet", sort=True).pieces(2) is None
    assert len(open_trace(tmp_path / "log.parquet").pieces(2)) == 1
