"""Access logs as traces: files found, recognised one by one, read in order of arrival."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.formats import user_errors, visible_files
from ecjax.tables.importers.access_logs.lines import BLOCK_BYTES, allow_open_files, blocks, open_lines
from ecjax.tables.importers.access_logs.ordered import Stream, in_order
from ecjax.tables.importers.access_logs.profile import SERVICE_BEGIN, SIZE, Json, Profile, Text
from ecjax.tables.importers.access_logs.reading import LineReader
from ecjax.tables.importers.access_logs.requests import Emitter
from ecjax.tables.importers.clock import LEAST_TIMES
from ecjax.tables.importers.rejects import Tally
from ecjax.tables.importers.table import refuse_extents
from ecjax.tables.importers.trace import SERVICE, SOJOURN, Head, Source, Trace
from ecjax.tables.several import base_of

_HEAD_BYTES, _HEAD_LINES = 1 << 16, 50
_JOINED_BYTES = 1 << 20  # of each file, so that lines of the same time are among those of all machines
_MOST_SAMPLED = 64  # blocks of a log whose first lines are all of one time
_SALT_BYTES = 1 << 20
_RECOGNISED_SHARE = 0.5
_HASHED = "Names of objects are hashed, salted by the log itself; requesters are not read (keep_ids=true keeps names)."


def recognised(lines: tuple[str, ...], profile: Profile) -> bool:
    """Whether more than half of the first lines are of a profile (all programs' lines count where they are mixed)."""
    mixed = isinstance(profile.shape, Text) and profile.shape.mixed
    lines = tuple(line for line in (lines if mixed else lines[:_HEAD_LINES]) if line.strip("[], \t"))
    if not lines:
        return False
    shape = profile.shape
    if isinstance(shape, Text):
        if header_of(lines, shape):
            return True
        if not shape.first_lines:
            return False
        lines = tuple(line for line in lines if not line.startswith("#"))
        fitting = sum(re.match(shape.first_lines, line) is not None for line in lines)
        return fitting > 0 if mixed else fitting > _RECOGNISED_SHARE * len(lines)
    fitting = sum(_has_paths(line, shape) for line in lines)
    return fitting > _RECOGNISED_SHARE * len(lines)


def separator_of(line: str, shape: Text) -> str:
    """What separates the words of a line."""
    return shape.separator or next((each for each in ("\t", ",") if each in line), " ")


def _opening(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The comments that lines begin with and the first one that is none; empty lines are left out."""
    lines = tuple(line for line in lines if line.strip())
    comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return lines[: comments + 1]


def header_of(lines: tuple[str, ...], shape: Text) -> str:
    """The line that names the columns of all roles: the first one or a comment before it; "" where none does."""
    if not shape.header:
        return ""
    return next((line for line in _opening(lines) if columns_of(line, shape) is not None), "")


def columns_of(line: str, shape: Text) -> tuple[int, ...] | None:
    """The column of each role, where the line names them all."""
    separator = separator_of(line, shape)
    text = line.strip("# ")
    if line.startswith("#"):
        text = text.lstrip(separator)  # the mark is no column
    # several spaces count as one, as in the lines that follow
    names = [name.strip(' "').lower() for name in text.split(None if separator == " " else separator)]
    places = [
        next((names.index(name) for name in each if name in names), -1) for each in shape.header.values()
    ]
    return None if -1 in places else tuple(places)


def _has_paths(line: str, shape: Json) -> bool:
    if not line.lstrip("[, \t").startswith("{"):
        return False
    names = set(re.sub("[_-]", "", name).lower() for name in re.findall(r'"([\w. -]+)"\s*:', line))
    return all(
        any(path.replace("_", "").lower().split(".")[-1] in names for path in paths) for paths in shape.needed
    )


@dataclass(frozen=True)
class AccessLogImporter:
    """Reads files of lines, each a request; what they tell and lose is in the profile.

    Attributes:
        profile: of the log.
        others: what further files of a folder may be.
        joined: of files in a folder whose lines are the whole requests behind those of the profile.
    """

    profile: Profile
    others: tuple[Profile, ...] = ()
    joined: Profile | None = None

    @property
    def name(self) -> str:
        """As ``format=`` has it."""
        return self.profile.name

    def recognises(self, head: Head) -> bool:
        """Whether the first lines are of this kind, or those of one of the files of a folder."""
        return any(recognised(lines, self.profile) for lines in (head.lines, *head.members))

    def open(self, source: Source) -> Trace:
        """Open an access log: a file or a folder of files, compressed or not.

        Raises:
            UserError: there is no access in it, a file is of no known kind, or an option is missing or does not fit.
        """
        extent_bytes = source.extents() if self.profile.block else None
        if not self.profile.block:
            refuse_extents(source, self.name)
        files = sorted(visible_files(source.path)) if source.path.is_dir() else [source.path]
        files = [file for file in files if file.stat().st_size]
        if not files:
            raise UserError(f"{source.path}: found no file with a line; allowed: at least one")
        heads = {file: head_lines(file) for file in files}
        self._check_format(heads, source.path)
        salt = None if source.keep_ids or not self.profile.secret else _salt(files)
        readers = {file: self._reader(file, lines, salt) for file, lines in heads.items()}
        tally = Tally(source.max_rejects)
        samples = self._samples(readers, source)
        # what the first file lacks may begin in a later one
        timed = any(map(_has_durations, samples)) or any(
            _has_durations(batch) for file, reader in readers.items() for batch in _head(file, reader)
        )
        sized = any(SIZE in reader.profile.roles for reader in readers.values())
        emitter = Emitter(self.profile, extent_bytes, timed, sized)
        step_s = emitter.resolution(samples)
        path = str(source.path)

        def read() -> Iterator[pa.RecordBatch]:
            tally.begin()
            allow_open_files(len(readers))
            streams = [
                Stream(
                    file,
                    _first_tick(file, reader) if len(readers) > 1 else 0,
                    partial(_batches, file, reader, tally),
                )
                for file, reader in readers.items()
            ]
            yield from emitter.requests(in_order(streams, path, source.sort), tally, path, step_s)
            tally.check(path, finished=True)

        def _batches(file: Path, reader: LineReader, tally: Tally) -> Iterator[pa.RecordBatch]:
            size = BLOCK_BYTES if len(readers) == 1 else BLOCK_BYTES // 4
            name = _relative(file, source.path)
            whole = self._whole(reader)
            for block in blocks(file, size):
                yield reader.accesses(block, name, tally)
                if whole is not None:
                    requests = Tally(tally.most)
                    yield whole.accesses(block, name, requests)
                    tally.join(requests)
                tally.check(path, finished=False)

        profiles = {id(reader.profile): reader.profile for reader in readers.values()}
        provides = frozenset.intersection(*(profile.provides for profile in profiles.values()))
        schema = emitter.schema(samples[0])
        if "finish_s" not in schema.names:
            provides -= {SOJOURN, SERVICE}
        loses = dict.fromkeys(sentence for profile in profiles.values() for sentence in profile.loses)
        if salt is not None:
            loses[_HASHED] = None
        return Trace(
            path=source.path,
            format=self.name,
            schema=schema,
            read=read,
            provides=provides,
            loses=(*loses, *source.sorting),
            clock_resolution_s=step_s,
            fingerprint=trace_fingerprint(source.path),
            extent_bytes=extent_bytes,
            tally=tally,
            tasks=self.profile.tasks,
        )

    def _check_format(self, heads: dict[Path, tuple[str, ...]], source: Path) -> None:
        """Refuse a log all of whose files are of other formats: what they have would go by this one's name."""
        shown: Profile | None = None
        for lines in heads.values():
            if any(recognised(lines, each) for each in (self.profile, self.joined) if each is not None):
                return
            shown = shown or next((each for each in self.others if recognised(lines, each)), None)
        if shown is not None:
            raise UserError(
                f"{source}: found lines of format={shown.name} ({shown.title}); allowed with format={self.name}: lines "
                "of that, or format=auto"
            )

    def _reader(self, file: Path, lines: tuple[str, ...], salt: np.ndarray | None) -> LineReader:
        """How a file with these first lines is read: by this profile, or another one that it shows."""
        profile = self.profile
        if not recognised(lines, profile):
            candidates = self.others if self.joined is None else (self.joined, *self.others)
            others = [each for each in candidates if _alike(each, profile) and recognised(lines, each)]
            mergeable = [each for each in others if _mergeable(each, profile)]
            if others and not mergeable:
                raise UserError(
                    f"{file}: found lines of format={others[0].name} ({others[0].title}) in a log of "
                    f"format={profile.name} ({profile.title}); allowed: one of them, as they tell different things of "
                    "an access"
                )
            profile = mergeable[0] if mergeable else profile
        shape = profile.shape
        if not isinstance(shape, Text) or not lines:
            return LineReader(profile, salt)
        _check_order(file, lines, profile.name, shape)
        header = header_of(lines, shape)
        first = header or ("", *_opening(lines))[-1]
        if not header and (not shape.positions or (shape.header and not _any_fits(lines, shape))):
            needed = ", ".join(names[0] for names in shape.header.values())
            raise UserError(f"{file}: found as first line {first[:80]!r}; allowed: columns {needed}")
        columns = columns_of(header, shape) if header else None
        return LineReader(profile, salt, separator_of(first, shape), columns, header)

    def _whole(self, reader: LineReader) -> LineReader | None:
        """What reads the lines of whole requests among those of other kinds in a file; None: there are none."""
        both = self.joined is not None and reader.profile is self.profile
        return replace(reader, profile=self.joined) if both and self.joined is not None else None

    def _samples(self, readers: dict[Path, LineReader], source: Source) -> list[pa.RecordBatch]:
        """The first accesses of a log, as many as tell its clock, or all if there are few.

        Of logs that are joined they are of the beginning of each file.
        """
        tally = Tally(1.0)
        samples: list[pa.RecordBatch] = []
        times: set[int] = set()

        def enough() -> bool:
            few = len(times) < LEAST_TIMES and len(samples) < _MOST_SAMPLED
            return bool(samples) and (self.profile.clock.coarse or not few)

        for file, reader in readers.items():
            for block in blocks(file, _HEAD_BYTES if self.joined is None else _JOINED_BYTES):
                batches = [reader.accesses(block, str(file), tally)]
                if (whole := self._whole(reader)) is not None:
                    batches.append(whole.accesses(block, str(file), Tally(1.0)))
                batches = [batch for batch in batches if batch.num_rows]
                samples += batches
                times.update(*(batch["ticks"].to_pylist() for batch in batches))
                if batches and enough():
                    break
            if self.joined is None and enough():
                break
        if samples:
            return samples
        if tally.rejected:
            first = tally.samples[0]
            raise UserError(
                f"{source.path}: found no access among {tally.lines:,} lines, the first malformed one in {first.file}, "
                f"line {first.line}: {first.reason}; allowed: format={self.name} ({self.profile.title})"
            )
        raise UserError(
            f"{source.path}: found no access that reads or writes an object among {tally.lines:,} lines; allowed: at "
            "least one"
        )


def _check_order(file: Path, lines: tuple[str, ...], format_name: str, shape: Text) -> None:
    """Refuse a file whose own names of its columns are in another order than that in which they are read."""
    if not shape.comment:
        return
    for line in _opening(lines):
        names = line.removeprefix("#Fields:").split() if line.startswith("#Fields:") else []
        for place, name in shape.comment.items():
            if place < len(names) and names[place].lower() != name.lower():
                raise UserError(
                    f"{file}: found #Fields with {names[place]} in place {place + 1}; allowed with "
                    f"format={format_name}: {name}, in the documented order"
                )


def _any_fits(lines: tuple[str, ...], shape: Text) -> bool:
    """Whether one of the first lines is as those of a file without names of columns."""
    return any(re.match(shape.first_lines, line) for line in lines[:_HEAD_LINES])


def _alike(one: Profile, other: Profile) -> bool:
    """Whether accesses of two profiles are things of one kind."""
    return all(getattr(one, name) == getattr(other, name) for name in ("nodes", "secret", "block"))


def _mergeable(one: Profile, other: Profile) -> bool:
    """Whether accesses of two profiles may stand in one log: they have the same columns, and make requests alike."""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("requests", "pause_ns", "block_groups")
    ) and (SERVICE_BEGIN in one.roles) == (SERVICE_BEGIN in other.roles)


def head_lines(file: Path) -> tuple[str, ...]:
    """The first whole lines of a file, decompressed."""
    with user_errors(file), open_lines(file) as stream:
        start = stream.read(_HEAD_BYTES)
    # so that ``header_lines`` has the bytes again
    lines = start.decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines()
    return tuple(lines[:-1] if len(start) == _HEAD_BYTES and len(lines) > 1 else lines)


def _first_tick(file: Path, reader: LineReader) -> int:
    """When a file begins (ns); where its first lines do not say, before all others."""
    [batch] = _head(file, reader) or [None]
    return int(batch["ticks"].to_numpy().min()) if batch is not None and batch.num_rows else -(2**62)


def _head(file: Path, reader: LineReader) -> list[pa.RecordBatch]:
    """The accesses at the beginning of a file, as one batch; none where it has no line."""
    return [reader.accesses(block, str(file), Tally(1.0)) for block in islice(blocks(file, _HEAD_BYTES), 1)]


def _has_durations(accesses: pa.RecordBatch) -> bool:
    return not np.isnan(accesses["duration_s"].to_numpy()).all()


def _relative(file: Path, source: Path) -> str:
    return str(file.relative_to(base_of(source)))


def _salt(files: list[Path]) -> np.ndarray:
    """A key that only who has the log knows: its own content, by a hash that is written nowhere."""
    digest = hashlib.blake2b(digest_size=16, person=b"ecjax.names")
    for file in files:
        with user_errors(file), file.open("rb") as stream:
            digest.update(stream.read(_SALT_BYTES))
    return np.frombuffer(digest.digest(), np.uint64)
