"""Small access logs in every format that ecjax reads, all generated: ``python traces/make/sample_logs.py``.

One synthetic hour of reads and writes of forty objects, written as each source would write it. Names, addresses and
numbers are made up; only the layouts are those of the sources.
"""

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

SEED = 20261123
BEGIN = datetime(2026, 11, 2, 9, 0, 0, tzinfo=UTC)
K = 4
_OWNER = "ab" * 32


class Access(NamedTuple):
    """A read or write of an object: when (whole seconds since ``BEGIN``), of what, and how long it took (ms)."""

    second: int
    write: bool
    bucket: str
    key: str
    size: int
    duration_ms: int


def hour(requests: int = 120, objects: int = 40, seconds: int = 3600, seed: int = SEED) -> list[Access]:
    """Accesses in order of time: Zipf popularity, one in ten a write."""
    random = np.random.default_rng(seed)
    share = np.arange(1, objects + 1) ** -0.9
    times = np.sort(random.integers(0, seconds, requests))
    drawn = random.choice(objects, requests, p=share / share.sum())
    writes = random.random(requests) < 0.1
    durations = 5 + random.exponential(30, requests).astype(int)
    return [
        Access(int(t), bool(w), f"bucket{o % 2}", f"album/photo {o}.jpg", 65536 * (1 + int(o) % 7), int(d))
        for t, w, o, d in zip(times, writes, drawn, durations, strict=True)
    ]


def _clf(access: Access, late_ms: int = 0) -> str:
    when = BEGIN + timedelta(seconds=access.second, milliseconds=late_ms)
    return when.strftime("%d/%b/%Y:%H:%M:%S +0000")


def _iso(access: Access, late_ms: int = 0, point: str = ".") -> str:
    when = BEGIN + timedelta(seconds=access.second, milliseconds=late_ms)
    return when.strftime("%Y-%m-%dT%H:%M:%S") + f"{point}{when.microsecond // 1000:03d}"


def _method(access: Access) -> str:
    return "PUT" if access.write else "GET"


def _path(access: Access) -> str:
    return f"/{access.bucket}/{quote(access.key)}"


def _sent(access: Access) -> int:
    return 0 if access.write else access.size


def s3(accesses: list[Access]) -> Iterator[str]:
    """Amazon S3 server access log."""
    for number, each in enumerate(accesses):
        sent = "-" if each.write else each.size
        # names are percent-encoded twice there
        yield (
            f"{_OWNER} {each.bucket} [{_clf(each)}] 192.0.2.3 {_OWNER} REQ{number:08d} REST.{_method(each)}.OBJECT "
            f'{quote(quote(each.key))} "{_method(each)} {_path(each)} HTTP/1.1" 200 - {sent} {each.size} '
            f'{each.duration_ms} 4 "-" "client/1.0" - HOSTID= SigV4 - AuthHeader s3.example.com TLSv1.2 - -'
        )


def s3_json(accesses: list[Access]) -> Iterator[str]:
    """The same fields as JSON."""
    for number, each in enumerate(accesses):
        yield json.dumps(
            {
                "bucket_owner": _OWNER,
                "bucket": each.bucket,
                "time": f"[{_clf(each)}]",
                "remote_ip": "192.0.2.3",
                "requester": _OWNER,
                "request_id": f"REQ{number:08d}",
                "operation": f"REST.{_method(each)}.OBJECT",
                "key": quote(quote(each.key)),
                "http_status": "200",
                "bytes_sent": "-" if each.write else str(each.size),
                "object_size": str(each.size),
                "total_time": str(each.duration_ms),
                "turn_around_time": "4",
            }
        )


def nginx(accesses: list[Access]) -> Iterator[str]:
    """Combined log of nginx with ``$request_time``; the time is that of the end."""
    for each in accesses:
        yield (
            f'192.0.2.3 - - [{_clf(each, each.duration_ms)}] "{_method(each)} {_path(each)} HTTP/1.1" 200 '
            f'{_sent(each)} "-" "client/1.0" {each.duration_ms / 1000:.3f}'
        )


def nginx_json(accesses: list[Access]) -> Iterator[str]:
    """Nginx with a JSON ``log_format`` of its variables."""
    for each in accesses:
        yield json.dumps(
            {
                "time_iso8601": _iso(each, each.duration_ms) + "+00:00",
                "remote_addr": "192.0.2.3",
                "request_method": _method(each),
                "request_uri": _path(each),
                "status": 200,
                "body_bytes_sent": _sent(each),
                "content_length": each.size if each.write else "",
                "request_time": each.duration_ms / 1000,
            }
        )


