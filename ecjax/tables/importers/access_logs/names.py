"""Names of objects, in one form whatever the log: bucket/key, percent-decoded; and their salted hashes."""

import numpy as np
import pyarrow as pa

from ecjax.machine_code import njit
from ecjax.tables.importers.text import as_text

_SLASH, _QUERY, _PERCENT, _SPACE, _ESCAPE, _COLON, _BRACKET = 47, 63, 37, 32, 92, 58, 91
_V, _ZERO, _ONE, _POINT = 118, 48, 49, 46
_X = 120
_TOKENS = np.frombuffer(b"auth/v1.0", np.uint8)  # where Swift's own authentication gives them
# Apache writes control characters as C does
_LETTERS, _CONTROLS = np.frombuffer(b"bnrtv", np.uint8), np.frombuffer(b"\b\n\r\t\v", np.uint8)
_U64 = np.uint64


@njit(inline="always")
def _hex(byte):
    if 48 <= byte <= 57:
        return byte - 48
    low = byte | 32
    return low - 87 if 97 <= low <= 102 else -1


@njit()
def _decoded(text, begin, end):
    """Percent-decode in place; returns the new end."""
    into = begin
    place = begin
    while place < end:
        if text[place] == _PERCENT and place + 2 < end:
            high, low = _hex(text[place + 1]), _hex(text[place + 2])
            if high >= 0 and low >= 0:
                text[into] = high * 16 + low
                into += 1
                place += 3
                continue
        text[into] = text[place]
        into += 1
        place += 1
    return into


@njit()
def _unescaped(text, begin, end):
    """Undo what nginx and Apache escape, in place: a hexadecimal number, or the letter itself; returns the new end."""
    into = begin
    place = begin
    while place < end:
        byte = text[place]
        if byte == _ESCAPE and place + 1 < end:
            high = _hex(text[place + 2]) if place + 3 < end else -1
            low = _hex(text[place + 3]) if place + 3 < end else -1
            if text[place + 1] == _X and high >= 0 and low >= 0:
                byte = high * 16 + low
                place += 2
            else:
                byte = text[place + 1]
                for letter in range(_LETTERS.shape[0]):
                    if byte == _LETTERS[letter]:
                        byte = _CONTROLS[letter]
                        break
            place += 1
        text[into] = byte
        into += 1
        place += 1
    return into


@njit()
def query_begin(data, begin, end):
    """Where the query of a path begins, or its end."""
    for place in range(begin, end):
        if data[place] == _QUERY:
            return place
    return end


@njit()
def _path_begin(data, begin, end):
    """The host of "https://host/path", -1 where there is none, and where the path begins, without slashes."""
    host, host_end = -1, -1
    if begin < end and data[begin] != _SLASH:
        for place in range(begin, min(begin + 12, end - 2)):
            if data[place] == _COLON and data[place + 1] == _SLASH and data[place + 2] == _SLASH:
                host = host_end = place + 3
                while host_end < end and data[host_end] != _SLASH:
                    host_end += 1
                begin = host_end
                break
    while begin < end and data[begin] == _SLASH:
        begin += 1
    return host, host_end, begin


@njit()
def _is_version(data, begin, end):
    """Whether this is the version of Swift's API: v1 or v1.0."""
    size = end - begin
    if not (size == 2 or size == 4) or data[begin] != _V or data[begin + 1] != _ONE:
        return False
    return size == 2 or (data[begin + 2] == _POINT and data[begin + 3] == _ZERO)


@njit()
def _is_of_tokens(data, begin, end):
    """Whether this is the path of Swift's own authentication."""
    same = end - begin == _TOKENS.shape[0]
    for letter in range(_TOKENS.shape[0]):
        same = same and data[begin + letter] == _TOKENS[letter]
    return same


@njit()
def _past_version(data, begin, end):
    """Where a path of Swift goes on after the version of its API; the same place where it is one of S3.

    Tokens of an authentication of Swift's own (auth/v1.0) are no objects: the end. Others in a bucket auth are.
    """
    slash = begin
    while slash < end and data[slash] != _SLASH:
        slash += 1
    if _is_version(data, begin, slash):
        return min(slash + 1, end)
    return end if _is_of_tokens(data, begin, end) else begin


