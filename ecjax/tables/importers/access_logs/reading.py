"""Accesses from the lines of a block: fields found, values read, other lines sorted out, all by array."""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.importers.access_logs.durations import (
    SECONDS,
    SECONDS_LATER,
    WORDS,
    duration_words,
)
from ecjax.tables.importers.access_logs.fields import Fields, Wrong, header_lines, unescaped
from ecjax.tables.importers.access_logs.json_fields import hash_paths, json_fields
from ecjax.tables.importers.access_logs.lines import Block
from ecjax.tables.importers.access_logs.names import (
    block_groups,
    drive_words,
    host_names,
    object_names,
    siphash,
    strings,
    unquoted,
    words,
)
from ecjax.tables.importers.access_logs.profile import (
    BUCKET,
    DURATION,
    ERROR,
    FOURTH,
    HOST,
    HOST_PORT,
    KEY,
    KIND,
    NODE,
    OFFSET,
    OPERATION,
    QUERY,
    RANGE_BEGIN,
    RANGE_END,
    REQUEST,
    REQUEST_ID,
    SECOND,
    SERVICE_BEGIN,
    SIZE,
    STATUS,
    THIRD,
    Json,
    Profile,
    Text,
)
from ecjax.tables.importers.access_logs.queries import subresources
from ecjax.tables.importers.access_logs.text_fields import (
    FINE,
    NO_ANCHOR,
    NO_OBJECT,
    NOT_CLOSED,
    NOTHING,
    request_words,
    text_fields,
)
from ecjax.tables.importers.blocks import LARGEST
from ecjax.tables.importers.rejects import OTHER_KINDS, SAMPLED, Rejected, Tally
from ecjax.tables.schemas import MOST_NUMBER

_WORD = re.compile(r"[A-Za-z][\w.:\-]*")
_READ, _WRITE, _OTHER, _NO_WORD = 0, 1, 2, 3
_WHOLE = 4  # added to the first two: the whole object, within the store
_NOT_READ = {
    NO_ANCHOR: "no line of this format",
    NOT_CLOSED: "cut within quotation marks, brackets or an object",
    NO_OBJECT: "no JSON object",
}
# of a request, three years: the nanoseconds between the times of a log fit in 64 bits then
_LONGEST_S = 1e8
_NO_OBJECT_WORD = "without an object"
_SUBRESOURCE_WORD = "of listings and subresources"
_NONE = np.empty((0, 2), np.int64)  # no bucket and no query in any line


