"""Results that were damaged after they were written: a resume computes them anew, verify names them."""

import hashlib
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecjax import cli
from ecjax.errors import UserError
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine import study
from ecjax.tables import committed, seals
from ecjax.tables.datasets import batch_id, read_file
from ecjax.tables.results import read_results, read_run
from ecjax.tables.sources import sources_text
from ecjax.tables.store import ResultStore
from ecjax.tables.verify import verify

IDS = {"node_id": pa.string()}
A, B, C = (f"{number:016x}" for number in (1, 2, 3))
BATCHES = ((A, B), (C,))
SAYS = "the same ecjax optimize command with out={}"


def history(*runs: str) -> pa.Table:
    rows = [(run, i, int(run, 16) + i / 8) for run in runs for i in range(3)]
    names = ("run_id", "iteration", "objective")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def commit(store: ResultStore, *runs: str, status: str = "ok") -> None:
    rows = [{"run_id": run, "job": "optimize", "status": status, "input_id": "abc"} for run in runs]
    placements = pa.table({"run_id": runs, "node_id": ["x"] * len(runs)})
    store.commit(rows, {"history": history(*runs), "placements": placements})


def job(out: Path) -> set[str]:
    """Computes what is not finished; returns it."""
    with ResultStore(out, TABLES, IDS) as store:
        finished = store.finished([A, B, C])
        for batch in BATCHES:
            left = [run for run in batch if run not in finished]
            if left:
                store.write_input("nodes", "abc", pa.table({"node_id": ["x", "y"]}))
                commit(store, *left)
    return {A, B, C} - finished


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("sound") / "out"
    assert job(out) == {A, B, C}
    assert job(out) == set()
    return out


@pytest.fixture
def out(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "out"))


def tables(out: Path) -> dict[str, pd.DataFrame]:
    names = ("runs", "history", "placements", "inputs/nodes")
    frames = {name: read_results(out, name) for name in names}
    return {name: f.sort_values([*f.columns[:2]], ignore_index=True) for name, f in frames.items()}


def assert_mended(out: Path, sound: Path) -> None:
    assert verify(out).findings == []
    for name, frame in tables(sound).items():
        columns = [column for column in frame if not column.startswith("batch_")]
        pd.testing.assert_frame_equal(tables(out)[name][columns], frame[columns])


def findings(out: Path) -> dict[str, str]:
    return {finding.file: finding.what for finding in verify(out).findings}


FIRST = f"history/{batch_id([A, B])}.parquet"


# What is written down


def test_runs_say_what_their_batch_wrote(out):
    verified = verify(out)
    assert verified.findings == []
    assert {name: len(sizes) for name, sizes in verified.files.items()} == {
        "runs": 3,
        "history": 2,
        "placements": 2,
        "inputs/nodes": 1,
    }
    row = read_file(out / "runs" / f"{A}.parquet").to_pylist()[0]
    files = seals.from_text(row["batch_files"])
    assert set(files) == {"history", "placements", "inputs/nodes/abc"}
    assert files["history"].rows == 6
    assert files["history"].bytes == (out / FIRST).stat().st_size


def test_the_hash_is_that_of_the_file_with_zeros_in_its_place(out):
    content = (out / FIRST).read_bytes()
    found = pq.read_metadata(out / FIRST).metadata[seals.KEY.encode()]
    assert content.count(found) == 1
    assert hashlib.sha256(content.replace(found, b"0" * 64)).hexdigest().encode() == found


# Damage of a dataset


