"""Profiles of public traces, by the field lists that their publishers give."""

from ecjax.tables.importers.access_logs.profile import (
    BUCKET,
    COMPACT_TIME,
    DURATION,
    EPOCH,
    KEY,
    OFFSET,
    OPERATION,
    RANGE_BEGIN,
    RANGE_END,
    SENT,
    SERVICE_BEGIN,
    SIZE,
    TIME,
    Clock,
    Profile,
    Text,
)
from ecjax.tables.importers.trace import RATES, SERVICE, SOJOURN

_SECONDS = "The clock ticks in whole seconds."
_NO_TIMES = "No response times: sojourn, service and load are unknown."
_ALL_READS = "Operations are not recorded: all accesses count as reads."
_ONLY_RATES = frozenset({RATES})
_TECTONIC_KINDS = ("NotInitialized", "Permanent", "Temp", "Temporary")

THESIOS = Profile(
    name="thesios",
    title="Google Thesios, I/O of one disk of a storage server",
    shape=Text(
        positions={},
        first_lines="",
        separator=",",
        header={
            TIME: ("start_time",),
            KEY: ("filename",),
            OPERATION: ("op_type",),
            SENT: ("disk_io_size_bytes",),
            DURATION: ("disk_time",),
            SERVICE_BEGIN: ("simulated_disk_start_time",),
        },
    ),
    clock=Clock(EPOCH),
    reads=frozenset({"READ"}),
    writes=frozenset({"WRITE"}),
    operations="READ|WRITE",
    loses=("Accesses that a cache or a buffer served are left out: one disk is the node of all others.",),
    provides=frozenset({RATES, SOJOURN, SERVICE}),
    read_bytes=(SENT,),
    write_bytes=(SENT,),
    decodings=0,
    secret=False,
    node="disk",
    source="Thesios I/O traces, Google Research (ASPLOS 2024)",
)

TECTONIC = Profile(
    name="tectonic",
    title="Meta Tectonic storage, as Baleen and CacheLib publish it",
    shape=Text(
        positions={KEY: 0, SIZE: 2, TIME: 3, OPERATION: 4},
        first_lines=r"\d+ \d+ \d+ [\d.]+ [1-6] \d+ ",
        separator="",
        header={
            KEY: ("block_id",),
            SIZE: ("io_size",),
            TIME: ("op_time",),
            OPERATION: ("op_name",),
        },
    ),
    clock=Clock(EPOCH, unit_ns=0),
    reads=frozenset({"1", "2", "5", *(f"getChunkData.{kind}" for kind in _TECTONIC_KINDS)}),
    writes=frozenset({"3", "4", "6", *(f"putChunk.{kind}" for kind in _TECTONIC_KINDS)}),
    operations=r"\d|\w+\.\w+",
    loses=(
        _NO_TIMES,
        "Files are blocks, of which reads ask for parts: their whole size is not in the trace.",
        "A row that stands for several requests (op_count) counts once.",
    ),
    provides=_ONLY_RATES,
    read_bytes=(SIZE,),
    decodings=0,
    secret=False,
    source="Tectonic traces, Meta (CacheLib; Baleen, FAST 2024)",
)

TWITTER = Profile(
    name="twitter",
    title="Twitter cache clusters (Twemcache, Pelikan)",
    shape=Text(
        positions={TIME: 0, KEY: 1, SIZE: 3, OPERATION: 5},
        first_lines=r"\d+,[^,]+,\d+,\d+,\d+,[a-z]+,\d+$",
        separator=",",
    ),
    clock=Clock(EPOCH),
    reads=frozenset({"get", "gets"}),
    writes=frozenset({"set", "add", "replace", "cas", "append", "prepend"}),
    operations="delete|incr|decr|gat|gats|touch|flush_all",
    loses=(_SECONDS, _NO_TIMES, "The size of a read that missed is 0."),
    provides=_ONLY_RATES,
    read_bytes=(SIZE,),
    decodings=0,
    secret=False,
    source="Twitter cache-trace (OSDI 2020)",
)

