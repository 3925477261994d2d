"""What README and guide show, and TAB, in the shells that people have: bash, zsh and fish where they are installed."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "ecjax" / "guides").glob("*.md"))]
ZSH = ("zsh", "-f")  # without the start-up files of who runs the tests
SHELLS = (("bash", "--norc"), ZSH, ("fish", "--no-config"))
MARK = "TAB-WAS-MARK"


def installed(shell):
    return pytest.param(
        shell,
        id=shell[0],
        marks=pytest.mark.skipif(shutil.which(shell[0]) is None, reason=f"{shell[0]} is not installed"),
    )


def shown_commands():
    """Command lines of blocks, and of texts within lines; without what stands for something else."""
    text = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"```\w*\n(.*?)```", text, flags=re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    commands = [line for line in lines if re.match(r"(pip install uv && )?(uv run )?ecjax \w", line)]
    assert len(commands) > 30
    return [line.removeprefix("pip install uv && ") for line in dict.fromkeys(commands)]


@pytest.mark.parametrize("shell", [installed(shell) for shell in SHELLS])
def test_every_shell_reads_the_words_that_are_written(shell, tmp_path):
    """An unquoted bracket is a pattern without a match in zsh, a brace several words."""
    commands = shown_commands()
    # a program that prints its words in a place with a file for every pattern to match
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ecjax", "uv"):
        (programs / name).write_text('#!/bin/sh\nprintf "%s\\n" "$@" END\n')
        (programs / name).chmod(0o755)
    for name in "1abt":
        (tmp_path / name).touch()
    script = tmp_path / "script"
    script.write_text("".join(f"{line}\n" for line in commands))
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [*shell, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    read = [words.splitlines() for words in done.stdout.split("END\n")]
    assert read == [*(shlex.split(line)[1:] for line in commands), []]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a few files and, in ``bin``, the command."""
    folder = tmp_path_factory.mktemp("shells")
    (folder / "bin").mkdir()
    command = folder / "bin" / "ecjax"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ecjax "$@"\n')
    command.chmod(0o755)
    (folder / "here.parquet").touch()
    return folder


def environment(place):
    return os.environ | {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place), "TERM": "dumb"}


FISH_LINES = {
    "ecjax opt": ["optimize"],
    "ecjax schedule generate.mi": ["generate.min_bytes="],
    "ecjax schedule n=8 scheduler=fair,fi": ["scheduler=fair,fifo"],
    "ecjax optimize theta_per=": ["theta_per=file", "theta_per=total"],
    "ecjax analyze trace=he": ["trace=here.parquet"],
    "ecjax show he": ["here.parquet"],
    "ecjax guide gl": ["glossary"],
}


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_completion_in_fish(place):
    lines = "".join(f"echo {MARK}; complete -C {shlex.quote(line)}\n" for line in FISH_LINES)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"ecjax --completion fish | source\n{lines}"],
        **dict(cwd=place, env=environment(place), capture_output=True, text=True, timeout=120),
    )
    replies = [reply.split() for reply in done.stdout.split(MARK)[1:]]
    assert dict(zip(FISH_LINES, replies, strict=True)) == FISH_LINES, done.stderr


ZSH_LINES = {
    "ecjax opt": "ecjax optimize ",
    "ecjax schedule generate.mi": "ecjax schedule generate.min_bytes=",
    "ecjax schedule n=8 scheduler=fair,fi": "ecjax schedule n=8 scheduler=fair,fifo ",
    "ecjax optimize theta_per=f": "ecjax optimize theta_per=file ",
    "ecjax analyze trace=he": "ecjax analyze trace=here.parquet ",
    "ecjax show he": "ecjax show here.parquet ",
    "ecjax guide gl": "ecjax guide glossary ",
}
# what stands on the line is printed at the second key
ZSH_SET_UP = f"""
autoload -Uz compinit; compinit -u -D
eval "$(ecjax --completion zsh)"
show-line() {{ print -r -- "<<$BUFFER>>{MARK}" }}
zle -N show-line
bindkey '^X^P' show-line
print READY-"TO"-GO
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_completion_in_zsh(place):
    (place / "set_up.zsh").write_text(ZSH_SET_UP)
    terminal, far_end = pty.openpty()  # zsh completes on a terminal only
    shell = subprocess.Popen(
        [*ZSH, "-i"],
        **dict.fromkeys(("stdin", "stdout", "stderr"), far_end),
        **dict(cwd=place, env=environment(place), start_new_session=True),
    )
    os.close(far_end)
    try:
        os.write(terminal, b"source set_up.zsh\n")
        read_until(terminal, "READY-TO-GO")
        after_tab = {}
        for line in ZSH_LINES:
            os.write(terminal, f"{line}\t\x18\x10".encode())
            after_tab[line] = read_until(terminal, MARK).rpartition("<<")[2].partition(">>")[0]
            os.write(terminal, b"\x15")  # an empty line again
        assert after_tab == ZSH_LINES
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)


def read_until(terminal, mark):
    """What comes from a terminal up to a mark."""
    text, end = "", time.monotonic() + 120
    while mark not in text:
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 4096).decode(errors="replace")
    return text
