"""Commands that are killed at any moment, and killed again: the same command then gives the undisturbed tables.

``ECJAX_ATTACKS=1000`` for that many kills.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from engines import same_tables

COUNT = int(os.environ.get("ECJAX_ATTACKS", "40"))
FIRST = int(os.environ.get("ECJAX_ATTACKS_FROM", "0"))
TRACES = Path(__file__).parents[2] / "traces"
READS = "generate.requests=60 generate.servers=10 generate.clients=5 n=5 k=3 figures=[]"
STUDIES = (
    f"schedule {READS} seeds=4 scheduler=[dtarget,varys,fifo,fair] sources=random lower_bound=false",
    "cache reads=2000 items=40 capacity=[30,60] policy=[samplex,lru,exact] seeds=3 figures=[]",
    f"analyze {TRACES}/requests_chunks.parquet figures=false",
    "adapt requests=2000 load=[0.1,0.8] strategy=[static,greedy] codes=[[1,1],[4,2]] seeds=3 figures=[]",
    "optimize cluster.files=8 cluster.nodes_per_site=2 theta=[3,30] k=[3,4] figures=[]",
    "replay planning.cluster.files=8 planning.theta=[10] planning.figures=[] requests=500 replications=2"
    " policy=[probabilistic,fork_join] rate_scale=[0.7,1.0] figures=[]",
)
RAY_EVERY = 20  # kills of a command on Ray, which takes longer


class Server:
    """Starts commands, and tells how they ended."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _asked(self, words) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def killed(self, words: list[str], after_s: float) -> bool:
        """Whether a command that is killed after so many seconds was still running."""
        process = self._asked(words)
        time.sleep(after_s)
        os.kill(process, signal.SIGKILL)  # it is not waited for yet, so that its number is its own
        return os.WIFSIGNALED(self._asked(None))

    def finished(self, words: list[str]) -> int:
        """Exit code of a command."""
        self._asked(words)
        return os.waitstatus_to_exitcode(self._asked(None))

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)


@pytest.fixture
def server():
    started = Server()
    yield started
    started.close()


@pytest.mark.slow
def test_killed_commands_are_resumed(tmp_path, server, capsys):
    undisturbed, seconds = {}, {}
    for number, study in enumerate(STUDIES):
        undisturbed[study] = tmp_path / f"undisturbed{number}"
        words = [*study.split(), f"out={undisturbed[study]}"]
        assert server.finished(words) == 0  # what it compiles is kept
        began = time.monotonic()
        assert server.finished([*words[:-1], f"out={tmp_path / 'timed'}{number}"]) == 0
        seconds[study] = time.monotonic() - began
    kills = resumes = seed = 0
    began = time.monotonic()
    while kills < COUNT:
        random = np.random.default_rng((FIRST, seed))
        study = STUDIES[int(random.integers(len(STUDIES)))]
        on_ray = seed % RAY_EVERY == RAY_EVERY - 1
        words = [*study.split(), f"out={tmp_path / str(seed)}"] + ["engine=ray", "engine.actors=2"] * on_ray
        limit_s = seconds[study] + 10.0 * on_ray
        for _ in range(1 + int(random.integers(3))):
            kills += server.killed(words, limit_s * random.random())
        assert server.finished(words) == 0, words
        same_tables(undisturbed[study], tmp_path / str(seed), rtol=1e-12)
        resumes += 1
        seed += 1
    with capsys.disabled():
        took = time.monotonic() - began
        print(f"\n{kills} kills, {resumes} resumes, all equal to the undisturbed tables, {took:.0f} s")