DAMAGE = {
    "deleted": (lambda path: path.unlink(), "is missing"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "is damaged"),
    "emptied": (lambda path: path.write_bytes(b""), "is damaged"),
    "of other rows": (lambda path: pq.write_table(history(A), path), "has .* bytes, not"),
    "of another batch": (
        lambda path: shutil.copy(path.with_name(f"{batch_id([C])}.parquet"), path),
        "has .* bytes, not",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_dataset_is_computed_anew(out, sound, damage):
    change, said = DAMAGE[damage]
    change(out / FIRST)
    assert list(findings(out)) == [FIRST]
    with ResultStore(out, TABLES, IDS) as store:
        assert store.finished([A, B, C]) == {C}
        assert re.search(said, store.damaged([A, B, C]).pop(FIRST))
    assert job(out) == {A, B}
    assert job(out) == set()
    assert_mended(out, sound)


def test_a_damaged_input_is_written_anew(out, sound):
    (out / "inputs" / "nodes" / "abc.parquet").write_bytes(b"PAR1")
    assert findings(out).keys() == {"inputs/nodes/abc.parquet"}
    assert job(out) == {A, B, C}
    assert_mended(out, sound)


def test_one_log_line_names_what_is_computed_anew(out, monkeypatch):
    said = []
    monkeypatch.setattr(study, "log", SimpleNamespace(warning=lambda *words: said.append(words), info=print))
    (out / FIRST).unlink()
    with ResultStore(out, TABLES, IDS) as store:
        assert study.resumed([A, B, C], store) == {C}
    ((form, *words),) = said
    assert (
        form % tuple(words)
        == f"{out}: files are not as they were written, their runs are computed anew: {FIRST} is missing"
    )


def test_one_run_of_a_damaged_batch_is_computed_anew(out):
    """The other one, which nobody asks for, stays damaged; nothing that is whole is lost."""
    (out / FIRST).write_bytes((out / FIRST).read_bytes()[:-9])
    with ResultStore(out, TABLES, IDS) as store:
        commit(store, A)
        assert store.finished([A, B, C]) == {A, C}
    assert list(findings(out)) == [FIRST]
    assert job(out) == {B}
    assert verify(out).findings == []


def flip(path: Path, word: bytes) -> None:
    """Change the last place where a word stands, in the names and types of columns."""
    content = bytearray(path.read_bytes())
    content[content.rindex(word)] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("word", [b"objective", b"iteration", A.encode()])
def test_a_changed_footer_is_not_read(out, word):
    flip(out / FIRST, word)
    assert list(findings(out)) == [FIRST]
    for read in (lambda: read_results(out, "history"), lambda: read_run(out, "history", A)):
        with pytest.raises(UserError, match=f"{FIRST}: damaged or of another format"):
            read()


# Damage of runs


def test_a_damaged_run_says_how_to_mend_it(out, sound):
    flip(out / "runs" / f"{A}.parquet", b"status")
    assert list(findings(out)) == [f"runs/{A}.parquet", FIRST, FIRST.replace("history", "placements")]
    with pytest.raises(
        UserError, match=f"runs/{A}.parquet: damaged .*; remove it, and the command that made it"
    ):
        job(out)
    (out / "runs" / f"{A}.parquet").unlink()
    assert job(out) == {A}
    assert_mended(out, sound)


# Files that are not of these results


@pytest.mark.parametrize("place", [f"runs/{A}", FIRST.removesuffix(".parquet"), "inputs/nodes/abc"])
def test_a_copy_is_named_and_not_read(out, sound, monkeypatch, place):
    said = []
    monkeypatch.setattr(committed, "log", SimpleNamespace(warning=lambda *words: said.append(words[-1])))
    committed.say_once.cache_clear()
    before = tables(out)
    copy = out / f"{place} (1).parquet"
    shutil.copy(out / f"{place}.parquet", copy)
    for name, frame in tables(out).items():
        pd.testing.assert_frame_equal(frame, before[name])
    assert len(said) == 1 and str(copy) in said[0]
    assert job(out) == set()
    assert "copy" in findings(out).pop(f"{place} (1).parquet") and len(findings(out)) == 1
    assert copy.exists()


@pytest.mark.parametrize("dataset", ["runs", "history"])
def test_a_foreign_file_is_named_and_not_read(out, dataset):
    before = tables(out)
    foreign = out / dataset / "zzz.parquet"
    pq.write_table(pa.table({"x": [1]}), foreign)
    for name, frame in tables(out).items():
        pd.testing.assert_frame_equal(frame, before[name])
    assert job(out) == set()
    assert findings(out) == {f"{dataset}/zzz.parquet": "was not written by ecjax"}


def test_folders_of_the_user_are_left_alone(out):
    (out / "mine").mkdir()
    pq.write_table(pa.table({"x": [1]}), out / "mine" / "x.parquet")
    (out / "notes.txt").write_text("x")
    assert verify(out).findings == []


# Killed jobs


def test_rows_that_were_not_committed_are_named(out, sound):
    (out / "runs" / f"{B}.parquet").unlink()
    (out / "runs" / f"{C}.parquet").unlink()
    assert set(findings(out).values()) == {"has rows of runs that were not committed"}
    assert len(findings(out)) == 4
    assert job(out) == {B, C}
    assert_mended(out, sound)


def test_a_file_that_keeps_some_of_its_rows_stands_for_the_one_before(out):
    """Rows of runs go from it, one after another; rows of runs stay as they are."""
    rows = {run: (out / "runs" / f"{run}.parquet").read_bytes() for run in (A, C)}
    (out / "runs" / f"{B}.parquet").unlink()
    assert job(out) == {B}
    assert verify(out).findings == [] and job(out) == set()
    assert all((out / "runs" / f"{run}.parquet").read_bytes() == content for run, content in rows.items())
    flip(out / FIRST, b"objective")
    assert list(findings(out)) == [FIRST]
    (out / FIRST).unlink()
    assert job(out) == {A}
    assert verify(out).findings == []


# Verify


def test_verify_of_what_are_no_results(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        verify(tmp_path / "none")
    with pytest.raises(UserError, match="holds no results of ecjax"):
        verify(tmp_path)
    (tmp_path / "runs").mkdir()
    earlier = pa.table({"run_id": ["a"]}).replace_schema_metadata({"ecjax_schema_version": "8"})
    pq.write_table(earlier, tmp_path / "runs" / "a.parquet")
    with pytest.raises(UserError, match="is of schema version 8, whose files carry no hashes"):
        verify(tmp_path)


def test_verify_of_a_folder_of_results(out, sound):
    shutil.copytree(sound, out / "planning")
    assert len(verify(out).files) == 8
    (out / "planning" / FIRST).unlink()
    assert findings(out) == {f"planning/{FIRST}": "is missing"}


def test_inputs_that_are_files(tmp_path):
    (tmp_path / "nodes.csv").write_text("node_id\nx\n")
    (tmp_path / "delays").mkdir()
    (tmp_path / "delays" / "x.parquet").write_text("x")
    options = {"nodes": str(tmp_path / "nodes.csv"), "delays": str(tmp_path / "delays"), "files": None}
    options |= {
        "trace": str(tmp_path / "none"),
        "arrivals": "poisson",
        "classes": ["x"],
        "out": str(tmp_path),
    }
    with ResultStore(tmp_path / "out", TABLES, IDS, sources=sources_text(options)) as store:
        commit(store, A)

    def states() -> dict[str, str]:
        return {source.option: state for source, state in verify(tmp_path / "out").sources.items()}

    assert states() == {"nodes": "same", "delays": "same"}
    (tmp_path / "nodes.csv").write_text("node_id\ny\n")
    (tmp_path / "delays" / "x.parquet").unlink()
    assert states() == {"nodes": "changed", "delays": "changed"}
    (tmp_path / "nodes.csv").unlink()
    assert states() == {"nodes": "not found", "delays": "changed"}
    assert verify(tmp_path / "out").findings == []


@pytest.mark.parametrize("words", [[], ["a", "b"], ["--fast"], ["none"]])
def test_wrong_usage(capsys, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["verify", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command(capsys, out):
    assert cli.main(["verify", str(out)]) == 0
    assert "placements" in capsys.readouterr().out
    (out / FIRST).unlink()
    assert cli.main(["verify", str(out)]) == 1
    said = capsys.readouterr().out
    assert f"{FIRST}: is missing; {SAYS.format(out)} computes it anew" in said.splitlines()
    assert cli.main(["verify", "--help"]) == 0
    assert "Exit codes" in capsys.readouterr().out


# Anywhere


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_no_flip_is_silent(out, data):
    path = data.draw(st.sampled_from(sorted(out.rglob("*.parquet"))))
    content = path.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)
    try:
        assert str(path.relative_to(out)) in findings(out)
        dataset = str(path.parent.relative_to(out))
        try:  # what is read all the same was not changed: the flip was in what says that there is a hash
            frame = read_results(out, dataset)
        except UserError:
            return
        path.write_bytes(content)
        pd.testing.assert_frame_equal(frame, read_results(out, dataset))
    finally:
        path.write_bytes(content)
