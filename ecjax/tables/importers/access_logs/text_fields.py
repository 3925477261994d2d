"""Where the fields of lines of words are: blocks of bytes cut by compiled code, a line at a time."""

import numpy as np

from ecjax.machine_code import njit

FINE, NO_ANCHOR, NOT_CLOSED, NO_OBJECT, NOTHING = range(5)
_MOST_WORDS = 96
_SPACE, _QUOTE, _OPEN, _CLOSE, _SLASH, _TAB, _COMMA, _ESCAPE, _HYPHEN = 32, 34, 91, 93, 47, 9, 44, 92, 45
_BRACKET_ANCHOR, _SWIFT_ANCHOR, _MARKER_ANCHOR = 1, 2, 3
_LINE = -100


@njit(inline="always")
def _is_digit(byte):
    return 48 <= byte <= 57


@njit()
def _is_anchor(data, begin, end, opening, kind, marker):
    """Whether the word is the one that positions are counted from; ``opening`` is its quote, or 0."""
    if kind == _BRACKET_ANCHOR:
        # a date, as "02/Nov/2026:" or "2026-11-02T"; hosts may be addresses in brackets
        is_date = end - begin > 10 and (data[begin + 2] == _SLASH or data[begin + 4] == _HYPHEN)
        return opening == _OPEN and is_date
    if kind == _SWIFT_ANCHOR:
        return (
            end - begin == 20
            and data[begin + 2] == _SLASH
            and data[begin + 6] == _SLASH
            and data[begin + 11] == _SLASH
            and _is_digit(data[begin])
            and _is_digit(data[begin + 19])
        )
    size = marker.shape[0]
    if end - begin < size:
        return False
    for place in range(size):
        if data[end - size + place] != marker[place]:
            return False
    return True


@njit()
def text_fields(data, begins, ends, separator, escapes, anchor, marker, positions, spans, states):
    """Fill ``spans`` (lines, slots, 2), begin and end of the word at each position, -1 where there is none.

    A word in quotation marks or brackets ends where these are followed by a separator, so that one may hold its own
    quotation marks; they are not part of it. With a space as separator several count as one.

    Args:
        data: (bytes,) uint8.
        begins: (lines,) of the lines.
        ends: (lines,) of the lines, without their newlines.
        separator: byte between words.
        escapes: whether what follows a backslash within quotation marks is not their end.
        anchor: see ``profile.Anchor``.
        marker: (letters,) uint8.
        positions: (slots,) counted from the anchor; -100: from where the line begins.
        spans: (lines, slots, 2) int64, filled.
        states: (lines,) int8, filled: FINE, NO_ANCHOR or NOT_CLOSED.
    """
    word_begins, word_ends = np.empty(_MOST_WORDS, np.int64), np.empty(_MOST_WORDS, np.int64)
    last = positions.max()
    joined = separator == _SPACE
    for line in range(begins.shape[0]):
        place, end = begins[line], ends[line]
        words, origin = 0, 0 if anchor == 0 else -1
        states[line] = FINE
        while place <= end and words < _MOST_WORDS:
            if joined:
                while place < end and (data[place] == _SPACE or data[place] == _TAB):
                    place += 1
                if place == end:
                    break
            opening = data[place] if place < end else 0
            closing = 0
            if opening == _QUOTE:
                closing = _QUOTE
            elif opening == _OPEN and joined:
                closing = _CLOSE
            else:
                opening = 0
            if closing:
                place += 1
                word_begins[words] = place
                while place < end and not (
                    data[place] == closing and (place + 1 == end or data[place + 1] == separator)
                ):
                    place += 2 if escapes and data[place] == _ESCAPE else 1
                if place >= end:
                    place = end
                    states[line] = NOT_CLOSED
                word_ends[words] = place
                place += 1
            else:
                word_begins[words] = place
                while place < end and data[place] != separator:
                    place += 1
                word_ends[words] = place
                # "bytes: 4096, op: HDFS_READ," are words and not cells
                if anchor == _MARKER_ANCHOR and place > word_begins[words] and data[place - 1] == _COMMA:
                    word_ends[words] = place - 1
            if origin < 0 and _is_anchor(data, word_begins[words], word_ends[words], opening, anchor, marker):
                origin = words
            words += 1
            place += 1
            if origin >= 0 and words > origin + last:
                break
        if origin < 0:
            states[line] = NO_ANCHOR
        for slot in range(positions.shape[0]):
            if positions[slot] == _LINE:
                spans[line, slot, 0], spans[line, slot, 1] = begins[line], end
                continue
            word = origin + positions[slot]
            if origin < 0 or word < 0 or word >= words:
                spans[line, slot, 0] = spans[line, slot, 1] = -1
            else:
                spans[line, slot, 0], spans[line, slot, 1] = word_begins[word], word_ends[word]


@njit()
def request_words(data, spans, methods, targets):
    """Method and target of requests like "GET /path HTTP/1.1"; -1 where the words are not two or three.

    Args:
        data: (bytes,) uint8.
        spans: (lines, 2) of the requests.
        methods: (lines, 2), filled.
        targets: (lines, 2), filled.
    """
    for line in range(spans.shape[0]):
        begin, end = spans[line, 0], spans[line, 1]
        methods[line], targets[line] = -1, -1
        if begin < 0:
            continue
        place = begin
        while place < end and data[place] != _SPACE:
            place += 1
        target = place + 1
        if place == begin or target >= end:
            continue
        # the protocol is after the last space: a target may hold some that were not encoded
        last = end - 1
        while last > target and data[last] != _SPACE:
            last -= 1
        stop = end
        if last > target and last + 5 < end and data[last + 1] == 72 and data[last + 5] == _SLASH:
            stop = last
        methods[line, 0], methods[line, 1] = begin, place
        targets[line, 0], targets[line, 1] = target, stop
