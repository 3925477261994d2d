"""When requests arrive: reads, writes and the reads of each service class by tick of the clock; silent stretches."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.importers.trace import Piece, Trace
from ecjax.tables.statistics.index import IdIndex
from ecjax.tables.statistics.silences import Silences
from ecjax.tables.statistics.ticks import Clock, TickCounts, TickHistogram

_CLASS = "service_class"


class TrafficTimes(NamedTuple):
    """When requests arrived.

    Attributes:
        reads, writes: by tick; None where there are none.
        classes: reads of each service class that has any, by its id, in order of appearance.
        class_count: number of classes, also where they are too many to be told apart.
        silences: begin and end of each silent stretch (s since the first arrival), (stretches, 2).
        step_s: step of the clock (s), as all times show it; 0: none shows.
    """

    reads: TickCounts | None
    writes: TickCounts | None
    classes: dict[int | str, TickCounts]
    class_count: int
    silences: np.ndarray
    step_s: float


class Timing:
    """Counts requests by tick, as their first rows come.

    Args:
        rows_of: trace or piece whose rows are to be added.
        continues: whether its first row may belong to a request that began before: it is kept for ``absorb``.
    """

    def __init__(self, rows_of: Trace | Piece, continues: bool) -> None:
        first_s = rows_of.first_arrival_s if isinstance(rows_of, Piece) else None
        names = rows_of.schema.names
        self._clock, self._silences = Clock(rows_of.clock_resolution_s, first_s), Silences()
        self._by_kind, self._by_class = TickHistogram(), TickHistogram()
        self._classes = IdIndex(rows_of.schema.field(_CLASS).type) if _CLASS in names else None
        self._continues = continues
        self._first: tuple[np.ndarray, np.ndarray, np.ndarray] | None = (
            None  # time, kind and class, (1,) each
        )

    def add(
        self, batch: pa.RecordBatch, arrivals: np.ndarray, writes: np.ndarray, begins: np.ndarray | None
    ) -> None:
        """Add rows in order of arrival.

        Args:
            batch: the rows.
            arrivals: (n,) s.
            writes: (n,) bool.
            begins: (n,) whether each begins a request; None: all do.
        """
        kinds = writes.astype(np.int64)
        classes = self._class_numbers(batch)
        if classes is not None:
            classes[writes] = -1
        if begins is not None:
            begins = begins.copy()
            if self._continues and self._first is None and len(begins):
                number = kinds[:1] if classes is None else classes[:1]
                self._first = arrivals[:1].copy(), kinds[:1].copy(), number.copy()
                begins[0] = False
            kinds[~begins] = -1
            if classes is not None:
                classes[~begins] = -1
        self._silences.add(arrivals)
        places = self._clock.places(arrivals)
        self._by_kind.add(places, kinds)
        if classes is not None:
            self._by_class.add(places, classes)

    def _class_numbers(self, batch: pa.RecordBatch) -> np.ndarray | None:
        """Class of each row, (n,) int64, negative where it has none."""
        if self._classes is None:
            return None
        column = batch.column(_CLASS)
        if not column.null_count:
            return self._classes.number(column)
        numbers = np.full(len(column), -1)
        numbers[np.asarray(pc.is_valid(column))] = self._classes.number(column.drop_null())
        return numbers

    def absorb(self, other: "Timing", continued: bool) -> None:
        """Add rows that follow.

        Args:
            other: what counted them.
            continued: whether the first of them belongs to a request that began here.
        """
        classes = np.zeros(0, np.int64)
        if self._classes is not None and other._classes is not None:
            classes = self._classes.absorb(other._classes)
        if other._first is not None and not continued:
            time, kind, number = other._first
            place = self._clock.places(time)
            self._by_kind.add(place, kind)
            if self._classes is not None:
                self._by_class.add(place, classes[number] if number[0] >= 0 else number)
        self._clock.absorb(other._clock)
        self._silences.absorb(other._silences)
        self._by_kind.absorb(other._by_kind, np.arange(other._by_kind.series))
        if self._classes is not None:
            self._by_class.absorb(other._by_class, classes[: other._by_class.series])

    def times(self, requests: int, ties: int) -> TrafficTimes:
        """What was counted, of so many requests, of which so many arrived at the same time as the one before."""
        clock = self._clock
        uneven = clock.uneven_step(requests, ties)
        reads, writes = (
            self._by_kind.counts(kind, clock, uneven) if kind < self._by_kind.series else None
            for kind in (0, 1)
        )
        step_s = max(clock.step_s, uneven * clock.unit_s)
        ids = self._classes.ids.to_pylist() if self._classes is not None else []
        counts = {
            ids[number]: self._by_class.counts(number, clock, uneven)
            for number in range(self._by_class.series)
        }
        return TrafficTimes(
            reads if reads is not None and reads.tick.size else None,
            writes if writes is not None and writes.tick.size else None,
            {name: each for name, each in counts.items() if each.tick.size},
            len(ids),
            clock.without_rounding(self._silences.stretches(step_s)),
            step_s,
        )
