"""Two machines that share a token and a cable: network namespaces of this one, each with its own address."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from engines import same_tables

from ecjax.tables.verify import verify

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

STUDY = ["schedule", "generate.requests=2000", "seeds=6", "scheduler=[dtarget,varys,fifo,fair]"]
STUDY += ["sources=random", "figures=[]", "lower_bound=false"]
PORT = 6379


class Machine(NamedTuple):
    """A network namespace with one end of a cable."""

    name: str
    address: str
    token: str

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        # JAX: workers compile as the command does, so that they round alike
        own = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "JAX_PLATFORMS": "cpu",
            "COLUMNS": "80",
        }
        return inherited | own | {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"} | more

    def ray(self, *words: str) -> None:
        """Start Ray here."""
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", *words]
        memory = f"--object-store-memory={100 << 20}"
        options = [f"--node-ip-address={self.address}", "--num-cpus=1", memory, "--disable-usage-stats"]
        done = subprocess.run(
            self.command(*ray, *options), env=self.environment(), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def ecjax(self, *words: str, **environment: str) -> subprocess.Popen:
        """A command here, under way."""
        program = "import sys; from ecjax.cli import main; sys.exit(main(sys.argv[1:]))"
        return subprocess.Popen(
            self.command(sys.executable, "-c", program, *words),
            env=self.environment(**environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill(self) -> None:
        """All that runs here ends at once."""
        for _ in range(50):
            pids = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True).stdout
            if not pids.split():
                return
            for pid in pids.split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.1)


@pytest.fixture
def machines() -> Iterator[tuple[Machine, Machine]]:
    """Two that reach each other and nothing else."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip (iproute2)")
    mark, token = secrets.token_hex(3), secrets.token_hex(32)
    pair = Machine(f"ecjax-{mark}-a", "10.99.0.1", token), Machine(f"ecjax-{mark}-b", "10.99.0.2", token)
    try:
        if subprocess.run(["ip", "netns", "add", pair[0].name], capture_output=True).returncode:
            pytest.skip("this machine allows no network namespaces")
        _ip("netns", "add", pair[1].name)
        _ip(
            "link",
            "add",
            "cable",
            "netns",
            pair[0].name,
            "type",
            "veth",
            "peer",
            "cable",
            "netns",
            pair[1].name,
        )
        for one in pair:
            _ip("-n", one.name, "address", "add", f"{one.address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                _ip("-n", one.name, "link", "set", device, "up")
        yield pair
    finally:
        for one in pair:
            one.kill()
            subprocess.run(["ip", "netns", "delete", one.name], capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def test_one_of_two_machines_is_killed(machines, tmp_path):
    """The study goes on on the other one, and its tables are those of one process."""
    head, other = machines
    serial, out = tmp_path / "serial", tmp_path / "ray"
    alone = head.ecjax(*STUDY, f"out={serial}")
    assert alone.communicate(timeout=300) and alone.returncode == 0
    head.ray("--head", f"--port={PORT}", "--include-dashboard=false")
    other.ray(f"--address={head.address}:{PORT}")
    on_both = ["engine=ray", f"engine.address={head.address}:{PORT}", "engine.actors=2"]
    stranger = head.ecjax(*STUDY, f"out={out}", *on_both, RAY_AUTH_TOKEN=secrets.token_hex(32))
    said = stranger.communicate(timeout=120)[1]
    assert stranger.returncode == 2 and "token" in said and not out.exists()
    command = head.ecjax(*STUDY, f"out={out}", *on_both)
    try:
        _wait_for(lambda: command.poll() is not None or _busy_on(out, other))
        assert command.poll() is None, "the study ended before a machine could be killed"
        other.kill()
        said = command.communicate(timeout=300)[1]
    finally:
        command.kill()
    assert command.returncode == 0, said
    assert "a worker is gone" in " ".join(said.split())
    same_tables(serial, out, rtol=1e-12)
    assert verify(out).findings == []


def _busy_on(out: Path, machine: Machine) -> bool:
    """Whether some runs are committed, and a worker runs on the machine."""
    if not list((out / "runs").glob("*.parquet")):
        return False
    pids = subprocess.run(["ip", "netns", "pids", machine.name], capture_output=True, text=True).stdout
    titles = [Path(f"/proc/{pid}/cmdline") for pid in pids.split()]
    return any(b"ray::Runner" in title.read_bytes() for title in titles if title.exists())


def _wait_for(condition) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)
