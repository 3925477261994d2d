"""Flipped bits, truncations and losses in the results of every kind of file: none is silent.

``ECJAX_ATTACKS=2000`` for that many.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from ecjax.cli import main
from ecjax.tables.verify import verify

COUNT = int(os.environ.get("ECJAX_ATTACKS", "300"))
FIRST = int(os.environ.get("ECJAX_ATTACKS_FROM", "0"))
TRACES = Path(__file__).parents[2] / "traces"
STUDIES = (
    "schedule generate.requests=20 generate.servers=10 generate.clients=5 n=5 k=3 seeds=2 scheduler=[fair,fifo]"
    " figures=[]",
    f"analyze {TRACES}/requests_chunks.parquet figures=false",
    "cache reads=500 items=20 capacity=[5,10] policy=lru figures=[]",
)


def damaged(path: Path, random: np.random.Generator) -> str:
    """Damage a file, one way or another; says how."""
    data = path.read_bytes()
    at = int(random.integers(len(data)))
    way = random.integers(10)
    if way == 0:
        path.unlink()
        return "deleted"
    if way == 1:
        path.write_bytes(data[:at])
        return f"cut at {at}"
    bit = int(random.integers(8))
    path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
    return f"bit {bit} of byte {at} flipped"


@pytest.mark.slow
def test_no_damage_is_silent(tmp_path, capsys):
    outs = [tmp_path / str(number) for number in range(len(STUDIES))]
    for study, out in zip(STUDIES, outs, strict=True):
        assert main([*study.split(), f"out={out}"]) == 0
        assert not verify(out).findings
    silent = []
    for seed in range(FIRST, FIRST + COUNT):
        random = np.random.default_rng((7, seed))
        out = outs[seed % len(outs)]
        files = sorted(path for path in out.rglob("*.parquet"))
        path = files[random.integers(len(files))]
        kept = path.with_name("kept")
        shutil.copy2(path, kept)
        kept.rename(tmp_path / "kept")
        how = damaged(path, random)
        findings = {finding.file for finding in verify(out).findings}
        # a run that is lost is not known any more: the files of its batch are what is left over
        lost_run = path.parent.name == "runs" and how == "deleted"
        if not (findings if lost_run else str(path.relative_to(out)) in findings):
            silent.append(f"seed {seed}: {path.relative_to(out)}, {how}: {findings}")
        shutil.move(tmp_path / "kept", path)
    for out in outs:
        assert not verify(out).findings
    with capsys.disabled():
        print(f"\n{COUNT} damaged files of results, {len(silent)} silent")
    assert not silent, "\n".join(silent)
