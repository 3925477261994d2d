"""Ray that a command starts for itself: who reaches it, and what stays."""

import json
import logging
import os
import subprocess
import sys

import psutil
import pytest

pytest.importorskip("ray")
from ecjax.engine import joining  # noqa: E402
from ecjax.errors import UserError  # noqa: E402

PROGRAM = """
import json, os, psutil, sys
from pathlib import Path
from ecjax.engine import EngineOptions, open_engine
from ecjax.engine.watchdog import _belongs

def about():
    children = psutil.Process().children(recursive=True)
    family = [one for one in children if "watchdog.py" not in " ".join(one.cmdline())]
    token, mark = os.environ["RAY_AUTH_TOKEN"], os.environ["ECJAX_RAY_SESSION"]
    folder = Path(ray._private.worker._global_node.get_session_dir_path()).parents[1]
    listening = [
        one.laddr.ip
        for process in [psutil.Process(), *family]
        for one in process.net_connections("inet")
        if one.status == "LISTEN"
    ]
    return {
        "addresses": sorted(set(listening)),
        "processes": [one.pid for one in children],
        "missed": [one.name() for one in family if not _belongs(one, f"ECJAX_RAY_SESSION={mark}", str(folder))],
        "shown": any(token in " ".join(one.cmdline()) for one in family),
        "length": len(token),
        "folder": str(folder),
        "mode": folder.stat().st_mode & 0o777,
    }

import ray
sessions = []
for _ in range(int(sys.argv[1])):
    with open_engine(EngineOptions("ray", actors=1)) as engine:
        engine.memory_bytes
        sessions.append(about() | {"token": os.environ["RAY_AUTH_TOKEN"]})
left = [name for name in ("ECJAX_RAY_SESSION", "RAY_AUTH_TOKEN") if name in os.environ]
print(json.dumps({"sessions": sessions, "left": left}))
"""


def runs(process):
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_nobody_else_reaches_it_and_nothing_stays(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "2"],
        env=environment | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    first, second = told["sessions"]
    assert first["token"] != second["token"] and not told["left"]
    for session in (first, second):
        assert {address.removeprefix("::ffff:") for address in session["addresses"]} <= {"127.0.0.1", "::1"}
        assert session["addresses"] and session["length"] == 64 and not session["shown"]
        assert not session["missed"] and session["mode"] == 0o700
        assert not os.path.exists(session["folder"])
        assert not [process for process in session["processes"] if runs(process)]
    assert not (tmp_path / ".ray").exists()


@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o640, True), (0o600, False)])
def test_a_token_that_others_can_read_is_warned_of(tmp_path, monkeypatch, caplog, mode, warned):
    path = tmp_path / "token"
    path.write_text("0" * 64)
    path.chmod(mode)
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    with caplog.at_level(logging.WARNING, "ecjax"):
        joining._warn_of_open_token()
    assert [f"chmod 600 {path}" in message for message in caplog.messages] == [True] * warned


def test_a_ray_that_does_not_start_is_no_wrong_address(monkeypatch):
    def init(**_):
        raise Exception("The current node timed out\nduring startup.")

    monkeypatch.setattr(joining.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(joining.ray, "init", init)
    line = r"engine=ray: Ray did not start on this machine.*engine=serial.*timed out during startup\.$"
    with pytest.raises(UserError, match=line), joining.join(None):
        pass
