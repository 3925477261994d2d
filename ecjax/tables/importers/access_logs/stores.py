"""Profiles of the access logs of object stores, web servers and file systems."""

from dataclasses import replace

from ecjax.tables.importers.access_logs.profile import (
    BUCKET,
    CLF_TIME,
    DURATION,
    EPOCH,
    ERROR,
    ISO_TIME,
    KEY,
    LINE,
    NODE,
    OPERATION,
    RECEIVED,
    REQUEST,
    REQUEST_ID,
    SENT,
    SIZE,
    STATUS,
    TIME,
    WHOLE,
    Anchor,
    Clock,
    Json,
    Profile,
    Text,
)
from ecjax.tables.importers.trace import RATES, SOJOURN

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_BRACKETED = rf"\[\d\d/(?:{_MONTHS})/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}}\]"
_SECONDS = "The clock ticks in whole seconds."
_NO_NODES = "Nodes are not in the log: service times, loads and placement are unknown."
_PACE = "Times until the last byte include the pace of the reader."
_GET, _PUT = frozenset({"GET"}), frozenset({"PUT", "POST"})

_S3_READS = frozenset(
    {"REST.GET.OBJECT", "WEBSITE.GET.OBJECT", "REST.COPY.OBJECT_GET", "REST.COPY.PART_GET", "SOAP.GetObject"}
)
_S3_WRITES = frozenset(
    {
        "REST.PUT.OBJECT",
        "REST.POST.OBJECT",
        "REST.PUT.PART",
        "REST.COPY.OBJECT",
        "REST.COPY.PART",
        "SOAP.PutObject",
    }
)
_S3_LOSES = (_SECONDS, _NO_NODES, _PACE, "Delivery is best effort: lines may be missing or late.")

S3 = Profile(
    name="s3",
    title="Amazon S3 server access log, and stores that write it",
    shape=Text(
        positions={BUCKET: -1, TIME: 0, OPERATION: 4, KEY: 5, STATUS: 7, SENT: 9, SIZE: 10, DURATION: 11},
        first_lines=rf"\S+ \S+ {_BRACKETED} \S+ \S+ \S+ [A-Z0-9]+\.\S+ \S+ ",
        anchor=Anchor.BRACKET,
    ),
    clock=Clock(CLF_TIME),
    reads=_S3_READS,
    writes=_S3_WRITES,
    loses=_S3_LOSES,
    duration_s=1e-3,
    write_bytes=(SIZE,),
    decodings=2,
)

S3_JSON = Profile(
    name="s3_json",
    title="Amazon S3 server access log as JSON, by the column names of AWS",
    shape=Json(
        names={
            BUCKET: ("bucket", "bucket_name"),
            TIME: ("time", "requestdatetime", "request_time", "timestamp"),
            OPERATION: ("operation",),
            KEY: ("key",),
            STATUS: ("http_status", "httpstatus"),
            SENT: ("bytes_sent",),
            SIZE: ("object_size",),
            DURATION: ("total_time",),
        },
        needed=(
            ("operation",),
            ("key",),
            ("bytes_sent",),
            ("object_size",),
            ("turn_around_time", "total_time"),
        ),
    ),
    clock=Clock(CLF_TIME),
    reads=_S3_READS,
    writes=_S3_WRITES,
    loses=_S3_LOSES,
    duration_s=1e-3,
    write_bytes=(SIZE,),
    decodings=2,
)

NGINX = Profile(
    name="nginx",
    title="nginx or Apache combined log, with $request_time or %D at the end",
    shape=Text(
        positions={TIME: 0, REQUEST: 1, STATUS: 2, SENT: 3, DURATION: 6},
        first_lines=rf'\S+ .*?{_BRACKETED} "[^"]*" \d{{3}} (?:\d+|-)(?: |$)',
        anchor=Anchor.BRACKET,
    ),
    clock=Clock(CLF_TIME, at_end=True),
    reads=_GET,
    writes=_PUT,
    loses=(
        _SECONDS,
        _NO_NODES,
        _PACE,
        "Sizes of writes are not in the log.",
        "A last number with a point counts as seconds (nginx), a whole one as microseconds (Apache).",
    ),
    duration_s=None,
    write_bytes=(),
    optional=frozenset({DURATION}),
)

CLOUDFRONT = Profile(
    name="cloudfront",
    title="Amazon CloudFront standard log, and CDNs that write it",
    shape=Text(
        positions={TIME: LINE, SENT: 3, OPERATION: 5, KEY: 7, STATUS: 8, DURATION: 18},
        first_lines=r"\d{4}-\d\d-\d\d\t\d\d:\d\d:\d\d\t\S+\t\d+\t\S+\t[A-Z]+\t",
        separator="\t",
    ),
    clock=Clock(ISO_TIME, at_end=True, in_seconds=True),
    reads=_GET,
    writes=_PUT,
    loses=(
        _SECONDS,
        _NO_NODES,
        _PACE,
        "Hits of the CDN's caches count as reads.",
        "Sizes of writes are not in the log.",
    ),
    write_bytes=(),
    paths=True,
)

NGINX_JSON = Profile(
    name="nginx_json",
    title="nginx log as JSON, by the names of its variables",
    shape=Json(
        names={
            TIME: ("time_iso8601", "time_local", "@timestamp", "timestamp", "time"),
            OPERATION: ("request_method", "method"),
            KEY: ("request_uri", "uri"),
            STATUS: ("status",),
            SENT: ("body_bytes_sent", "bytes_sent"),
            RECEIVED: ("content_length", "request_length"),
            DURATION: ("request_time",),
        },
        needed=(("request_method", "method"), ("request_uri", "uri"), ("body_bytes_sent", "bytes_sent")),
    ),
    clock=Clock(ISO_TIME, at_end=True),
    reads=_GET,
    writes=_PUT,
    loses=(_NO_NODES, _PACE),
    paths=True,
)

