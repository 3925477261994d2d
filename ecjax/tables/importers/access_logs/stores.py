"""Profiles of the access logs of object stores and web servers."""

from ecjax.tables.importers.access_logs.profile import (
    BUCKET,
    CLF_TIME,
    DURATION,
    FOURTH,
    HOST,
    HOST_PORT,
    ISO_TIME,
    KEY,
    KIND,
    LINE,
    OPERATION,
    QUERY,
    RECEIVED,
    REQUEST,
    SECOND,
    SENT,
    SIZE,
    STATUS,
    THIRD,
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

# parts that are copied (REST.COPY.PART_GET) are ranges of which the log does not tell the bytes
_S3_COPIES = frozenset({"REST.COPY.OBJECT_GET"})
_S3_READS = frozenset({"REST.GET.OBJECT", "WEBSITE.GET.OBJECT", *_S3_COPIES, "SOAP.GetObject"})
# an upload in parts is written once, when it is completed (REST.POST.UPLOAD), by a line with the size of the whole
_S3_WRITES = frozenset(
    {"REST.PUT.OBJECT", "REST.POST.OBJECT", "REST.POST.UPLOAD", "REST.COPY.OBJECT", "SOAP.PutObject"}
)
_S3_LOSES = (
    SECONDS,
    NO_NODES,
    PACE,
    "An upload in parts counts as one write, when it is completed.",
    "Copies by parts are left out: the log does not tell how many bytes of an object they read.",
    "Delivery is best effort: lines may be missing or late, or come twice.",
)
_PARTS = "Every part of an upload counts as a write."
_SUBRESOURCES = "Listings and subresources of S3 (?list-type, ?tagging, ?uploads and the like) are left out."

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
    whole=_S3_COPIES,
    read_bytes=(SENT,),
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
    whole=_S3_COPIES,
    read_bytes=(SENT,),
    write_bytes=(SIZE,),
    decodings=2,
)

NGINX = Profile(
    name="nginx",
    title="nginx, Apache or Traefik combined log, with $request_time or %D at the end",
    shape=Text(
        positions={
            HOST_PORT: -4,
            TIME: 0,
            REQUEST: 1,
            STATUS: 2,
            SENT: 3,
            DURATION: 6,
            SECOND: 7,
            THIRD: 8,
            FOURTH: 9,
        },
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
        "After the user agent a number with a point counts as seconds (nginx), a whole one as microseconds (Apache); "
        "whole ones before another number count as bytes, and of Traefik the last word counts.",
        _PARTS,
        _SUBRESOURCES,
        "Virtual hosts are told apart where lines begin with them and their port (%v:%p).",
    ),
    duration_s=None,
    write_bytes=(),
    optional=frozenset({DURATION}),
)

CLOUDFRONT = Profile(
    name="cloudfront",
    title="Amazon CloudFront standard log, and CDNs that write it",
    shape=Text(
        positions={TIME: LINE, SENT: 3, OPERATION: 5, HOST: 6, KEY: 7, STATUS: 8, QUERY: 11, DURATION: 18},
        first_lines=r"\d{4}-\d\d-\d\d\t\d\d:\d\d:\d\d\t\S+\t\d+\t\S+\t[A-Z]+\t",
        comment={
            0: "date",
            1: "time",
            3: "sc-bytes",
            5: "cs-method",
            6: "cs(Host)",
            7: "cs-uri-stem",
            8: "sc-status",
            11: "cs-uri-query",
            18: "time-taken",
        },
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
        "Bytes that were sent include those of headers.",
        _PARTS,
        _SUBRESOURCES,
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
            QUERY: ("query_string", "args"),
        },
        needed=(("request_method", "method"), ("request_uri", "uri"), ("body_bytes_sent", "bytes_sent")),
    ),
    clock=Clock(ISO_TIME, at_end=True),
    reads=GET,
    writes=PUT,
    loses=(
        NO_NODES,
        PACE,
        _PARTS,
        _SUBRESOURCES,
        "The same path on several hosts counts as one file.",
    ),
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
    whole=frozenset({"copy_obj"}),
    loses=(NO_NODES, PACE, _PARTS, "Durations are whole milliseconds."),
    duration_s=1e-3,
    decodings=0,
    foreign=("HEAD ",),  # named get_obj, too
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
    loses=(
        NO_NODES,
        PACE,
        _PARTS,
        "Sizes of objects are those that were sent: ranges count as such.",
        "Copies within the store count as writes of no bytes.",
    ),
    duration_s=1e-9,
    decodings=0,
)

STORES = (S3, NGINX, MINIO, RGW, S3_JSON, NGINX_JSON, CLOUDFRONT)
