"""Runs ``ecjax`` commands in children that have imported everything already: ``fork_server.py``.

A line of JSON on standard input is a list of words, or null: wait for the command. A line on standard output answers:
the process id, or the exit status as ``os.waitpid`` gives it.
"""

import json
import os
import sys

import ecjax.cli
import ecjax.hydra_run
from ecjax.jobs_index import JOBS


def main() -> None:
    for job in JOBS.values():
        ecjax.hydra_run.load_job(job)
    child = 0
    for line in sys.stdin:
        words = json.loads(line)
        if words is None:
            print(os.waitpid(child, 0)[1], flush=True)
            continue
        child = os.fork()
        if child == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os._exit(ecjax.cli.main(words))
        print(child, flush=True)


if __name__ == "__main__":
    main()
