"""Profiles of logs that the machines of a storage cluster write, and of a benchmark of one."""

from dataclasses import replace

from ecjax.tables.importers.access_logs.profile import (
    CLF_TIME,
    DURATION,
    EPOCH,
    ERROR,
    ISO_TIME,
    KEY,
    KIND,
    LINE,
    NODE,
    OPERATION,
    RECEIVED,
    REQUEST,
    REQUEST_ID,
    SENT,
    STATUS,
    TIME,
    WHOLE,
    Anchor,
    Clock,
    Json,
    Profile,
    Text,
)
from ecjax.tables.importers.access_logs.stores import BRACKETED, GET, MONTHS, NO_NODES, PACE, PUT
from ecjax.tables.importers.trace import RATES, SOJOURN

# a POST changes what is said of an object, and not its bytes
_PUT = frozenset({"PUT"})

_PROXY_LINE = Text(
    positions={OPERATION: 1, KEY: 2, STATUS: 4, RECEIVED: 8, SENT: 9, DURATION: 13, KIND: 14, TIME: 16},
    first_lines=rf".*\s\d\d/(?:{MONTHS})/\d{{4}}/\d\d/\d\d/\d\d [A-Z]+ /",
    anchor=Anchor.SWIFT_DATE,
    mixed=True,
)
SWIFT_PROXY = Profile(
    name="swift_proxy",
    title="OpenStack Swift proxy server",
    shape=_PROXY_LINE,
    clock=Clock(EPOCH),
    reads=GET,
    writes=_PUT,
    loses=(
        NO_NODES,
        PACE,
        "Sizes of objects are those that were sent: ranges count as such.",
        "A large object is read once, as a whole: reads of its segments (source SLO or DLO) are left out.",
        "Requests through s3api name a bucket and a key, without an account; listings and subresources are left out.",
    ),
    foreign=("SLO", "DLO"),
    versioned=True,
    quoted=True,
    needed_parts=3,
    paths=True,
)

# what object servers' lines are joined with: the same lines, with their transaction
SWIFT_REQUESTS = replace(
    SWIFT_PROXY,
    shape=replace(_PROXY_LINE, positions={**_PROXY_LINE.positions, REQUEST_ID: 11}),
    node=WHOLE,
    # object servers read the segments
    foreign=(),
)

SWIFT_OBJECT = Profile(
    name="swift_object",
    title="OpenStack Swift object server",
    shape=Text(
        positions={TIME: 0, REQUEST: 1, STATUS: 2, SENT: 3, REQUEST_ID: 5, KIND: 6, DURATION: 7, NODE: -5},
        # without the protocol that web servers write after a path
        first_lines=rf'.*\s{BRACKETED} "[A-Z]+ /[^/ "]+/\d+/[^" ]*" \d{{3}} (?:\d+|-) "[^"]*" "[^"]*" "[^"]*" \d+\.\d',
        anchor=Anchor.BRACKET,
        mixed=True,
    ),
    clock=Clock(CLF_TIME, at_end=True),
    reads=GET,
    writes=_PUT,
    loses=(
        "The clock of object servers ticks in whole seconds.",
        "Sizes of writes are not in the log.",
        "Without the lines of the proxies, of nearly all requests, arrivals are as coarse as that clock.",
        "A node is a disk of the machine that the line begins with.",
        "Requests of daemons that repair, replicate and audit, and those to container servers, are left out.",
        "Requests through s3api are not joined with the lines of the proxies, which name no account.",
    ),
    # those of object servers, for one, tell container servers of an object
    foreign=("obj-", "object-", "container-", "account-"),
    write_bytes=(),
    skipped_parts=2,
    needed_parts=3,
    disks=True,
)

HDFS = Profile(
    name="hdfs",
    title="HDFS DataNode clienttrace",
    shape=Text(
        positions={
            TIME: LINE,
            SENT: 1,
            OPERATION: 3,
            REQUEST_ID: 5,
            NODE: 9,
            KEY: 11,
            DURATION: 13,
        },
        first_lines=r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ .*clienttrace.*: src: /",
        anchor=Anchor.MARKER,
        # newer versions have the volume before it
        marker="bytes:",
        mixed=True,
    ),
    clock=Clock(ISO_TIME, at_end=True),
    reads=frozenset({"HDFS_READ"}),
    writes=frozenset({"HDFS_WRITE"}),
    loses=(
        "Files are groups of blocks of erasure-coded files, or blocks of others: the log has no names.",
        "A request is what one client reads of one group without a pause of a second.",
        "Durations include the pace of the client.",
        "Reads are logged at DEBUG only.",
        "Times are local ones, without a zone: where clocks go back in autumn, two hours are laid upon one another.",
    ),
    provides=frozenset({RATES, SOJOURN}),
    duration_s=1e-9,
    read_bytes=(SENT,),
    write_bytes=(SENT,),
    secret=False,
    block_groups=True,
    pause_ns=10**9,
)

MINIO_DRIVES = Profile(
    name="minio_drives",
    title="MinIO calls of drives, mc admin trace",
    shape=Json(
        names={
            TIME: ("time",),
            OPERATION: ("api",),
            KEY: ("path",),
            SENT: ("size",),
            NODE: ("host",),
            ERROR: ("error",),
        },
        needed=(("api",), ("host",), ("path",), ("duration",), ("type",)),
    ),
    clock=Clock(ISO_TIME),
    reads=frozenset({"storage.ReadFileStream"}),
    loses=(
        "There are no response or service times: a call lasts until the file is open, before its bytes are read.",
        "Reads only: calls that write name temporary files, and objects small enough to be kept with their metadata "
        "are read with it.",
        "Files are parts of versions of objects: bucket, key, data directory, part.",
        "A request is what is read of one of these without a pause of 50 ms: two that come sooner count as one.",
        "A node is a drive of a host. Versions that do not write size tell no files.",
    ),
    provides=frozenset({RATES}),
    optional=frozenset({SENT, ERROR}),
    decodings=0,
    drives=True,
    pause_ns=5 * 10**7,
)

WARP = Profile(
    name="warp",
    title="warp benchmark, rows of a .csv.zst",
    shape=Text(
        positions={},
        first_lines="",
        separator="\t",
        header={
            OPERATION: ("op",),
            SENT: ("bytes",),
            NODE: ("endpoint",),
            KEY: ("file",),
            ERROR: ("error",),
            TIME: ("start",),
            DURATION: ("duration_ns",),
        },
    ),
    clock=Clock(ISO_TIME),
    reads=GET,
    writes=PUT,
    loses=(
        "Rates are those of a benchmark whose clients ask again at once, not of users.",
        "Times are those of whole requests as a client sees them, by endpoint.",
    ),
    duration_s=1e-9,
    write_bytes=(SENT,),
    decodings=0,
    tasks=True,
)

CLUSTERS = (SWIFT_OBJECT, SWIFT_PROXY, HDFS, WARP, MINIO_DRIVES)
