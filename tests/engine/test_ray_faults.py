"""Commands on Ray that are killed, cannot join, or find no Ray: what is left on disk, and what is said."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from engines import same_tables

from ecjax.cli import main
from ecjax.tables.results import read_results

pytest.importorskip("ray")
# the start of an interpreter and of Ray, for every command
slow = pytest.mark.slow

RUNS = 16
STUDY = [
    "schedule",
    "generate.requests=400",
    "seeds=4",
    "scheduler=[dtarget,varys,fifo,fair]",
    "sources=random",
]
STUDY += ["figures=[]", "lower_bound=false"]
ON_RAY = ["engine=ray", "engine.actors=2"]


def command(*words, before=""):
    """An ``ecjax`` command in a process of its own, after some statements."""
    # started in the background by a shell, a process ignores interrupts unless it says otherwise
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"import sys; {heeded}; {before}\nfrom ecjax.cli import main\nsys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", program, *map(str, words)]


def finished(*words, **options):
    """Exit code, standard error in one line, and seconds."""
    began = time.monotonic()
    done = subprocess.run(command(*words, **options), capture_output=True, text=True, timeout=300)
    return done.returncode, " ".join(done.stderr.split()), time.monotonic() - began


def started(out, stderr, study=STUDY):
    """The study on Ray, under way."""
    return subprocess.Popen(
        command(*study, f"out={out}", *ON_RAY),
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the study gives without Ray."""
    out = tmp_path_factory.mktemp("undisturbed")
    assert main([*STUDY, f"out={out}"]) == 0
    return out


@pytest.mark.parametrize(
    ("seen", "after_s"),
    [
        pytest.param(seen, after_s, marks=[] if (seen, after_s) == (4, 0.05) else [slow])
        for seen in (0, 1, 4, 9)
        for after_s in (0.0, 0.05)
    ],
)
def test_the_driver_is_killed(undisturbed, tmp_path, workers_compute_alike, seen, after_s):
    """At the moment that so many runs are committed, or a little later: while workers write, while it commits."""
    out = tmp_path / "out"
    driver = started(out, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: driver.poll() is not None or _committed(out) >= seen + (seen > 0))
        time.sleep(after_s)
        family = _family(driver.pid)
    finally:
        driver.send_signal(signal.SIGKILL)
    assert driver.wait() in (-signal.SIGKILL, 0)
    _check_readable(out, undisturbed)
    assert not psutil.wait_procs(family, timeout=30)[1]
    assert main([*STUDY, f"out={out}", "engine=ray", "engine.actors=1"]) == 0
    same_tables(undisturbed, out, rtol=1e-12)
    assert [path.name for path in out.rglob(".*")] == [".lock"]
    # and nothing is done again
    committed = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert main([*STUDY, f"out={out}"]) == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")} == committed


def _check_readable(out, undisturbed):
    """What is committed is right, and whole."""
    if not _files(out):
        return
    runs = read_results(out, "runs").set_index("run_id")
    assert set(runs["status"]) == {"ok"} and len(runs) <= RUNS
    expected = read_results(undisturbed, "runs").set_index("run_id").loc[runs.index]
    assert (runs["mean_s"] - expected["mean_s"]).abs().max() <= 1e-12 * expected["mean_s"].max()
    coflows = read_results(out, "coflows").groupby("run_id").size()
    assert coflows.to_dict() == dict.fromkeys(runs.index, 400)


def _family(process):
    """Ray and its workers, which go with the driver, and what sees to that."""
    return psutil.Process(process).children(recursive=True)


def _files(out: Path) -> list[Path]:
    return list((out / "runs").glob("*.parquet"))


def _committed(out: Path) -> int:
    """How many runs are committed."""
    return sum(pq.read_metadata(path).num_rows for path in _files(out))


def _until(condition, seconds=240.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


@slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["engine.address=127.0.0.1:1"], "engine.address=127.0.0.1:1: nothing answers there"),
        (["engine.address=head"], "engine.address: found 'head'; allowed: host:port, or auto"),
        (["engine.address=ray://head:10001"], "engine.address: found 'ray://head:10001'"),
        (
            ["engine.address=nowhere.invalid:6379"],
            "engine.address=nowhere.invalid:6379: nothing answers there",
        ),
        (["engine.actors=0"], "engine.actors: found 0; allowed: a whole number of at least 1"),
        (["engine.cpus_per_actor=100000"], "engine: found cpus_per_actor=100000"),
        (["engine.gpus_per_actor=100000"], "gpus_per_actor=100000; allowed: what this machine has"),
    ],
)
def test_where_there_is_nothing_to_join(tmp_path, words, said):
    code, error, seconds = finished(*STUDY, f"out={tmp_path / 'out'}", "engine=ray", *words)
    assert code == 2 and said in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()
    assert len(error) < 600


