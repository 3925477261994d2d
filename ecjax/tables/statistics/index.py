"""Dense numbers 0, 1, 2, ... for ids in the order in which they first appear (open addressing, linear probing).

An entry of the hash table is two 64-bit words side by side, so that a lookup touches one cache line: the id (or the
hash of its bytes) and its number plus one, zero meaning empty.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.machine_code import njit

_SMALLEST_TABLE = 1 << 12
_ROTATE = np.uint64(0x9E3779B97F4A7C15)  # Weyl constant and finaliser of SplitMix64
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_U8, _U27, _U30, _U31 = np.uint64(8), np.uint64(27), np.uint64(30), np.uint64(31)


@njit(inline="always")
def mix(word):
    """Spread the bits of a 64-bit word (the finaliser of SplitMix64)."""
    word = (word ^ (word >> _U30)) * _MIX_1
    word = (word ^ (word >> _U27)) * _MIX_2
    return word ^ (word >> _U31)


@njit()
def number_integers(values, table, ids, count, numbers):
    """Number each of ``values``; new ones are added to ``table`` and ``ids``. Returns the new count.

    ``table`` must have room for all of them: its length, a power of two, at least twice ``count + len(values)``.
    """
    mask = np.uint64(table.shape[0] - 1)
    for row in range(values.shape[0]):
        value = values[row]
        slot = mix(np.uint64(value) + _ROTATE) & mask
        while True:
            number = table[slot, 1]
            if number == 0:
                table[slot, 0] = value
                ids[count] = value
                count += 1
                table[slot, 1] = count
                number = count
                break
            if table[slot, 0] == value:
                break
            slot = (slot + np.uint64(1)) & mask
        numbers[row] = number - 1
    return count


@njit()
def _reinsert(keys, table, count):
    """Fill an empty table with the first ``count`` keys (all different as far as numbers go)."""
    mask = np.uint64(table.shape[0] - 1)
    for number in range(count):
        slot = mix(np.uint64(keys[number]) + _ROTATE) & mask
        while table[slot, 1] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot, 0] = keys[number]
        table[slot, 1] = number + 1


@njit(inline="always")
def load_word(data, place):
    """Eight bytes as one little-endian word (a single load, once compiled)."""
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(data[place + byte]) << np.uint64(8 * byte)
    return word


@njit()
def hash_strings(offsets, data, hashes):
    """64-bit hash of each string ``data[offsets[i]:offsets[i + 1]]``, eight bytes at a time."""
    for row in range(hashes.shape[0]):
        begin, end = offsets[row], offsets[row + 1]
        state = np.uint64(end - begin) * _ROTATE
        place = begin
        while place + 8 <= end:
            state = mix(state ^ load_word(data, place)) + _ROTATE
            place += 8
        word = np.uint64(0)
        while place < end:
            word = (word << _U8) | np.uint64(data[place])
            place += 1
        hashes[row] = np.int64(mix(state ^ word))


@njit()
def _find_hashes(hashes, table, numbers):
    """First number whose hash agrees, -1 where none does.

    A loop of its own, since its cache misses are independent of each other and overlap.
    """
    mask = np.uint64(table.shape[0] - 1)
    for row in range(hashes.shape[0]):
        key = hashes[row]
        slot = mix(np.uint64(key) + _ROTATE) & mask
        while table[slot, 1] != 0 and table[slot, 0] != key:
            slot = (slot + np.uint64(1)) & mask
        numbers[row] = table[slot, 1] - 1


@njit(inner=True)
def _same_bytes(first, first_begin, second, second_begin, length):
    """Whether two runs of bytes agree; eight at a time, without early exit."""
    difference = np.uint64(0)
    place = 0
    while place + 8 <= length:
        difference |= load_word(first, first_begin + place) ^ load_word(second, second_begin + place)
        place += 8
    while place < length:
        difference |= np.uint64(first[first_begin + place] ^ second[second_begin + place])
        place += 1
    return difference == 0


@njit()
def _check_strings(offsets, data, starts, arena, numbers):
    """Set numbers whose string has other bytes than the row's to -1: places and lengths first, then bytes.

    Two loops, for the same reason as ``_find_hashes`` is one of its own.
    """
    places = np.empty(numbers.shape[0], np.int64)
    for row in range(numbers.shape[0]):
        number = numbers[row]
        places[row] = -1
        if number >= 0:
            place = starts[number]
            if starts[number + 1] - place == offsets[row + 1] - offsets[row]:
                places[row] = place
    for row in range(numbers.shape[0]):
        begin, place = offsets[row], places[row]
        if place < 0 or not _same_bytes(arena, place, data, begin, offsets[row + 1] - begin):
            numbers[row] = -1


@njit()
def _insert_strings(offsets, data, hashes, table, keys, starts, arena, count, numbers):
    """Number the strings that are still without one, adding those that are new. Returns the new count."""
    mask = np.uint64(table.shape[0] - 1)
    for row in range(hashes.shape[0]):
        if numbers[row] >= 0:
            continue
        key = hashes[row]
        begin, length = offsets[row], offsets[row + 1] - offsets[row]
        slot = mix(np.uint64(key) + _ROTATE) & mask
        while True:
            number = table[slot, 1]
            if number == 0:
                place = starts[count]
                for byte in range(length):
                    arena[place + byte] = data[begin + byte]
                keys[count] = key
                count += 1
                starts[count] = place + length
                table[slot, 0] = key
                table[slot, 1] = count
                number = count
                break
            if table[slot, 0] == key:
                place = starts[number - 1]
                if starts[number] - place == length and _same_bytes(arena, place, data, begin, length):
                    break
            slot = (slot + np.uint64(1)) & mask
        numbers[row] = number - 1
    return count


def grown(array: np.ndarray, needed: int) -> np.ndarray:
    """``array`` with at least ``needed`` rows: itself, or a copy of at least twice the length, zeros at the end."""
    if array.shape[0] >= needed:
        return array
    larger = np.zeros((max(needed, 2 * array.shape[0]), *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


class IntegerIndex:
    """Numbers for 64-bit integers."""

    def __init__(self) -> None:
        self.count = 0
        self._table = np.zeros((_SMALLEST_TABLE, 2), np.int64)
        self._keys = np.zeros(_SMALLEST_TABLE // 2, np.int64)

    def number(self, values: np.ndarray) -> np.ndarray:
        """Number of each value, (n,) int64 -> (n,) int64; new values get the next numbers."""
        self._make_room(values.shape[0])
        numbers = np.empty(values.shape[0], np.int64)
        self.count = number_integers(values, self._table, self._keys, self.count, numbers)
        return numbers

    @property
    def values(self) -> np.ndarray:
        """The distinct values by number."""
        return self._keys[: self.count]

    def absorb(self, other: "IntegerIndex") -> np.ndarray:
        """Number what ``other`` has numbered, in its order; returns the number here of each number there."""
        return self.number(other.values)

    def __getstate__(self) -> dict[str, Any]:
        # the table is made anew where values are next to be numbered
        return self.__dict__ | {"_table": np.zeros((0, 2), np.int64), "_keys": self.values}

    def _make_room(self, more: int) -> None:
        self._keys = grown(self._keys, self.count + more)
        if self._table.shape[0] < 2 * (self.count + more):
            size = 1 << int(2 * (self.count + more) - 1).bit_length()
            self._table = np.zeros((size, 2), np.int64)
            _reinsert(self._keys, self._table, self.count)


class StringIndex(IntegerIndex):
    """Numbers for strings: a table of hashes, and one copy of the bytes of each distinct string."""

    def __init__(self) -> None:
        super().__init__()
        self._starts = np.zeros(_SMALLEST_TABLE, np.int64)
        self._arena = np.zeros(1 << 16, np.uint8)

    def number_strings(self, offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
        """Number of each string ``data[offsets[i]:offsets[i + 1]]``, (n + 1,) and (bytes,) -> (n,) int64."""
        rows = offsets.shape[0] - 1
        self._make_room(rows)
        self._starts = grown(self._starts, self.count + rows + 1)
        self._arena = grown(self._arena, int(self._starts[self.count] + offsets[-1] - offsets[0]))
        hashes = np.empty(rows, np.int64)
        hash_strings(offsets, data, hashes)
        numbers = np.empty(rows, np.int64)
        _find_hashes(hashes, self._table, numbers)
        _check_strings(offsets, data, self._starts, self._arena, numbers)
        self.count = _insert_strings(
            offsets, data, hashes, self._table, self._keys, self._starts, self._arena, self.count, numbers
        )
        return numbers

    def absorb(self, other: IntegerIndex) -> np.ndarray:
        """Number what ``other`` has numbered, in its order; returns the number here of each number there."""
        assert isinstance(other, StringIndex)
        return self.number_strings(other._starts[: other.count + 1], other._arena)

    def __getstate__(self) -> dict[str, Any]:
        starts = self._starts[: self.count + 1]
        return super().__getstate__() | {"_starts": starts, "_arena": self._arena[: max(int(starts[-1]), 1)]}

    @property
    def strings(self) -> pa.Array:
        """The distinct strings by number."""
        starts = self._starts[: self.count + 1].copy()
        data = self._arena[: starts[-1]].copy()
        return pa.LargeStringArray.from_buffers(self.count, pa.py_buffer(starts), pa.py_buffer(data)).cast(
            pa.string()
        )


def string_buffers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Offsets (n + 1,) and bytes of an Arrow string array without nulls, no copy."""
    _, offsets, data = array.buffers()
    width = np.dtype(np.int64 if pa.types.is_large_string(array.type) else np.int32)
    places = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize)
    return places, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


class IdIndex:
    """Numbers for the ids of an Arrow column, integers or strings, whose distinct values come back as they came."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = pa.int64() if pa.types.is_integer(kind) else pa.string()
        self._index = IntegerIndex() if pa.types.is_integer(kind) else StringIndex()

    @property
    def count(self) -> int:
        """How many distinct ids there are so far."""
        return self._index.count

    def number(self, array: pa.Array) -> np.ndarray:
        """Number of each id of an array without nulls, int64 (n,)."""
        if isinstance(self._index, StringIndex):
            return self._index.number_strings(*string_buffers(array))
        return self._index.number(array.to_numpy(zero_copy_only=False))

    def absorb(self, other: "IdIndex") -> np.ndarray:
        """Number the ids of ``other``, in its order; returns the number here of each number there, int64 (n,)."""
        return self._index.absorb(other._index)

    @property
    def ids(self) -> pa.Array:
        """The distinct ids by number."""
        if isinstance(self._index, StringIndex):
            return self._index.strings
        return pa.array(self._index.values)
