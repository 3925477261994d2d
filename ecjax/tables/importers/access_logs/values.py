"""Numbers and times in blocks of bytes, read by compiled code."""

import numpy as np

from ecjax.machine_code import njit

_MINUS, _PLUS, _POINT, _COMMA, _COLON = 45, 43, 46, 44, 58
_SECOND = 1_000_000_000
_CLF, _ISO, _EPOCH = 0, 1, 2
_LONGEST = 18  # digits that a 64-bit integer holds


@njit(inline="always")
def _digit(byte):
    return 48 <= byte <= 57


@njit()
def unit_seconds(data, begin, end):
    """Seconds of a unit like "ns" or "ms"; 0 where it is none."""
    size = end - begin
    if size == 1 and data[begin] == 115:
        return 1.0
    if size == 2 and data[begin + 1] == 115:
        if data[begin] == 110:
            return 1e-9
        if data[begin] == 117:
            return 1e-6
        if data[begin] == 109:
            return 1e-3
    if size == 3 and data[begin + 2] == 115 and data[begin + 1] in (0xB5, 0xBC):
        return 1e-6  # the micro sign, or the Greek letter
    return 0.0


@njit()
def numbers(data, spans, scale, values, wrong):
    """Read numbers; NaN where there is none ("-" or nothing).

    Args:
        data: (bytes,) uint8.
        spans: (lines, 2).
        scale: factor to our unit, for numbers that do not name theirs; 0: 1e-6 for whole ones, else 1.
        values: (lines,) float64, filled.
        wrong: (lines,) bool, filled: whether something else is there.
    """
    for line in range(spans.shape[0]):
        place, end = spans[line, 0], spans[line, 1]
        values[line], wrong[line] = np.nan, False
        while place < end and data[end - 1] == _COMMA:
            end -= 1
        size = end - place
        if place < 0 or size == 0 or (size == 1 and data[place] == _MINUS):
            continue
        # names before the number: rt=0.012
        for letter in range(place, end):
            if data[letter] == 61:
                place = letter + 1
                break
        negative = place < end and data[place] == _MINUS
        if negative:
            place += 1
        number, digits, power, whole = 0.0, 0, 0, True
        while place < end and (_digit(data[place]) or (data[place] == _POINT and whole)):
            if data[place] == _POINT:
                whole = False
            else:
                number = number * 10.0 + (data[place] - 48)
                digits += 1
                power += 0 if whole else 1
            place += 1
        if place + 1 < end and digits and (data[place] == 101 or data[place] == 69):
            exponent, sign = 0, 1
            stop = place + 1
            if data[stop] == _MINUS or data[stop] == _PLUS:
                sign = -1 if data[stop] == _MINUS else 1
                stop += 1
            if stop < end and _digit(data[stop]):
                while stop < end and _digit(data[stop]) and exponent < 1000:
                    exponent = exponent * 10 + (data[stop] - 48)
                    stop += 1
                power -= sign * exponent
                place = stop
                whole = False
        if digits == 0:
            wrong[line] = True
            continue
        number = number / 10.0**power if power > 0 else number * 10.0**-power
        factor = scale
        if place < end:
            factor = unit_seconds(data, place, end)
            if factor == 0.0:
                wrong[line] = True
                continue
        elif scale == 0.0:
            factor = 1e-6 if whole else 1.0
        if negative or not np.isfinite(number):
            wrong[line] = True
            continue
        # a division rounds once where a multiplication by a rounded power of ten would round twice
        inverse = np.round(1.0 / factor)
        values[line] = (
            number / inverse if factor < 1.0 and abs(inverse * factor - 1.0) < 1e-12 else number * factor
        )


