"""A program that outlives a command and takes away what its Ray left: ``watchdog.py [NAME=VALUE FOLDER]``.

Its standard input is a pipe from the command. The pipe ends with the command, however that ended: Ray stops most of
its processes itself, some only after minutes, and not all.
"""

import os
import shutil
import sys
import time

import psutil

PATIENCE_S = 3.0  # for what ends by itself


def main() -> None:
    """Wait for the end of the command, then end the processes of its session, if it had one of its own."""
    command = os.getppid()
    farewell = sys.stdin.buffer.read()
    if sys.argv[1:]:
        mark, folder = sys.argv[1:]
        _clear(mark, folder, command)
    if not farewell:
        print(
            "ecjax: the command was ended from outside (by a signal, or by Ray after one of its processes died); what "
            "was finished is kept, and the same command goes on from there",
            file=sys.stderr,
        )


def _clear(mark: str, folder: str, command: int) -> None:
    """End the processes of a session, and take away its folder."""
    until = time.monotonic() + PATIENCE_S
    while (left := _processes(mark, folder, command)) and time.monotonic() < until:
        time.sleep(0.1)
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(left, timeout=PATIENCE_S)
    shutil.rmtree(folder, ignore_errors=True)


def _processes(mark: str, folder: str, command: int) -> list[psutil.Process]:
    """Processes of the session, but for the command."""
    others = [one for one in psutil.process_iter() if one.pid not in (os.getpid(), command)]
    return [one for one in others if _belongs(one, mark, folder)]


def _belongs(process: psutil.Process, mark: str, folder: str) -> bool:
    """Whether the mark is in its environment, or, where its title overwrote that, it writes files of the session."""
    try:
        name, _, value = mark.partition("=")
        if process.environ().get(name) == value:
            return True
        return any(
            file.path.startswith(folder + "/") and getattr(file, "mode", "w") != "r"
            for file in process.open_files()
        )
    except (psutil.Error, OSError):
        return False


if __name__ == "__main__":
    main()
