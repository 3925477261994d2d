import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.tables.statistics import index
from ecjax.tables.statistics.index import IdIndex


def first_appearance(values):
    numbers = {}
    return [numbers.setdefault(value, len(numbers)) for value in values], list(numbers)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3))))
def test_integers_are_numbered_as_they_appear(batches):
    numbered = IdIndex(pa.int32())
    found = [n for batch in batches for n in numbered.number(pa.array(batch, pa.int64()))]
    numbers, distinct = first_appearance([value for batch in batches for value in batch])
    assert found == numbers
    assert numbered.ids.to_pylist() == distinct and numbered.count == len(distinct)


@given(st.lists(st.lists(st.text(max_size=20) | st.sampled_from(["", "a", "abcdefgh", "abcdefghi"]))))
def test_strings_are_numbered_as_they_appear(batches):
    numbered = IdIndex(pa.string())
    found = [n for batch in batches for n in numbered.number(pa.array(batch, pa.string()))]
    numbers, distinct = first_appearance([value for batch in batches for value in batch])
    assert found == numbers
    assert numbered.ids.to_pylist() == distinct


def test_slices_and_large_strings():
    array = pa.array([f"file-{i % 7}" for i in range(50)], pa.large_string())
    numbered = IdIndex(pa.large_string())
    found = [n for begin in range(0, 50, 9) for n in numbered.number(array.slice(begin, 9))]
    assert found == [i % 7 for i in range(50)]
    assert numbered.ids.type == pa.string()


def test_strings_with_one_hash_are_told_apart_by_their_bytes(monkeypatch):
    monkeypatch.setattr(index, "hash_strings", lambda offsets, data, hashes: hashes.fill(42))
    words = ["a", "b", "ab", "", "b", "a", "ab", "ba"] * 3
    numbered = IdIndex(pa.string())
    found = [*numbered.number(pa.array(words[:5])), *numbered.number(pa.array(words[5:]))]
    assert found == first_appearance(words)[0]


def test_growth_keeps_numbers():
    values = np.random.default_rng(0).permutation(60_000)
    numbered = IdIndex(pa.int64())
    for part in np.array_split(values, 40):
        numbered.number(pa.array(part))
    assert np.array_equal(numbered.number(pa.array(values)), np.arange(60_000))
    assert numbered.count == 60_000


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 31])
def test_every_byte_of_a_string_counts_in_its_hash(length):
    words = {"x" * length} | {"x" * i + "y" + "x" * (length - i - 1) for i in range(length)}
    hashes = np.empty(len(words), np.int64)
    index.hash_strings(*index.string_buffers(pa.array(sorted(words))), hashes)
    assert len(set(hashes.tolist())) == len(words)