def cloudfront(accesses: list[Access]) -> Iterator[str]:
    """Standard log of Amazon CloudFront; the time is that of the end."""
    yield "#Version: 1.0"
    yield "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status"
    for each in accesses:
        when = BEGIN + timedelta(seconds=each.second, milliseconds=each.duration_ms)
        cells = (
            *(
                f"{when:%Y-%m-%d}",
                f"{when:%H:%M:%S}",
                "FRA2",
                _sent(each),
                "192.0.2.3",
                _method(each),
                "d.example",
            ),
            *(_path(each), 200, "-", "client/1.0", "-", "-", "Miss", "ID=", "d.example", "https", 99),
            *(f"{each.duration_ms / 1000:.3f}", "-", "TLSv1.3", "x", "Miss", "HTTP/2.0"),
        )
        yield "\t".join(map(str, cells))


def rgw(accesses: list[Access]) -> Iterator[str]:
    """Ops log of the Ceph RADOS gateway."""
    for number, each in enumerate(accesses):
        yield json.dumps(
            {
                "bucket": each.bucket,
                "object": each.key,
                "time": _iso(each) + "Z",
                "time_local": _iso(each) + "+0000",
                "remote_addr": "192.0.2.3",
                "user": "someone",
                "operation": "put_obj" if each.write else "get_obj",
                "uri": f"{_method(each)} {_path(each)} HTTP/1.1",
                "http_status": "200",
                "error_code": "",
                "bytes_sent": _sent(each),
                "bytes_received": each.size if each.write else 0,
                "object_size": each.size,
                "total_time": each.duration_ms,
                "user_agent": "client/1.0",
                "trans_id": f"tx{number:021d}",
            }
        )


def minio(accesses: list[Access]) -> Iterator[str]:
    """Audit log of MinIO and RustFS; the time is that of the end."""
    for number, each in enumerate(accesses):
        nanoseconds = each.duration_ms * 10**6
        yield json.dumps(
            {
                "version": "1",
                "time": _iso(each, each.duration_ms) + "000000Z",
                "trigger": "incoming",
                "api": {
                    "name": "PutObject" if each.write else "GetObject",
                    "bucket": each.bucket,
                    "object": each.key,
                    "status": "OK",
                    "statusCode": 200,
                    "rx": each.size if each.write else 0,
                    "tx": _sent(each),
                    "timeToResponse": f"{nanoseconds}ns",
                    "timeToResponseInNS": str(nanoseconds),
                },
                "remotehost": "192.0.2.3",
                "requestID": f"{number:016X}",
                "requestHeader": {"Authorization": 'AWS4 Credential="x", none'},
                "tags": {"objectLocation": {"name": each.key, "drives": ["/mnt/a", "/mnt/b"]}},
            }
        )


def minio_drives(accesses: list[Access]) -> Iterator[str]:
    """Calls of the drives of MinIO, as mc admin trace shows them: chunks of reads, some ms after each other."""
    for each in accesses:
        folder = f"{hash_of(each):08x}-0000-4000-8000-000000000000"
        for index in range(K + 2 if each.write else K):
            drive = (hash_of(each) + index) % 9
            path = ".minio.sys/tmp {0}/{0}/part.1" if each.write else f"{each.bucket} {each.key}/{{0}}/part.1"
            for call in ("ReadVersion", "CreateFile" if each.write else "ReadFileStream"):
                yield json.dumps(
                    {
                        "status": "success",
                        "host": f"minio{drive // 3}:9000",
                        "time": _iso(each, 2 * index) + "000000Z",
                        "client": "",
                        "duration": 40_000 + 1000 * index,
                        "timeToFirstByte": 0,
                        "api": f"storage.{call}",
                        "path": f"/mnt/data{drive % 3} {path.format(folder)}",
                        "query": "",
                        "statusCode": 0,
                        "statusMsg": "",
                        "type": "storage",
                        "size": each.size // K,
                        "error": "",
                        "extra": None,
                    }
                )


