"""Which word of a web server's line is the duration of its request: formats put numbers of other things before it."""

from ecjax.machine_code import njit
from ecjax.tables.importers.access_logs.values import unit_seconds

_QUOTE, _PLUS, _COMMA, _MINUS, _POINT, _EQUALS, _M, _S = 34, 43, 44, 45, 46, 61, 109, 115
_OTHER, _WHOLE, _RATIO, _FRACTION = range(4)
_APART, _SECONDS_FIRST, _SECONDS_LAST = range(3)  # two whole numbers: of other things, or the same time twice
_PER_SECOND = 1e6  # microseconds
_NEARLY_ALL = 0.99  # lines: counts of bytes agree as two times do in few of them

NONE, SECONDS, SECONDS_LATER, MICROSECONDS, MICROSECONDS_LATER, LAST_WORD, BYTES = range(7)
# of those that are not plain, for a notice
WORDS = {
    SECONDS_LATER: "a later number after the user agent, in seconds",
    MICROSECONDS: "the whole number after the user agent, in microseconds",
    MICROSECONDS_LATER: "a later whole number after the user agent, in microseconds",
    LAST_WORD: "the last word, in milliseconds",
    BYTES: "unknown, as two whole numbers after the user agent count bytes",
}


@njit()
def _past_power(data, place, end):
    """Where a number goes on after "e-3" and the like; the same place where there is none, as in a hexadecimal id."""
    stop = place + 1
    if place >= end or not (data[place] == 101 or data[place] == 69):
        return place
    if stop < end and (data[stop] == _MINUS or data[stop] == _PLUS):
        stop += 1
    begin = stop
    while stop < end and 48 <= data[stop] <= 57:
        stop += 1
    return stop if stop > begin else place


@njit()
def _number(data, begin, end):
    """What kind of number a word is, perhaps after a name (rt=0.012), and the value of a whole one."""
    place = begin
    while begin >= 0 and begin < end and data[end - 1] == _COMMA:
        end -= 1
    for letter in range(max(begin, 0), end):
        if data[letter] == _EQUALS:
            place = letter + 1
            break
    value, digits, decimals, pointed = 0.0, 0, 0, False
    while 0 <= place < end and (48 <= data[place] <= 57 or (data[place] == _POINT and not pointed)):
        if data[place] == _POINT:
            pointed = True
        else:
            value = value * 10.0 + (data[place] - 48)
            digits += 1
            decimals += 1 if pointed else 0
        place += 1
    if digits == 0:
        return _OTHER, 0.0
    if place < end:
        rest = _past_power(data, place, end)
        return (_FRACTION if rest == end or unit_seconds(data, rest, end) > 0.0 else _OTHER), 0.0
    if not pointed:
        return _WHOLE, value
    # nginx writes times with three decimals, and its $gzip_ratio with two
    return (_RATIO if decimals == 2 and begin > 0 and data[begin - 1] == _QUOTE else _FRACTION), 0.0


@njit()
def _first_numbers(data, words):
    """Place and kind of the first number that may be a duration, its value, and kind and value of the word after it."""
    first = 0
    kind, value = _number(data, words[0, 0], words[0, 1])
    if kind == _OTHER:
        first = 1
        kind, value = _number(data, words[1, 0], words[1, 1])
    if kind == _RATIO:
        first += 1
        kind, value = _number(data, words[first, 0], words[first, 1])
    following, next_value = _number(data, words[first + 1, 0], words[first + 1, 1])
    return first, kind, value, following, next_value


@njit()
def _order_of_two(data, words):
    """What two whole numbers are in the lines of a block, all of one format.

    Apache's %T is its %D without what is less than a second, in every line; of %I and %O one may be so by chance, or as
    nothing was sent.
    """
    lines, seconds_first, seconds_last = 0, 0, 0
    for line in range(words.shape[0]):
        _, kind, value, following, next_value = _first_numbers(data, words[line])
        if kind == _WHOLE and following == _WHOLE:
            lines += 1
            seconds_first += value == next_value // _PER_SECOND
            seconds_last += next_value == value // _PER_SECOND
    if max(seconds_first, seconds_last) < _NEARLY_ALL * lines:
        return _APART
    return _SECONDS_FIRST if seconds_first >= seconds_last else _SECONDS_LAST


@njit()
def duration_words(data, words, chosen, meaning):
    """Choose the duration among the four words after the user agent.

    - nginx: a number with a point, in seconds, perhaps after a quoted word ("$http_x_forwarded_for"), a quoted ratio
      ("$gzip_ratio") or the whole number of a length ($request_length, as ingress-nginx has it).
    - Apache: a whole number, in microseconds (%D), perhaps after two that count bytes (%I %O), and before or after the
      same in whole seconds (%T). Two that are not so in nearly all lines count bytes.
    - Traefik: a count of requests, two quoted words and whole milliseconds ("35ms").

    Args:
        data: (bytes,) uint8.
        words: (lines, 4, 2), -1 where there is none; lines of one block of a log.
        chosen: (lines, 2), filled; -1 where there is no duration.
        meaning: (lines,) int8, filled: ``NONE`` or which of the following.

    References:
        nginx, ngx_http_log_module, ngx_http_gzip_module; ingress-nginx, Log format; Apache, mod_log_config, mod_logio;
        Traefik, Access Logs.
    """
    order = _order_of_two(data, words)
    for line in range(words.shape[0]):
        chosen[line, 0], chosen[line, 1], meaning[line] = -1, -1, NONE
        first, kind, _, following, _ = _first_numbers(data, words[line])
        word = first
        if kind == _FRACTION:
            meaning[line] = SECONDS
        elif kind == _WHOLE:
            begin, end = words[line, 3, 0], words[line, 3, 1]
            if following == _FRACTION:
                word, meaning[line] = first + 1, SECONDS_LATER
            elif following == _WHOLE and order == _SECONDS_FIRST:
                word, meaning[line] = first + 1, MICROSECONDS_LATER
            elif following == _WHOLE and order == _APART:
                word, meaning[line] = first + 2, BYTES
                third = _OTHER
                if word < 4:
                    third, _ = _number(data, words[line, word, 0], words[line, word, 1])
                if third == _WHOLE:
                    meaning[line] = MICROSECONDS_LATER
                elif third == _FRACTION:
                    meaning[line] = SECONDS_LATER
            elif (
                first == 0
                and words[line, 1, 0] > 0
                and data[words[line, 1, 0] - 1] == _QUOTE
                and end - begin > 2
                and data[end - 1] == _S
                and data[end - 2] == _M
            ):
                word, meaning[line] = 3, LAST_WORD
            else:
                meaning[line] = MICROSECONDS
        if meaning[line] != NONE and meaning[line] != BYTES:
            chosen[line, 0], chosen[line, 1] = words[line, word, 0], words[line, word, 1]
