"""Lines of access logs in the formats that ``analyze`` reads, for the benchmarks."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

_OWNER = "ab" * 32


class Access(NamedTuple):
    """A request of a generated log."""

    number: int
    when: datetime
    write: bool
    item: int
    size: int
    ms: int

    @property
    def key(self) -> str:
        """Name of its object."""
        return f"album/{self.item % 997:03d}/photo-{self.item:08d}.jpg"

    @property
    def method(self) -> str:
        """Of HTTP."""
        return "PUT" if self.write else "GET"

    @property
    def disk(self) -> int:
        """Of twelve, four on each machine."""
        return self.item % 12

    @property
    def sent(self) -> int:
        """Bytes that were read."""
        return 0 if self.write else self.size


def _clf(each: Access) -> str:
    return f"{each.when:%d/%b/%Y:%H:%M:%S} +0000"


def _iso(each: Access) -> str:
    return f"{each.when:%Y-%m-%dT%H:%M:%S}.{each.when.microsecond // 1000:03d}"


def _s3(each: Access) -> str:
    sent = "-" if each.write else each.size
    return (
        f"{_OWNER} bucket [{_clf(each)}] 192.0.2.3 {_OWNER} {each.number:016X} REST.{each.method}.OBJECT {each.key} "
        f'"{each.method} /bucket/{each.key}?x-id=GetObject HTTP/1.1" 200 - {sent} {each.size} {each.ms} 4 "-" '
        f'"aws-sdk-java/1.12 Linux/5.10 OpenJDK" - {each.number:048x}= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader '
        "bucket.s3.eu-central-1.example TLSv1.2 - -"
    )


def _s3_json(each: Access) -> str:
    sent = "-" if each.write else each.size
    return (
        f'{{"bucket_owner":"{_OWNER}","bucket":"bucket","time":"[{_clf(each)}]","remote_ip":"192.0.2.3",'
        f'"requester":"{_OWNER}","request_id":"{each.number:016X}","operation":"REST.{each.method}.OBJECT",'
        f'"key":"{each.key}","http_status":"200","bytes_sent":"{sent}","object_size":"{each.size}",'
        f'"total_time":"{each.ms}","turn_around_time":"4","user_agent":"aws-sdk-java/1.12 Linux/5.10 OpenJDK"}}'
    )


def _nginx(each: Access) -> str:
    return (
        f'192.0.2.3 - - [{_clf(each)}] "{each.method} /bucket/{each.key} HTTP/1.1" 200 {each.sent} "-" '
        f'"aws-sdk-java/1.12 Linux/5.10 OpenJDK" {each.ms / 1000:.3f}'
    )


def _cloudfront(each: Access) -> str:
    cells = (
        *(f"{each.when:%Y-%m-%d}", f"{each.when:%H:%M:%S}", "FRA2", each.sent, "192.0.2.3", each.method),
        *(
            "d.example",
            f"/bucket/{each.key}",
            200,
            "-",
            "client/1.0",
            "-",
            "-",
            "Miss",
            f"{each.number:056x}",
        ),
        *("d.example", "https", 99, f"{each.ms / 1000:.3f}", "-", "TLSv1.3", "x", "Miss", "HTTP/2.0"),
    )
    return "\t".join(map(str, cells))


def _rgw(each: Access) -> str:
    return (
        f'{{"bucket":"bucket","object":"{each.key}","time":"{_iso(each)}Z","time_local":"{_iso(each)}+0000",'
        f'"remote_addr":"192.0.2.3","user":"someone","operation":"{"put" if each.write else "get"}_obj",'
        f'"uri":"{each.method} /bucket/{each.key} HTTP/1.1","http_status":"200","error_code":"",'
        f'"bytes_sent":{each.sent},"bytes_received":{each.size if each.write else 0},"object_size":{each.size},'
        f'"total_time":{each.ms},"user_agent":"client/1.0","trans_id":"tx{each.number:021d}"}}'
    )


def _minio(each: Access) -> str:
    return (
        f'{{"version":"1","time":"{_iso(each)}000000Z","trigger":"incoming","api":{{"name":"'
        f'{"Put" if each.write else "Get"}Object","bucket":"bucket","object":"{each.key}","status":"OK",'
        f'"statusCode":200,"rx":{each.size if each.write else 0},"tx":{each.sent},'
        f'"timeToResponse":"{each.ms * 10**6}ns","timeToResponseInNS":"{each.ms * 10**6}"}},'
        f'"remotehost":"192.0.2.3","requestID":"{each.number:016X}","userAgent":"client/1.0"}}'
    )


def _swift_proxy(each: Access) -> str:
    begin = each.when.timestamp()
    return (
        f"{each.when:%b %d %H:%M:%S} proxy1 proxy-server: 192.0.2.3 192.0.2.9 {each.when:%d/%b/%Y/%H/%M/%S} "
        f"{each.method} /v1/AUTH_test/bucket/{each.key} HTTP/1.0 {201 if each.write else 200} - client/1.0 AUTH_tk "
        f"{each.size if each.write else '-'} {each.sent or '-'} - tx{each.number:021d}-0 - {each.ms / 1000:.4f} - - "
        f"{begin:.9f} {begin + each.ms / 1000:.9f} 0"
    )


def _nginx_json(each: Access) -> str:
    return (
        f'{{"time_iso8601":"{_iso(each)}+00:00","remote_addr":"192.0.2.3","request_method":"{each.method}",'
        f'"request_uri":"/bucket/{each.key}","status":200,"body_bytes_sent":{each.sent},'
        f'"content_length":"{each.size if each.write else ""}","request_time":{each.ms / 1000:.3f}}}'
    )


def _swift_object(each: Access) -> str:
    return (
        f"{each.when:%b %d %H:%M:%S} storage{each.disk // 4} object-server: 192.0.2.9 - - [{_clf(each)}] "
        f'"{each.method} /sdb{each.disk}/{each.item % 1024}/AUTH_test/bucket/{each.key}" {201 if each.write else 200} '
        f'{each.sent or "-"} "-" "tx{each.number:021d}-0" "proxy-server 21" {each.ms / 1000:.4f} "-" 77 0'
    )


def _hdfs(each: Access) -> str:
    return (
        f"{_iso(each).replace('T', ' ').replace('.', ',')} DEBUG "
        "org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace: "
        f"src: /192.0.2.{100 + each.disk}:9866, dest: /192.0.2.3:40000, bytes: {each.size}, "
        f"op: HDFS_{'WRITE' if each.write else 'READ'}, cliID: DFSClient_NONMAPREDUCE_{each.number}_1, offset: 0, "
        f"srvID: datanode-{each.disk}, blockid: BP-1-192.0.2.1-2:blk_{2**30 + each.item}_1001, "
        f"duration(ns): {each.ms * 10**6}"
    )


def _minio_drives(each: Access) -> str:
    # all read: what writes names temporary files
    return (
        f'{{"status":"success","host":"minio{each.disk // 4}:9000","time":"{_iso(each)}000000Z","client":"",'
        f'"duration":40000,"timeToFirstByte":0,"api":"storage.ReadFileStream",'
        f'"path":"/mnt/data{each.disk} bucket {each.key}/{each.item:08d}-0000-4000-8000-000000000000/part.1",'
        f'"query":"","statusCode":0,"statusMsg":"","type":"storage","size":{each.size},"error":"","extra":null}}'
    )


def _warp(each: Access) -> str:
    begin, end = each.when, each.when + timedelta(milliseconds=each.ms)
    return (
        f"{each.number}\t{each.number % 20}\t{each.method}\tc\t1\t{each.size}\thttps://s3-{each.item % 3}:9000\t"
        f"bucket/{each.key}\t\t{begin:%Y-%m-%dT%H:%M:%S.%fZ}\t\t{end:%Y-%m-%dT%H:%M:%S.%fZ}\t{each.ms * 10**6}\t0"
    )


class Form(NamedTuple):
    """How a log is written, and how others split its lines.

    Attributes:
        line: of an access.
        separator: between words; "": lines are JSON objects.
        places: of words, of the object's name and of the bytes that were read.
        paths: the same two, of values of a JSON object.
        quoted: whether words may stand in quotation marks.
        header: the line before all others; "": there is none.
    """

    line: Callable[[Access], str]
    separator: str
    places: tuple[int, int] = (0, 0)
    paths: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    quoted: bool = True
    header: str = ""


FORMS = {
    "s3": Form(_s3, " ", (8, 12)),
    "s3_json": Form(_s3_json, "", paths=(("key",), ("bytes_sent",))),
    "nginx": Form(_nginx, " ", (5, 7)),
    "cloudfront": Form(_cloudfront, "\t", (7, 3), quoted=False),
    "rgw": Form(_rgw, "", paths=(("object",), ("bytes_sent",))),
    "minio": Form(_minio, "", paths=(("api", "object"), ("api", "tx"))),
    "swift_proxy": Form(_swift_proxy, " ", (9, 16), quoted=False),
    "nginx_json": Form(_nginx_json, "", paths=(("request_uri",), ("body_bytes_sent",))),
    "swift_object": Form(_swift_object, " ", (10, 12)),
    "hdfs": Form(_hdfs, " ", (17, 9), quoted=False),
    "minio_drives": Form(_minio_drives, "", paths=(("path",), ("size",))),
    "warp": Form(
        *(_warp, "\t", (7, 5)),
        quoted=False,
        header="idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\t"
        "duration_ns\tcat",
    ),
}
