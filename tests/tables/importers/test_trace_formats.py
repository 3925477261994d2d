import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.tables.importers import FORMATS, open_trace
from ecjax.tables.importers.access_logs import PROFILES
from ecjax.tables.importers.oracle_general import RECORD
from ecjax.tables.importers.trace import BATCH_ROWS

EXTENT = 65536


def accesses(seed=0, rows=300):
    """Accesses within one extent each: what every format can express."""
    random = np.random.default_rng(seed)
    extent = random.integers(0, 40, rows)
    size = 512 * random.integers(1, 65, rows)
    return pd.DataFrame(
        {
            "time": np.sort(random.integers(0, 60, rows)),
            "write": random.random(rows) < 0.3,
            "extent": extent,
            "offset": extent * EXTENT + 512 * random.integers(0, 64, rows),
            "size": size,
        }
    )


def write_all(folder, frame):
    """The same accesses in every format; returns the arguments that open each."""
    op = np.where(frame["write"], "write", "read")
    requests = pd.DataFrame(
        {
            "request_id": np.arange(len(frame)),
            "arrival_s": frame["time"].astype(float),
            "file_id": frame["extent"],
            "op": op,
            "bytes": frame["size"].astype(float),
        }
    )
    table = pa.Table.from_pandas(requests, preserve_index=False)
    pq.write_table(table, folder / "table.parquet")
    (folder / "parts").mkdir()
    for part in range(3):
        pq.write_table(table.slice(100 * part, 100), folder / "parts" / f"{part}.parquet", row_group_size=17)
    with pa.ipc.new_file(folder / "table.arrow", table.schema) as writer:
        writer.write_table(table, 50)
    requests.to_csv(folder / "table.csv", index=False)
    requests.to_csv(folder / "table.csv.gz", index=False)
    other = pd.DataFrame(
        {
            "ts_ms": 1000 * frame["time"],
            "verb": np.where(frame["write"], "PUT", "GET"),
            "key": frame["extent"],
        }
    ).assign(kb=frame["size"] / 1024)
    other.to_csv(folder / "other.csv", index=False)
    other.to_csv(folder / "other_without_header.csv", index=False, header=False)
    other.assign(ts_ms=pd.to_datetime(other["ts_ms"], unit="ms")).to_parquet(
        folder / "other.parquet", index=False
    )
    mapping = {
        "arrival_s": "ts_ms",
        "arrival_s_scale": 0.001,
        "file_id": "key",
        "bytes": "kb",
        "bytes_scale": 1024,
        "op": "verb",
        "op_read": ["GET", "HEAD"],
        "op_write": "PUT",
    }
    numbered = mapping | {"arrival_s": 0, "op": 1, "file_id": 2, "bytes": 3}
    stamped = {key: value for key, value in mapping.items() if key != "arrival_s_scale"}
    scsi = np.where(frame["write"], "2a", "28")
    sector = (frame["extent"] * EXTENT + frame["offset"] % 32768) // 512
    pd.DataFrame(
        {"version": 1, "time": 5000 + frame["time"], "op": scsi, "size": frame["size"], "lbn": sector}
    ).to_csv(folder / "cloud.csv", index=False)
    filetime = 128166372003061629 + 10**7 * frame["time"]
    pd.DataFrame(
        {
            "t": filetime,
            "host": "usr",
            "disk": 0,
            "type": np.where(frame["write"], "Write", "Read"),
            "offset": sector * 512,
            "size": frame["size"],
            "response": 12345,
        }
    ).to_csv(folder / "msr.csv", index=False, header=False)
    records = np.zeros(len(frame), RECORD)
    records["time"], records["id"], records["size"], records["next"] = (
        frame["time"],
        frame["extent"],
        frame["size"],
        -1,
    )
    (folder / "trace.bin").write_bytes(records.tobytes())
    with pa.output_stream(str(folder / "trace.oracleGeneral.zst"), compression="zstd") as stream:
        stream.write(records.tobytes())
    return {
        "table.parquet": ("table", {}),
        "parts": ("table", {}),
        "table.arrow": ("table", {}),
        "table.csv": ("table", {}),
        "table.csv.gz": ("table", {}),
        "other.csv": ("columns", {"columns": mapping}),
        "other_without_header.csv": ("columns", {"columns": numbered}),
        "other.parquet": ("columns", {"columns": stamped}),
        "cloud.csv": ("cloudphysics", {"extent_bytes": EXTENT}),
        "msr.csv": ("msr", {"extent_bytes": EXTENT}),
        "trace.bin": ("oracle_general", {}),
        "trace.oracleGeneral.zst": ("oracle_general", {}),
    }