@slow
def test_a_cluster_that_has_ended_is_not_waited_for(tmp_path, monkeypatch):
    """Ray leaves the address of the last one behind."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    words = ["engine=ray", "engine.address=auto"]
    code, error, _ = finished(*STUDY, f"out={tmp_path / 'out'}", *words)
    assert code == 2 and "engine.address=auto: nothing answers at 127.0.0.1:1" in error


def test_where_no_cluster_was_started_none_is_looked_for(monkeypatch):
    from ray._private import services

    from ecjax.engine import joining

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(services, "find_gcs_addresses", set)
    monkeypatch.setattr(services, "find_bootstrap_address", lambda folder: None)
    with pytest.raises(ConnectionError):  # what Ray says
        services.get_ray_address_from_environment("auto", None)
    assert joining._latest() is None


@slow
def test_without_ray(tmp_path):
    """It need not be installed, and says what to do."""
    gone = "sys.modules['ray'] = None"
    code, error, _ = finished(*STUDY, f"out={tmp_path / 'out'}", "engine=ray", before=gone)
    assert code == 2 and "engine=ray: Ray is not installed; pip install ray, or take engine=serial" in error
    assert not (tmp_path / "out").exists()
    small = [
        "schedule",
        "generate.requests=5",
        "seeds=1",
        "scheduler=fifo",
        "figures=[]",
        f"out={tmp_path / 'out'}",
    ]
    assert finished(*small, before=gone)[0] == 0


@slow
def test_one_line_of_a_mistake_that_a_worker_finds(three_nodes, tmp_path):
    """Joined by its address; the error of the user comes through as here."""
    nodes = tmp_path / "transfers.csv"
    nodes.write_text("coflow_id,arrival_s,src,dst,bytes\na,0,1,2,-5\n")
    words = ["schedule", f"trace={nodes}", "scheduler=fair", f"out={tmp_path / 'out'}"]
    here, there = (
        finished(*words, *more) for more in ([], ["engine=ray", f"engine.address={three_nodes.address}"])
    )
    # after the times of what is said of the start
    assert here[0] == there[0] == 2 and here[1].split("ecjax: ")[1:] == there[1].split("ecjax: ")[1:] != []


@slow
def test_joined_by_its_address(three_nodes, undisturbed, tmp_path):
    code, error, _ = finished(
        *STUDY, f"out={tmp_path}", "engine=ray", f"engine.address={three_nodes.address}"
    )
    assert code == 0, error
    same_tables(undisturbed, tmp_path, rtol=1e-12)


@slow
def test_no_room_on_a_cluster_is_told(three_nodes, tmp_path):
    """Clusters grow: it waits for its patience first."""
    words = ["engine=ray", f"engine.address={three_nodes.address}", "engine.cpus_per_actor=64"]
    quick = "import ecjax.engine.joining, ecjax.engine.worker_pool as pool; pool._PATIENCE_S = 3.0"
    code, error, _ = finished(*STUDY, f"out={tmp_path / 'out'}", *words, before=quick)
    assert code == 2
    assert "no worker of 64 cores and 0 GPUs could be started in 3 s; the cluster has 3 cores" in error


@slow
def test_interrupted(tmp_path):
    """Ctrl-C: exit code 130, what is committed stays, nothing runs on."""
    out = tmp_path / "out"
    # runs are committed together: long enough that not all are at once
    longer = ["seeds=100" if word.startswith("seeds=") else word for word in STUDY]
    driver = started(out, subprocess.PIPE, longer)
    _until(lambda: driver.poll() is not None or _committed(out) >= 2)
    family = _family(driver.pid)
    os.kill(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 130 and "Traceback" not in said
    assert not psutil.wait_procs(family, timeout=30)[1]
    runs = read_results(out, "runs")
    assert 2 <= len(runs) < 25 * RUNS and set(runs["status"]) == {"ok"}
    assert [path.name for path in out.rglob(".*")] == [".lock"]


@slow
@pytest.mark.parametrize("kind", ["ray::DashboardAgent", "ray::RuntimeEnvAgent", "raylet", "gcs_server"])
def test_a_process_of_ray_is_killed(undisturbed, tmp_path, kind):
    """The command ends with one line or does without it; nothing stays behind, and the study can be ended."""
    out = tmp_path / "out"
    driver = started(out, stderr=subprocess.PIPE)
    _until(lambda: driver.poll() is not None or len(_files(out)) >= 1)
    family = _family(driver.pid)
    for process in family:
        # a worker may end at any time
        with suppress(psutil.NoSuchProcess):
            if process.name() == kind:
                process.kill()
    _, said = driver.communicate(timeout=120)
    assert "Traceback" not in said
    assert driver.returncode == 0 or "the same command goes on from there" in " ".join(said.split())
    assert not psutil.wait_procs(family, timeout=30)[1]
    _check_readable(out, undisturbed)
    assert finished(*STUDY, f"out={out}")[0] == 0
    same_tables(undisturbed, out, rtol=1e-12)
