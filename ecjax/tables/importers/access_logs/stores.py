"""Profiles of the access logs of object stores and web servers."""

from ecjax.tables.importers.access_logs.profile import (
    BUCKET,
    CLF_TIME,
    DURATION,
    ISO_TIME,
    KEY,
    KIND,
    LATER_DURATION,
    LINE,
    OPERATION,
    RECEIVED,
    REQUEST,
    SENT,
    SIZE,
    STATUS,
    TIME,
    Anchor,
    Clock,
    Json,
    Profile,
    Text,
)

MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
BRACKETED = rf"\[\d\d/(?:{MONTHS})/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}}\]"
SECONDS = "The clock ticks in whole seconds."
NO_NODES = "Nodes are not in the log: service times, loads and placement are unknown."
PACE = "Times until the last byte include the pace of the reader."
GET, PUT = frozenset({"GET"}), frozenset({"PUT", "POST"})

_S3_READS = frozenset(
    {"REST.GET.OBJECT", "WEBSITE.GET.OBJECT", "REST.COPY.OBJECT_GET", "REST.COPY.PART_GET", "SOAP.GetObject"}
)
# an upload in parts is written once, when it is completed (REST.POST.UPLOAD), by a line with the size of the whole
_S3_WRITES = frozenset(
    {"REST.PUT.OBJECT", "REST.POST.OBJECT", "REST.POST.UPLOAD", "REST.COPY.OBJECT", "SOAP.PutObject"}
)
_S3_LOSES = (
    SECONDS,
    NO_NODES,
    PACE,
    "An upload in parts counts as one write, when it is completed.",
    "Delivery is best effort: lines may be missing or late.",
)
_PARTS = "Every part of an upload counts as a write."

S3 = Profile(
    name="s3",
    title="Amazon S3 server access log, and stores that write it",
    shape=Text(
        positions={BUCKET: -1, TIME: 0, OPERATION: 4, KEY: 5, STATUS: 7, SENT: 9, SIZE: 10, DURATION: 11},
        first_lines=rf"\S+ \S+ {BRACKETED} \S+ \S+ \S+ [A-Z0-9]+\.\S+ \S+ ",
        anchor=Anchor.BRACKET,
    ),
    clock=Clock(CLF_TIME),
    reads=_S3_READS,
    writes=_S3_WRITES,
    loses=_S3_LOSES,
    duration_s=1e-3,
    read_bytes=(SENT, SIZE),  # copies within the store send nothing
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
    read_bytes=(SENT, SIZE),
    write_bytes=(SIZE,),
    decodings=2,
)

NGINX = Profile(
    name="nginx",
    title="nginx or Apache combined log, with $request_time or %D at the end",
    shape=Text(
        positions={TIME: 0, REQUEST: 1, STATUS: 2, SENT: 3, DURATION: 6, LATER_DURATION: 7},
        first_lines=rf'\S+ .*?{BRACKETED} "(?:[^"\\]|\\.)*" \d{{3}} (?:\d+|-)(?: |$)',
        anchor=Anchor.BRACKET,
        escapes=True,
    ),
    clock=Clock(CLF_TIME, at_end=True),
    reads=GET,
    writes=PUT,
    loses=(
        SECONDS,
        NO_NODES,
        PACE,
        "Sizes of writes are not in the log.",
        "A last number with a point counts as seconds (nginx), a whole one as microseconds (Apache).",
    ),
    duration_s=None,
    write_bytes=(),
    optional=frozenset({DURATION, LATER_DURATION}),
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
    reads=GET,
    writes=PUT,
    loses=(
        SECONDS,
        NO_NODES,
        PACE,
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
    reads=GET,
    writes=PUT,
    loses=(NO_NODES, PACE),
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
            KIND: ("uri",),
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
    loses=(NO_NODES, PACE, _PARTS, "Durations are whole milliseconds."),
    duration_s=1e-3,
    decodings=0,
    foreign="HEAD ",  # named get_obj, too
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
    loses=(NO_NODES, PACE, _PARTS, "Sizes of objects are those that were sent: ranges count as such."),
    duration_s=1e-9,
    decodings=0,
)

STORES = (S3, NGINX, MINIO, RGW, S3_JSON, NGINX_JSON, CLOUDFRONT)
