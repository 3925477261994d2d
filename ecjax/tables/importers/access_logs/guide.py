"""The guide of each source of logs: how to get the log, what it tells, and three commands from it to a plan."""

from ecjax.errors import UserError, among
from ecjax.tables.importers.access_logs import PROFILES
from ecjax.tables.importers.access_logs.profile import NODE, Json, Profile, Text
from ecjax.tables.importers.trace import RATES

_LOG = {
    "s3": "Switch on server access logging of the bucket (`aws s3api put-bucket-logging`), and copy what it delivers: "
    "`aws s3 sync s3://LOGS/prefix logs/`. Thousands of small files are fine; they need not be in order.",
    "s3_json": "Any export of server access logs to JSON lines that keeps AWS's names of the columns.",
    "nginx": "nginx: add `$request_time` after the user agent in `log_format`; Apache: add `%D` to `LogFormat`. "
    "Without it only rates are known. ingress-nginx and Traefik (common format) have it as they come; of lines "
    "that have other numbers before it, a notice says which one was read. Logs of several machines go in one folder.",
    "nginx_json": "A `log_format` with `escape=json` that has the variables by their names: time_iso8601, "
    "request_method, request_uri, status, body_bytes_sent, content_length, request_time.",
    "cloudfront": "Switch on standard logging of the distribution, and copy the files from its bucket.",
    "rgw": "`ceph config set client.rgw rgw_enable_ops_log true`, `rgw_ops_log_rados false` and "
    "`rgw_ops_log_file_path /var/log/ceph/ops.log`; versions before Pacific do not name the object.",
    "minio": "MinIO: `mc admin config set ALIAS audit_webhook:ecjax endpoint=http://HOST/`, and keep what arrives, an "
    "object a line. RustFS writes the same fields.",
    "minio_drives": "`mc admin trace --call storage --json ALIAS > calls.jsonl` while users read; it slows the "
    "servers a little.",
    "swift_proxy": "The lines that proxy-logging sends to syslog; lines of other programs are left out.",
    "swift_object": "The lines of all object servers from syslog. With those of the proxies, in the same file or in "
    "others of the folder, they are joined by transaction, so that arrivals are exact.",
    "hdfs": "Reads are logged at DEBUG only: set `log4j.logger.org.apache.hadoop.hdfs.server.datanode.DataNode."
    "clienttrace=DEBUG` on the DataNodes, and collect their logs in one folder. Below 0 a block number is erasure "
    "coded: without its last four bits it is the group, with them the chunk.",
    "warp": "`warp get --full --benchdata=run` writes run.csv.zst. `ecjax adapt delays=run.csv.zst` takes the delays "
    "of its requests; `ecjax analyze` their times by endpoint. Its rates are not those of users.",
}
_PUBLIC = "Public data: {source}. Take it from its publisher; the sample here is generated."


def source_guide(name: str) -> str:
    """The guide of a source.

    Raises:
        UserError: there is no source of this name.
    """
    if name not in PROFILES:
        raise UserError(f"guide: found {name!r}{among(name, PROFILES)}")
    profile = PROFILES[name]
    extents = " extent_bytes=1048576" if profile.block else ""
    # which make a nodes table, that of a single node being none to plan on
    times = NODE in profile.roles and profile.provides > {RATES}
    nodes = "" if times else f" {_NODES}"
    inputs = f"results/{name}" if times else f"files=results/{name}/files{nodes}"
    lines = [
        f"# {profile.title}",
        _LOG[name] if name in _LOG else _PUBLIC.format(source=profile.source),
        "From your log to a plan:",
        f"    ecjax analyze LOG{extents} k=4 out=results/{name}\n"
        f"    ecjax optimize {inputs} min_extra_chunks=2 theta=100,1000,10000 out=results/plan\n"
        f"    ecjax replay plan=results/plan trace=results/{name} out=results/check",
        *((_NO_TIMES,) if times else ()),
        "LOG is a file or a folder of files, plain or compressed (gzip, zstd, bzip2), told by its first lines; or say "
        f"format={name}. k is the number of chunks that rebuild an object"
        + ("; the log tells it where all reads take as many." if profile.nodes else "."),
        f"Tells: {', '.join(sorted(profile.provides))}. " + " ".join(profile.loses),
        f"Fields that are read: {_fields(profile)}. Nothing else of a line is kept.",
        _CARE if profile.secret else "Names are as in the log.",
    ]
    return "\n\n".join(lines) + "\n"


_NODES = "nodes='{count: 12, per_rack: 4, seek_ms: 8, MBps: 180, dollars_per_TB: 20}'"
_NO_TIMES = (
    "Where analyze says that service times are unavailable, plan with files=OUT/files and nodes of your own instead: "
    f"{_NODES}."
)
_CARE = (
    "Who asked is never read. Names of objects are hashed under a salt that is made of the log and kept nowhere: two "
    "logs have no names in common. keep_ids=true leaves names as they are, to compare logs or to act on a plan. "
    "Malformed lines are counted and sampled in the dataset rejects, with their text only with keep_ids=true; above "
    "max_rejects (0.1 of all lines; a number from 1 on) nothing is written, and the exit code is 2."
)


def _fields(profile: Profile) -> str:
    shape = profile.shape
    if isinstance(shape, Json):
        return ", ".join(f"{role} ({' or '.join(paths)})" for role, paths in shape.names.items())
    assert isinstance(shape, Text)
    if shape.header:
        return ", ".join(f"{role} ({' or '.join(names)})" for role, names in shape.header.items())
    return ", ".join(shape.positions)
