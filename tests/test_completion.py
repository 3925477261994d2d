"""Words that shells complete."""

import shutil
import subprocess
import sys

import pytest

from ecjax import cli
from ecjax.completion import SHELLS, candidates
from ecjax.jobs_index import JOBS, experiments

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def test_jobs_and_flags():
    assert candidates([""])[: len(JOBS)] == [f"{name} " for name in JOBS]
    assert candidates(["an"]) == ["analyze "] and candidates(["optimize", "--j"]) == ["--json "]
    assert candidates(["--completion", "z"]) == ["zsh "]


def test_keys_and_sections():
    assert candidates(["optimize", "thet"]) == ["theta=", "theta_per="]
    assert candidates(["optimize", "clu"]) == ["cluster_bytes_per_s=", "cluster."]
    assert candidates(["optimize", "cluster.lo"]) == ["cluster.load="]
    assert candidates(["replay", "planning.cluster.lo"]) == ["planning.cluster.load="]
    assert candidates(["schedule", "eng"]) == ["engine.", "engine="]
    assert candidates(["optimize", "nothing.of"]) == candidates(["fly", "th"]) == []


def test_words_that_are_allowed():
    assert candidates(["optimize", "theta_per="]) == ["theta_per=file", "theta_per=total"]
    assert candidates(["schedule", "engine="]) == ["engine=cluster", "engine=ray", "engine=serial"]
    assert candidates(["optimize", "resume=t"]) == ["resume=true"]
    assert candidates(["schedule", "scheduler=fair,fi"]) == ["scheduler=fair,fifo"]
    assert candidates(["schedule", "scheduler=fifo,fi"]) == []
    assert candidates(["optimize", "theta_per=file,t"]) == candidates(["optimize", "theta=1"]) == []
    assert candidates(["optimize", "thetta="]) == candidates(["optimize", "cluster="]) == []
    named = candidates(["replay", "experiment="])
    assert named == [f"experiment={name}" for name in experiments("replay")] and named


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_every_shell(shell, capsys):
    assert cli.main(["--completion", shell]) == 0
    assert "--complete " in capsys.readouterr().out


def test_other_shells_are_told(capsys):
    assert cli.main(["--completion", "tcsh"]) == 2
    assert "--completion: found tcsh; allowed: bash, zsh, fish" in capsys.readouterr().err


@bash
@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("ecjax opt", ["optimize "]),
        ("ecjax schedule generate.mi", ["generate.min_bytes="]),
        ("ecjax schedule n=8 scheduler=fair,fi", ["fair,fifo"]),
        ("ecjax analyze trace=here", ["here.parquet"]),
    ],
)
def test_in_bash(line, reply, tmp_path):
    (tmp_path / "here.parquet").touch()
    program = f"""
ecjax() {{ {sys.executable} -m ecjax "$@"; }}
eval "$(ecjax --completion bash)"
COMP_LINE='{line}' COMP_POINT={len(line)}
_ecjax ecjax
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == reply, done.stderr
