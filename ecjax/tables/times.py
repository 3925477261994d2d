"""Timestamps of an input table as float seconds that share one origin."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.place import Place

_UNITS = ("s", "ms", "us", "ns")
LATEST_S = 1e11  # as seconds since 1970 a clock that reads more is thousands of years ahead


class ClockUnit(NamedTuple):
    """A unit of a clock, and its seconds."""

    name: str
    seconds: float


def clock_unit(value: float) -> ClockUnit | None:
    """In which unit other than seconds a clock that reads ``value`` counts since 1970; None where it may be seconds."""
    if not LATEST_S < value < 1e20:
        return None
    if value < 1e14:
        return ClockUnit("milliseconds", 1e-3)
    return ClockUnit("microseconds", 1e-6) if value < 1e17 else ClockUnit("nanoseconds", 1e-9)


def is_timestamp(kind: pa.DataType) -> bool:
    """Whether a column of this type counts from the epoch: an Arrow timestamp or date."""
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def mixed_zones(kinds: Mapping[str, pa.DataType]) -> str:
    """What is wrong with timestamp columns of these types where some have a time zone; "" where all or none has one."""
    zones = {name: getattr(kind, "tz", None) for name, kind in kinds.items()}
    mixed = len({zone is None for zone in zones.values()}) > 1
    return f"times with and without a time zone are mixed: {zones}" if mixed else ""


def timestamps_to_seconds(table: pa.Table, columns: list[str], place: Place) -> pa.Table:
    """Replace timestamp columns by float64 seconds since the earliest value of ``columns[0]``.

    The origin is subtracted as integers in the finest unit of the columns, so that nanoseconds survive where
    seconds since 1970 in float64 would keep a quarter of a microsecond. Columns of plain numbers are left as
    they are.

    Args:
        table: the table.
        columns: time columns, the one that sets the origin first.
        place: names the table in errors.

    Raises:
        UserError: numbers and timestamps, or times with and without a zone, are mixed.
    """
    kinds = {name: table.column(name).type for name in columns}
    stamped = [name for name in columns if is_timestamp(kinds[name])]
    if not stamped:
        return table
    if len(stamped) < len(columns):
        plain = next(name for name in columns if name not in stamped)
        mixture = f"{stamped[0]} is {kinds[stamped[0]]} and {plain} is {kinds[plain]}"
        raise place.error(f"{mixture}; allowed: all timestamps, or all seconds as numbers")
    mixture = mixed_zones(kinds)
    if mixture:
        raise place.error(mixture)
    zones = {name: getattr(kinds[name], "tz", None) for name in columns}
    unit = max((_unit(kind) for kind in kinds.values()), key=_UNITS.index)
    per_second = 1000 ** _UNITS.index(unit)
    try:
        ticks = {
            name: table.column(name).cast(pa.timestamp(unit, zones[name])).cast(pa.int64())
            for name in columns
        }
    except pa.ArrowInvalid as error:
        raise place.error(f"a time is outside what {unit} can count: {error}", column=columns[0]) from None
    origin = pc.min(ticks[columns[0]])
    for name, column in ticks.items():
        difference = pc.subtract_checked(column, origin)
        seconds = pc.divide(difference.cast(pa.float64(), safe=False), np.float64(per_second))
        table = table.set_column(table.column_names.index(name), name, seconds)
    return table


def _unit(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return kind.unit
    return "ms" if pa.types.is_date64(kind) else "s"