@njit()
def unquoted(data, spans, text, moved):
    """Percent-decode the words at ``spans`` (rows, 2) once, one after another in ``text``: (rows, 2) in ``moved``."""
    place = 0
    for row in range(spans.shape[0]):
        begin, end = spans[row, 0], spans[row, 1]
        moved[row, 0], moved[row, 1] = -1, -1
        if begin < 0:
            continue
        for letter in range(begin, end):
            text[place + letter - begin] = data[letter]
        moved[row, 0], moved[row, 1] = place, _decoded(text, place, place + end - begin)
        place = moved[row, 1]


@njit()
def host_names(data, words, hosts):
    """The names of virtual hosts in words like "example.org:443", (rows, 2); -1 where a word is something else.

    An address alone may be that of a client; one in brackets is.
    """
    for row in range(words.shape[0]):
        begin, end = words[row, 0], words[row, 1]
        hosts[row, 0], hosts[row, 1] = -1, -1
        colon, letters, ports = -1, 0, 0
        for place in range(max(begin, 0), end):
            byte = data[place]
            if byte == _COLON:
                ports += 1
                colon = place
            elif colon < 0:
                letters += 97 <= (byte | 32) <= 122
            elif not 48 <= byte <= 57:
                ports = 2
        if ports == 1 and letters > 0 and colon + 1 < end and not (begin > 0 and data[begin - 1] == _BRACKET):
            hosts[row, 0], hosts[row, 1] = begin, colon


@njit()
def object_names(
    data, buckets, keys, is_path, versioned, skipped, needed, escapes, decodings, text, offsets, named
):
    """Write the names of objects one after another.

    Args:
        data: (bytes,) uint8.
        buckets: (rows, 2), what names begin with, as a host may be; or (0, 2) where there are none.
        keys: (rows, 2).
        is_path: whether keys are targets of requests, which may have a query and a host: that counts as their bucket.
        versioned: whether they may begin with the version of Swift's API, and need a part less where they do not.
        skipped: parts at the beginning that are left away.
        needed: parts that there are to be at least.
        escapes: whether backslashes escape letters, after percent-encoding.
        decodings: how many times percent-encoded.
        text: uint8, room for all names, filled.
        offsets: (rows + 1,) int64, filled.
        named: (rows,) bool, filled: whether there is an object.
    """
    place = 0
    offsets[0] = 0
    for row in range(keys.shape[0]):
        begin, end = keys[row, 0], keys[row, 1]
        first = place
        named[row] = False
        prefix, prefix_end = -1, -1
        if buckets.shape[0]:
            prefix, prefix_end = buckets[row, 0], buckets[row, 1]
        required = needed
        if is_path and begin >= 0:
            end = query_begin(data, begin, end)
            host, host_end, begin = _path_begin(data, begin, end)
            if host >= 0:
                prefix, prefix_end = host, host_end
            if versioned:
                past = _past_version(data, begin, end)
                required -= past == begin
                begin = past
            for _ in range(skipped):
                while begin < end and data[begin] != _SLASH:
                    begin += 1
                begin += 1
        empty = begin < 0 or begin >= end or (end - begin == 1 and data[begin] == 45)
        if not empty:
            if prefix >= 0:
                for letter in range(prefix, prefix_end):
                    text[place] = data[letter]
                    place += 1
                text[place] = _SLASH
                place += 1
            key = place
            for letter in range(begin, end):
                text[place] = data[letter]
                place += 1
            if escapes:
                place = _unescaped(text, key, place)
            for _ in range(decodings):
                place = _decoded(text, key, place)
            parts = 1
            for letter in range(key, place - 1):
                parts += text[letter] == _SLASH
            named[row] = parts >= required and place > key
        if not named[row]:
            place = first
        offsets[row + 1] = place


@njit()
def drive_words(data, targets, drives, volumes, keys):
    """The parts of "/mnt/data1 bucket album/photo 3.jpg": a drive, what a volume is, and a name that may have spaces.

    Args:
        data: (bytes,) uint8.
        targets: (rows, 2), -1 where there is none.
        drives: (rows, 2), filled.
        volumes: (rows, 2), filled.
        keys: (rows, 2), filled; -1 where there are fewer than three parts.
    """
    for row in range(targets.shape[0]):
        place, end = targets[row]
        drives[row], volumes[row], keys[row] = place, place, -1
        drives[row, 1] = place
        part = 0
        begin = place
        while place >= 0 and place < end and part < 2:
            if data[place] == _SPACE:
                if part == 0:
                    drives[row, 0], drives[row, 1] = begin, place
                else:
                    volumes[row, 0], volumes[row, 1] = begin, place
                    keys[row, 0], keys[row, 1] = place + 1, end
                begin = place + 1
                part += 1
            place += 1


