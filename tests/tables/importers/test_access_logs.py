import gzip
import itertools
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sample_logs
from sample_logs import LOGS, Access, hour, write_log

from ecjax.errors import UserError
from ecjax.studies.adapt.logs import task_delays
from ecjax.studies.spine.log_options import ACCESS_LOGS
from ecjax.tables.importers import open_trace
from ecjax.tables.importers.access_logs import PROFILES, ordered
from ecjax.tables.importers.access_logs.importer import recognised
from ecjax.tables.importers.access_logs.lines import blocks
from ecjax.tables.requests import requests
from ecjax.tables.statistics.poisson import poisson_test
from ecjax.tables.statistics.scan import scan

TRACES = Path(__file__).parents[3] / "traces"
SAME_DAY = ("s3", "s3_json", "nginx_json", "rgw", "minio", "swift_proxy")
DAY = hour(requests=200, objects=30)


def rows(trace):
    return pa.Table.from_batches(list(trace.batches())).to_pandas()


def opened(folder, name, accesses=DAY, **options):
    file, lines = LOGS[name]
    write_log(folder / file, lines(accesses))
    extents = {"extent_bytes": 2**20} if PROFILES[name].block else {}
    return open_trace(folder / file, keep_ids=True, **extents, **options)


def test_options_name_the_profiles():
    assert set(ACCESS_LOGS) == set(PROFILES) == set(LOGS)
    for profile in PROFILES.values():
        assert profile.loses and profile.provides and profile.title
        assert not {field.name for field in fields(profile)} & {"requester", "user"}


@pytest.mark.parametrize("name", LOGS)
def test_samples_are_small_and_recognised_by_their_first_lines(name):
    file, lines = LOGS[name]
    path = TRACES / "logs" / file
    assert path.stat().st_size < 10_000
    text = "".join(block.data.tobytes().decode() for block in blocks(path))
    assert text == "".join(f"{line}\n" for line in lines(hour()))
    trace = open_trace(path, extent_bytes=2**20 if PROFILES[name].block else None)
    assert trace.format == name and trace.loses and "rates" in trace.provides
    assert trace.tally.lines == 0
    found = rows(trace)
    assert not trace.tally.rejected and found["arrival_s"].is_monotonic_increasing
    assert all(batch.schema.equals(trace.schema) for batch in trace.batches())


def of(accesses: list[Access]) -> pd.DataFrame:
    seconds = np.array([each.second for each in accesses], float)
    return pd.DataFrame(
        {
            "arrival_s": seconds - seconds[0],
            "file_id": [f"{each.bucket}/{each.key}" for each in accesses],
            "op": ["write" if each.write else "read" for each in accesses],
            "bytes": [float(each.size) for each in accesses],
            "finish_s": seconds - seconds[0] + [each.duration_ms / 1000 for each in accesses],
        }
    )


@pytest.mark.parametrize("name", SAME_DAY)
def test_the_same_day_in_several_formats_gives_the_same_accesses(name, tmp_path):
    trace = opened(tmp_path, name)
    found = rows(trace)
    found["file_id"] = found["file_id"].str.removeprefix("AUTH_test/")
    expected = of(DAY)
    for column in ("file_id", "op", "bytes"):
        assert found[column].tolist() == expected[column].tolist()
    for column in ("arrival_s", "finish_s"):
        np.testing.assert_allclose(found[column], expected[column], atol=2e-7)
    assert trace.provides == {"rates", "sojourn"}


def test_rates_are_exactly_those_that_made_the_log(tmp_path):
    expected = of(DAY)
    span = expected["arrival_s"].iloc[-1]
    reads = expected[expected["op"] == "read"]["file_id"].value_counts() / span
    for name in ("s3", "rgw"):
        statistics = scan(opened(tmp_path, name))
        assert statistics.arrivals.span_s == span
        totals = dict(zip(statistics.file_ids.to_pylist(), statistics.files[:, 0] / span, strict=True))
        assert {file: rate for file, rate in totals.items() if rate} == reads.to_dict()


def test_nginx_times_are_those_of_the_end(tmp_path):
    found, expected = rows(opened(tmp_path, "nginx")), of(DAY)
    reads = expected["op"] == "read"
    assert sorted(found["file_id"]) == sorted(expected["file_id"])
    assert found.loc[found["op"] == "read", "bytes"].sum() == expected.loc[reads, "bytes"].sum()
    sojourn = (found["finish_s"] - found["arrival_s"]).sort_values().to_numpy()
    np.testing.assert_allclose(sojourn, np.sort([each.duration_ms / 1000 for each in DAY]), atol=1e-9)
    line = '10.0.0.1 - - [02/Nov/2026:09:00:00 +0000] "GET /a/b?x=1 HTTP/1.1" 206 512 "-" "curl"'
    path = tmp_path / "access.log"
    path.write_text(f"{line} 2500\n{line}\n{line} 0.5 0.4\n".replace("00:00 +0000", "00:02 +0200", 1))
    found = rows(open_trace(path, keep_ids=True))
    # Apache's microseconds count from the beginning; two hours east of UTC are two hours earlier
    assert found["arrival_s"].tolist() == [0.0, 7197.5, 7198.0]
    assert found["finish_s"].tolist()[:2] == [0.0025, 7198.0] and np.isnan(found["finish_s"][2])
    assert set(found["file_id"]) == {"a/b"}


def test_a_part_of_an_object_leaves_its_size(tmp_path):
    line = next(sample_logs.s3(DAY[:1]))
    words = line.split(" ")
    words[13] = "100"  # bytes sent
    path = tmp_path / "log"
    path.write_text(f"{line}\n{' '.join(words)}\n")
    statistics = scan(open_trace(path))
    assert statistics.files[0, 4] == DAY[0].size  # the largest: the object, not its mean read


def test_other_lines_are_counted(tmp_path):
    lines = list(sample_logs.s3(DAY))
    lines[0] = lines[0].replace("REST.GET.OBJECT", "REST.HEAD.OBJECT")
    lines[1] = lines[1].replace(" 200 - ", " 404 NoSuchKey ")
    lines[2] = "2 words"
    lines[3] = lines[3].replace("Nov", "Nix")
    lines[4] = lines[4].replace("REST.GET.OBJECT", "%%")
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress("\r\n".join([*lines, "", "# a comment"]).encode()))
    trace = open_trace(path)
    assert len(rows(trace)) == len(lines) - 5
    tally = trace.tally
    assert tally.lines == len(lines) and tally.others == {"REST.HEAD.OBJECT": 1} and tally.unsuccessful == 1
    assert [(each.line, each.text) for each in tally.samples] == [(3, None), (4, None), (5, None)]
    assert set(tally.reasons.values()) == {1} and tally.rejected == 3
    assert any("3 of 200 lines" in sentence for sentence in tally.notices())
    assert rows(trace).equals(rows(trace)) and tally.lines == len(lines)  # begun anew
    trace = open_trace(path, keep_ids=True, max_rejects=3)
    rows(trace)
    assert trace.tally.samples[0].text == "2 words"
    for most in (2, 0.01, 0):
        with pytest.raises(UserError, match="found 3 malformed lines of 200.*line 3.*max_rejects"):
            rows(open_trace(path, max_rejects=most))


def test_names_are_hashed_by_a_salt_of_the_log(tmp_path):
    file, lines = LOGS["s3"]
    for name, accesses in (("one", DAY), ("two", DAY[1:])):
        write_log(tmp_path / name, lines(accesses))
    one, two = rows(open_trace(tmp_path / "one")), rows(open_trace(tmp_path / "two"))
    assert one["file_id"].dtype == np.int64 and (one["file_id"] >= 0).all()
    plain = rows(open_trace(tmp_path / "one", keep_ids=True))
    assert len(set(zip(one["file_id"], plain["file_id"], strict=True))) == plain["file_id"].nunique()
    assert not set(one["file_id"]) & set(two["file_id"])
    assert one.equals(rows(open_trace(tmp_path / "one")))


def test_logs_of_several_machines_are_merged(tmp_path):
    lines = list(sample_logs.s3(DAY))
    folder = tmp_path / "year=2026" / "month=11"
    folder.mkdir(parents=True)
    for place, ending in enumerate(("", ".gz", ".zst")):
        write_log(folder / f"host{place}{ending}", iter(lines[place::3]))
    write_log(tmp_path / "later.json.gz", sample_logs.s3_json(DAY[:1]))  # another schema in the same folder
    found = rows(open_trace(tmp_path, keep_ids=True))
    expected = of([DAY[0], *DAY])
    assert found["arrival_s"].tolist() == expected["arrival_s"].tolist()
    assert sorted(found["file_id"]) == sorted(expected["file_id"])