def test_every_format_reads_the_same_accesses(tmp_path):
    frame = accesses()
    for name, (format_name, arguments) in write_all(tmp_path, frame).items():
        trace = open_trace(tmp_path / name, **arguments)
        assert trace.format == format_name, name
        batches = list(trace.batches())
        assert all(batch.schema.equals(trace.schema) for batch in batches), name
        found = pa.Table.from_batches(batches).to_pandas()
        found["arrival_s"] -= found["arrival_s"].iloc[0]
        np.testing.assert_allclose(
            found["arrival_s"], frame["time"] - frame["time"].iloc[0], atol=1e-9, err_msg=name
        )
        np.testing.assert_array_equal(found["bytes"], frame["size"], err_msg=name)
        ids = (
            found["file_id"] if name != "msr.csv" else found["file_id"].str.removeprefix("usr.0/").astype(int)
        )
        np.testing.assert_array_equal(ids, frame["extent"], err_msg=name)
        if format_name != "oracle_general":
            np.testing.assert_array_equal(found["op"] == "write", frame["write"], err_msg=name)
        else:
            assert set(found["op"]) == {"read"} and any("count as reads" in line for line in trace.loses)
        assert trace.rows in (None, len(frame))
        assert trace.clock_resolution_s == (1e-7 if name == "msr.csv" else 1.0), name
        again = pa.Table.from_batches(list(trace.batches())).to_pandas()
        assert len(again) == len(frame)


def test_what_each_format_provides(tmp_path):
    opened = write_all(tmp_path, accesses())
    provides = {
        name: set(open_trace(tmp_path / name, **given).provides) for name, (_, given) in opened.items()
    }
    assert provides.pop("msr.csv") == {"rates", "sojourn"}
    assert all(found == {"rates"} for found in provides.values())
    assert set(FORMATS) - set(PROFILES) == {format_name for format_name, _ in opened.values()}


def test_msr_response_times_end_the_accesses(tmp_path):
    write_all(tmp_path, accesses())
    found = pa.Table.from_batches(
        list(open_trace(tmp_path / "msr.csv", extent_bytes=EXTENT).batches())
    ).to_pandas()
    np.testing.assert_allclose(found["finish_s"] - found["arrival_s"], 12345e-7, atol=1e-12)


def test_fingerprint_follows_the_content(tmp_path):
    write_all(tmp_path, accesses())
    first = open_trace(tmp_path / "table.csv").fingerprint
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "table.csv").write_bytes((tmp_path / "table.csv").read_bytes())
    assert open_trace(tmp_path / "elsewhere" / "table.csv").fingerprint == first
    with open(tmp_path / "table.csv", "a") as file:
        file.write("300,60.0,1,read,5.0\n")
    assert open_trace(tmp_path / "table.csv").fingerprint != first


CLOUD = "version,time,op,size,lbn\n1,5,28,512,7\n1,6,2a,1024,9\n"
MSR = "128166372003061629,usr,0,Read,0,4096,100\n128166372003061630,usr,0,Write,0,4096,100\n"
REQUESTS = "request_id,arrival_s,file_id,op,bytes\n1,0.5,a,read,5\n2,1.5,b,write,5\n"

