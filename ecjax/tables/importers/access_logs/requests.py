"""Accesses in order of arrival as batches of the ``requests`` table."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.importers.access_logs.ordered import HELD, joined
from ecjax.tables.importers.access_logs.profile import REQUEST_ID, WHOLE, Profile
from ecjax.tables.importers.blocks import Accesses, block_schema, check_pieces, extent_batches
from ecjax.tables.importers.checking import WORDS
from ecjax.tables.importers.clock import LEAST_TIMES, common_step
from ecjax.tables.importers.rejects import Tally
from ecjax.tables.importers.trace import BATCH_ROWS, OBJECT_BYTES

_PER_SECOND = 1e9
_TICK_NS = 10**9  # of a coarse clock
_JOINED = 0.95  # share of requests with a line of the whole, from which on its clock is that of arrivals
# rows of one id come so soon after each other, unless a node was given up and another asked
_TOGETHER_NS = 10**10


class Emitter:
    """Gives accesses the columns of ``requests``: times in seconds since the last tick up to the first one.

    Args:
        profile: of the log.
        extent_bytes: size of the extents of a block trace (B), or None.
        timed: whether accesses have durations, as far as they are known.
        sized: whether sizes of objects are known, of some.
    """

    def __init__(self, profile: Profile, extent_bytes: int | None, timed: bool, sized: bool) -> None:
        self._profile, self._extent_bytes = profile, extent_bytes
        self._timed, self._sized = timed, sized

    def schema(self, sample: pa.RecordBatch) -> pa.Schema:
        """Schema of the batches of a log that has accesses like these."""
        if self._extent_bytes is not None:
            return block_schema(volumes=True, finish=False)
        if "request" in sample.schema.names:
            sample, _ = self._together(sample, Tally(1.0), ends=True)
        return self._batch(sample.slice(0, 1), 0, 0).schema

    def resolution(self, samples: list[pa.RecordBatch]) -> float:
        """The step of the clock (s) by the first accesses of the files of a log.

        Where nearly all requests have a line of the whole, at which they arrive, it is the step of its times.
        """
        if self._profile.clock.coarse:
            whole = _of_whole_requests(samples) if self._profile.requests else None
            return 1.0 if whole is None else _step(whole)
        ends = []
        for sample in samples:
            ticks = sample["ticks"].to_numpy()
            if self._profile.clock.at_end:
                # durations are finer than a clock of whole seconds: what ticks is the end that was written
                ticks = ticks + np.round(np.nan_to_num(sample["duration_s"].to_numpy()) * 1e9).astype(
                    np.int64
                )
            ends.append(ticks)
        return _step(np.concatenate(ends))

    def requests(
        self, batches: Iterator[pa.RecordBatch], tally: Tally, source: str, step_s: float
    ) -> Iterator[pa.RecordBatch]:
        """Batches of requests of the log ``source``.

        Args:
            batches: accesses in order of arrival.
            tally: counts what is left out.
            source: for messages.
            step_s: of the clock (s), as ``resolution`` tells it.

        Raises:
            UserError: an access touches too many extents.
        """
        origin, number = None, 0
        for batch in self._by_request(batches, tally):
            if not batch.num_rows:
                continue
            if origin is None:
                first = int(batch["ticks"][0].as_py())
                # an end on a coarse clock less a finer duration is between ticks: times since it would all seem so
                origin = first - first % round(step_s * _PER_SECOND) if step_s else first
            if self._extent_bytes is not None:
                accesses = _volumes(batch)
                check_pieces(accesses, self._extent_bytes, lambda row: source)
                yield from extent_batches(accesses, self._extent_bytes, origin, number, 1 / _PER_SECOND)
                number += batch.num_rows
                continue
            known = int(np.count_nonzero(~np.isnan(batch["duration_s"].to_numpy())))
            tally.dropped += 0 if self._timed else known
            tally.untimed += batch.num_rows - known if self._timed else 0
            for begin in range(0, batch.num_rows, BATCH_ROWS):
                part = batch.slice(begin, BATCH_ROWS)
                yield self._batch(part, origin, number)
                number += part.num_rows

    def _by_request(self, batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        """Batches in which rows of one request follow each other, where the log tells of requests.

        Requests that may go on in the next batch are held back for it, and with them those that arrive later.
        """
        held: list[pa.RecordBatch] = []
        for batch in batches:
            if "request" not in batch.schema.names:
                yield batch
                continue
            *full, batch = joined([*held, batch])
            for each in full:  # names of 2 GiB
                yield self._together(each, tally, ends=True)[0]
            ended, rest = self._together(batch, tally, ends=False)
            yield ended
            held = [rest] if rest.num_rows else []
        for batch in held:
            yield self._together(batch, tally, ends=True)[0]

    def _together(
        self, batch: pa.RecordBatch, tally: Tally, *, ends: bool
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Rows of one request one after another, at its arrival; ``late_s`` is how much later a row begins.

        A request is what one id does to one file. It arrives with its line of the whole request, or else with its
        first row.

        Args:
            batch: rows in order of ``ticks``.
            tally: counts the requests that no node has a row of.
            ends: whether no later rows belong to these requests.

        Returns:
            Those requests, and the rows, as they were, of those to be held back.
        """
        ticks = batch["ticks"].to_numpy()
        keys = np.stack(
            [batch[name].dictionary_encode().indices.to_numpy() for name in ("request", "name")]
            + [batch["write"].to_numpy(zero_copy_only=False).astype(np.int32)]
        )
        order = np.lexsort((ticks, *keys))
        keys, ticks = keys[:, order], ticks[order]
        begins = np.append(True, np.any(keys[:, 1:] != keys[:, :-1], axis=0))
        if self._profile.pause_ns is not None:
            begins[1:] |= np.diff(ticks) > self._profile.pause_ns
        group = np.cumsum(begins) - 1
        arrival = ticks[begins]
        whole = pc.equal(batch["node"], WHOLE).to_numpy(zero_copy_only=False)[order]
        arrival[group[whole]] = ticks[whole]
        later = np.zeros(len(arrival), bool)
        if not ends:
            last = ticks[np.append(begins[1:], True)]
            reach = _TOGETHER_NS if self._profile.pause_ns is None else self._profile.pause_ns
            later = arrival >= arrival[last >= last.max() - reach].min()
            if np.count_nonzero(later[group]) > HELD:
                later[:] = False  # what goes on for so long is cut
        alone = np.bincount(group) == np.bincount(group[whole], minlength=len(arrival))
        alone &= ~later
        if alone.any():
            tally.others["requests without a line of a node"] += int(alone.sum())
        # groups in the order of their arrivals
        rank = np.argsort(np.argsort(arrival, kind="stable"), kind="stable")[group]
        place = np.argsort(rank, kind="stable")
        place = place[~(whole | later[group])[place]]
        moved = batch.take(pa.array(order[place]))
        first = arrival[group[place]]
        late_s = np.zeros(len(place)) if self._profile.clock.coarse else (ticks[place] - first) / _PER_SECOND
        columns = {name: moved[name] for name in moved.schema.names}
        columns["request"] = self._request_ids(moved, first)
        rest = batch.take(pa.array(np.sort(order[later[group]])))
        return pa.record_batch(columns | {"ticks": pa.array(first), "late_s": pa.array(late_s)}), rest

    def _request_ids(self, batch: pa.RecordBatch, arrival: np.ndarray) -> pa.Array:
        """Ids that no other request has: one id of the log may do several things, and again after a pause."""
        texts = [batch["name"].cast(pa.string()), pc.if_else(batch["write"], "write", "read")]
        if REQUEST_ID in self._profile.roles:
            texts.insert(0, batch["request"])
        if self._profile.pause_ns is not None:
            texts.insert(0, pa.array(arrival).cast(pa.string()))
        return pc.binary_join_element_wise(*texts, "/")

    def _batch(self, batch: pa.RecordBatch, origin: int, number: int) -> pa.RecordBatch:
        ticks = batch["ticks"].to_numpy()
        arrivals = (ticks - origin) / _PER_SECOND
        write = batch["write"].to_numpy(zero_copy_only=False).astype(np.int8)
        names = batch.schema.names
        columns = {
            "arrival_s": pa.array(arrivals),
            "file_id": batch["name"],
            "op": pa.DictionaryArray.from_arrays(pa.array(write), WORDS),
            "bytes": batch["bytes"],
        }
        if "node" in names:
            columns["request_id"] = (
                batch["request"] if "request" in names else pa.array(np.arange(number, number + len(ticks)))
            )
            columns["node_id"] = batch["node"]
        begin = arrivals
        if "service_begin" in names:
            begin = (batch["service_begin"].to_numpy() - origin) / _PER_SECOND
            columns["start_s"] = pa.array(begin)
        if self._timed:
            late = batch["late_s"].to_numpy() if "late_s" in names else 0.0
            finish = begin + late + batch["duration_s"].to_numpy()
            columns["finish_s"] = pa.array(finish, mask=np.isnan(finish))
        if self._sized:
            columns[OBJECT_BYTES] = batch["object_bytes"]
        return pa.record_batch(columns)