@pytest.mark.parametrize(("hard", "block"), [(True, 4 * 2**20), (False, 4096)], ids=["small", "large"])
def test_more_files_than_may_be_open_are_merged(tmp_path, hard, block):
    """Files of the same hours: one that is read at once is open no longer; for larger ones the limit is raised."""
    pytest.importorskip("resource", reason="this system has no such limits")
    lines = list(sample_logs.s3(hour(requests=1500)))
    for place in range(120):
        write_log(tmp_path / f"host{place}", iter(lines[place::120]))
    program = (
        "import resource, sys\n"
        "from ecjax.tables.importers import open_trace\n"
        "from ecjax.tables.importers.access_logs import importer\n"
        f"importer.BLOCK_BYTES = {block}\n"
        "limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100 if {hard} else limit))\n"
        "print(sum(batch.num_rows for batch in open_trace(sys.argv[1]).batches()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.stdout == "1500\n", done.stderr


def test_blocks_are_the_lines_of_a_file_whatever_their_size(tmp_path):
    text = "\ufeffone\n\n# comment\ntwo two two two two\nthree\r\nfour"
    for ending in ("", "\n"):
        (tmp_path / "log").write_bytes((text + ending).encode())
        for size in range(3, 60):
            found = [
                (int(b.numbers[i]), b.text(i))
                for b in blocks(tmp_path / "log", size)
                for i in range(len(b.begins))
            ]
            assert found == [(1, "one"), (4, "two two two two two"), (5, "three"), (6, "four")], size
    (tmp_path / "log").write_bytes("\ufeff".encode())
    assert not list(blocks(tmp_path / "log"))


def test_late_lines_are_sorted_as_far_as_memory_allows(tmp_path, monkeypatch):
    lines = list(sample_logs.s3(DAY))
    path = tmp_path / "log"
    write_log(path, iter(lines[::-1]))
    assert rows(open_trace(path, keep_ids=True))["arrival_s"].tolist() == of(DAY)["arrival_s"].tolist()
    monkeypatch.setattr(ordered, "HELD", 10)
    monkeypatch.setattr("ecjax.tables.importers.access_logs.importer.BLOCK_BYTES", 4096)
    with pytest.raises(UserError, match="earlier than one more than 10 lines before.*sort=true"):
        rows(open_trace(path))
    assert len(rows(open_trace(path, sort=True))) == len(DAY)
    write_log(path, iter(lines))
    assert rows(open_trace(path, keep_ids=True))["arrival_s"].tolist() == of(DAY)["arrival_s"].tolist()


@pytest.mark.parametrize("sort", [False, True])
def test_names_that_no_single_batch_can_hold_are_sorted(monkeypatch, sort):
    """Arrow joins strings up to 2 GiB, here up to 300 bytes: no row is lost, and none comes out of order."""

    def joined(batches):
        table, found = pa.Table.from_batches(batches), []
        while table.num_rows:
            ends = np.cumsum([len(name) for name in table["name"].to_pylist()])
            count = max(int(np.searchsorted(ends, 300, side="right")), 1)
            found += table.slice(0, count).combine_chunks().to_batches()
            table = table.slice(count)
        return found

    monkeypatch.setattr(ordered, "joined", joined)
    monkeypatch.setattr(ordered, "HELD", 50)
    random = np.random.default_rng(8)
    lines = [(tick + int(random.integers(0, 30)), "x" * int(random.integers(1, 60))) for tick in range(400)]
    names = {"ticks": pa.array([tick for tick, _ in lines]), "name": pa.array([name for _, name in lines])}
    batches = [pa.record_batch(names).slice(begin, 7) for begin in range(0, 400, 7)]
    found = list(ordered.in_order([ordered.Stream(Path("log"), 0, lambda: iter(batches))], "log", sort))
    assert all(sum(map(len, batch["name"].to_pylist())) <= 300 for batch in found)
    rows_found = [tuple(row.values()) for batch in found for row in batch.to_pylist()]
    assert rows_found == sorted(lines, key=lambda line: line[0])


def test_object_servers_join_their_proxies(tmp_path):
    alone = rows(opened(tmp_path, "swift_object"))
    chunks = alone.groupby("request_id").size()
    assert set(chunks) == {sample_logs.K, sample_logs.K + 2} and len(chunks) == len(DAY)
    assert alone["node_id"].str.match(r"storage\d/sdb\d$").all()
    write_log(
        tmp_path / LOGS["swift_proxy"][0], sample_logs.swift_proxy([*DAY, DAY[-1]._replace(key="photo 77")])
    )
    trace = open_trace(tmp_path, keep_ids=True)
    joined = rows(trace)
    first = joined.drop_duplicates("request_id")
    assert sorted(first["arrival_s"]) == of(DAY)["arrival_s"].tolist()
    assert len(joined) == len(alone) and trace.tally.others == {"requests without a line of a node": 1}
    (tmp_path / "one").write_text("".join(f"{line}\n" for line in sample_logs.swift_proxy(DAY)) + "noise\n")
    with (tmp_path / "one").open("a") as file:  # one file of all daemons
        file.writelines(f"{line}\n" for line in sample_logs.swift_object(DAY))
    trace = open_trace(tmp_path / "one", keep_ids=True)
    assert rows(trace).drop(columns="request_id").equals(joined.drop(columns="request_id"))
    assert trace.tally.others == {"lines of other kinds": 1} and not trace.tally.rejected


@pytest.mark.parametrize("held", [20, 60, 10**6])
def test_requests_of_object_servers_by_a_plain_count(tmp_path, monkeypatch, held):
    """Whatever is held in memory: a request has all rows of its transaction, and arrives with the proxy's line."""
    write_log(tmp_path / "proxy", sample_logs.swift_proxy(DAY))
    write_log(tmp_path / "server", sample_logs.swift_object(DAY))
    monkeypatch.setattr(ordered, "HELD", held)
    monkeypatch.setattr("ecjax.tables.importers.access_logs.importer.BLOCK_BYTES", 4096)
    trace = open_trace(tmp_path, keep_ids=True)
    found = requests(trace)
    assert found.returned == 0 and not trace.tally.others
    assert found.arrival.tolist() == of(DAY)["arrival_s"].tolist()
    sizes = [0 if each.write else sample_logs.K * (each.size // sample_logs.K) for each in DAY]
    assert sorted(found.bytes.tolist()) == sorted(sizes)


@pytest.mark.parametrize("machines", [1, 2])
def test_the_clock_of_joined_logs_is_that_of_the_proxies(tmp_path, machines):
    """Requests at times of microseconds, by one or two proxies, of which the second is seldom asked."""
    random = np.random.default_rng(6)
    seconds = np.round(np.sort(random.uniform(0, 600, 400)), 6)
    accesses = [each._replace(second=t) for each, t in zip(hour(requests=400), seconds.tolist(), strict=True)]
    proxy, server = list(sample_logs.swift_proxy(accesses)), list(sample_logs.swift_object(accesses))
    write_log(tmp_path / "server", server)
    for machine in range(machines):
        mine = [line for n, line in enumerate(proxy) if (n % 10 == 3) == (machine == 1) or machines == 1]
        write_log(tmp_path / f"proxy{machine}", mine)
    trace = open_trace(tmp_path, keep_ids=True)
    assert 0 <= trace.clock_resolution_s <= 1e-6
    np.testing.assert_allclose(requests(trace).arrival, seconds - seconds[0], atol=1e-6)
    # where a proxy's log is missing, arrivals of its requests are as coarse as the nodes' clocks
    write_log(tmp_path / "proxy0", [line for n, line in enumerate(proxy) if n % 3])
    if machines == 1:
        assert open_trace(tmp_path, keep_ids=True).clock_resolution_s == 1.0
    (tmp_path / "one").mkdir()
    write_log(tmp_path / "one" / "server", server)
    assert open_trace(tmp_path / "one").clock_resolution_s == 1.0


def test_hdfs_block_groups(tmp_path):
    trace = opened(tmp_path, "hdfs")
    found = rows(trace)
    groups = {-(2**63) + 16 * (sample_logs.hash_of(each) % 1000) for each in DAY}
    assert set(found["file_id"]) == groups and found["node_id"].nunique() == 9
    assert (found.groupby("request_id", sort=False).size() >= sample_logs.K).all()
    statistics = scan(trace)
    assert statistics.requests == len(DAY) and set(statistics.chunks_read) <= {0, sample_logs.K}
    assert trace.tally.others == {"lines of other kinds": len(DAY)}


def clienttrace(client, group, index, end_ms, size, duration_ms=0, write=False):
    """A line of an HDFS DataNode: a chunk of a block group, read or written by a client."""
    when = f"2026-11-02 09:{end_ms // 60000 % 60:02d}:{end_ms // 1000 % 60:02d},{end_ms % 1000:03d}"
    return (
        f"{when} DEBUG org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace: src: /192.0.2.{index}:9866, "
        f"dest: /192.0.2.99:40000, bytes: {size}, op: {'HDFS_WRITE' if write else 'HDFS_READ'}, "
        f"cliID: DFSClient_NONMAPREDUCE_{client}_1, offset: 0, srvID: datanode-{index}, "
        f"blockid: BP-1-192.0.2.1-2:blk_{-(2**63) + 16 * group + index}_1001, duration(ns): {duration_ms * 10**6}"
    )


def test_one_hdfs_client_makes_many_requests(tmp_path):
    """Of two groups one after another, of one group again after a pause, and a write of it between reads."""
    accesses = [(1, 0, 0), (2, 0, 300), (1, 1, 2000), (2, 1, 2900), (1, 2, 3900), (1, 0, 4950), (1, 3, 6000)]
    lines = [clienttrace(5, group, index, ms, 10 + index) for group, index, ms in accesses]
    lines.insert(5, clienttrace(5, 1, 4, 4000, 99, write=True))
    path = tmp_path / "hdfs.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    found = requests(open_trace(path))
    # of no group do two reads come within a second of each other
    assert found.arrival.tolist() == [0.0, 0.3, 2.0, 2.9, 3.9, 4.0, 4.95, 6.0]
    assert found.bytes.tolist() == [10, 10, 11, 11, 12, 99, 10, 13]
    assert found.write.tolist() == [False] * 5 + [True] + [False] * 2
    assert found.returned == 0


@pytest.mark.parametrize("held", [20, 60, 10**6])
def test_requests_of_clients_by_a_plain_count(tmp_path, monkeypatch, held):
    """Whatever is held in memory: a request that lines of two batches belong to is one."""
    random = np.random.default_rng(2)
    accesses, now = [], 0
    for _ in range(1500):
        now += int(random.choice([0, 1, 5, 40, 400, 1100], p=[0.2, 0.2, 0.3, 0.2, 0.08, 0.02]))
        accesses.append((now, int(random.integers(3)), int(random.integers(8)), bool(random.random() < 0.1)))
    path = tmp_path / "hdfs.log"
    lines = (clienttrace(c, group, n % 9, ms, n + 1, write=w) for n, (ms, c, group, w) in enumerate(accesses))
    path.write_text("".join(f"{line}\n" for line in lines))
    last: dict[tuple, tuple[int, list]] = {}
    expected = []
    for number, (ms, *key) in enumerate(accesses):
        before, request = last.get(tuple(key), (-(10**9), []))
        if ms - before > 1000:
            request = [(ms - accesses[0][0]) / 1000, key[2], 0]
            expected.append(request)
        request[2] += number + 1
        last[tuple(key)] = ms, request
    monkeypatch.setattr(ordered, "HELD", held)
    monkeypatch.setattr("ecjax.tables.importers.access_logs.importer.BLOCK_BYTES", 4096)
    found = requests(open_trace(path))
    assert found.returned == 0
    found = zip(found.arrival.tolist(), found.write.tolist(), found.bytes.tolist(), strict=True)
    assert sorted(found) == sorted(map(tuple, expected))
    # what goes on for longer than memory allows is cut: no row is lost, and none arrives before one before it
    monkeypatch.setattr("ecjax.tables.importers.access_logs.requests.HELD", 3)
    cut = requests(open_trace(path))
    assert cut.bytes.sum() == sum(range(1, 1501)) and np.all(np.diff(cut.arrival) >= 0)


def test_segments_of_a_large_object_have_one_transaction(tmp_path):
    """Swift reads them one after another, each under the id of the user's request."""
    accesses = [DAY[0]._replace(key=f"part {part}.jpg", second=5 + part, write=False) for part in range(3)]
    lines = [re.sub("tx[0-9]+-0", "tx7-0", line) for line in sample_logs.swift_object(accesses)]
    (tmp_path / "log").write_text("".join(f"{line}\n" for line in lines))
    found = requests(open_trace(tmp_path / "log", keep_ids=True))
    assert [name.rsplit("/", 1)[1] for name in found.file_ids.to_pylist()] == [
        f"part {part}.jpg" for part in range(3)
    ]
    size = DAY[0].size
    assert found.bytes.tolist() == [size] * 3 and found.arrival.tolist() == [0, 1, 2] and found.returned == 0


def test_calls_of_the_drives_of_minio(tmp_path):
    reads = [each for each in DAY if not each.write]
    trace = opened(tmp_path, "minio_drives")
    found = rows(trace)
    assert trace.provides == {"rates"} and "finish_s" not in found
    assert len(found) == sample_logs.K * len(reads) and set(found["op"]) == {"read"}
    assert set(found["node_id"]) == {f"minio{i}:9000/mnt/data{j}" for i in range(3) for j in range(3)}
    names = {name.rsplit("/", 2)[0] for name in found["file_id"]}
    assert names == {f"{each.bucket}/{each.key}" for each in reads}
    # a read of an object is one request, unless another one of it came in the same second
    statistics = scan(trace)
    seconds = len({(each.second, each.key, each.bucket) for each in reads})
    assert statistics.requests == seconds and statistics.reads == seconds
    assert trace.tally.others["storage.ReadVersion"] > len(reads) and not trace.tally.rejected
    once = {each.key: each for each in reads}
    sizes = (
        found.assign(key=found["file_id"].str.split("/").str[1:3].str.join("/"))
        .groupby("key")["bytes"]
        .first()
    )
    assert all(sizes[key] == each.size // sample_logs.K for key, each in once.items() if key in sizes)


def test_escapes_in_names(tmp_path):
    names = ('a "quoted" name', "tab\tand \\", "snow \u2603", "plain")
    accesses = [DAY[0]._replace(key=name, write=False) for name in names]
    for name in ("minio", "rgw"):
        assert rows(opened(tmp_path, name, accesses))["file_id"].tolist() == [
            f"bucket1/{each}" for each in names
        ]


def test_escapes_in_lines_of_web_servers(tmp_path):
    """What nginx and Apache escape is the same object as its percent-encoding, and no end of a word."""
    targets = (
        "/bucket1/caf%C3%A9%20%22a%22.jpg",
        r"/bucket1/caf\xC3\xA9 \x22a\x22.jpg",
        r"/bucket1/caf\xc3\xa9 \"a\".jpg",
        r"/bucket1/back\\slash",
        r"/bucket1/tab\tand\x5Cx41",
    )
    agents = ("curl/8", r"a \"b\" 3 \"c\" 17 d", r"back\\", r"\"", r"a\x22 5 \x22b")
    lines = [
        f'1.1.1.1 - - [28/Nov/2026:14:00:00 +0000] "GET {target} HTTP/1.1" 200 {place} "-" "{agent}" 0.25{place}'
        for place, (target, agent) in enumerate(itertools.product(targets, agents))
    ]
    path = tmp_path / "access.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    found = rows(open_trace(path, keep_ids=True, max_rejects=0)).sort_values("bytes")
    names = ['bucket1/caf\u00e9 "a".jpg'] * 3 + ["bucket1/back\\slash", "bucket1/tab\tand\\x41"]
    assert found["file_id"].tolist() == [name for name in names for _ in agents]
    expected = [float(f"0.25{place}") for place in range(len(lines))]
    np.testing.assert_allclose(found["finish_s"] - found["arrival_s"], expected, atol=1e-9)


def test_a_clock_of_whole_seconds_is_not_as_fine_as_durations(tmp_path):
    """The JSON log of nginx has the time of the end in seconds, and durations in milliseconds."""
    path = tmp_path / "access.jsonl"
    for fraction, resolution in (("", 1.0), (".{:03d}", 1e-3)):
        lines = [
            f'{{"time_iso8601": "2026-11-28T14:00:{each % 60:02d}{fraction.format(each * 7 % 1000)}+00:00", '
            f'"request_method": "GET", "request_uri": "/b/{each}", "status": 200, "body_bytes_sent": 5, '
            f'"request_time": 0.{each:03d}}}\n'
            for each in range(1, 60)
        ]
        path.write_text("".join(lines))
        assert open_trace(path).clock_resolution_s == pytest.approx(resolution)


def test_the_clock_of_a_folder_is_that_of_all_short_files(tmp_path):
    """One line a file: the first is on a whole second, the others are not."""
    for number, ms in enumerate(range(0, 20 * 137, 137)):
        lines = sample_logs.rgw([DAY[0]._replace(second=ms / 1000)])
        write_log(tmp_path / f"{number:02}.jsonl", lines)
    trace = open_trace(tmp_path)
    assert trace.format == "rgw" and trace.clock_resolution_s == pytest.approx(1e-3)


@pytest.mark.parametrize(("one", "two"), [("warp", "minio_drives"), ("hdfs", "thesios")])
def test_logs_that_tell_different_things_are_not_merged(tmp_path, one, two):
    for name in (one, two):
        file, lines = LOGS[name]
        write_log(tmp_path / file, lines(DAY))
    with pytest.raises(UserError, match=f"found lines of format={two} .* in a log of format={one} ") as error:
        open_trace(tmp_path)
    assert str(error.value).startswith(str(tmp_path / LOGS[two][0])) and "\n" not in str(error.value)


def test_service_times_of_a_disk(tmp_path):
    trace = opened(tmp_path, "thesios")
    found = rows(trace)
    assert trace.provides == {"rates", "sojourn", "service"}
    disk = [each.duration_ms / 1000 for n, each in enumerate(DAY) if n % 5 and not each.write]
    np.testing.assert_allclose(np.sort(found["finish_s"] - found["start_s"]), np.sort(disk), atol=1e-6)
    assert (found["start_s"] >= found["arrival_s"]).all() and set(found["node_id"]) == {"disk"}


def test_a_benchmark_gives_delays_to_adapt(tmp_path):
    delays = task_delays(opened(tmp_path, "warp"), 0)
    expected = sorted(each.duration_ms / 1000 for each in DAY if not each.write)
    np.testing.assert_allclose(np.sort(delays["read"].seconds), expected, atol=1e-6)


def test_what_is_no_access_log(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("something else\n" * 3)
    with pytest.raises(UserError, match="cannot tell its format"):
        open_trace(path)
    with pytest.raises(UserError, match="found no access among 3 lines.*line 1.*allowed: format=s3"):
        open_trace(path, format="s3")
    path.write_text(next(sample_logs.s3(DAY)).replace("REST.GET", "REST.HEAD") + "\n")
    with pytest.raises(UserError, match="no access that reads or writes"):
        open_trace(path)
    path.write_bytes(gzip.compress(b"".join(f"{line}\n".encode() for line in sample_logs.s3(DAY)))[:-200])
    with pytest.raises(UserError, match="damaged or of another format"):
        rows(open_trace(path))
    with pytest.raises(UserError, match="extent_bytes"):
        open_trace(TRACES / "logs" / LOGS["alibaba_block"][0])
    with pytest.raises(UserError, match="extent_bytes"):
        open_trace(TRACES / "logs" / LOGS["s3"][0], extent_bytes=4096)
    assert not recognised((), PROFILES["s3"])


def test_lines_as_they_are_met(tmp_path):
    """Layouts that differ in what does not matter."""
    nginx, lines = list(sample_logs.nginx(DAY)), list(sample_logs.s3_json(DAY))
    text = {
        "vhost": [f"example.org:443 {line}" for line in nginx],
        "common": [line.rsplit(" ", 3)[0] for line in nginx],
        "named": [" rt=".join(line.rsplit(" ", 1)) + " uct=0.1" for line in nginx],
        "list": ["[", *(f"{line}," for line in lines), "]"],
        "numbers": [line.replace('"http_status": "200"', '"httpStatus": 200') for line in lines],
    }
    for name, each in text.items():
        path = tmp_path / f"{name}.log"
        path.write_text("\ufeff" + "".join(f"{line}\n" for line in each))
        trace = open_trace(path, max_rejects=0)
        assert len(rows(trace)) == len(DAY), name
        assert ("finish_s" in trace.schema.names) == (name != "common")
    path = tmp_path / "ibm"
    path.write_text(
        "5 REST.GET.OBJECT 8688e0d2 0 0 -1\n9 REST.GET.OBJECT 95d3 100 10 19\n9 REST.HEAD.OBJECT 95d3 100\n"
    )
    assert rows(open_trace(path, max_rejects=0))["bytes"].tolist() == [0, 10]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "README").write_text("no log\n")
    write_log(folder / "proxy", sample_logs.swift_proxy(DAY))
    write_log(folder / "server", sample_logs.swift_object(DAY))
    trace = open_trace(folder)
    assert trace.format == "swift_object" and rows(trace)["request_id"].nunique() == len(DAY)
    assert trace.tally.others == {"lines of other kinds": 1}


def test_what_is_no_read_of_a_user_is_left_out(tmp_path):
    reads = [each for each in DAY if not each.write]
    lines = list(sample_logs.rgw(reads))
    # the gateway names requests for metadata get_obj, too
    lines[0] = lines[0].replace('"uri": "GET ', '"uri": "HEAD ')
    (tmp_path / "ops.log").write_text("\n".join(lines))
    trace = open_trace(tmp_path / "ops.log", max_rejects=0)
    assert len(rows(trace)) == len(lines) - 1 and trace.tally.others == {"HEAD...": 1}
    lines = list(sample_logs.swift_object(reads))
    lines[:2] = [line.replace('"proxy-server 21"', '"obj-reconstructor 7"') for line in lines[:2]]
    (tmp_path / "object.log").write_text("\n".join(lines))
    trace = open_trace(tmp_path / "object.log", max_rejects=0)
    assert len(rows(trace)) == len(lines) - 2 and trace.tally.others == {"obj-...": 2}


def test_versions_and_settings_that_move_fields(tmp_path):
    lines = list(sample_logs.hdfs(DAY))
    expected = rows(opened(tmp_path, "hdfs"))
    path = tmp_path / "volumes.log"
    path.write_text("\n".join(line.replace(", bytes:", ", volume: /data/1, bytes:") for line in lines))
    assert rows(open_trace(path, max_rejects=0)).equals(expected)
    expected = rows(opened(tmp_path, "nginx"))
    for forwarded in ("-", "10.0.0.1", "10.0.0.1, 2001:db8::1"):
        # "$http_x_forwarded_for" before $request_time
        moved = [
            line.replace('"client/1.0"', f'"client/1.0" "{forwarded}"') for line in sample_logs.nginx(DAY)
        ]
        path.write_text("\n".join(moved))
        assert rows(open_trace(path, keep_ids=True, max_rejects=0)).equals(expected)


def test_s3_lines_as_they_are_delivered(tmp_path):
    """Beside plain reads: parts of uploads, copies, ranges, quotation marks of clients, and much that moves nothing."""
    line = next(sample_logs.s3([DAY[0]._replace(write=False, key="photo.jpg", size=1000)]))
    words = line.split(" ")

    def changed(operation, status="200", sent="1000", size="1000", key="photo.jpg"):
        new = list(words)
        new[7], new[8], new[12], new[14], new[15] = operation, key, status, sent, size
        return " ".join(new)

    assert (
        words[7:9] == ["REST.GET.OBJECT", "photo.jpg"] and words[12] == "200" and words[14:16] == ["1000"] * 2
    )
    lines = [
        line,
        line.replace("192.0.2.3", "2001:db8::1"),
        line.replace('"client/1.0"', '"Mozilla/5.0 (a "quoted" [agent])"'),
        changed("REST.GET.OBJECT", "206", "100"),
        changed("REST.COPY.OBJECT_GET", sent="-"),
        changed("REST.POST.UPLOADS", sent="300", size="-"),
        changed("REST.PUT.PART", sent="-", size="3000"),
        changed("REST.PUT.PART", sent="-", size="2000"),
        changed("REST.POST.UPLOAD", sent="300", size="5000"),
        changed("REST.GET.OBJECT", key="a%252Fb%2520%25C3%25BC.jpg"),
        changed("REST.GET.OBJECT", "304", "-"),
        changed("REST.GET.OBJECT", "503", "300", "-"),
        changed("REST.HEAD.OBJECT", sent="-"),
        changed("REST.DELETE.OBJECT", "204", "-"),
        changed("BATCH.DELETE.OBJECT", "204", "-"),
        changed("S3.EXPIRE.OBJECT", "-", "-"),
        changed("REST.GET.BUCKET", key="-", size="-"),
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    trace = open_trace(tmp_path / "log", keep_ids=True, max_rejects=0)
    found = rows(trace)
    assert found["bytes"].tolist() == [1000.0, 1000, 1000, 100, 1000, 5000, 1000]
    assert found["op"].tolist() == ["read"] * 5 + ["write", "read"]
    assert found["file_id"].iloc[-1].endswith("/a/b ü.jpg") and found["file_id"].nunique() == 2
    assert trace.tally.unsuccessful == 2 and sum(trace.tally.others.values()) == 8


@pytest.mark.parametrize("name", [name for name, profile in PROFILES.items() if profile.source])
def test_sizes_of_data_sets_are_numbers(name, tmp_path):
    """No publisher's field list has "-" for a size, as servers write where they sent nothing."""
    marked = 7 * 2**20 + 12345
    accesses = [*DAY[:21], DAY[21]._replace(write=False, size=marked), *DAY[22:40]]
    file, lines = LOGS[name]
    for size, malformed in ((marked, 0), ("-", 1)):
        write_log(tmp_path / file, (line.replace(str(marked), str(size)) for line in lines(accesses)))
        extents = {"extent_bytes": 2**20} if PROFILES[name].block else {}
        trace = open_trace(tmp_path / file, **extents)
        rows(trace)
        assert trace.tally.rejected == malformed


def test_a_format_is_not_taken_for_another(tmp_path):
    file, lines = LOGS["twitter"]
    write_log(tmp_path / file, lines(DAY))
    assert open_trace(tmp_path / file, format="twitter").format == "twitter"
    with pytest.raises(UserError, match="found lines of format=twitter .*allowed with format=ibm_cos"):
        open_trace(tmp_path / file, format="ibm_cos")


@pytest.mark.parametrize(
    ("name", "garbage"),
    [("thesios", "lorem"), ("ibm_cos", "REST.GET.O"), ("twitter", "1")],
)
def test_operations_that_a_format_does_not_have_are_malformed(tmp_path, name, garbage):
    file, lines = LOGS[name]
    some = list(lines(DAY))
    word = {"thesios": "READ", "ibm_cos": "REST.GET.OBJECT", "twitter": "get"}[name]
    at = next(number for number, line in enumerate(some) if word in line)
    some[at] = some[at].replace(word, garbage, 1)
    write_log(tmp_path / file, some)
    trace = open_trace(tmp_path / file)
    rows(trace)
    assert trace.tally.reasons == {"operation": 1}


def test_lines_without_names_of_columns_are_those_that_are_known(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_text("".join(f"{i}\t{10**9 + i}\t{1000 + i}\t0.0{i}\n" for i in range(9)))
    with pytest.raises(UserError, match="found as first line.*allowed: columns relative_unix"):
        open_trace(path, format="wikimedia")


def test_small_numbers_of_wikimedia_are_powers_of_ten(tmp_path):
    """Times to the first byte, as published; a part of a day that was cut has no names of columns."""
    path = tmp_path / "part-01.tsv"
    lines = ("7\t1714473446\tjpeg\t20546\t2.8E-4", "8\t-889152392\tsvg+xml\t17446\t1.88E-4")
    path.write_text("".join(f"{line}\n" for line in lines))
    trace = open_trace(path)
    assert trace.format == "wikimedia"
    assert rows(trace)["bytes"].tolist() == [20546, 17446]


def test_temporary_blocks_of_tectonic_are_read_and_written(tmp_path):
    """Operations as CacheLib names them."""
    path = tmp_path / "blocks.csv"
    words = ("getChunkData.Temp", "putChunk.Temp", "getChunkData.Permanent", "getChunkData.NotInitialized")
    lines = ["op_time,block_id,block_id_size,io_size,io_offset,op_name,op_count"]
    lines += [f"{second},{second % 2},40,131072,0,{word},1" for second, word in enumerate(words)]
    write_log(path, lines)
    trace = open_trace(path)
    assert rows(trace)["op"].tolist() == ["read", "write", "read", "read"]
    assert not trace.tally.others


@pytest.mark.parametrize("encoding", ["latin-1", "koi8-r", "utf-8"])
def test_names_in_another_encoding_are_those_of_their_bytes(tmp_path, encoding):
    """Raw, percent-encoded or escaped by Apache, in a log that is all of such names."""
    name = {"latin-1": "été", "koi8-r": "лето", "utf-8": "été"}[encoding].encode(encoding)
    ways = [name, *("".join(form % byte for byte in name).encode() for form in ("%%%02X", "\\x%02x"))]
    line = b'1.2.3.4 - - [29/Nov/2026:08:00:%02d +0000] "GET /%b HTTP/1.1" 200 5 "-" "%b" 0.1\n'
    (tmp_path / "a.log").write_bytes(b"".join(line % (i, ways[i % 3], name) for i in range(30)))
    trace = open_trace(tmp_path / "a.log", keep_ids=True)
    assert trace.format == "nginx" and set(rows(trace)["file_id"]) == {
        name.decode("utf-8", "backslashreplace")
    }


def lines_of_nginx(begin, count, timed):
    """One read a second, of which the first is that of second ``begin``; ``timed``: each takes 0.25 s."""
    seconds = (
        f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        for second in range(begin, begin + count)
    )
    return [
        f'1.2.3.4 - - [29/Nov/2026:{second} +0000] "GET /a HTTP/1.1" 200 5 "-" "x"{" 0.250" * timed}'
        for second in seconds
    ]


def test_durations_that_begin_after_the_first_lines_are_not_lost_silently(tmp_path):
    """A log_format that changes in the middle of a file, or from one file to the next."""
    before, after = lines_of_nginx(0, 2000, False), lines_of_nginx(2000, 3000, True)
    write_log(tmp_path / "one.log", before + after)
    trace = open_trace(tmp_path / "one.log")
    assert "finish_s" not in rows(trace) and trace.tally.dropped == 3000 and "sojourn" not in trace.provides
    assert rows(trace) is not None and trace.tally.dropped == 3000  # begun anew
    [sentence] = trace.tally.notices()
    assert sentence.startswith("The durations of 3,000 accesses are left out")
    (tmp_path / "days").mkdir()
    write_log(tmp_path / "days" / "1.log", before)
    write_log(tmp_path / "days" / "2.log.gz", after)
    trace = open_trace(tmp_path / "days")
    found = rows(trace)
    took = found["finish_s"] - found["arrival_s"]
    assert took[:2000].isna().all() and np.allclose(took[2000:], 0.25) and len(took) == 5000
    [sentence] = trace.tally.notices()
    assert sentence.startswith("2,000 accesses have no duration") and "sojourn" in trace.provides
    moments = scan(trace).cells.moments
    assert moments[:, 0].sum() == 3000 and np.allclose(moments[:, 1], 0.25)


def test_sizes_of_objects_that_come_late_are_kept(tmp_path):
    """Reads of ranges whose object's size is not in the first lines (64 KiB)."""
    line = (
        "owner bucket [29/Nov/2026:08:{:02}:{:02} +0000] 1.2.3.4 who id REST.GET.OBJECT a "
        '"GET /bucket/a HTTP/1.1" 206 - 100 {} 20 10 "-" "x" -'
    )
    lines = [line.format(i // 60, i % 60, 5000 if i > 900 else "-") for i in range(1000)]
    write_log(tmp_path / "a.log", lines)
    assert sum(map(len, lines[:900])) > 1 << 16
    found = rows(open_trace(tmp_path / "a.log"))
    assert found["object_bytes"].isna().sum() == 901 and found["object_bytes"].max() == 5000


def test_lines_that_are_cut_or_have_no_such_day_are_malformed(tmp_path):
    lines = list(sample_logs.cloudfront(DAY))
    comments = [line for line in lines if line.startswith("#")]
    line = next(line for line in lines if "\tGET\t" in line)
    path = tmp_path / "access.tsv"
    path.write_text("\n".join([*comments, line, line[: line.index("/bucket") + 3]]))  # within the name
    trace = open_trace(path, max_rejects=1)
    assert len(rows(trace)) == 1 and trace.tally.reasons == {"status": 1}
    line = next(iter(sample_logs.nginx([DAY[0]._replace(write=False)])))
    days = {
        "29/Feb/2024": 0,
        "28/Feb/2023": 0,
        "31/Dec/2023": 0,
        "29/Feb/2023": 1,
        "31/Sep/2023": 1,
        "00/Jan/2024": 1,
    }
    for day, malformed in days.items():
        path.write_text(line + "\n" + re.sub(r"\[\d\d/\w{3}/\d{4}", f"[{day}", line))
        trace = open_trace(path, max_rejects=1)
        assert len(rows(trace)) == 2 - malformed and trace.tally.reasons == ({"time": 1} if malformed else {})


def test_hosts_may_be_addresses_in_brackets(tmp_path):
    expected = rows(opened(tmp_path, "nginx"))
    path = tmp_path / "brackets.log"
    path.write_text("\n".join(f"[2001:db8::1] {line}" for line in sample_logs.nginx(DAY)))
    assert rows(open_trace(path, keep_ids=True, max_rejects=0)).equals(expected)


def test_ranges_end_with_their_objects(tmp_path):
    path = tmp_path / "ibm"
    ranges = {
        "100 90 199": 10,
        "100 100 199": 0,
        "100 10 19": 10,
        "100 0 99": 100,
        "100 5 -1": 95,
        "100": 100,
    }
    path.write_text("\n".join(f"{at} REST.GET.OBJECT 95d3 {each}" for at, each in enumerate(ranges)))
    assert rows(open_trace(path, max_rejects=0))["bytes"].tolist() == list(ranges.values())


TECTONIC = (
    "# block_id io_offset io_size op_time op_name user_namespace user_name",
    "11 0 131072 1600000000.5 2 1 17",
    "12 4096 65536 1600000001.25 4 1 17",
)


@pytest.mark.parametrize(
    "lines",
    [
        TECTONIC,
        ["# Tectonic, one cluster of 2019", *TECTONIC],
        ["# Tectonic, one cluster of 2019", *TECTONIC[1:]],
        ["", *(line.replace(" ", "\t") for line in TECTONIC)],
        ["#  block_id  io_offset   io_size op_time op_name user_namespace user_name", *TECTONIC[1:]],
        [
            "# in order of time",
            "#op_time,op_name,block_id,io_size",
            "1600000000.5,2,11,131072",
            "1600000001.25,4,12,65536",
        ],
    ],
    ids=["as published", "comment", "comment alone", "tabs", "several spaces", "comma"],
)
def test_names_of_columns_count_as_the_cells_below_them(tmp_path, lines):
    """A comment is not what tells how words are separated; the mark before the names is no column."""
    path = tmp_path / "blocks.trace"
    write_log(path, lines)
    trace = open_trace(path)
    found = rows(trace)
    assert trace.format == "tectonic" and not trace.tally.rejected
    assert found["file_id"].tolist() == ["11", "12"] and found["op"].tolist() == ["read", "write"]
    assert found["bytes"].tolist() == [131072, 65536] and found["arrival_s"].tolist() == [0, 0.75]


def test_comments_before_lines_without_names_of_columns(tmp_path):
    path = tmp_path / "photos.txt"
    lines = (
        "# 1 February, 2016",
        "20160201000000 68e7 0 l 1024 1 PC 12",
        "20160201000007 abcd 5 m 77 0 PHONE 0",
    )
    write_log(path, lines)
    found = rows(open_trace(path))
    assert found["bytes"].tolist() == [1024, 77] and found["arrival_s"].tolist() == [0, 7]


PHOTO = "20160201000000 68e7 0 l 1024 1 PC 12"
DISK = "7,W,8192,4096,1577808144360767"


@pytest.mark.parametrize(
    ("line", "wrong", "reason"),
    [
        (DISK, DISK.replace("4096", ""), "size"),
        (PHOTO.replace(" ", "\t"), PHOTO.replace("1024", "").replace(" ", "\t"), "sent"),
        (PHOTO, PHOTO.replace("1024", "1e31"), "sent"),
        (PHOTO, PHOTO.replace("PC 12", "PC 1e300"), "duration"),
        (PHOTO, PHOTO.replace("2016", "1680"), "time"),
    ],
)
def test_cells_that_are_empty_or_beyond_all_bounds_are_malformed(tmp_path, line, wrong, reason):
    """An empty size counted as 0 bytes; tables hold no number above 1e30, and 64 bits not 300 years of nanoseconds."""
    path = tmp_path / "log"
    write_log(path, [line, wrong, line])
    trace = open_trace(path, max_rejects=1, extent_bytes=2**20 if line is DISK else None)
    assert len(rows(trace)) == 2 and trace.tally.reasons == {reason: 1}


def test_a_request_that_takes_longer_than_clocks_count_has_no_duration(tmp_path):
    """It came before all others, by a number that 64 bits do not hold."""
    line = '10.0.0.1 - - [02/Nov/2026:09:00:00 +0000] "GET /a/b HTTP/1.1" 200 512 "-" "curl" '
    path = tmp_path / "access.log"
    write_log(path, [line + "0.5", line + "99999999999.5", line + "0.25"])
    found = rows(open_trace(path))
    assert (found["arrival_s"] - found["arrival_s"][0]).tolist() == [0.0, 0.25, 0.5]
    assert found["finish_s"].isna().sum() == 1


@pytest.mark.parametrize("longest_ms", [0, 40])
def test_the_duration_of_the_first_line_moves_no_tick(tmp_path, longest_ms):
    """Ten Poisson requests a second, quick ones, after one of half a second: each is on the tick of its line."""
    random = np.random.default_rng(3)
    seconds = np.sort(random.integers(1, 3001, 30_000))
    durations = random.integers(0, longest_ms + 1, len(seconds))
    ends = [f"{end // 3600:02}:{end // 60 % 60:02}:{end % 60:02}" for end in (1, *seconds.tolist())]
    lines = [
        f'1.2.3.4 - - [29/Nov/2026:{end} +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 0.{ms:03}'
        for end, ms in zip(ends, (500, *durations.tolist()), strict=True)
    ]
    write_log(tmp_path / "access.log", lines)
    statistics = scan(open_trace(tmp_path / "access.log"))
    ticks, counts = np.unique([1, *seconds], return_counts=True)
    reads, arrivals = statistics.times.reads, statistics.arrivals
    np.testing.assert_array_equal(reads.tick, ticks - 1)
    np.testing.assert_array_equal(reads.arrivals, counts)
    assert arrivals.ties == np.sum(counts - 1)
    # as of exponential gaps
    assert arrivals.interarrival_cv == pytest.approx(1.0, abs=0.03)
    assert poisson_test(*arrivals.block_distances()).p_value > 0.01


def test_names_of_columns_may_be_in_another_encoding(tmp_path):
    """They were a malformed line, of which a short log allows none."""
    path = tmp_path / "blocks.csv"
    lines = (
        "op_time,op_name,block_id,io_size,café",
        "1600000000.5,2,11,131072,1",
        "1600000001.5,4,12,65536,1",
    )
    path.write_bytes("\n".join(lines).encode("latin-1"))
    trace = open_trace(path)
    assert len(rows(trace)) == 2 and not trace.tally.rejected


def web_lines(targets, ending, method="GET"):
    """Lines of a web server, two seconds apart, with something after the user agent."""
    return [
        f'192.0.2.3 - - [02/Nov/2026:09:00:{2 * place:02} +0000] "{method} {target} HTTP/1.1" 200 1000 "-" "curl/8"'
        f"{ending}"
        for place, target in enumerate(targets)
    ]


@pytest.mark.parametrize("folder", [False, True])
def test_paths_with_numbers_of_a_web_server_are_not_those_of_swift(tmp_path, folder):
    """Dates in paths look like a disk and a partition; only Swift writes no protocol behind them."""
    names = [f"b/2024/{day}/a.parquet" for day in range(10, 13)]
    write_log(tmp_path / "access.log", web_lines([f"/{name}" for name in names], " 0.010"))
    trace = open_trace(tmp_path if folder else tmp_path / "access.log", keep_ids=True, max_rejects=0)
    found = rows(trace)
    assert trace.format == "nginx" and found["file_id"].tolist() == names
    np.testing.assert_allclose(found["finish_s"] - found["arrival_s"], 0.010, atol=1e-9)


REQUEST = "/b/a"
INGRESS = "[default-minio-9000] [] 10.0.0.7:9000 65536 0.034 200 f2a0"


@pytest.mark.parametrize(
    ("ending", "duration", "at_end", "words"),
    [
        (
            f" 180 0.035 {INGRESS}",
            0.035,
            True,
            "a later number after the user agent, in seconds: median 0.035 s",
        ),
        (
            ' 17 "minio@docker" "http://10.0.0.7:9000" 35ms',
            0.035,
            False,
            "the last word, in milliseconds: median",
        ),
        (' 17 "-" "-" 0ms', 0.0, False, "the last word"),
        (" 250 65700", None, None, "unknown, as two whole numbers after the user agent count bytes."),
        (
            " 250 65700 2500",
            0.0025,
            False,
            "a later whole number after the user agent, in microseconds: median",
        ),
        (" 0 35123", 0.035123, False, "a later whole number after the user agent, in microseconds"),
        (
            " 35123 0",
            0.035123,
            False,
            "the whole number after the user agent, in microseconds: median 0.0351 s",
        ),
        (' 2500 "198.51.100.7"', 0.0025, False, "the whole number after the user agent, in microseconds"),
        (' "2.75"', None, None, None),
        (' "-"', None, None, None),
        (' "2.75" 0.035', 0.035, True, None),
        (' "198.51.100.7, 10.0.0.9" 0.035', 0.035, True, None),
        (' "198.51.100.7" 180 0.035', 0.035, True, "a later number"),
        (" 7e5f0a3b9c1d2e4f 0.035", 0.035, True, None),
        (" 3.5e-2", 0.035, True, None),
    ],
    ids=[
        "ingress-nginx",
        "Traefik",
        "Traefik at once",
        "Apache %I %O",
        "Apache %I %O %D",
        "Apache %T %D",
        "Apache %D %T",
        "Apache %D forwarded",
        "nginx gzip_ratio",
        "nginx gzip_ratio of none",
        "nginx gzip_ratio request_time",
        "nginx forwarded",
        "nginx forwarded request_length",
        "nginx request_id",
        "nginx power",
    ],
)
def test_which_number_of_a_line_is_its_duration(tmp_path, ending, duration, at_end, words):
    """As the documents of the servers have it: nginx writes when a request ended, Apache and Traefik when it began."""
    write_log(
        tmp_path / "access.log", [*web_lines([REQUEST], " 0.035"), *web_lines([REQUEST] * 3, ending)[1:]]
    )
    found = rows(trace := open_trace(tmp_path / "access.log", max_rejects=0))
    took = (found["finish_s"] - found["arrival_s"]).to_numpy()
    assert took[0] == pytest.approx(0.035)
    if duration is None:
        assert np.isnan(took[1:]).all()
    else:
        np.testing.assert_allclose(took[1:], duration, atol=1e-9)
        # the first one ended at 0 s
        begins = np.array([2, 4]) - (duration if at_end else 0) + 0.035
        since_first = found["arrival_s"].to_numpy() - found["arrival_s"][0]
        np.testing.assert_allclose(since_first[1:], begins, atol=1e-9)
    said = [sentence for sentence in trace.tally.notices() if " durations are " in sentence]
    assert [words in sentence for sentence in said] == [True] * (words is not None)
    notices = trace.tally.notices()
    assert len(rows(trace)) == 3 and trace.tally.notices() == notices  # begun anew


@pytest.mark.parametrize(
    ("endings", "durations"),
    [
        (["250 65700", "268 268435999", "300 0"], [np.nan, np.nan, np.nan]),
        (["250 65700 2500", "268 268435999 900", "300 0 1200"], [2.5e-3, 0.9e-3, 1.2e-3]),
        (["0 35123", "2 2000100", "0 0"], [0.035123, 2.0001, 0.0]),
        (["35123 0", "2000100 2", "0 0"], [0.035123, 2.0001, 0.0]),
    ],
    ids=["Apache %I %O", "Apache %I %O %D", "Apache %T %D", "Apache %D %T"],
)
def test_two_whole_numbers_are_one_time_where_they_are_in_all_lines(tmp_path, endings, durations):
    """Counts of bytes, too, may look like a time in seconds and in microseconds, or nothing was sent."""
    lines = [web_lines([REQUEST] * 4, f" {end}")[place] for place, end in enumerate(["0.035", *endings])]
    write_log(tmp_path / "access.log", lines)
    found = rows(open_trace(tmp_path / "access.log", max_rejects=0))
    took = (found["finish_s"] - found["arrival_s"]).to_numpy()
    np.testing.assert_allclose(took, [0.035, *durations], atol=1e-9)


def test_medians_of_durations_are_those_of_all_that_are_kept(tmp_path):
    ends = [f" {micros}" for micros in (1000, 2000, 9000)]
    lines = [line for end in ends for line in web_lines([REQUEST], end)]
    write_log(tmp_path / "access.log", lines)
    trace = open_trace(tmp_path / "access.log")
    rows(trace)
    assert trace.tally.notices() == [
        "3 durations are the whole number after the user agent, in microseconds: median 0.002 s."
    ]


def test_posts_to_swift_write_no_bytes(tmp_path):
    """They change metadata."""
    accesses = [each._replace(write=False) for each in DAY[:6]]
    for name in ("swift_proxy", "swift_object"):
        file, lines = LOGS[name]
        changed = list(lines(accesses))
        changed[0] = changed[0].replace("GET ", "POST ").replace(" 200 ", " 202 ")
        write_log(tmp_path / file, changed)
        trace = open_trace(tmp_path / file, max_rejects=0)
        assert len(rows(trace)) == len(changed) - 1 and trace.tally.others == {"POST": 1}


def test_container_servers_hold_no_chunks(tmp_path):
    """All daemons of a machine in one file: an object server tells a container server what it wrote."""
    line = next(sample_logs.swift_object([DAY[0]._replace(write=True)]))
    told = line.replace(" object-server: ", " container-server: ").replace('"-" "tx', '"PUT http://x" "tx')
    others = [
        told.replace('"proxy-server 21"', f'"{agent} 4242"')
        for agent in ("object-server", "object-updater", "container-reconciler")
    ]
    listing = re.sub(r'"PUT (/\w+/\d+/AUTH_test/\w+)[^"]*"', r'"GET \1"', told)
    account = re.sub(r'"PUT (/\w+/\d+/AUTH_test)[^"]*"', r'"PUT \1/c"', others[0])
    account = account.replace("object-server 4242", "container-server 4242")
    write_log(tmp_path / "node.log", [line, *others, listing, account])
    trace = open_trace(tmp_path / "node.log", keep_ids=True, max_rejects=0)
    assert len(rows(trace)) == 1 and trace.format == "swift_object"
    assert trace.tally.others == {"object-...": 2, "container-...": 2, "without an object": 1}


def test_large_objects_of_swift_are_read_once(tmp_path):
    """The proxy logs what a user asked for, and each segment that it read for that; uploads by forms are users' own."""
    user, *segments = sample_logs.swift_proxy([each._replace(write=False) for each in DAY[:4]])
    form = next(sample_logs.swift_proxy([DAY[4]._replace(write=True)]))
    sources = dict(zip(segments, ("SLO", "DLO", "SLO"), strict=True)) | {form: "FP"}
    pattern = r"( [\d.]+) - - ([\d.]+ [\d.]+ 0)$"
    lines = [user, *(re.sub(pattern, rf"\1 {source} - \2", line) for line, source in sources.items())]
    assert sum(" SLO - " in line for line in lines) == 2
    write_log(tmp_path / "proxy.log", lines)
    trace = open_trace(tmp_path / "proxy.log", keep_ids=True, max_rejects=0)
    assert rows(trace)["op"].tolist() == ["read", "write"]
    assert trace.tally.others == {"SLO...": 2, "DLO...": 1}


def proxy_line(path, second=0, txn=0):
    """A line of Swift's proxy, which percent-encodes what it logs: a path that is encoded already, and its query."""
    return (
        f"Nov 02 09:00:{second:02} proxy1 proxy-server: 192.0.2.3 192.0.2.9 02/Nov/2026/09/00/{second:02} GET "
        f"{quote(path, safe='/:')} HTTP/1.0 200 - client/1.0 - - 500 - tx{txn:021d}-0 - 0.5000 - - "
        f"1793610000.{second:02}0000000 1793610001.000000000 0"
    )


def test_paths_of_s3_at_a_proxy_of_swift(tmp_path):
    """Buckets tell files apart as accounts and containers do; tokens, listings and metadata are no objects."""
    paths = [
        "/bucket1/a/b/c.jpg",
        "/bucket2/a/b/c.jpg",
        "/v1/AUTH_test/c/d%20e%3F.jpg",
        "/v1.0/AUTH_test/c/d",
        "/bucket1/v1",
        "/bucket1/v1.0",
        "/autx/v1.0",
        "/auth/v1",
        "/auth/v1.00",
    ]
    others = [
        "/auth/v1.0",
        "/v1/AUTH_test/c",
        "/bucket1",
        "/info",
        "/bucket1?list-type=2&prefix=a",
        "/bucket1/a?acl",
    ]
    write_log(tmp_path / "proxy.log", [proxy_line(path, n) for n, path in enumerate([*paths, *others])])
    trace = open_trace(tmp_path / "proxy.log", keep_ids=True, max_rejects=0)
    names = [
        "bucket1/a/b/c.jpg",
        "bucket2/a/b/c.jpg",
        "AUTH_test/c/d e?.jpg",
        "AUTH_test/c/d",
        "bucket1/v1",
        "bucket1/v1.0",
        "autx/v1.0",
        "auth/v1",
        "auth/v1.00",
    ]
    assert rows(trace)["file_id"].tolist() == names
    assert trace.tally.others == {"without an object": 4, "of listings and subresources": 2}


def test_names_that_swift_encodes_twice_are_joined(tmp_path):
    """The proxy's path has one percent-encoding more than that of object servers."""
    key = "50% off & more?.jpg"
    [server, *_] = sample_logs.swift_object([DAY[0]._replace(write=False, key=key)])
    bucket = DAY[0].bucket
    proxy = proxy_line(f"/v1/AUTH_test/{bucket}/{quote(key)}", DAY[0].second % 60)
    write_log(tmp_path / "all.log", [proxy, server])
    trace = open_trace(tmp_path / "all.log", keep_ids=True, max_rejects=0)
    assert rows(trace)["file_id"].tolist() == [f"AUTH_test/{bucket}/{key}"] and not trace.tally.others


S3_OTHERS = (
    "/bucket?list-type=2&prefix=a",
    "/bucket/?prefix=a&delimiter=%2F&max-keys=5&encoding-type=url",
    "/bucket?prefix=a",
    "/bucket/key?tagging",
    "/bucket?location=",
    "/bucket/key?acl&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=ab",
    "/bucket/key?uploadId=X&max-parts=7",
)
S3_OBJECTS = (
    "/bucket/key?versionId=3&response-content-type=text%2Fplain",
    "/bucket/key?x-id=GetObject",
    "/bucket/key?partNumber=3",
    "/shop?location=berlin",
    "/search?prefix=ab&page=2",
    "/search/items?prefix=ab",
    "/a?delete=5",
    "/a?acl&and=more",
    "/a?",
)


def test_listings_and_subresources_of_s3_are_no_objects(tmp_path):
    """Words of S3 in the queries of other web servers do not count."""
    lines = web_lines([*S3_OTHERS, *S3_OBJECTS], "")
    posts = [
        "/bucket?delete",
        "/bucket/key?uploads",
        "/bucket/key?uploadId=X",
        "/bucket/key?select&select-type=2",
    ]
    lines += web_lines(posts, "", "POST") + web_lines(["/bucket/key?partNumber=3&uploadId=X"], "", "PUT")
    write_log(tmp_path / "access.log", lines)
    trace = open_trace(tmp_path / "access.log", keep_ids=True, max_rejects=0)
    found = rows(trace)
    names = [target[1:].partition("?")[0] for target in S3_OBJECTS]
    assert sorted(found.loc[found["op"] == "read", "file_id"]) == sorted(names)
    assert found.loc[found["op"] == "write", "file_id"].tolist() == ["bucket/key"]
    assert trace.tally.others == {"of listings and subresources": len(S3_OTHERS) + len(posts)}


def test_queries_that_stand_apart_from_paths(tmp_path):
    """CloudFront has them in a column of their own, and nginx in $args beside $uri."""
    accesses = [each._replace(write=False) for each in DAY[:3]]
    comment, fields, *lines = sample_logs.cloudfront(accesses)
    cells = lines[1].split("\t")
    assert cells[11] == "-" and cells[18] == f"{accesses[1].duration_ms / 1000:.3f}"
    cells[11] = "tagging"
    write_log(tmp_path / "log.tsv", [comment, fields, lines[0], "\t".join(cells), lines[2]])
    trace = open_trace(tmp_path / "log.tsv", keep_ids=True, max_rejects=0)
    assert len(rows(trace)) == 2 and trace.tally.others == {"of listings and subresources": 1}
    lines = [line.replace('"request_uri"', '"args": "", "uri"') for line in sample_logs.nginx_json(accesses)]
    lines[1] = lines[1].replace('"args": ""', '"args": "list-type=2"')
    write_log(tmp_path / "log.jsonl", lines)
    trace = open_trace(tmp_path / "log.jsonl", keep_ids=True, max_rejects=0)
    assert len(rows(trace)) == 2 and trace.tally.others == {"of listings and subresources": 1}


@pytest.mark.parametrize("name", ["s3", "s3_json"])
def test_bytes_of_copies_and_of_reads_that_were_given_up(tmp_path, name):
    """A copy reads the whole object and sends nothing; a read that sent nothing ("-") read nothing."""
    file, lines = LOGS[name]
    changed = list(lines([DAY[0]._replace(write=False, size=1000)] * 4))
    for place, operation in ((1, "REST.COPY.OBJECT_GET"), (2, "REST.COPY.PART_GET"), (3, "REST.GET.OBJECT")):
        changed[place] = changed[place].replace("REST.GET.OBJECT", operation)
        sent = (
            ('"bytes_sent": "1000"', '"bytes_sent": "-"')
            if name == "s3_json"
            else (" 200 - 1000 ", " 200 - - ")
        )
        assert sent[0] in changed[place]
        changed[place] = changed[place].replace(*sent)
    write_log(tmp_path / file, changed)
    found = rows(trace := open_trace(tmp_path / file, max_rejects=0))
    assert found["bytes"].tolist() == [1000, 1000, 0] and trace.tally.others == {"REST.COPY.PART_GET": 1}


def test_copies_within_a_gateway_write_the_whole_object(tmp_path):
    """Ceph receives no bytes of them, which is 0 and not an empty field."""
    line = next(sample_logs.rgw([DAY[0]._replace(write=True, size=1000)]))
    copy = line.replace("put_obj", "copy_obj").replace('"bytes_received": 1000', '"bytes_received": 0')
    assert copy.count("1000") == 1
    write_log(tmp_path / "ops.log", [line, copy])
    assert rows(open_trace(tmp_path / "ops.log", max_rejects=0))["bytes"].tolist() == [1000, 1000]


@pytest.mark.parametrize("name", ["s3", "rgw", "minio"])
def test_keys_that_begin_with_a_slash_are_others(tmp_path, name):
    file, lines = LOGS[name]
    keys = ("a", "/a", "a/")
    write_log(tmp_path / file, lines([DAY[0]._replace(write=False, key=key) for key in keys]))
    found = rows(open_trace(tmp_path / file, keep_ids=True, max_rejects=0))
    assert found["file_id"].tolist() == [f"{DAY[0].bucket}/{key}" for key in keys]


def test_one_path_of_several_hosts(tmp_path):
    """Apache's %v:%p before the line, the host of a proxy's request, and none where an address or a user is."""
    [line] = web_lines(["/a/b"], "")
    lines = [
        line,
        f"one.example:443 {line}",
        f"one.example:80 {line}",
        f"two.example:443 {line}",
        f"192.0.2.9:51234 {line}",
        f"[2001:db8::1] {line}",
        f"nginx: {line}",
        line.replace("192.0.2.3 - - ", "192.0.2.3:5000 - frank smith "),
        line.replace("GET /a/b", "GET http://three.example/a/b"),
        line.replace("GET /a/b", "GET http://three.example"),
        line.replace("GET /a/b", "GET /http://cdn.example/a/b"),
    ]
    write_log(tmp_path / "access.log", lines)
    trace = open_trace(tmp_path / "access.log", keep_ids=True, max_rejects=0)
    names = ["a/b", "one.example/a/b", "one.example/a/b", "two.example/a/b", *["a/b"] * 4]
    assert rows(trace)["file_id"].tolist() == [*names, "three.example/a/b", "http://cdn.example/a/b"]
    assert trace.tally.others == {"without an object": 1}


def test_distributions_of_cloudfront_are_told_apart(tmp_path):
    comment, fields, line = sample_logs.cloudfront([DAY[0]._replace(write=False)])
    write_log(
        tmp_path / "log.tsv", [comment, fields, line, line.replace("\td.example\t", "\te.example\t", 1)]
    )
    found = rows(open_trace(tmp_path / "log.tsv", keep_ids=True, max_rejects=0))
    assert found["file_id"].tolist() == [f"{host}.example/{DAY[0].bucket}/{DAY[0].key}" for host in "de"]


def test_columns_of_cloudfront_in_another_order_are_refused(tmp_path):
    """Since 2024 users may choose them; they were read by their places, whatever the file says."""
    comment, fields, *lines = sample_logs.cloudfront(DAY[:3])
    swapped = fields.replace("sc-bytes c-ip", "c-ip sc-bytes")
    assert swapped != fields
    write_log(tmp_path / "log.tsv", [comment, swapped, *lines])
    message = "log.tsv: found #Fields with c-ip in place 4; allowed with format=cloudfront: sc-bytes, in the documented"
    with pytest.raises(UserError, match=message):
        open_trace(tmp_path / "log.tsv")


@pytest.mark.parametrize("nothing", ['""', '"-"', "null"])
@pytest.mark.parametrize("first", ["content_length", "request_length"])
def test_a_value_that_is_empty_does_not_hide_another(tmp_path, nothing, first):
    """nginx writes no length of a request in chunks; its length with the header is the other variable."""
    lengths = {"content_length": nothing, "request_length": "5000"}
    words = (*(f'"{name}": {lengths[name]}' for name in (first, *(set(lengths) - {first}))), '"status": 201')
    line = (
        '{"time_iso8601": "2026-11-28T14:00:00+00:00", "request_method": "PUT", "request_uri": "/b/x", '
        f'"body_bytes_sent": 0, "request_time": 0.1, {", ".join(words)}}}\n'
    )
    (tmp_path / "log.jsonl").write_text(line)
    assert rows(open_trace(tmp_path / "log.jsonl"))["bytes"].tolist() == [5000]
    lengths["request_length"] = nothing
    (tmp_path / "log.jsonl").write_text(line.replace("5000", nothing))
    assert rows(open_trace(tmp_path / "log.jsonl"))["bytes"].tolist() == [0]


def test_as_many_lines_of_whole_requests_are_named_as_of_others(tmp_path, monkeypatch):
    """A file of proxies and object servers, each block of which has malformed lines of proxies."""
    monkeypatch.setattr("ecjax.tables.importers.access_logs.importer.BLOCK_BYTES", 16384)
    good = [*sample_logs.swift_proxy(DAY), *sample_logs.swift_object(DAY)]
    bad = [line.replace(" 200 - ", " 2x0 - ") for line in sample_logs.swift_proxy(DAY) if " 200 - " in line]
    path = tmp_path / "all.log"
    path.write_text("".join(f"{line}\n" for line in [*good, *bad]))
    trace = open_trace(path, keep_ids=True, max_rejects=1000)
    rows(trace)
    assert len(bad) > 150 and trace.tally.reasons.total() == len(bad)
    assert [each.line for each in trace.tally.samples] == [len(good) + 1 + place for place in range(100)]
