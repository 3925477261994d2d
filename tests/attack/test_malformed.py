"""Malformed inputs end in one clean line, or in tables without a NaN: ``ECJAX_ATTACKS=725`` for that many of them."""

import contextlib
import io
import os
import re
import signal
import time
import traceback

import numpy as np
import pytest
from attack.malformed import case

from ecjax.cli import main
from ecjax.tables.results import read_results

COUNT = int(os.environ.get("ECJAX_ATTACKS", "120"))
FIRST = int(os.environ.get("ECJAX_ATTACKS_FROM", "0"))
LONGEST_S = 120.0  # of a busy machine that compiles
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def outcome(words, seconds=LONGEST_S):
    """Exit code, standard output and error of a command in this process."""
    out, err = io.StringIO(), io.StringIO()

    def late(*_):
        raise TimeoutError(f"not done after {seconds:g} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return code, out.getvalue(), err.getvalue()


def complaint(words, folder):
    """What is wrong with how a command took its input; None where all is well."""
    try:
        code, out, err = outcome(words)
    except BaseException:
        return "raised " + traceback.format_exc(limit=-3)
    lines = [line for line in err.splitlines() if line.startswith("ecjax: ")]
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if CONTROL.search(out) or CONTROL.search(err):
        return f"control characters: {CONTROL.search(out + err)!r}"
    if "Traceback" in err:
        return f"traceback: {err[-600:]}"
    if code == 2:
        if len(lines) != 1 or len(lines[0]) > 1000:
            return f"exit code 2 with {len(lines)} lines: {err[-300:]}"
        out_files = [path for path in (folder / "out").rglob("*") if path.is_file() and path.name != ".lock"]
        # a plan that was made for the replay stays: the next command takes it
        written = [path for path in out_files if "planning" not in path.parts]
        return f"left {written}" if written else None
    if re.search(r"(?<![\w/])(nan|inf)(?![\w/])", out.lower()):
        return f"prints nan or inf: {out[-600:]}"
    runs = read_results(folder / "out", "runs")
    fine = runs[runs["status"] == "ok"].select_dtypes("number")
    if np.isinf(fine.to_numpy(dtype=float, na_value=np.nan)).any():
        return "infinite in runs that are ok"
    return None


@pytest.mark.slow
def test_malformed_inputs_end_cleanly(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    unclean, began = [], time.monotonic()
    for seed in range(FIRST, FIRST + COUNT):
        folder = tmp_path / str(seed)
        folder.mkdir()
        malformed = case(seed, folder)
        trouble = complaint(list(malformed.words), folder)
        if trouble:
            unclean.append(f"seed {seed}, {malformed.what}: {' '.join(malformed.words)}\n{trouble}")
    with capsys.disabled():
        print(
            f"\n{COUNT} malformed inputs, {len(unclean)} not taken cleanly, {time.monotonic() - began:.0f} s"
        )
    assert not unclean, "\n\n".join(unclean)