def _step(ticks: np.ndarray) -> float:
    """The step of a clock (s) by its times (ns), (n,), in any order; 0: it is as good as continuous."""
    ticks = np.sort(ticks)
    for digits in range(10):
        if not np.any(ticks % 10 ** (9 - digits)):
            return common_step(ticks // 10 ** (9 - digits)) * 10.0**-digits
    return 0.0


def _of_whole_requests(samples: list[pa.RecordBatch]) -> np.ndarray | None:
    """Times (ns) of the lines of whole requests, where nearly all requests of nodes at their time have one.

    Args:
        samples: of the beginnings of files.

    Returns:
        None where that does not hold, or too few requests tell.
    """
    stretches = []
    for sample in samples:
        ticks = sample["ticks"].to_numpy()[pc.equal(sample["node"], WHOLE).to_numpy(zero_copy_only=False)]
        if ticks.size:
            stretches.append((int(ticks.min()), int(ticks.max())))
    if not stretches:
        return None
    (begin, end), *others = sorted(stretches)
    for first, last in others:
        if first < end - 2 * _TICK_NS:  # another machine at the same time, rather than a later file
            begin, end = max(begin, first), min(end, last)
    rows = pa.Table.from_batches(samples)
    rows = rows.append_column("whole", pc.equal(rows["node"], WHOLE))
    requests = rows.group_by(["request", "name", "write"]).aggregate(
        [("whole", "min"), ("whole", "max"), ("ticks", "min")]
    )
    # times of nodes are those of a tick, those of the whole are exact
    ticks = requests["ticks_min"].to_numpy()
    whole = requests["whole_max"].to_numpy()
    inside = (ticks >= begin + _TICK_NS) & (ticks <= end - _TICK_NS) & ~requests["whole_min"].to_numpy()
    if np.count_nonzero(inside) < LEAST_TIMES or np.mean(whole[inside]) < _JOINED:
        return None
    times: np.ndarray = rows.filter(rows["whole"])["ticks"].to_numpy()
    return times


def _volumes(batch: pa.RecordBatch) -> Accesses:
    return Accesses(
        batch["ticks"].to_numpy(),
        batch["write"].to_numpy(zero_copy_only=False),
        batch["offset"].to_numpy().astype(np.int64),
        batch["bytes"].to_numpy().astype(np.int64),
        None,
        batch["name"].cast(pa.string()).dictionary_encode(),
    )