@njit(inline="always")
def _days(year, month, day):
    """Days from 1970-01-01, Gregorian."""
    year -= 1 if month <= 2 else 0
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@njit()
def _is_date(year, month, day):
    """Whether there is such a day, in years of which the nanoseconds and their differences fit in 64 bits."""
    if not (1968 < year < 2250 and 1 <= month <= 12):
        return False
    following = _days(year + month // 12, month % 12 + 1, 1)
    return 1 <= day <= following - _days(year, month, 1)


@njit()
def _whole(data, begin, end):
    """The digits as an integer, -1 where another letter is among them."""
    if end <= begin or end - begin > _LONGEST:
        return -1
    number = 0
    for place in range(begin, end):
        if not _digit(data[place]):
            return -1
        number = number * 10 + (data[place] - 48)
    return number


@njit()
def _month(data, place):
    """Month from its first three letters, 0 where it is none."""
    first, second, third = data[place] | 32, data[place + 1] | 32, data[place + 2] | 32
    key = (first << 16) | (second << 8) | third
    names = (
        0x6A616E,
        0x666562,
        0x6D6172,
        0x617072,
        0x6D6179,
        0x6A756E,
        0x6A756C,
        0x617567,
        0x736570,
        0x6F6374,
        0x6E6F76,
        0x646563,
    )
    for month in range(12):
        if names[month] == key:
            return month + 1
    return 0


@njit()
def _zone(data, place, end):
    """Seconds east of UTC of "Z", "+0100" or "+01:00" at ``place``; 0 where there is none, -1e6 where it is wrong."""
    while place < end and data[place] == 32:
        place += 1
    if place >= end or data[place] == 90 or not (data[place] == _PLUS or data[place] == _MINUS):
        return 0
    sign = -1 if data[place] == _MINUS else 1
    colon = 1 if place + 3 < end and data[place + 3] == _COLON else 0
    hours = _whole(data, place + 1, place + 3) if place + 3 <= end else -1
    begin = place + 3 + colon
    minutes = _whole(data, begin, begin + 2) if begin + 2 <= end else 0
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return -1_000_000
    return sign * (hours * 3600 + minutes * 60)


@njit()
def _clock_ns(data, place, end, year, month, day):
    """Nanoseconds since 1970 of a date and of the time, fraction and zone that begin at ``place``; minimum if wrong."""
    nothing = np.int64(-(2**63))
    if place + 8 > end:
        return nothing
    hour, minute, second = (
        _whole(data, place, place + 2),
        _whole(data, place + 3, place + 5),
        _whole(data, place + 6, place + 8),
    )
    if not (_is_date(year, month, day) and 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second <= 60):
        return nothing
    place += 8
    fraction, step = 0, _SECOND
    if place < end and (data[place] == _POINT or data[place] == _COMMA):
        place += 1
        while place < end and _digit(data[place]):
            step //= 10
            fraction += (data[place] - 48) * step
            place += 1
    zone = _zone(data, place, end)
    if zone == -1_000_000:
        return nothing
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone
    return np.int64(seconds) * _SECOND + fraction


@njit()
def times(data, spans, kind, unit_ns, ticks, wrong):
    """Read times as nanoseconds since 1970, or since whatever a number counts from.

    Args:
        data: (bytes,) uint8.
        spans: (lines, 2); the time may end earlier.
        kind: see ``profile.Clock``; dates of the other spelling are read, too.
        unit_ns: of a number (ns); 0: told by its size.
        ticks: (lines,) int64, filled.
        wrong: (lines,) bool, filled.
    """
    nothing = np.int64(-(2**63))
    for line in range(spans.shape[0]):
        place, end = spans[line, 0], spans[line, 1]
        value = nothing
        if place >= 0:
            if place < end and data[place] == 91:  # a bracket
                place += 1
            if kind == _CLF and end - place > 4 and data[place + 4] == _MINUS:
                spelling = _ISO
            elif kind == _ISO and end - place > 2 and data[place + 2] == 47:
                spelling = _CLF
            else:
                spelling = kind
            if spelling == _CLF:
                if end - place >= 20:
                    year, day = _whole(data, place + 7, place + 11), _whole(data, place, place + 2)
                    value = _clock_ns(data, place + 12, end, year, _month(data, place + 3), day)
            elif spelling == _ISO:
                if end - place >= 19:
                    year, month = _whole(data, place, place + 4), _whole(data, place + 5, place + 7)
                    value = _clock_ns(data, place + 11, end, year, month, _whole(data, place + 8, place + 10))
            elif spelling == _EPOCH:
                value = _epoch(data, place, end, unit_ns)
            elif end - place >= 14:
                number = _whole(data, place, place + 14)
                if number >= 0:
                    date, clock = number // 1_000_000, number % 1_000_000
                    year, month, day = date // 10_000, date // 100 % 100, date % 100
                    hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
                    if _is_date(year, month, day) and hour < 24 and minute < 60 and second <= 60:
                        value = (
                            np.int64(_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second)
                            * _SECOND
                        )
        wrong[line] = value == nothing
        ticks[line] = 0 if wrong[line] else value


@njit()
def _epoch(data, place, end, unit_ns):
    nothing = np.int64(-(2**63))
    stop = place
    while stop < end and _digit(data[stop]):
        stop += 1
    whole = _whole(data, place, stop)
    if stop - place == _LONGEST + 1 and data[place] == 49:  # nanoseconds of this age
        whole = _whole(data, place + 1, stop) + 10**_LONGEST
    if unit_ns == 0:
        unit_ns = 1 if whole >= 10**17 else 1000 if whole >= 10**14 else 10**6 if whole >= 10**11 else _SECOND
    if whole < 0 or whole > 9_000_000_000_000_000_000 // unit_ns:
        return nothing
    value, step = np.int64(whole) * unit_ns, unit_ns
    if stop < end and data[stop] == _POINT:
        stop += 1
        while stop < end and _digit(data[stop]):
            step //= 10
            value += (data[stop] - 48) * step
            stop += 1
    if stop < end and not (data[stop] == 32 or data[stop] == _COMMA):
        return nothing
    return value
