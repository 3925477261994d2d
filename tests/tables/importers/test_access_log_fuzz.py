import json
import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
import sample_logs
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ecjax.tables.importers.access_logs import PROFILES
from ecjax.tables.importers.access_logs.importer import columns_of, separator_of
from ecjax.tables.importers.access_logs.json_fields import hash_paths, json_fields
from ecjax.tables.importers.access_logs.lines import _block
from ecjax.tables.importers.access_logs.names import siphash
from ecjax.tables.importers.access_logs.profile import CLF_TIME, ISO_TIME, Json, Text
from ecjax.tables.importers.access_logs.reading import LineReader
from ecjax.tables.importers.access_logs.values import numbers, times
from ecjax.tables.importers.rejects import Tally

ACCESSES = sample_logs.hour(requests=6)
JUNK = st.one_of(
    st.binary(max_size=60).map(lambda text: text.replace(b"\n", b"")),
    st.text(alphabet='{}[]",:\\ -/%01ab', max_size=60).map(str.encode),
)


def reader_of(name, lines, salt=None):
    shape = PROFILES[name].shape
    if not isinstance(shape, Text):
        return LineReader(PROFILES[name], salt)
    columns = columns_of(lines[0], shape) if shape.header else None
    header = "" if columns is None else lines[0]
    return LineReader(PROFILES[name], salt, separator_of(lines[0], shape), columns, header)


@pytest.mark.parametrize("name", sample_logs.LOGS)
@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_malformed_lines_are_counted_and_hide_no_other(name, data):
    lines = list(sample_logs.LOGS[name][1](ACCESSES))
    reader = reader_of(name, lines)
    tally = Tally(1.0)
    sound = reader.accesses(_block("\n".join(lines).encode(), 1)[0], "", tally)
    mixed = [line.encode() for line in lines]
    for junk in data.draw(st.lists(JUNK, max_size=4)):
        mixed.insert(data.draw(st.integers(1, len(mixed))), junk)
    for _ in range(data.draw(st.integers(0, 3))):  # a line that was cut, beside the whole one
        line = data.draw(st.sampled_from(lines)).encode()
        mixed.append(line[: data.draw(st.integers(0, len(line)))])
    tally = Tally(1.0)
    block = _block(b"\n".join(mixed), 1)[0]
    found = reader.accesses(block, "", tally)
    headers = sum(bool(reader.header) and block.text(n) == reader.header for n in range(len(block.begins)))
    others = sum(tally.others.values())
    lists = isinstance(PROFILES[name].shape, Json)
    brackets = sum(lists and not block.text(n).strip("[], \t\r") for n in range(len(block.begins)))
    assert tally.lines in (len(block.begins), len(block.begins) - brackets)
    assert found.num_rows + tally.rejected + others + tally.unsuccessful + headers == tally.lines
    ticks = found["ticks"].to_pylist()
    assert all(
        ticks.count(tick) >= sound["ticks"].to_pylist().count(tick) for tick in sound["ticks"].to_pylist()
    )
    assert (found["bytes"].to_numpy() >= 0).all()


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "c_d", "É"]), inner, max_size=3),
    ),
    max_leaves=8,
)
PATHS = ("a", "b", "a.b", "a.cd", "cd.a")


def scalars(value, path, into):
    for name, inner in value.items():
        place = f"{path}.{name}".removeprefix(".").replace("_", "")
        if isinstance(inner, dict):
            scalars(inner, place, into)
        elif inner is not None and not isinstance(inner, list):
            into[place] = inner


@settings(max_examples=100, deadline=None)
@given(value=st.dictionaries(st.sampled_from(["a", "b", "c_d"]), VALUES, max_size=3), ascii=st.booleans())
def test_json_is_read_as_by_json_loads(value, ascii):
    line = json.dumps(value, ensure_ascii=ascii).encode()
    data = np.frombuffer(line, np.uint8)
    hashes = np.empty(len(PATHS), np.uint64)
    text = "".join(PATHS).encode()
    hash_paths(np.frombuffer(text, np.uint8), np.cumsum([0, *map(len, PATHS)]), hashes)
    spans, states = np.empty((1, len(PATHS), 2), np.int64), np.empty(1, np.int8)
    begins, ends = np.array([0]), np.array([len(line)])
    json_fields(data, begins, ends, hashes, np.arange(len(PATHS)), spans, states, np.empty(1, bool))
    expected = {}
    scalars(json.loads(line), "", expected)
    assert states[0] == 0
    for slot, path in enumerate(PATHS):
        begin, end = spans[0, slot]
        assert (begin >= 0) == (path in expected)
        if begin >= 0:
            raw = line[begin:end]
            quoted = line[begin - 1 : begin] == b'"'
            assert json.loads(b'"' + raw + b'"' if quoted else raw) == expected[path]
    cut = np.array([len(line) - 1])
    json_fields(data, begins, cut, hashes, np.arange(len(PATHS)), spans, states, np.empty(1, bool))
    assert states[0] != 0


def read_number(text, scale=1.0):
    data = np.frombuffer(text.encode(), np.uint8)
    values, wrong = np.empty(1), np.empty(1, bool)
    numbers(data, np.array([[0, len(data)]]), scale, values, wrong)
    return None if wrong[0] else values[0]


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(
        st.integers(0, 10**15).map(str),
        st.floats(0, 1e15).map(repr),
        st.decimals(0, 10**6, places=4).map(str),
    )
)
def test_numbers_are_read_as_by_python(text):
    assert read_number(text) == pytest.approx(float(text), rel=1e-14, abs=1e-300)


def test_units_and_what_is_no_number():
    assert read_number("1500ns", 1.0) == 1.5e-6 and read_number("7", 1e-3) == 0.007
    assert read_number("2.5ms") == 0.0025 and read_number("rt=0.012") == 0.012
    assert read_number("12", 0.0) == 1.2e-5 and read_number("12.0", 0.0) == 12.0
    assert math.isnan(read_number("-")) and math.isnan(read_number(""))
    for text in ("x", "-3", "1.2.3", "12 s", "1e999", "5 ", "0x10"):
        assert read_number(text) is None


@settings(max_examples=50, deadline=None)
@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_times_are_read_as_by_python(naive, zone):
    when = naive.replace(tzinfo=zone)
    nanoseconds = (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    for kind, text, expected in (
        (ISO_TIME, when.isoformat(timespec="microseconds"), nanoseconds),
        (CLF_TIME, when.strftime("[%d/%b/%Y:%H:%M:%S %z]"), nanoseconds // 10**9 * 10**9),
    ):
        data = np.frombuffer(text.encode(), np.uint8)
        for given_kind in (ISO_TIME, CLF_TIME):  # either spelling is told by its looks
            ticks, wrong = np.empty(1, np.int64), np.empty(1, bool)
            times(data, np.array([[0, len(data)]]), given_kind, 1, ticks, wrong)
            assert not wrong[0] and ticks[0] == expected, kind


def test_siphash_of_its_authors():
    key = np.frombuffer(bytes(range(16)), np.uint64)
    text = np.arange(15, dtype=np.uint8)
    hashes = np.empty(1, np.int64)
    siphash(text, np.array([0, 15]), key, hashes)
    assert hashes[0] == 0xA129CA6149BE45E5 >> 1
    siphash(text, np.array([0, 0]), key, hashes)
    assert hashes[0] == 0x726FDB47DD0E0E31 >> 1
