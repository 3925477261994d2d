"""What is known of one kind of access log: how its lines are recognised and which of their fields mean what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ecjax.tables.importers.trace import RATES, SOJOURN

# Roles of fields.
TIME, OPERATION, REQUEST, BUCKET, KEY, STATUS = "time", "operation", "request", "bucket", "key", "status"
SENT, RECEIVED, SIZE, DURATION, NODE, REQUEST_ID = (
    "sent",
    "received",
    "size",
    "duration",
    "node",
    "request_id",
)
OFFSET, RANGE_BEGIN, RANGE_END, SERVICE_BEGIN = "offset", "range_begin", "range_end", "service_begin"
ERROR = "error"
KIND = "kind"
HOST, HOST_PORT, QUERY = "host", "host_port", "query"
# what follows DURATION, where a server writes other numbers before it
SECOND, THIRD, FOURTH = "second_number", "third_number", "fourth_number"
WHOLE = "*"  # no node
LINE = -100  # a position: where the line begins

CLF_TIME, ISO_TIME, EPOCH, COMPACT_TIME = range(4)


class Anchor(IntEnum):
    """From which word of a line the positions of its fields are counted."""

    START = 0  # the first one
    BRACKET = 1  # the first that begins with "["
    SWIFT_DATE = 2  # the first like 23/Nov/2026/08/36/47
    MARKER = 3  # the first that ends in the marker of the profile


@dataclass(frozen=True)
class Clock:
    """How a time is written.

    Attributes:
        kind: CLF_TIME (23/Nov/2026:08:36:47 +0000), ISO_TIME, EPOCH (a number) or COMPACT_TIME (20261123083647).
        unit_ns: of a number (ns); 0: told by its size.
        at_end: whether it is when the request ended, so that it arrived its duration earlier.
        in_seconds: whether it ticks in whole seconds, whatever its spelling could say.
    """

    kind: int
    unit_ns: int = 10**9
    at_end: bool = False
    in_seconds: bool = False

    @property
    def coarse(self) -> bool:
        """Whether it ticks in whole seconds."""
        return self.in_seconds or self.kind in (CLF_TIME, COMPACT_TIME)


@dataclass(frozen=True)
class Text:
    """Lines of words.

    Attributes:
        positions: of each role, counted from the anchor.
        first_lines: regular expression of a line of this kind; none where a header is needed.
        separator: between words; several spaces count as one; "": tab, comma or space, told by the first line.
        anchor: see there.
        marker: for ``Anchor.MARKER``.
        mixed: whether lines without an anchor are of other programs, rather than malformed.
        escapes: whether backslashes escape letters within quotation marks, as in a web server's log.
        header: names of the column of each role, for files that begin with a line of names.
        comment: what a comment "#Fields: ..." calls the columns at these positions; files of another order are refused.
    """

    positions: Mapping[str, int]
    first_lines: str
    separator: str = " "
    anchor: Anchor = Anchor.START
    marker: str = ""
    mixed: bool = False
    escapes: bool = False
    header: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    comment: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Json:
    """Lines that are JSON objects.

    Attributes:
        names: of each role, the first of these paths that is there; case, "_" and "-" do not count.
        needed: paths by which such a log is recognised, each with its alternatives.
    """

    names: Mapping[str, tuple[str, ...]]
    needed: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Profile:
    """One kind of access log.

    Attributes:
        name: as ``format=`` has it.
        title: what users call it.
        shape: how its lines are built.
        clock: of the role TIME.
        reads, writes: words of the role OPERATION (or methods, of REQUEST); other operations are left out.
        whole: those of them that move whole objects within the store, of which it sends or receives nothing.
        operations: regular expression of all words that such a log has as OPERATION, others being malformed; "": any.
        loses: what such a log does not tell, sentences.
        provides: of "rates", "sojourn", "service" and "placement".
        duration_s: unit of a duration without one of its own (s); None: as ``durations.duration_words`` tells.
        read_bytes, write_bytes: roles that say how much was asked for, the first that has a number counts.
        paths: whether names are targets of requests: paths, perhaps with a query and a host.
        skipped_parts: parts at the beginning of a path that are not of the object's name.
        versioned: whether paths begin with the version of Swift's API, which is not of the name either; others are
            those of S3, which have one part (the account) less.
        quoted: whether targets are percent-encoded once more, with their queries.
        needed_parts: parts that a path has then at least; others are no objects.
        decodings: how many times names are percent-encoded.
        secret: whether names are those of users, to be hashed unless they may stay.
        every_read: whether there is no operation and each line is a read.
        block: whether names are volumes, cut into extents.
        disks: whether the first part of a path is a disk of the node, which counts as a node of its own.
        drives: whether a name is a drive of the node, a bucket and a key with spaces between them; the drive counts
            as a node of its own.
        block_groups: whether names are HDFS blocks, of which sixteen with numbers below 0 are a file.
        optional: roles that a line may lack.
        foreign: how the role KIND begins in requests that are no reads or writes of users.
        node: the node of all lines, where they do not name it; ``WHOLE``: lines are whole requests, to be joined with
            those of nodes.
        pause_ns: after which what is done with the same id, or without ids, to the same object is another request;
            None: ids are of one request each.
        tasks: whether a line is one connection of a proxy from its begin to its end.
        source: public name of a data set.
    """

    name: str
    title: str
    shape: Text | Json
    clock: Clock
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    operations: str = ""
    loses: tuple[str, ...] = ()
    provides: frozenset[str] = frozenset({RATES, SOJOURN})
    duration_s: float | None = 1.0
    read_bytes: tuple[str, ...] = (SENT,)
    write_bytes: tuple[str, ...] = (RECEIVED, SIZE)
    paths: bool = False
    skipped_parts: int = 0
    versioned: bool = False
    quoted: bool = False
    needed_parts: int = 1
    decodings: int = 1
    secret: bool = True
    every_read: bool = False
    block: bool = False
    disks: bool = False
    drives: bool = False
    block_groups: bool = False
    optional: frozenset[str] = frozenset()
    foreign: tuple[str, ...] = ()
    node: str = ""
    pause_ns: int | None = None
    tasks: bool = False
    source: str = ""

    @property
    def nodes(self) -> bool:
        """Whether lines are accesses of chunks at nodes."""
        return NODE in self.roles or bool(self.node)

    @property
    def requests(self) -> bool:
        """Whether lines tell of which request they are, so that several are of one."""
        return REQUEST_ID in self.roles or self.pause_ns is not None

    @property
    def has_dashes(self) -> bool:
        """Whether "-" stands for no bytes, as servers write it; data sets have numbers."""
        return not self.source

    @property
    def is_path(self) -> bool:
        """As ``paths``; so are the targets of whole requests."""
        return self.paths or REQUEST in self.roles

    @property
    def roles(self) -> tuple[str, ...]:
        """The fields that are read, in the order of their slots."""
        if isinstance(self.shape, Json):
            return tuple(self.shape.names)
        return tuple(self.shape.positions or self.shape.header)