@dataclass(frozen=True)
class LineReader:
    """Reads the lines of one profile.

    Attributes:
        profile: of the lines.
        salt: by which names are hashed, (2,) uint64; None: they stay.
        separator: between words.
        columns: position of each role, where a header names the columns.
        header: that line; it may come again where files were put together.
    """

    profile: Profile
    salt: np.ndarray | None
    separator: str = " "
    columns: tuple[int, ...] | None = None
    header: str = ""

    @cached_property
    def _paths(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of the paths of a JSON profile, and the slot of each."""
        assert isinstance(self.profile.shape, Json)
        named = [
            (path, slot) for slot, paths in enumerate(self.profile.shape.names.values()) for path in paths
        ]
        text = "".join(path for path, _ in named).encode()
        offsets = np.cumsum([0, *(len(path) for path, _ in named)])
        hashes = np.empty(len(named), np.uint64)
        hash_paths(np.frombuffer(text, np.uint8), offsets, hashes)
        return hashes, np.array([slot for _, slot in named])

    def accesses(self, block: Block, file: str, tally: Tally) -> pa.RecordBatch:
        """The accesses in a block, in the order of their lines; the rest is counted in ``tally``.

        Returns:
            Columns ticks (int64, ns), name (int64 or string), write (bool), bytes, object_bytes and duration_s (NaN:
            not known), and node and request where the profile has them.
        """
        data, spans, states = self._fields(block)
        fields = Fields(data, dict(zip(self.profile.roles, np.moveaxis(spans, 1, 0), strict=True)))
        wrong = Wrong(len(states))
        for state, reason in _NOT_READ.items():
            wrong.add(states == state, reason)
        left_out = header_lines(block, self.header) | (states == NOTHING)
        wrong.forgive(left_out)
        if isinstance(self.profile.shape, Text) and self.profile.shape.mixed:
            other = states == NO_ANCHOR
            wrong.forgive(other)
            if other.any():
                tally.others[OTHER_KINDS] += int(other.sum())
            left_out |= other
        tally.lines += int(np.count_nonzero(states != NOTHING))
        if STATUS in fields:
            status, bad = fields.numbers(STATUS, 1.0)
            # a line that ends before it is cut, perhaps within the name of the object
            bad |= (fields.spans[STATUS][:, 0] < 0) & isinstance(self.profile.shape, Text)
            wrong.add(bad & ~left_out, "status")
            failed = wrong.none & ~left_out & ~np.isnan(status) & ((status < 200) | (status > 299))
            tally.unsuccessful += int(failed.sum())
            left_out |= failed
        if ERROR in fields:
            failed = wrong.none & ~left_out & (fields.spans[ERROR][:, 1] > fields.spans[ERROR][:, 0])
            tally.unsuccessful += int(failed.sum())
            left_out |= failed
        for word in self.profile.foreign:
            foreign = wrong.none & ~left_out & fields.begin_with(KIND, word)
            if foreign.any():
                tally.others[f"{word.strip()}..."] += int(foreign.sum())
            left_out |= foreign
        kinds, targets = self._operations(fields, wrong, left_out, tally)
        left_out |= wrong.none & (kinds == _OTHER)  # one that is cut stays malformed, whatever it asked for
        rows = np.flatnonzero(wrong.none & ~left_out)
        batch = self._batch(fields.of(rows), kinds[rows], targets[rows], wrong, rows, tally)
        wrong.forgive(left_out)
        self._count(block, file, wrong, tally)
        return batch

    def _fields(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape, lines = self.profile.shape, len(block.begins)
        spans = np.empty((lines, len(self.profile.roles), 2), np.int64)
        states = np.empty(lines, np.int8)
        if isinstance(shape, Text):
            positions = shape.positions.values() if self.columns is None else self.columns
            marker = np.frombuffer(shape.marker.encode() or b" ", np.uint8)
            separator = ord(self.separator)
            text_fields(
                *(block.data, block.begins, block.ends, separator, shape.escapes, int(shape.anchor), marker),
                *(np.array(list(positions)), spans, states),
            )
            return block.data, spans, states
        escaped = np.empty(lines, bool)
        json_fields(block.data, block.begins, block.ends, *self._paths, spans, states, escaped)
        escaped &= states == FINE
        return unescaped(block.data, spans, np.flatnonzero(escaped)), spans, states

    def _operations(
        self, fields: Fields, wrong: Wrong, left_out: np.ndarray, tally: Tally
    ) -> tuple[np.ndarray, np.ndarray]:
        """Whether each line reads, writes or neither, or moves a whole object, and where its object is named."""
        count = wrong.count
        targets = fields.spans[KEY] if KEY in fields else np.full((count, 2), -1)
        if self.profile.every_read:
            return np.where(left_out, _OTHER, _READ), targets
        spans = fields.spans[OPERATION] if OPERATION in fields else np.empty((count, 2), np.int64)
        if OPERATION not in fields:
            targets = np.empty((count, 2), np.int64)
            request_words(fields.data, np.ascontiguousarray(fields.spans[REQUEST]), spans, targets)
        encoded = words(fields.data, spans).dictionary_encode()
        met = encoded.dictionary.to_pylist()
        kinds = np.array([self._kind(word) for word in met], np.int64)[encoded.indices.to_numpy()]
        wrong.add((kinds == _NO_WORD) & ~left_out, "operation")
        others = wrong.none & ~left_out & (kinds == _OTHER)
        if others.any():
            counts = np.bincount(encoded.indices.to_numpy()[others], minlength=len(met))
            tally.others.update({word: int(n) for word, n in zip(met, counts, strict=True) if n})
        return kinds, targets

    def _kind(self, word: str) -> int:
        whole = _WHOLE if word in self.profile.whole else 0
        if word in self.profile.reads:
            return _READ + whole
        if word in self.profile.writes:
            return _WRITE + whole
        if self.profile.operations:
            return _OTHER if re.fullmatch(self.profile.operations, word) else _NO_WORD
        return _OTHER if _WORD.fullmatch(word) or word.isdigit() else _NO_WORD

    def _batch(
        self,
        fields: Fields,
        kinds: np.ndarray,
        targets: np.ndarray,
        wrong: Wrong,
        rows: np.ndarray,
        tally: Tally,
    ) -> pa.RecordBatch:
        profile, count = self.profile, len(rows)
        ticks, bad = fields.times(profile.clock.kind, profile.clock.unit_ns)
        wrong.add(bad, "time", rows)
        duration, late = self._durations(fields, wrong, rows, tally)
        ticks = ticks - np.round(np.nan_to_num(np.where(late, duration, 0)) * 1e9).astype(np.int64)
        amounts, object_bytes = self._bytes(fields, kinds, wrong, rows)
        drive, buckets = None, self._buckets(fields)
        if profile.drives:
            drives, buckets, keys = (np.empty((count, 2), np.int64) for _ in range(3))
            drive_words(fields.data, np.ascontiguousarray(targets), drives, buckets, keys)
            drive, targets = words(fields.data, drives), keys
        ids, named, subresource = self._ids(fields, buckets, targets)
        wrong.add((targets[:, 0] < 0) & ~named, "name of an object", rows)
        used = wrong.none[rows]
        if (used & subresource).any():
            tally.others[_SUBRESOURCE_WORD] += int((used & subresource).sum())
            used &= ~subresource
        nameless = used & ~named
        if nameless.any():
            tally.others[_NO_OBJECT_WORD] += int(nameless.sum())
            used &= named
        columns = {
            "ticks": ticks,
            "name": ids,
            "write": (kinds & _WRITE) > 0,
            "bytes": amounts,
            "object_bytes": object_bytes,
            "duration_s": duration,
        }
        if SERVICE_BEGIN in fields:
            begin, bad = fields.times(profile.clock.kind, profile.clock.unit_ns, SERVICE_BEGIN)
            served = duration > 0
            if (used & ~served).any():
                tally.others["accesses that no disk served"] += int((used & ~served).sum())
            wrong.add(served & (bad | (begin < ticks)), "begin of service", rows)
            used &= served & wrong.none[rows]
            columns["service_begin"] = begin
        if NODE in fields:
            columns["node"] = words(fields.data, fields.spans[NODE])
            if profile.disks:
                disk = pc.replace_substring_regex(words(fields.data, targets), "^/?([^/]*).*", r"\1")
                columns["node"] = pc.binary_join_element_wise(columns["node"], disk, "/")
            if drive is not None:
                columns["node"] = pc.binary_join_element_wise(columns["node"], drive, "")
        elif profile.node:
            columns["node"] = pa.repeat(profile.node, count)
        if OFFSET in fields:
            offset, bad = fields.numbers(OFFSET, 1.0)
            wrong.add(bad | np.isnan(offset) | (offset + amounts > LARGEST), OFFSET, rows)
            used &= wrong.none[rows]
            columns["offset"] = offset
        if REQUEST_ID in fields:
            columns["request"] = words(fields.data, fields.spans[REQUEST_ID])
        elif profile.pause_ns is not None:
            columns["request"] = ids
        return pa.record_batch(columns).filter(pa.array(used))

    def _buckets(self, fields: Fields) -> np.ndarray:
        """Where it is said what names begin with, (rows, 2): buckets or hosts; (0, 2) where no line says."""
        if HOST_PORT in fields:
            spans = np.ascontiguousarray(fields.spans[HOST_PORT])
            hosts = np.empty_like(spans)
            host_names(fields.data, spans, hosts)
            return hosts
        return next((fields.spans[role] for role in (BUCKET, HOST) if role in fields), _NONE)

    def _durations(
        self, fields: Fields, wrong: Wrong, rows: np.ndarray, tally: Tally
    ) -> tuple[np.ndarray, np.ndarray]:
        """Durations (s), NaN where there are none, and whether the time of a line is that of its end."""
        profile, late = self.profile, np.full(len(rows), self.profile.clock.at_end)
        if DURATION not in fields:
            return np.full(len(rows), np.nan), late
        meaning = np.zeros(len(rows), np.int8)
        if SECOND in fields:
            following = np.stack([fields.spans[role] for role in (DURATION, SECOND, THIRD, FOURTH)], axis=1)
            fields.spans[DURATION] = np.empty((len(rows), 2), np.int64)
            duration_words(fields.data, following, fields.spans[DURATION], meaning)
            # Apache and Traefik write when a request began
            late &= (meaning == SECONDS) | (meaning == SECONDS_LATER)
        duration, bad = fields.numbers(DURATION, profile.duration_s or 0.0)
        bad |= duration > _LONGEST_S
        duration[bad] = np.nan
        if DURATION not in profile.optional:
            wrong.add(bad, DURATION, rows)
        for word, text in WORDS.items():
            if (meaning == word).any():
                tally.add_durations(text, duration[meaning == word])
        return duration, late

    def _bytes(
        self, fields: Fields, kinds: np.ndarray, wrong: Wrong, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bytes asked for, and of the whole object, NaN where that is not known."""
        known = {}
        for role in (*self.profile.read_bytes, *self.profile.write_bytes, SIZE, RANGE_BEGIN, RANGE_END):
            if role in fields and role not in known:
                known[role], bad = fields.numbers(role, 1.0)
                bad |= known[role] > MOST_NUMBER
                if role in (RANGE_BEGIN, RANGE_END):
                    known[role][bad] = np.nan  # no range: -1
                    continue
                needed = role in (*self.profile.read_bytes, *self.profile.write_bytes)
                needed &= role not in self.profile.optional
                absent = np.equal(*fields.spans[role].T)  # or an empty cell
                if not self.profile.has_dashes:
                    bad |= np.isnan(known[role]) & ~absent
                wrong.add(bad | (absent & needed & isinstance(self.profile.shape, Text)), role, rows)
        nothing = np.full(len(rows), np.nan)
        amounts = [nothing, nothing]
        for kind, roles in enumerate((self.profile.read_bytes, self.profile.write_bytes)):
            for role in roles:
                amounts[kind] = np.where(np.isnan(amounts[kind]), known.get(role, nothing), amounts[kind])
        if RANGE_END in known:
            # a range may go beyond the end of the object, whose bytes end there
            end = np.fmin(known[RANGE_END], known.get(SIZE, nothing) - 1)
            part = np.maximum(end - known[RANGE_BEGIN] + 1, 0)
            amounts[0] = np.where(np.isnan(part), amounts[0], part)
        total = np.where(kinds & _WRITE, amounts[1], amounts[0])
        sizes = known.get(SIZE, nothing)
        total = np.where(((kinds & _WHOLE) > 0) & ~np.isnan(sizes), sizes, total)
        return np.nan_to_num(total), sizes

    def _ids(
        self, fields: Fields, buckets: np.ndarray, targets: np.ndarray
    ) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """Ids of the objects, where there is one, and where a listing or a subresource is meant instead."""
        profile, data, targets = self.profile, fields.data, np.ascontiguousarray(targets)
        named, subresource = np.empty(len(targets), bool), np.zeros(len(targets), bool)
        if profile.block_groups:
            groups = np.empty(len(targets), np.int64)
            block_groups(data, targets, groups, named)
            return pa.array(groups), named, subresource
        room = int(np.sum(targets[:, 1] - targets[:, 0]))
        if profile.quoted:
            decoded, moved = np.empty(max(room, 1), np.uint8), np.empty_like(targets)
            unquoted(data, targets, decoded, moved)
            decoded.flags.writeable = False  # as blocks are, so that names are compiled once
            data, targets = decoded, moved
        if profile.is_path:
            queries = fields.spans[QUERY] if QUERY in fields else _NONE
            subresources(data, targets, np.ascontiguousarray(queries), subresource)
        room += int(np.sum(buckets[:, 1] - buckets[:, 0])) + len(targets)
        text, offsets = np.empty(max(room, 1), np.uint8), np.empty(len(targets) + 1, np.int64)
        escapes = isinstance(profile.shape, Text) and profile.shape.escapes
        object_names(
            *(data, np.ascontiguousarray(buckets), targets, profile.is_path, profile.versioned),
            *(profile.skipped_parts, profile.needed_parts, escapes, profile.decodings, text, offsets, named),
        )
        if self.salt is None:
            return strings(text, offsets), named, subresource
        hashes = np.empty(len(targets), np.int64)
        siphash(text, offsets, self.salt, hashes)
        return pa.array(hashes), named, subresource

    def _count(self, block: Block, file: str, wrong: Wrong, tally: Tally) -> None:
        samples = []
        for code, reason in enumerate(wrong.reasons, 1):
            lines = np.flatnonzero(wrong.codes == code)
            room = max(SAMPLED - tally.reasons[reason], 0)
            for line in lines[:room].tolist():
                text = block.text(line) if self.salt is None else None
                samples.append(Rejected(file, int(block.numbers[line]), reason, text))
            if lines.size:
                tally.reasons[reason] += int(lines.size)
        tally.samples += sorted(samples, key=lambda sample: sample.line)
