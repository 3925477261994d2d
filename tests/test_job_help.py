"""What ``--help`` says: three groups, examples that hold, 80 columns, nothing that a shell would refuse."""

import re
import shlex

import pytest

from ecjax import cli
from ecjax.command_words import check_words
from ecjax.job_help import _HOW, _WANT, EXAMPLES, group_of, job_help, quoted
from ecjax.jobs_index import JOBS

HEADS = ("what you have:", "what you want:", "how to compute:")


@pytest.mark.parametrize("job", sorted(JOBS))
def test_options_are_in_three_groups(job):
    lines = job_help(JOBS[job]).splitlines()
    assert [line for line in lines if line in HEADS] == list(HEADS)
    assert {*_WANT.get(job, ()), *_HOW.get(job, ())} <= set(group_of(job))
    assert not set(_WANT.get(job, ())) & set(_HOW.get(job, ()))


@pytest.mark.parametrize("job", sorted(JOBS))
def test_three_examples_hold_in_every_shell(job):
    assert len(EXAMPLES[job]) == 3
    for example in EXAMPLES[job]:
        command, name, *words = shlex.split(example)
        assert (command, name) == ("ecjax", job) and words
        check_words(JOBS[job], words)
        unquoted = re.sub(r"'[^']*'", "", example)
        assert not set(unquoted) & set("[]{}*?")


@pytest.mark.parametrize("job", [*sorted(JOBS), "verify", ""])
def test_help_fits_and_quotes_brackets(job, capsys):
    assert cli.main([job, "--help"] if job else ["--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) < 80
    joined = " ".join(text.split())
    unquoted = re.sub(r"""(?<![A-Za-z])'[^']*'|"[^"]*\"""", "", joined)
    assert not set(unquoted) & set("[]{}")


def test_brackets_are_quoted_once():
    assert quoted("a list [[1, 2], 3] or 'k=[1]', the job's {a: b}") == (
        "a list '[[1, 2], 3]' or 'k=[1]', the job's '{a: b}'"
    )
