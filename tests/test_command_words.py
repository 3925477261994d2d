"""What the command line alone shows is said before anything slow is imported."""

import subprocess
import sys

import pytest

from ecjax.command_words import check_words
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS

MISTAKES = [
    ("schedule", ["foo=1"], "found option 'foo'"),
    ("schedule", ["schedulers=fair"], "did you mean scheduler?"),
    ("schedule", ["generate.request=3"], "did you mean generate.requests?"),
    ("codes", ["nines=9"], "found option 'nines' (did you mean durability_nines?); allowed: "),
    ("schedule", ["scheduler=[fair,foo]"], "scheduler: found 'foo'; allowed: dtarget"),
    ("schedule", ["n=abc"], "n: found abc; allowed: a whole number of at least 1, or a list of them"),
    ("schedule", ["n=3", "k=5"], "k=5: found n=3; allowed: from k=5 to servers=60"),
    ("schedule", ["share_at_zero=2"], "share_at_zero: found 2; allowed: a number from 0 to 1"),
    ("schedule", ["rate_scale=-1e3"], "rate_scale: found -1000.0; allowed: a number above 0"),
    ("schedule", ["lower_bound=maybe"], "lower_bound: found maybe; allowed: true, false"),
    ("schedule", ["plan_run=x"], "give plan too"),
    ("optimize", ["theta=-1"], "theta: found -1; allowed: a number, at least 0"),
    (
        "optimize",
        ["objective=p9"],
        "objective: found p9; allowed: bound, mean, a quantile as p50, p95 or p999, weights as in {mean: 0.5, p99: "
        "0.1}, trace; by class: lexicographic, joint",
    ),
    ("optimize", ["cluster.load=1"], "cluster.load: found 1; allowed: a number between 0 and 1"),
    (
        "optimize",
        ["theta=[1,", "2]"],
        "theta: found [1,, where '[' (character 1) is not closed; allowed: theta=... with ']' at its end, in quotation "
        "marks where it holds spaces",
    ),
    (
        "optimize",
        ["theta=100", "theta=200"],
        "found theta=100 and theta=200; allowed: theta once, several values in quotation marks, 'theta=[...]'",
    ),
    (
        "optimize",
        ["nodes=count:12", "+nodes=seek_ms:8"],
        "found nodes=count:12 and +nodes=seek_ms:8; allowed: nodes",
    ),
    (
        "optimize",
        ["theta", "=", "100"],
        "found = without a key; allowed: key=value, no space before or after =",
    ),
    (
        "optimize",
        ["theta", "=100"],
        "found =100 without a key; allowed: key=value, no space before or after =",
    ),
    ("optimize", ["theta=1]"], "theta: found 1], where ']' (character 2) closes nothing"),
    ("optimize", ["deadline_s={a: [1, 2}"], "where '}' (character 10) closes nothing"),
    ("optimize", ["objective='p99"], 'where "\'" (character 1) is not closed'),
    ("optimize", ["theta=" + "[" * 300 + "]" * 300], "theta: found brackets nested 21 deep; allowed: 20"),
    (
        "optimize",
        ["theta=[" + ",".join(["'a'"] * 20_000) + "]"],
        "theta: found 20000 values; allowed: at most 2000",
    ),
    ("optimize", ["k=" + "9" * 5000], "k: found a number of 5000 digits; allowed: at most 400 digits"),
    (
        "optimize",
        ["k=99999999999999999999"],
        "found 99999999999999999999; allowed: a whole number from 1 to 2147483647",
    ),
    ("optimize", ["theta=1e308"], "theta: found 1e+308; allowed: a number, at least 0, up to 1e+30"),
    ("optimize", ["--fast"], "found --fast; allowed: key=value"),
    ("optimize", ["--resolve"], "found --resolve without --cfg; allowed: with --cfg=job, hydra, all"),
    ("optimize", ["--package", "x"], "found --package=x without --cfg; allowed: with --cfg=job, hydra, all"),
    ("optimize", ["--cfg", "job", "-p"], "-p: found no value; allowed: a key of the configuration"),
    ("optimize", ["theta=1", "--cfg"], "--cfg: found no value; allowed: job, hydra, all"),
    ("optimize", ["--cfg", "theta=1"], "--cfg: found theta=1; allowed: job, hydra, all"),
    ("optimize", ["-c=foo"], "-c: found foo; allowed: job, hydra, all"),
    ("optimize", ["--info=foo"], "--info: found foo; allowed: all, config, defaults"),
    ("optimize", ["--multirun=3"], "found --multirun=3; allowed: --multirun, which takes no value"),
    ("optimize", ["--cfg", "job", "--info", "plugins"], "found --cfg=job with --info=plugins; allowed: one"),
]
FINE = [
    ("schedule", ["n=[5,6]", "k=3", "trace=null", "out=a=b,c", "generate.requests=10"]),
    ("schedule", ["columns={arrival_s: ts}", "engine=ray", "hydra.run.dir=x"]),
    ("schedule", ["-m", "n=5,6", "scheduler=fair,fifo"]),
    ("schedule", ["--cfg", "job", "--resolve", "-p", "generate", "n=5"]),
    ("schedule", ["--info", "n=5"]),
    ("schedule", ["-i", "defaults-tree", "n=5"]),
    ("schedule", ["some/path", "widths=[1,2]", "out=a[b", "trace=it's", r"columns={arrival_s: 'a]\'b'}"]),
    (
        "optimize",
        ["theta=1e3", "objective={mean: 0.5}", "deadline_s=[80,null]", "class_rate_scale=[[1,2],[2,1]]"],
    ),
]


@pytest.mark.parametrize(("job", "words", "message"), MISTAKES)
def test_mistakes_are_named(job, words, message):
    with pytest.raises(UserError) as error:
        check_words(JOBS[job], words)
    assert message in str(error.value)


@pytest.mark.parametrize(("job", "words"), FINE)
def test_what_only_hydra_can_tell_is_left_to_it(job, words):
    check_words(JOBS[job], words)


@pytest.mark.parametrize(
    "words", [["schedule", "n=abc"], ["optimize", "thetta=3"], ["schedule", "n=3", "k=5"]]
)
def test_nothing_slow_is_imported_for_a_mistake(words):
    program = f"""
import sys
from ecjax.cli import main
code = main({words!r})
sys.exit(code if not {{"hydra", "numpy", "pyarrow", "jax"}} & set(sys.modules) else 7)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 2
