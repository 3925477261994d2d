"""Results that are read by the methods which paths in an object store have, of a folder on this machine."""

import hashlib

import pyarrow as pa
import pytest

from ecjax import drift_report
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables import verify as verify_module
from ecjax.tables.checksums import CHECKSUMS
from ecjax.tables.remote import RemotePath
from ecjax.tables.store import ResultStore
from ecjax.tables.verify import verify


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    row = {"run_id": "a", "job": "optimize", "status": "ok"}
    history = pa.table({"run_id": ["a"] * 2, "iteration": [0, 1], "objective": [2.0, 1.0]})
    with ResultStore(folder, TABLES, {}) as store:
        store.commit([row], {"history": history})
    scripts = folder / "scripts" / "a"
    scripts.mkdir(parents=True)
    (scripts / "one.sh").write_text("true\n")
    (scripts / CHECKSUMS).write_text(f"{hashlib.sha256(b'true').hexdigest()}  one.sh\n")
    return folder


def test_verify_finds_the_same(out, monkeypatch):
    here = verify(out)
    assert [each.file for each in here.findings] == ["scripts/a/one.sh"]
    monkeypatch.setattr(verify_module, "location", lambda text: RemotePath(f"file://{text}"))
    there = verify(out)
    assert there.files == here.files
    assert [each[:2] for each in there.findings] == [each[:2] for each in here.findings]


def test_a_log_is_told_from_results(out, monkeypatch):
    (out.parent / "logs").mkdir()
    (out.parent / "logs" / "day.csv").write_text("a,b\n")
    monkeypatch.setattr(drift_report, "location", lambda text: RemotePath(f"file://{text}"))
    assert drift_report.is_log(out.parent / "logs") and drift_report.is_log(out.parent / "logs" / "day.csv")
    assert not drift_report.is_log(out) and not drift_report.is_log(out.parent / "none")