def swift_proxy(accesses: list[Access]) -> Iterator[str]:
    """Proxy server of OpenStack Swift, through syslog."""
    for number, each in enumerate(accesses):
        begin = BEGIN.timestamp() + each.second
        end = BEGIN + timedelta(seconds=each.second, milliseconds=each.duration_ms)
        # all that is logged is percent-encoded, paths once more
        yield (
            f"{end:%b %d %H:%M:%S} proxy1 proxy-server: 192.0.2.3 192.0.2.9 {end:%d/%b/%Y/%H/%M/%S} {_method(each)} "
            f"/v1/AUTH_test{quote(_path(each))} HTTP/1.0 {201 if each.write else 200} - client/1.0 AUTH_tk "
            f"{each.size if each.write else '-'} {_sent(each) or '-'} - tx{number:021d}-0 - "
            f"{each.duration_ms / 1000:.4f} - - {begin:.9f} {end.timestamp():.9f} 0"
        )


def swift_object(accesses: list[Access]) -> Iterator[str]:
    """Object servers of OpenStack Swift: fragments of erasure-coded objects, a line each."""
    for number, each in enumerate(accesses):
        for server in range(K + 2 if each.write else K):
            late = each.duration_ms + server
            end = BEGIN + timedelta(seconds=each.second, milliseconds=late)
            disk = (number + server) % 3
            yield (
                f"{end:%b %d %H:%M:%S} storage{(number + server) % 6} object-server: 192.0.2.9 - - "
                f'[{_clf(each, late)}] "{_method(each)} /sdb{disk}/{number % 64}/AUTH_test{_path(each)}" '
                f'{201 if each.write else 200} {"-" if each.write else each.size // K} "-" "tx{number:021d}-0" '
                f'"proxy-server 21" {late / 1000:.4f} "-" 77 0'
            )


def hdfs(accesses: list[Access]) -> Iterator[str]:
    """DataNodes of HDFS: chunks of erasure-coded block groups, a line each; the time is that of the end."""
    for number, each in enumerate(accesses):
        group = -(2**63) + 16 * (hash_of(each) % 1000)
        for index in range(K + 2 if each.write else K):
            late = each.duration_ms + index
            node = (hash_of(each) + index) % 9
            yield (
                f"{_iso(each, late, ',').replace('T', ' ')} DEBUG "
                "org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace: "
                f"src: /192.0.2.{10 + node}:9866, dest: /192.0.2.3:{40000 + number}, bytes: {each.size // K}, "
                f"op: {'HDFS_WRITE' if each.write else 'HDFS_READ'}, cliID: DFSClient_NONMAPREDUCE_{number}_1, "
                f"offset: 0, srvID: datanode-{node}, blockid: BP-1-192.0.2.1-2:blk_{group + index}_1001, "
                f"duration(ns): {late * 10**6}"
            )
        yield f"{_iso(each, 0, ',').replace('T', ' ')} INFO org.apache.hadoop.hdfs.server.datanode.DataNode: other"


def hash_of(access: Access) -> int:
    """A number of an object."""
    return int(access.key.split()[1].removesuffix(".jpg")) * 2 + int(access.bucket[-1])


def warp(accesses: list[Access]) -> Iterator[str]:
    """Rows of a warp benchmark."""
    yield "\t".join(
        "idx thread op client_id n_objects bytes endpoint file error start first_byte end duration_ns cat".split()
    )
    for number, each in enumerate(accesses):
        name = f"{each.bucket}/{each.key}"
        cells = (
            *(
                number,
                number % 8,
                _method(each),
                "c",
                1,
                each.size,
                f"https://s3-{number % 3}:9000",
                name,
                "",
            ),
            *(f"{_iso(each)}Z", "", f"{_iso(each, each.duration_ms)}Z", each.duration_ms * 10**6, 0),
        )
        yield "\t".join(map(str, cells))
    yield "# warp get --duration 1h"


def thesios(accesses: list[Access]) -> Iterator[str]:
    """One disk of Google's Thesios traces: first come, first served; one read in five is served by a cache."""
    yield (
        "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,"
        "cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,"
        "simulated_disk_start_time,simulated_latency"
    )
    free = 0.0
    for number, each in enumerate(accesses):
        arrival = BEGIN.timestamp() + each.second
        hit = number % 5 == 0 and not each.write
        disk_s = 0.0 if hit or each.write else each.duration_ms / 1000
        begin = max(arrival, free) if disk_s else 0.0
        free = begin + disk_s if disk_s else free
        yield (
            f"{hash_of(each):08x},0,app,1700000000,WARM,ERASURE_CODED,{'WRITE' if each.write else 'READ'},OTHER,0,"
            f"{-1 if each.write else int(hit)},{each.size},{each.size if disk_s else 0},{_sent(each)},{arrival:.6f},"
            f"{disk_s:.6f},{begin:.6f},{max(free - arrival, 0.001):.6f}"
        )