WIKIMEDIA = Profile(
    name="wikimedia",
    title="Wikimedia CDN, uploads or text",
    shape=Text(
        positions={TIME: 0, KEY: 1, SENT: 3},
        first_lines=r"\d+\t-?\d+\t[a-z+.-]+\t\d+\t[\d.]+(?:E-?\d+)?$",
        separator="\t",
        header={
            TIME: ("relative_unix",),
            KEY: ("hashed_path_query", "hashed_host_path_query"),
            SENT: ("response_size",),
        },
    ),
    clock=Clock(EPOCH),
    loses=(
        _SECONDS,
        _ALL_READS,
        "Only the time to the first byte is known, of a cache: no sojourn or service.",
    ),
    provides=_ONLY_RATES,
    decodings=0,
    secret=False,
    every_read=True,
    source="Wikimedia caching data set (2019)",
)

TENCENT_PHOTO = Profile(
    name="tencent_photo",
    title="Tencent QQPhoto CDN",
    shape=Text(
        positions={TIME: 0, BUCKET: 1, KEY: 3, SENT: 4, DURATION: 7},
        first_lines=r"20\d{12}[ ,\t]+[0-9A-Fa-f]+[ ,\t]+\d[ ,\t]+[laomcb][ ,\t]+\d+[ ,\t]+[01][ ,\t]+\w+",
        separator="",
    ),
    clock=Clock(COMPACT_TIME),
    loses=(
        _SECONDS,
        _ALL_READS,
        "Files are photos of one size category.",
        "Response times are whole milliseconds, with the cache in front: 0 is less than one.",
    ),
    duration_s=1e-3,
    decodings=0,
    secret=False,
    every_read=True,
    source="Tencent photo traces (SNIA IOTTA; ICS 2018)",
)

IBM_COS = Profile(
    name="ibm_cos",
    title="IBM Cloud Object Storage, one bucket",
    shape=Text(
        positions={TIME: 0, OPERATION: 1, KEY: 2, SIZE: 3, RANGE_BEGIN: 4, RANGE_END: 5},
        first_lines=r"\d+ REST\.[A-Z]+\.[A-Z]+ [0-9a-f]+",
    ),
    clock=Clock(EPOCH, unit_ns=10**6),
    reads=frozenset({"REST.GET.OBJECT"}),
    writes=frozenset({"REST.PUT.OBJECT", "REST.COPY.OBJECT"}),
    operations=r"[A-Z]+\.[A-Z_]+\.[A-Z_]{3,}",
    loses=("The clock ticks in whole milliseconds.", _NO_TIMES),
    provides=_ONLY_RATES,
    read_bytes=(SIZE,),
    write_bytes=(SIZE,),
    decodings=0,
    secret=False,
    optional=frozenset({SIZE, RANGE_BEGIN, RANGE_END}),
    source="IBM Object Store traces (SNIA IOTTA 36305; 2019)",
)

ALIBABA_BLOCK = Profile(
    name="alibaba_block",
    title="Alibaba Cloud elastic block storage",
    shape=Text(
        positions={KEY: 0, OPERATION: 1, OFFSET: 2, SIZE: 3, TIME: 4},
        first_lines=r"\d+,[RW],\d+,\d+,\d{13,}$",
        separator=",",
    ),
    clock=Clock(EPOCH, unit_ns=1000),
    reads=frozenset({"R"}),
    writes=frozenset({"W"}),
    operations="[A-Z]",
    loses=(
        _NO_TIMES,
        "Files are extents of virtual disks; an access is charged the bytes that it asked for.",
    ),
    provides=_ONLY_RATES,
    read_bytes=(SIZE,),
    write_bytes=(SIZE,),
    decodings=0,
    secret=False,
    block=True,
    source="Alibaba block-traces (IISWC 2020)",
)

PUBLIC = (THESIOS, TECTONIC, TWITTER, WIKIMEDIA, TENCENT_PHOTO, IBM_COS, ALIBABA_BLOCK)
