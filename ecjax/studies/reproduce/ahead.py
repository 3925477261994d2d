"""Studies of a paper in several processes, each of which goes from one to the next; their results stay in ``out``."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

from ecjax.console import log
from ecjax.cores import VARIABLE, available_cores

_SERVER = "ecjax.commands_in_turn"
_MOST = 8  # processes: each compiles for itself what it has in common with the others


def run_ahead(commands: Sequence[tuple[str, list[str]]]) -> bool:
    """Run commands, several at a time, where there are cores for it; whether it did.

    What fails, and what a process that dies leaves, is run again by whoever reads the results, and said there.

    Args:
        commands: a name for each, and its words.
    """
    count = min(available_cores(), len(commands), _MOST)
    if count < 2:
        return False
    waiting: SimpleQueue[tuple[str, list[str]]] = SimpleQueue()
    for command in commands:
        waiting.put(command)
    environment = os.environ | {VARIABLE: str(max(1, available_cores() // count))}
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        for _ in range(count)
    ]
    try:
        with ThreadPoolExecutor(count) as pool:
            for _ in pool.map(lambda server: _served(server, waiting), servers):
                pass
    except BaseException:
        for server in servers:
            server.kill()
        raise
    finally:
        for server in servers:
            with server:  # closes its pipes and waits: without further lines it ends
                pass
    return True


def _served(server: subprocess.Popen[str], waiting: SimpleQueue[tuple[str, list[str]]]) -> None:
    """Give a server commands until none waits, or the server is no more."""
    assert server.stdin is not None and server.stdout is not None
    while True:
        try:
            name, words = waiting.get_nowait()
        except Empty:
            return
        began = time.perf_counter()
        try:
            server.stdin.write(json.dumps(words) + "\n")
            server.stdin.flush()
        except BrokenPipeError:
            return
        if not server.stdout.readline():
            return
        log.info("%s took %.1f s", name, time.perf_counter() - began)