def tectonic(accesses: list[Access]) -> Iterator[str]:
    """Meta's Tectonic traces, as Baleen publishes them."""
    yield "# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name"
    for each in accesses:
        time = BEGIN.timestamp() + each.second
        yield f"{hash_of(each)} 0 {each.size} {time:.1f} {4 if each.write else 2} 1 17 3 1 9"


def twitter(accesses: list[Access]) -> Iterator[str]:
    """Twitter's cache traces."""
    for each in accesses:
        yield f"{each.second},nz:u:{hash_of(each)},9,{each.size},42,{'set' if each.write else 'get'},0"


def wikimedia(accesses: list[Access]) -> Iterator[str]:
    """Wikimedia's caching data set, uploads."""
    yield "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte"
    for each in accesses:
        yield f"{each.second}\t{hash_of(each) * 7919 - 10**9}\tjpeg\t{each.size}\t{each.duration_ms / 1000:.4f}"


def tencent_photo(accesses: list[Access]) -> Iterator[str]:
    """Tencent's photo traces."""
    for each in accesses:
        when = BEGIN + timedelta(seconds=each.second)
        yield f"{when:%Y%m%d%H%M%S} {hash_of(each):040x} 0 m {each.size} 1 PHONE {each.duration_ms}"


def ibm_cos(accesses: list[Access]) -> Iterator[str]:
    """IBM's object store traces."""
    for each in accesses:
        words = [
            str(each.second * 1000),
            f"REST.{_method(each)}.OBJECT",
            f"{hash_of(each):016x}",
            str(each.size),
        ]
        yield " ".join(words if each.write else [*words, "0", str(each.size - 1)])


def alibaba_block(accesses: list[Access]) -> Iterator[str]:
    """Alibaba's block traces."""
    for each in accesses:
        time = int(BEGIN.timestamp() + each.second) * 10**6
        number = hash_of(each)
        yield f"{number % 4},{'W' if each.write else 'R'},{number * 2**20},{each.size},{time}"


LOGS: dict[str, tuple[str, Callable[[list[Access]], Iterator[str]]]] = {
    "s3": ("s3.log.gz", s3),
    "s3_json": ("s3.jsonl.gz", s3_json),
    "nginx": ("nginx.log.gz", nginx),
    "nginx_json": ("nginx.jsonl.gz", nginx_json),
    "cloudfront": ("cloudfront.tsv.gz", cloudfront),
    "rgw": ("rgw_ops.jsonl.gz", rgw),
    "minio": ("minio_audit.jsonl.gz", minio),
    "swift_proxy": ("swift_proxy.log.gz", swift_proxy),
    "swift_object": ("swift_object.log.gz", swift_object),
    "hdfs": ("hdfs_datanode.log.gz", hdfs),
    "warp": ("warp.csv.zst", warp),
    "minio_drives": ("minio_drives.jsonl.gz", minio_drives),
    "thesios": ("thesios.csv.gz", thesios),
    "tectonic": ("tectonic.trace.gz", tectonic),
    "twitter": ("twitter.csv.zst", twitter),
    "wikimedia": ("wikimedia.tsv.gz", wikimedia),
    "tencent_photo": ("tencent_photo.txt.gz", tencent_photo),
    "ibm_cos": ("ibm_cos.txt.zst", ibm_cos),
    "alibaba_block": ("alibaba_block.csv.gz", alibaba_block),
}


def write_log(path: Path, lines: Iterator[str]) -> None:
    """Write lines to a file, compressed as its name says."""
    text = "".join(f"{line}\n" for line in lines).encode()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text, mtime=0))
    elif path.suffix == ".zst":
        path.write_bytes(pa.compress(text, codec="zstd", asbytes=True))
    else:
        path.write_bytes(text)


def write(folder: Path) -> None:
    """Write all sample logs to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in LOGS.values():
        write_log(folder / name, lines(hour()))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "logs")
