"""Results in a store that speaks the S3 protocol: what it refuses is one line, what it takes is read back."""

import importlib.util
import random
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest
from engines import same_rows

from ecjax.errors import UserError
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.datasets import batch_id
from ecjax.tables.results import find_run, read_results, read_run
from ecjax.tables.store import ResultStore
from ecjax.tables.verify import verify

WORKER = """
import pickle, sys
import pyarrow as pa

writer = pickle.load(sys.stdin.buffer)
assert writer.reaches()
written = writer.write(["w"], {"history": pa.table({"run_id": ["w"], "iteration": [0], "objective": [1.0]})})
pickle.dump(written, sys.stdout.buffer)
"""


def row(run: str, status: str = "ok") -> dict:
    return {"run_id": run, "job": "optimize", "status": status}


def history(run: str) -> pa.Table:
    return pa.table({"run_id": [run] * 3, "iteration": [0, 1, 2], "objective": [1.0] * 3})


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in {
        "ACCESS_KEY_ID": "key",
        "SECRET_ACCESS_KEY": "secret",
        "EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)


def address(bucket: str, port: int) -> str:
    return f"s3://{bucket}/deep/out?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Refusing(BaseHTTPRequestHandler):
    """A store that knows no such key."""

    def refuse(self) -> None:
        code = "InvalidAccessKeyId"
        body = (
            f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no such key</Message></Error>".encode()
        )
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = refuse  # noqa: N815

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def one_line(out: str, act) -> str:
    with pytest.raises(UserError) as caught:
        act()
    message = str(caught.value)
    assert out.partition("?")[0] in message
    assert "\n" not in message
    return message


def test_wrong_credentials(refusing):
    out = address("bucket", refusing)
    assert "AWS Error ACCESS_DENIED" in one_line(out, lambda: ResultStore(out, TABLES, {}).__enter__())
    assert "AWS Error ACCESS_DENIED" in one_line(out, lambda: read_results(out, "runs"))


@pytest.mark.slow
def test_no_server():
    out = address("bucket", free_port())
    start = time.monotonic()
    assert "NETWORK_CONNECTION" in one_line(out, lambda: ResultStore(out, TABLES, {}).__enter__())
    assert time.monotonic() - start < 60  # retries end


@pytest.fixture
def moto() -> Iterator[int]:
    """A server that stands for S3."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip(
            "moto is not installed (pip install moto[s3] flask flask-cors): there is no S3 server to test with"
        )
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        create = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        for _ in range(300):
            try:
                urllib.request.urlopen(create).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_commit_resume_and_read(moto):
    import pickle

    out = address("bucket", moto)
    with ResultStore(out, TABLES, {}) as store:
        store.commit([row("a"), row("b", "failed")], {"history": map(history, "ab")})
        for number in range(20):
            store.commit([row(f"r{number}")], {"history": history(f"r{number}")})
        worker = [sys.executable, "-c", WORKER]
        done = subprocess.run(worker, input=pickle.dumps(store.writer), stdout=subprocess.PIPE, check=True)
        store.commit([row("w")], pickle.loads(done.stdout))
        large = pa.table({"run_id": ["l"] * 2_000_000, "iteration": range(2_000_000)})
        store.writer.write("l", {"history": (large.slice(part * 500_000, 500_000) for part in range(4))})
    with ResultStore(out, TABLES, {}) as store:
        assert store.finished("abw") == {"a", "w"}
        store.commit([row("b")], {"history": history("b")})
    assert len(read_results(out, "runs")) == 23
    sizes = read_results(out, "history").groupby("run_id").size()
    assert sizes.loc[["a", "b", "w"]].tolist() == [3, 3, 1]
    assert sizes.sum() == 22 * 3 + 1
    assert len(read_run(out, "history", "r7")) == 3
    assert find_run(out, plan_run="r7")["batch_id"] == batch_id(["r7"])


STUDY = ["schedule", "generate.requests=300", "seeds=8", "scheduler=[dtarget,varys,fifo,fair]"]
STUDY += ["sources=random", "figures=[]", "lower_bound=false"]


def study(out, *words: str) -> subprocess.Popen:
    """The command of a study of 32 runs, under way."""
    program = "import sys; from ecjax.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *STUDY, f"out='{out}'", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def committed(out: str) -> int:
    """How many runs are committed."""
    try:
        return len(read_results(out, "runs"))
    except UserError:
        return 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["engine=ray", "engine.actors=2"]], ids=["serial", "ray"])
def test_a_study_is_killed_and_done_again(moto, tmp_path, monkeypatch, words):
    """The same tables as in a folder; runs that were committed are not done again."""
    if words:
        pytest.importorskip("ray")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    out = address("bucket", moto)
    first = study(out, *words)
    end = time.monotonic() + 200
    while first.poll() is None and not committed(out):
        assert time.monotonic() < end, "waited too long"
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = committed(out)
    # runs are committed together: the first that are seen may be all of them
    assert 0 < before <= 32
    again = study(out, *words)
    said = again.communicate(timeout=200)[1]
    assert again.returncode == 0, said
    assert f"{before} of 32 runs are finished" in " ".join(said.split())
    here = study(tmp_path / "here")
    assert here.communicate(timeout=200) and here.returncode == 0
    assert len(read_results(out, "runs")) == 32
    same_rows(tmp_path / "here", out, ["runs", "coflows"], rtol=1e-12)
    assert not verify(out).findings


@pytest.mark.slow
def test_missing_bucket(moto):
    out = address("none", moto)
    assert re.search(
        "cannot be written: .* NO_SUCH_BUCKET",
        one_line(out, lambda: ResultStore(out, TABLES, {}).__enter__()),
    )
    assert one_line(out, lambda: read_results(out, "runs")) == f"out={out.partition('?')[0]}: no such folder"


class Dropping(socketserver.ThreadingTCPServer):
    """Passes connections on to a server; breaks some off, after some bytes."""

    daemon_threads = True

    def __init__(self, port: int, share: float) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.port, self.share, self.random, self.dropped = port, share, random.Random(3), 0


class Passing(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, Dropping)
        broken = server.random.random() < server.share
        self.left = server.random.randrange(4000) if broken else None
        with socket.create_connection(("127.0.0.1", server.port)) as there:
            back = threading.Thread(target=self.forward, args=(there, self.request), daemon=True)
            back.start()
            self.forward(self.request, there)
            back.join()
        server.dropped += broken

    def forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1000):
                if self.left is not None:
                    self.left -= len(data)
                    if self.left < 0:
                        break
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.mark.slow
def test_dropped_connections(moto):
    """What cannot be written ends in one line; what is committed is there, and the same commands end the work."""
    names = [f"r{number}" for number in range(30)]
    with Dropping(moto, 0.2) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        out = address("bucket", proxy.server_address[1])
        for _ in range(200):
            try:
                with ResultStore(out, TABLES, {}) as store:
                    missing = sorted(set(names) - store.finished(names))
                    for name in missing:
                        store.commit([row(name)], {"history": history(name)})
                    if not missing:
                        break
            except UserError as error:
                assert "\n" not in str(error)
        else:
            pytest.fail("not done in 200 attempts")
        proxy.shutdown()
        assert proxy.dropped > 10
    sound = address("bucket", moto)
    assert sorted(read_results(sound, "runs")["run_id"]) == sorted(names)
    assert (read_results(sound, "history").groupby("run_id").size() == 3).all()
    assert not verify(sound).findings
