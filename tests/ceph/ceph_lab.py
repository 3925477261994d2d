"""A real Ceph for a test: Debian's packages, unpacked into a folder and not installed; a mon, a mgr, OSDs in memory.

Everything listens on 127.0.0.1, without keys, and ends with the test.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PACKAGES = ("ceph-base", "ceph-common", "ceph-mon", "ceph-mgr", "ceph-osd")
FSID = "11111111-2222-3333-4444-555555555555"
PYTHON = "/usr/bin/python3"
PATIENCE_S = 300


class Missing(Exception):
    """This machine cannot run the lab; the text says why."""


def _run(words, cwd=None, environment=None, check=True):
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()[-500:]}")
    return done


def unpacked(folder):
    """The packages and what they need, downloaded with apt and unpacked; their root.

    Raises:
        Missing: there is no apt, it does not know Ceph, or there is no network.
    """
    for tool in ("apt-get", "apt-cache", "dpkg", PYTHON):
        if shutil.which(tool) is None:
            raise Missing(f"no {tool}: a real Ceph comes from Debian's packages")
    if _run(["apt-cache", "show", *PACKAGES], check=False).returncode:
        raise Missing("apt knows no packages of Ceph (apt-get update, as root)")
    simulated = _run(["apt-get", "-s", "install", "--no-install-recommends", *PACKAGES], check=False)
    names = [line.split()[1] for line in simulated.stdout.splitlines() if line.startswith("Inst ")]
    root, packages = folder / "root", folder / "deb"
    root.mkdir()
    packages.mkdir()
    if not names:
        raise Missing("apt would install nothing: Ceph is installed, or cannot be")
    _run(["apt-get", "-qq", "download", *names], cwd=packages, check=False)
    files = sorted(packages.glob("*.deb"))
    if len(files) < len(names):
        raise Missing(f"{len(files)} of {len(names)} packages of Ceph could be downloaded")
    for file in files:
        _run(["dpkg", "-x", file, root])
        file.unlink()
    return root


class Lab:
    """A cluster of OSDs in memory, two on each host."""

    def __init__(self, folder, osds=12):
        """Start it.

        Args:
            folder: a new one with a short path, as sockets lie in it.
            osds: how many.
        """
        self.folder, self.osds = Path(folder), osds
        root = unpacked(self.folder)
        (library,) = (root / "usr" / "lib").glob("*-linux-gnu")
        self.root, self.library = root, library
        self.conf = self.folder / "ceph.conf"
        programs = [root / part for part in ("usr/bin", "usr/sbin", "sbin")]
        self.environment = os.environ | {
            "LD_LIBRARY_PATH": f"{library}:{library / 'ceph'}:{root / 'lib' / library.name}",
            "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
            "PYTHONPATH": str(root / "usr/lib/python3/dist-packages"),
            "CEPH_CONF": str(self.conf),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._configure()
        self._begin()

    def _configure(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        run, library = self.folder, self.library
        settings = {
            "fsid": FSID,
            "mon host": f"v1:127.0.0.1:{port}",
            "auth cluster required": "none",
            "auth service required": "none",
            "auth client required": "none",
            "erasure code dir": library / "ceph/erasure-code",
            "plugin dir": library / "ceph",
            "osd class dir": library / "rados-classes",
            "run dir": run,
            "crash dir": run,
            "admin socket": f"{run}/$name.asok",
            "pid file": f"{run}/$name.pid",
            "log file": f"{run}/$name.log",
            "public network": "127.0.0.0/8",
            "ms bind msgr2": "false",
            "mon data": run / "mon.a",
            "mon cluster log to file": "false",
            "mgr data": run / "mgr.x",
            "mgr module path": self.root / "usr/share/ceph/mgr",
            "mgr initial modules": "iostat",
            "osd data": f"{run}/osd.$id",
            "osd objectstore": "memstore",
            "memstore device bytes": 1 << 30,
            "mon allow pool size one": "true",
            "mon max pg per osd": 4000,
            "mon pg warn min per osd": 0,
            "mon warn on insecure global id reclaim": "false",
            "paxos propose interval": 0.05,
            "paxos min wait": 0.02,
            "osd pool default pg autoscale mode": "off",
            "osd crush initial weight": 1,
            "osd heartbeat grace": 120,
            "osd recovery sleep": 0,
            "osd op history duration": 86400,
            "osd op history size": 1_000_000,
        }
        lines = ["[global]", *(f"{name} = {value}" for name, value in settings.items())]
        lines += ["[client]", "admin socket =", f"log file = {run}/client.log"]
        for osd in range(self.osds):
            lines += [f"[osd.{osd}]", f"crush location = root=default host=h{osd // 2}"]
        self.conf.write_text("\n".join(lines) + "\n")
        self.address = f"v1:127.0.0.1:{port}"

    def run(self, *words, check=True):
        """What a program of the packages prints."""
        return _run(list(map(str, words)), environment=self.environment, check=check).stdout

    def ceph(self, *words):
        """What ``ceph`` prints."""
        last = None
        for _ in range(30):  # a client may be let in before the monitors' map has come
            done = _run([*self.command, *words], environment=self.environment, check=False)
            if not done.returncode:
                return done.stdout
            last = done
            time.sleep(1)
        raise RuntimeError(f"ceph {' '.join(words)}: {last.stderr.strip()[-500:]}")

    @property
    def command(self):
        """The words of ``ceph``."""
        return [PYTHON, str(self.root / "usr/bin/ceph"), "-c", str(self.conf)]

    def _daemon(self, kind, name):
        for _ in range(10):  # one in four ends where it asks before the monitors' map has come
            if (
                _run(
                    [f"ceph-{kind}", "-i", name, "-c", self.conf], environment=self.environment, check=False
                ).returncode
                == 0
            ):
                return
            time.sleep(0.5)
        raise RuntimeError(f"ceph-{kind} {name} does not start: {self.folder}/{kind}.{name}.log")

    def _begin(self):
        for name in ("mon.a", "mgr.x"):
            (self.folder / name).mkdir()
        monmap = self.folder / "monmap"
        self.run(
            "monmaptool", "--create", "--clobber", "--fsid", FSID, "--addv", "a", f"[{self.address}]", monmap
        )
        self.run("ceph-mon", "--mkfs", "-i", "a", "-c", self.conf, "--monmap", monmap)
        self._daemon("mon", "a")
        self._daemon("mgr", "x")
        self.ceph("osd", "set-require-min-compat-client", "luminous")
        for osd in range(self.osds):
            (self.folder / f"osd.{osd}").mkdir()
            key = f"{osd:08d}-0000-4000-8000-000000000000"
            self.ceph("osd", "new", key, str(osd))
            (self.folder / f"osd.{osd}" / "type").write_text("memstore\n")
            self.run("ceph-osd", "-i", osd, "-c", self.conf, "--mkfs", "--osd-uuid", key, check=False)
            self._daemon("osd", str(osd))
        self.wait(lambda: json.loads(self.ceph("osd", "stat", "-f", "json"))["num_up_osds"] == self.osds)
        self.wait(lambda: json.loads(self.ceph("mgr", "stat", "-f", "json")).get("available"))
        self.ceph("balancer", "off")

    def wait(self, ready):
        """Wait until something is so."""
        end = time.monotonic() + PATIENCE_S
        while not ready():
            if time.monotonic() > end:
                raise RuntimeError("the cluster does not come up")
            time.sleep(1)

    def shard_reads(self):
        """Shard reads that each OSD has in its history."""
        counts = []
        for osd in range(self.osds):
            history = json.loads(self.ceph("tell", f"osd.{osd}", "dump_historic_ops"))
            counts.append(sum(each["description"].startswith("MOSDECSubOpRead(") for each in history["ops"]))
        return counts

    def pool(self, name, k, m, groups):
        """An erasure-coded pool with failure domain host."""
        profile = [
            "erasure-code-profile",
            "set",
            f"{name}-profile",
            f"k={k}",
            f"m={m}",
            "crush-failure-domain=host",
        ]
        self.ceph("osd", *profile)
        self.ceph("osd", "pool", "create", name, str(groups), str(groups), "erasure", f"{name}-profile")
        self.ceph("osd", "pool", "application", "enable", name, "rados")

    def end(self):
        """End what was started."""
        for file in self.folder.glob("*.pid"):
            number = int(file.read_text() or 0)
            command = Path(f"/proc/{number}/cmdline")
            if number and command.exists() and str(self.conf).encode() in command.read_bytes():
                os.kill(number, signal.SIGKILL)