WRONG = {
    "no such file": ("missing.csv", None, {}, "no such file or folder"),
    "unknown format": (
        "a.csv",
        CLOUD,
        {"format": "pcap"},
        "format: found 'pcap'; allowed: auto, table, columns",
    ),
    "unknown content": (
        "a.csv",
        "x,y\n1,2\n",
        {},
        "cannot tell its format; found columns x, y; give format=",
    ),
    "almost a table": (
        "a.csv",
        REQUESTS.replace("request_id", "number"),
        {},
        "found columns number, arrival_s, file_id, op, bytes; a table of requests has request_id, too; give format=",
    ),
    "unknown text": ("a.log", "hello there\n", {}, "found as first line 'hello there'"),
    "unknown bytes": ("a.bin", b"\x00\xff" * 50, {}, "found binary data"),
    "empty file": ("a.csv", "", {}, "the file is empty"),
    "nothing compressed": (
        "a.csv.gz",
        gzip.compress(b""),
        {},
        "found an empty file .0 bytes, once it is decompressed",
    ),
    "no extents": (
        "a.csv",
        CLOUD,
        {},
        r"give extent_bytes=, the size of the extents to take for files \(65536",
    ),
    "milliseconds": (
        "a.csv",
        CLOUD.replace(",5,", ",1726500000000,").replace(",6,", ",1726500000001,"),
        {"extent_bytes": 512},
        "line 2: found time 1726500000000, which looks like milliseconds since 1970; allowed: seconds, so multiply it",
    ),
    "microseconds in a table": (
        "a.csv",
        REQUESTS.replace(",0.5,", ",1726500000000000,").replace(",1.5,", ",1726500000000001,"),
        {},
        "these look like microseconds since 1970: multiply them by 1e-06",
    ),
    "no msr extents": ("a.csv", MSR, {}, "give extent_bytes="),
    "extents of zero": ("a.csv", CLOUD, {"extent_bytes": 0}, "extent_bytes: found 0; allowed: integers >= 1"),
    "extents for objects": (
        "a.csv",
        REQUESTS,
        {"extent_bytes": 9},
        "extent_bytes: found 9; allowed: nothing",
    ),
    "missing columns": (
        "a.csv",
        "arrival_s,op\n1,read\n",
        {"format": "table"},
        "missing columns: request_id, file_id",
    ),
    "no rows": ("a.csv", REQUESTS.splitlines()[0] + "\n", {}, "no rows"),
    "cloud text": (
        "a.csv",
        CLOUD + "1,x,28,512,7\n",
        {"extent_bytes": 8},
        "a.csv, line 4: found 'x'; allowed: int64",
    ),
    "cloud cells": (
        "a.csv",
        CLOUD + "1,7,28\n",
        {"extent_bytes": 8},
        "a.csv, line 4: Expected 5 columns, got 3",
    ),
    "cloud empty": (
        "a.csv",
        CLOUD + "1,7,28,,1\n",
        {"extent_bytes": 8},
        "a.csv, line 4: column size is empty",
    ),
    "cloud names": (
        "a.csv",
        CLOUD.replace("lbn", "sector"),
        {"extent_bytes": 8, "format": "cloudphysics"},
        "a.csv, line 1: names no column lbn; allowed: one of that name",
    ),
    "cloud op": ("a.csv", CLOUD + "1,7,41,8,1\n", {"extent_bytes": 8}, "line 4: found op '41'; allowed: 28"),
    "cloud size": (
        "a.csv",
        CLOUD + "1,7,28,-8,1\n",
        {"extent_bytes": 8},
        "line 4: found size -8 bytes; allowed: 0 to",
    ),
    "cloud sector": (
        "a.csv",
        CLOUD + "1,7,28,8,-1\n",
        {"extent_bytes": 8},
        "line 4: found lbn -1; allowed: 0 to",
    ),
    "cloud order": (
        "a.csv",
        CLOUD + "1,4,28,8,1\n",
        {"extent_bytes": 8},
        r"line 4: found time 4 after 6;.*sort=true",
    ),
    "msr type": (
        "a.csv",
        MSR + "128166372003061631,u,0,Trim,0,1,1\n",
        {"extent_bytes": 8},
        "line 3: found Type 'Trim'",
    ),
    "msr response": (
        "a.csv",
        MSR + "128166372003061631,u,0,Read,0,1,-1\n",
        {"extent_bytes": 8},
        "line 3: .*ResponseTime",
    ),
    "msr endless": (
        "a.csv",
        MSR + f"128166372003061631,u,0,Read,0,1,{2**63 - 1}\n",
        {"extent_bytes": 8},
        "line 3: found ResponseTime 9223372036854775807; allowed: integers >= 0, up to 2.61",
    ),
    "msr least size": (
        "a.csv",
        MSR + f"128166372003061631,u,0,Read,0,{-(2**63)},1\n",
        {"extent_bytes": 8},
        "line 3: found size -9223372036854775808 bytes; allowed: 0 to",
    ),
    "cloud far apart": (
        "a.csv",
        CLOUD + f"1,{2**63 - 1},28,8,1\n",
        {"extent_bytes": 8},
        "line 4: found time 9223372036854775807; allowed: integers from -2.61 to 2.61",
    ),
    "msr order": (
        "a.csv",
        MSR + "128166372003061000,u,0,Read,0,1,1\n",
        {"extent_bytes": 8},
        "line 3: found time",
    ),
    "order": (
        "a.csv",
        REQUESTS + "3,1.0,a,read,5\n",
        {},
        r"arrival_s, row 2: found 1.0 after 1.5",
    ),
    "op": (
        "a.csv",
        REQUESTS + "3,2.0,a,delete,5\n",
        {},
        "column op, row 2.*found 'delete'; allowed: read or write",
    ),
    "bytes": (
        "a.csv",
        REQUESTS + "3,2.0,a,read,-5\n",
        {},
        "column bytes, row 2.*found -5.0; allowed: finite numbers >= 0",
    ),
    "nan": (
        "a.csv",
        REQUESTS + "3,nan,a,read,5\n",
        {},
        "column arrival_s, row 2.*found nan; allowed: finite numbers",
    ),
    "null": (
        "a.csv",
        REQUESTS + "3,2.0,,read,5\n",
        {},
        r"column file_id, row 2.*found an empty cell \(null\)",
    ),
    "text": (
        "a.csv",
        REQUESTS + "3,soon,a,read,5\n",
        {},
        "column arrival_s, row 2.*found 'soon'; allowed: finite numbers",
    ),
    "mapping and format": (
        "a.csv",
        CLOUD,
        {"format": "msr", "columns": {"bytes": "size"}},
        "columns: found a mapping with",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_in_one_line(tmp_path, case):
    name, content, arguments, message = WRONG[case]
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message) as error:
        for _ in open_trace(tmp_path / name, **arguments).batches():
            pass
    assert "\n" not in str(error.value)


def test_truncated_and_damaged_files(tmp_path):
    records = np.zeros(10, RECORD)
    records["next"] = -1
    (tmp_path / "a.oracleGeneral").write_bytes(records.tobytes()[:-7])
    with pytest.raises(
        UserError, match="found 233 bytes, which end 17 bytes into record 9; allowed: whole records of 24"
    ):
        list(open_trace(tmp_path / "a.oracleGeneral").batches())
    # what is left over may be all that is read at last, and all that there is
    whole = BATCH_ROWS * RECORD.itemsize
    for count, record in ((3, 0), (whole + 5, BATCH_ROWS)):
        (tmp_path / "a.oracleGeneral").write_bytes(bytes(count))
        message = f"found {count} bytes, which end {count % 24} bytes into record {record}; allowed"
        with pytest.raises(UserError, match=message):
            list(open_trace(tmp_path / "a.oracleGeneral").batches())
    (tmp_path / "b.oracleGeneral").write_bytes(b"")
    with pytest.raises(UserError, match="the file is empty"):
        list(open_trace(tmp_path / "b.oracleGeneral").batches())
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(CLOUD.encode() * 2000)[:-40])
    with pytest.raises(UserError, match=r"c\.csv\.gz"):
        list(open_trace(tmp_path / "c.csv.gz", format="cloudphysics", extent_bytes=8).batches())
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match=r"d\.parquet"):
        open_trace(tmp_path / "d.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="folder without Parquet files"):
        open_trace(tmp_path / "empty")


@pytest.mark.parametrize("format", ["thesios", "s3", "msr", "oracle_general"])
def test_tables_are_no_logs_of_another_format(tmp_path, format):
    """Nor are DataFrames, which are read from Parquet: what was said was about the bytes of that."""
    path = tmp_path / "log.parquet"
    pd.DataFrame({"filename": ["a"], "start_time": [1.5]}).to_parquet(path)
    with pytest.raises(
        UserError, match=f"a table with columns filename, start_time; allowed with format={format}:"
    ):
        open_trace(path, format=format)


@pytest.mark.parametrize("name", ["cloud.csv", "blocks.csv"])
@pytest.mark.parametrize("compression", ["gzip", "zstd", "bz2", "pzstd"])
def test_what_is_compressed_is_told_by_its_first_bytes(tmp_path, name, compression):
    """As read to tell the format; pzstd begins its files with a frame of no data."""
    text = CLOUD if name == "cloud.csv" else "7,W,8192,4096,1577808144360767\n7,R,0,512,1577808144360768\n"
    (tmp_path / name).write_text(text)
    path = tmp_path / "compressed"
    with pa.output_stream(str(path), compression=compression.removeprefix("p")) as stream:
        stream.write(text.encode())
    if compression == "pzstd":
        path.write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0\x21\0\0\0" + path.read_bytes())
    plain, found = (
        pa.Table.from_batches(list(open_trace(file, extent_bytes=8).batches()))
        for file in (tmp_path / name, path)
    )
    assert found.equals(plain)


@pytest.mark.parametrize("name", ["table.parquet", "cloud.csv", "msr.csv", "trace.bin", "other.csv"])
def test_sorting_brings_rows_into_order(tmp_path, name):
    frame = accesses()
    frame["size"] = 512 * np.arange(1, len(frame) + 1) % 32768
    shuffled = frame.sample(frac=1, random_state=1)
    format_name, arguments = write_all(tmp_path, shuffled)[name]
    with pytest.raises(UserError, match="sort=true"):
        list(open_trace(tmp_path / name, format_name, **arguments).batches())
    trace = open_trace(tmp_path / name, format_name, sort=True, **arguments)
    found = pa.Table.from_batches(list(trace.batches())).to_pandas()
    ordered = shuffled.sort_values("time", kind="stable")
    np.testing.assert_array_equal(found["bytes"], ordered["size"])
    np.testing.assert_allclose(np.diff(found["arrival_s"]), np.diff(ordered["time"]), atol=1e-6)
