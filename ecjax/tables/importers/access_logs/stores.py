"""Profiles of the access logs of object stores and web servers."""

from ecjax.tables.importers.access_logs.profile import (
    BUCKET,
    CLF_TIME,
    DURATION,
    KEY,
    OPERATION,
    SENT,
    SIZE,
    STATUS,
    TIME,
    Anchor,
    Clock,
    Profile,
    Text,
)

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_BRACKETED = rf"\[\d\d/(?:{_MONTHS})/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}}\]"
_SECONDS = "The clock ticks in whole seconds."
_NO_NODES = "Nodes are not in the log: service times, loads and placement are unknown."

_S3_READS = frozenset({"REST.GET.OBJECT", "WEBSITE.GET.OBJECT", "REST.COPY.OBJECT_GET", "REST.COPY.PART_GET", "SOAP.GetObject"})
_S3_WRITES = frozenset({"REST.PUT.OBJECT", "REST.POST.OBJECT", "REST.PUT.PART", "REST.COPY.OBJECT", "REST.COPY.PART", "SOAP.PutObject"})

S3 = Profile(
    name="s3",
    title="Amazon S3 server access log",
    shape=Text(
        positions={
            BUCKET: -1,
            TIME: 0,
            OPERATION: 4,
            KEY: 5,
            STATUS: 7,
            SENT: 9,
            SIZE: 10,
            DURATION: 11,
        },
        first_lines=rf"\S+ \S+ {_BRACKETED} \S+ \S+ \S+ [A-Z0-9]+\.\S+ \S+ ",
        anchor=Anchor.BRACKET,
    ),
    clock=Clock(CLF_TIME),
    reads=_S3_READS,
    writes=_S3_WRITES,
    loses=(_SECONDS, _NO_NODES, "Delivery is best effort: lines may be missing or late."),
    duration_s=1e-3,
    write_bytes=(SIZE,),
    decodings=2,
)

STORES = (S3,)
