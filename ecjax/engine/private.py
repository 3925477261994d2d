"""Ray that this process starts for itself: nobody else on the machine reaches it, and nothing of it stays behind."""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ecjax.interrupts import farewell

MARK = "ECJAX_RAY_SESSION"  # in the environment of the processes of one session
FAREWELL = b"end"
_LONGEST_PLACE = 32  # names of sockets below it have to fit into some hundred characters


@contextmanager
def private_session() -> Iterator[str]:
    """Environment in which Ray, started on this machine, is private to this process.

    It has a token of its own, which only the environment of its processes holds, listens on the loopback address
    alone, and keeps its files in a folder that only the user can read. A process beside it waits for the end of this
    one, whatever ends it, and then takes away the processes and the folder.

    Yields:
        Folder for the files of the session.
    """
    mark = secrets.token_hex(8)
    place = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="ecjax-", dir=place if len(place) <= _LONGEST_PLACE else "/tmp")
    environment = {MARK: mark, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before = {name: os.environ.get(name) for name in environment}
    # before the environment is changed: the one that ends the processes of the session is not one of them
    with watched(f"{MARK}={mark}", folder):
        try:
            os.environ.update(environment)
            _read_token_again()
            with _loopback_only():
                yield f"{folder}/ray"  # which Ray opens to everybody; the folder around it stays closed
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            _read_token_again()


@contextmanager
def watched(*session: str) -> Iterator[None]:
    """Within the block a process beside this one waits for its end, and says so where it was ended from outside.

    Args:
        session: mark and folder of a private session, which that process takes away; none of a cluster that goes on.
    """
    watchdog = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("watchdog.py")), *session],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this process
    )
    try:
        with farewell(partial(_say_farewell, watchdog)):
            yield
    finally:
        _say_farewell(watchdog)
        with suppress(subprocess.TimeoutExpired):
            watchdog.wait(timeout=10.0)


def _say_farewell(watchdog: subprocess.Popen[bytes]) -> None:
    """Tell the watchdog that the command ends by itself."""
    assert watchdog.stdin is not None
    with suppress(OSError, ValueError):
        watchdog.stdin.write(FAREWELL)
        watchdog.stdin.close()


@contextmanager
def _loopback_only() -> Iterator[None]:
    """Ray's address of this machine is the loopback address, on which it then listens alone.

    There is no public way to say so: Ray replaces 127.0.0.1 by the address of the network, except where clusters are
    switched off, as they are on systems where a firewall would ask.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _read_token_again() -> None:
    """Ray keeps the mode and the token that it read first."""
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
