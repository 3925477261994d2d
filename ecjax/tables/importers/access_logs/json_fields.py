"""Where the values of JSON objects are, one object a line: blocks of bytes cut by compiled code."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.importers.access_logs.text_fields import FINE, NO_OBJECT, NOT_CLOSED, NOTHING

_FNV, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_DEEPEST = 24
_QUOTE, _ESCAPE, _COMMA, _COLON = 34, 92, 44, 58
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _POINT, _DASH = 123, 125, 91, 93, 46, 45


@njit(inline="always")
def _hashed_byte(state, byte):
    if byte == 95 or byte == 45:
        return state
    if 65 <= byte <= 90:
        byte += 32
    return (state ^ np.uint64(byte)) * _PRIME


@njit()
def hash_paths(data, offsets, hashes):
    """Hash of each path ``data[offsets[i]:offsets[i + 1]]``; case, "_" and "-" do not count."""
    for path in range(hashes.shape[0]):
        state = _FNV
        for place in range(offsets[path], offsets[path + 1]):
            state = _hashed_byte(state, data[place])
        hashes[path] = state


@njit(inline="always")
def _blank(byte):
    return byte == 32 or byte == 9 or byte == 13


@njit()
def json_fields(data, begins, ends, paths, slots, spans, states, escaped):
    """Fill ``spans`` (lines, slots, 2), begin and end of the scalar at each path, -1 where there is none.

    Strings come without their quotation marks, with their escapes. Of several paths of a slot the one that comes first
    in ``paths`` counts; those that have nothing, as servers write it ("" or "-"), only where all have. A comma before
    or after the object, and the bracket of a list around all, do not matter.

    Args:
        data: (bytes,) uint8.
        begins: (lines,) of the lines.
        ends: (lines,) of the lines.
        paths: (paths,) uint64 hashes.
        slots: (paths,) slot of each.
        spans: (lines, slots, 2) int64, filled.
        states: (lines,) int8, filled: FINE, NO_OBJECT, NOT_CLOSED, or NOTHING where there are
            but brackets of a list around all.
        escaped: (lines,) bool, filled: whether one of the values has an escape in it.
    """
    hashes = np.empty(_DEEPEST, np.uint64)
    lists = np.zeros(_DEEPEST, np.bool_)
    rank = np.empty(spans.shape[1], np.int64)
    for line in range(begins.shape[0]):
        spans[line] = -1
        rank[:] = paths.shape[0]
        escaped[line] = False
        place, end = begins[line], ends[line]
        while place < end and (_blank(data[place]) or data[place] == _COMMA or data[place] == _OPEN_LIST):
            place += 1
        if place == end or data[place] != _OPEN:
            while place < end and (_blank(data[place]) or data[place] == _CLOSE_LIST):
                place += 1
            states[line] = NOTHING if place == end else NO_OBJECT
            continue
        states[line] = NOT_CLOSED
        place += 1
        depth, hashes[0], lists[0] = 0, _FNV, False
        current = _FNV
        expects = 0  # 0 a name, 1 a value, 2 a comma or the end
        while place < end:
            byte = data[place]
            if _blank(byte):
                place += 1
                continue
            if (byte == _CLOSE and not lists[depth] and expects != 1) or (
                byte == _CLOSE_LIST and lists[depth]
            ):
                place += 1
                depth -= 1
                expects = 2
                if depth < 0:
                    states[line] = FINE
                    break
            elif expects == 2:
                if byte != _COMMA:
                    break
                place += 1
                expects = 1 if lists[depth] else 0
                current = hashes[depth]
            elif byte == _QUOTE:
                begin = place + 1
                place = begin
                escape = False
                while place < end and data[place] != _QUOTE:
                    if data[place] == _ESCAPE:
                        escape = True
                        place += 1
                    place += 1
                if place >= end:
                    break
                if expects == 0:
                    current = hashes[depth]
                    if depth:
                        current = (current ^ np.uint64(_POINT)) * _PRIME
                    for letter in range(begin, place):
                        current = _hashed_byte(current, data[letter])
                    place += 1
                    while place < end and _blank(data[place]):
                        place += 1
                    if place >= end or data[place] != _COLON:
                        break
                    expects = 1
                else:
                    escaped[line] |= (
                        _record(data, current, begin, place, paths, slots, spans[line], rank) and escape
                    )
                    expects = 2
                place += 1
            elif expects == 0:
                break
            elif byte == _OPEN or byte == _OPEN_LIST:
                depth += 1
                if depth == _DEEPEST:
                    break
                lists[depth] = byte == _OPEN_LIST
                # what is in a list has no path of its own
                hashes[depth] = current if byte == _OPEN else (current ^ np.uint64(_OPEN_LIST)) * _PRIME
                current = hashes[depth]
                expects = 1 if lists[depth] else 0
                place += 1
            else:
                begin = place
                while place < end and not (
                    data[place] == _COMMA
                    or data[place] == _CLOSE
                    or data[place] == _CLOSE_LIST
                    or _blank(data[place])
                ):
                    place += 1
                if place == begin:
                    break
                if data[begin] != 110:  # null
                    _record(data, current, begin, place, paths, slots, spans[line], rank)
                expects = 2
        if states[line] != FINE:
            continue
        while place < end:
            if not (_blank(data[place]) or data[place] == _COMMA or data[place] == _CLOSE_LIST):
                states[line] = NOT_CLOSED
                break
            place += 1


@njit()
def _record(data, current, begin, end, paths, slots, spans, rank):
    """Note a value if its path is one of those that are read; whether it is."""
    for path in range(paths.shape[0]):
        if paths[path] == current:
            slot = slots[path]
            nothing = end == begin or (end == begin + 1 and data[begin] == _DASH)
            if path < rank[slot] and not (nothing and spans[slot, 0] >= 0):
                if not nothing:
                    rank[slot] = path
                spans[slot, 0], spans[slot, 1] = begin, end
            return True
    return False