RGW = Profile(
    name="rgw",
    title="Ceph RADOS gateway ops log",
    shape=Json(
        names={
            BUCKET: ("bucket",),
            TIME: ("time", "time_local"),
            OPERATION: ("operation",),
            KEY: ("object", "obj"),
            STATUS: ("http_status",),
            SENT: ("bytes_sent",),
            RECEIVED: ("bytes_received",),
            SIZE: ("object_size",),
            DURATION: ("total_time",),
        },
        needed=(("operation",), ("object", "obj"), ("bytes_received",), ("total_time",)),
    ),
    clock=Clock(ISO_TIME),
    reads=frozenset({"get_obj"}),
    writes=frozenset({"put_obj", "post_obj", "copy_obj"}),
    loses=(_NO_NODES, _PACE, "Durations are whole milliseconds."),
    duration_s=1e-3,
    decodings=0,
)

_MINIO_READS = frozenset({"GetObject", "SelectObjectContent", "s3:GetObject"})
_MINIO_WRITES = frozenset(
    {
        *(
            "PutObject",
            "PutObjectPart",
            "CopyObject",
            "CopyObjectPart",
            "PutObjectExtract",
            "PostPolicyBucket",
        ),
        *("s3:PutObject", "UploadPart", "UploadPartCopy"),
    }
)
MINIO = Profile(
    name="minio",
    title="MinIO or RustFS audit log",
    shape=Json(
        names={
            BUCKET: ("api.bucket",),
            TIME: ("time",),
            OPERATION: ("api.name",),
            KEY: ("api.object",),
            STATUS: ("api.status_code",),
            SENT: ("api.tx",),
            RECEIVED: ("api.rx",),
            DURATION: ("api.time_to_response_in_ns", "api.time_to_response"),
        },
        needed=(("api",), ("name",), ("status_code",), ("time_to_response_in_ns", "time_to_response")),
    ),
    clock=Clock(ISO_TIME, at_end=True),
    reads=_MINIO_READS,
    writes=_MINIO_WRITES,
    loses=(_NO_NODES, _PACE, "Sizes of objects are those that were sent: ranges count as such."),
    duration_s=1e-9,
    decodings=0,
)

_PROXY_LINE = Text(
    positions={OPERATION: 1, KEY: 2, STATUS: 4, RECEIVED: 8, SENT: 9, DURATION: 13, TIME: 16},
    first_lines=rf".*\s\d\d/(?:{_MONTHS})/\d{{4}}/\d\d/\d\d/\d\d [A-Z]+ /",
    anchor=Anchor.SWIFT_DATE,
    mixed=True,
)
SWIFT_PROXY = Profile(
    name="swift_proxy",
    title="OpenStack Swift proxy server",
    shape=_PROXY_LINE,
    clock=Clock(EPOCH),
    reads=_GET,
    writes=_PUT,
    loses=(_NO_NODES, _PACE, "Sizes of objects are those that were sent: ranges count as such."),
    skipped_parts=1,
    needed_parts=3,
    paths=True,
)

# what object servers' lines are joined with: the same lines, with their transaction
SWIFT_REQUESTS = replace(
    SWIFT_PROXY, shape=replace(_PROXY_LINE, positions={**_PROXY_LINE.positions, REQUEST_ID: 11}), node=WHOLE
)

SWIFT_OBJECT = Profile(
    name="swift_object",
    title="OpenStack Swift object server",
    shape=Text(
        positions={TIME: 0, REQUEST: 1, STATUS: 2, SENT: 3, REQUEST_ID: 5, DURATION: 7, NODE: -5},
        first_lines=rf'.*\s{_BRACKETED} "[A-Z]+ /[^/ ]+/\d+/[^"]*" \d{{3}} ',
        anchor=Anchor.BRACKET,
        mixed=True,
    ),
    clock=Clock(CLF_TIME, at_end=True),
    reads=_GET,
    writes=_PUT,
    loses=(
        _SECONDS,
        "Sizes of writes are not in the log.",
        "Without the proxies' logs in the same folder, arrivals are as coarse as the clock.",
        "A node is a disk of the machine that the line begins with.",
    ),
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
            SENT: 6,
            OPERATION: 8,
            REQUEST_ID: 10,
            NODE: 14,
            KEY: 16,
            DURATION: 18,
        },
        first_lines=r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ .*clienttrace.*: src: /",
        anchor=Anchor.MARKER,
        marker="clienttrace:",
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
    ),
    provides=frozenset({RATES, SOJOURN}),
    duration_s=1e-9,
    read_bytes=(SENT,),
    write_bytes=(SENT,),
    secret=False,
    block_groups=True,
    pause_ns=10**9,
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
    reads=_GET,
    writes=_PUT,
    loses=(
        "Rates are those of a benchmark whose clients ask again at once, not of users.",
        "Times are those of whole requests as a client sees them, by endpoint.",
    ),
    duration_s=1e-9,
    write_bytes=(SENT,),
    decodings=0,
    tasks=True,
)

STORES = (S3, SWIFT_OBJECT, SWIFT_PROXY, NGINX, HDFS, MINIO, RGW, S3_JSON, NGINX_JSON, CLOUDFRONT, WARP)