@njit(inline="always")
def _turned(word, by):
    return (word << _U64(by)) | (word >> _U64(64 - by))


@njit(inline="always")
def _round(a, b, c, d):
    a += b
    b = _turned(b, 13) ^ a
    a = _turned(a, 32)
    c += d
    d = _turned(d, 16) ^ c
    a += d
    d = _turned(d, 21) ^ a
    c += b
    b = _turned(b, 17) ^ c
    c = _turned(c, 32)
    return a, b, c, d


@njit()
def siphash(text, offsets, salt, hashes):
    """SipHash-2-4 of each name under a 128-bit key: who does not know the key cannot try names.

    Args:
        text: uint8.
        offsets: (rows + 1,).
        salt: (2,) uint64.
        hashes: (rows,) int64, filled; not negative: the highest bit is left away.

    References:
        Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012.
    """
    for row in range(hashes.shape[0]):
        begin, end = offsets[row], offsets[row + 1]
        a, b = salt[0] ^ _U64(0x736F6D6570736575), salt[1] ^ _U64(0x646F72616E646F6D)
        c, d = salt[0] ^ _U64(0x6C7967656E657261), salt[1] ^ _U64(0x7465646279746573)
        place = begin
        while True:
            word = _U64(0)
            count = min(8, end - place)
            for byte in range(count):
                word |= _U64(text[place + byte]) << _U64(8 * byte)
            last = count < 8
            if last:
                word |= _U64((end - begin) & 255) << _U64(56)
            d ^= word
            a, b, c, d = _round(a, b, c, d)
            a, b, c, d = _round(a, b, c, d)
            a ^= word
            place += 8
            if last:
                break
        c ^= _U64(255)
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        hashes[row] = np.int64((a ^ b ^ c ^ d) >> _U64(1))


@njit()
def block_groups(data, spans, groups, named):
    """Numbers of HDFS blocks like "BP-1-10.0.0.1-2:blk_-9223372036854775792_1001"; below 0, of their groups of sixteen.

    Args:
        data: (bytes,) uint8.
        spans: (rows, 2).
        groups: (rows,) int64, filled.
        named: (rows,) bool, filled: whether there is a number.
    """
    for row in range(spans.shape[0]):
        named[row], groups[row] = False, 0
        for place in range(spans[row, 0], spans[row, 1] - 4):
            if (
                data[place] == 98
                and data[place + 1] == 108
                and data[place + 2] == 107
                and data[place + 3] == 95
            ):
                place += 4
                negative = data[place] == 45
                place += negative
                number = np.int64(0)
                while place < spans[row, 1] and 48 <= data[place] <= 57:
                    # downwards, since the lowest number has no positive one
                    number = number * 10 - (data[place] - 48)
                    named[row] = True
                    place += 1
                groups[row] = number & ~np.int64(15) if negative else -number
                break


@njit()
def copied(data, spans, text, offsets):
    """Copy spans (rows, 2) one after another; -1 is nothing."""
    place = 0
    offsets[0] = 0
    for row in range(spans.shape[0]):
        for letter in range(spans[row, 0], spans[row, 1]):
            text[place] = data[letter]
            place += 1
        offsets[row + 1] = place


def words(data: np.ndarray, spans: np.ndarray) -> pa.Array:
    """The spans (rows, 2) as strings; empty where there is none."""
    sizes = int(np.sum(spans[:, 1] - spans[:, 0]))
    text, offsets = np.empty(sizes, np.uint8), np.empty(len(spans) + 1, np.int64)
    copied(data, np.ascontiguousarray(spans), text, offsets)
    return strings(text, offsets)


def strings(text: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """Names one after another as an Arrow array; bytes that are not UTF-8 as backslash and number."""
    size = int(offsets[-1])
    if size >= 2**31:
        raise MemoryError("names of a block of a log fill 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text[:size].copy())]
    return as_text(pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers))
