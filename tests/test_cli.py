"""The command line: dispatch, help, overrides, and mistakes that end in one line and exit code 2."""

import errno
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from omegaconf import OmegaConf, open_dict

from ecjax import cli, composing, hydra_run
from ecjax.errors import UserError
from ecjax.job_help import job_help
from ecjax.jobs_index import JOBS, experiments
from ecjax.options import checked


def run(capsys, *words):
    code = cli.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_help_lists_every_job(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(name in out for name in JOBS)


@pytest.mark.parametrize("job", sorted(JOBS))
def test_job_help_lists_every_key_with_its_default(capsys, job):
    code, out, _ = run(capsys, job, "--help")
    assert code == 0
    for name in vars(JOBS[job].options_class()):
        assert f"  {name}" in out


def test_verify_needs_neither_hydra_nor_jax(tmp_path):
    program = (
        "import sys; from ecjax.cli import main; main(['verify', 'none']); "
        "sys.exit(any(m in sys.modules for m in ('hydra', 'jax', 'numba', 'ray', 'matplotlib')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, stderr=subprocess.DEVNULL).returncode
        == 0
    )


def test_help_needs_neither_hydra_nor_jax():
    program = (
        "import sys; from ecjax.cli import main; main(['optimize', '--help']); "
        "sys.exit(any(m in sys.modules for m in ('hydra', 'jax', 'pyarrow', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["fly"], ["job 'fly'", "analyze, optimize"]),
        (["optimize", "thetta=3"], ["'thetta'", "did you mean theta?"]),
        (["optimize", "cluster.fils=3"], ["'cluster.fils'", "did you mean cluster.files?"]),
        (["optimize", "max_iterations=many"], ["max_iterations", "many"]),
        (["optimize", "max_iterations=1,2"], ["max_iterations: found 1,2", "several values only with -m"]),
        (["optimize", "theta=1,x"], ["theta", "found [1, 'x']", "a list of them"]),
        (["optimize", "theta=[1"], ["[1"]),
        (["optimize", "--fast"], ["--fast", "key=value"]),
        (["optimize", "theta=${foo}"], ["theta", "foo"]),
        (["optimize", "~out"], ["out: found no value"]),
        (["optimize", "cluster=1"], ["cluster: found 1; allowed: cluster.KEY=VALUE"]),
        (["optimize", "out="], ["out: found ''"]),
        (["optimize", "objective={mean: [[0]]}"], ["objective"]),
        (["optimize", "experiment=jlcm_fig99"], ["experiment", "jlcm_fig99", "jlcm_fig9"]),
        (["optimize", "nowhere"], ["nowhere", "folder of one ecjax analyze"]),
        (["adapt", ".", "delays=shifted_exp"], ["delays=shifted_exp: found ., too"]),
        (["codes", "8+3", "codes=4+2"], ["codes=4+2: found 8+3, too"]),
        (["optimize", "theta=[1,x]"], ["theta", "number"]),
        (["optimize", "-m", "theta=1,2", "bet=3"], ["'bet'", "beta"]),
        (["optimize", "-m", "max_iterations=1,many"], ["max_iterations", "many"]),
    ],
)
def test_mistakes_are_one_line_with_code_2(capsys, tmp_path, monkeypatch, words, parts):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *words)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert all(part in err for part in parts)
    assert not out and not list(tmp_path.iterdir())


def test_paths_may_hold_equals_signs_commas_and_quotes(tmp_path):
    job = JOBS["optimize"]
    for name in ("a=b", "a,b", "it's", "with space", "plain", "back\\slash", "{x}", "a:b", "%40"):
        path = str(tmp_path / name)
        override = hydra_run._override(job, f"files={path}", sweep=False)
        assert composing.composed(job, [override]).files == path


def test_a_table_may_stand_beside_a_folder_that_has_another(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "nodes").mkdir()
    job = JOBS["optimize"]
    words = hydra_run._named(job, hydra_run.load_job(job), [str(tmp_path), "nodes=mine.csv"])
    assert words == [f"nodes={tmp_path / 'nodes'}", f"files={tmp_path / 'files'}", "nodes=mine.csv"]


def test_conditions_of_a_plan_are_text(tmp_path):
    override = hydra_run._override(JOBS["optimize"], "plan_where=theta=0.1,method=published", sweep=False)
    assert composing.composed(JOBS["optimize"], [override]).plan_where == "theta=0.1,method=published"


@pytest.mark.parametrize(
    ("job", "overrides"),
    [
        ("schedule", ["experiment=coflow_fig5", "seed=3", "generate.requests=20"]),
        ("schedule", ["seed=3", "experiment=coflow_fig5", "scheduler=[fair]", "+seed=[4]", "++other.name=1"]),
        ("optimize", ["engine=ray", "theta=[1,2]", "~out", "cluster={files: 3}", "cluster.files=4"]),
        ("optimize", ["engine.workers=2", "hardware=null", "storage=null", "out='${hydra.job.name}'"]),
        ("optimize", ["+experiment@cluster=jlcm_fig8", "theta=1"]),
        ("replay", ["plan=out", "policies=null", "slow=\"{n 4é: 2, 'b: c': 3}\""]),
        ("adapt", ["hydra.mode=MULTIRUN", "requests=3"]),
        # mistakes
        ("adapt", ["+requests=3"]),
        ("adapt", ["requests=1,2"]),
        ("adapt", ["~requests=7"]),
        ("adapt", ["requests=[1"]),
        ("adapt", ["requests={a: 1}", "experiment=nowhere"]),
        ("adapt", ["engine=ray", "engine=serial", "group/none=1"]),
    ],
)
def test_values_are_set_as_hydra_sets_them(job, overrides):
    def outcome(compose):
        try:
            cfg, mode = compose(JOBS[job], overrides)
        except UserError as error:
            return str(error)
        except composing._ERRORS as error:
            return composing.user_message(error)
        flags = [cfg._get_flag(name) for name in ("struct", "readonly")]
        return list(cfg), OmegaConf.to_container(cfg), flags, mode

    assert outcome(composing.composed_with_mode) == outcome(composing._by_hydra)


def test_a_composed_configuration_is_the_callers_own():
    job = JOBS["schedule"]
    cfg = composing.composed(job, ["seed=3"])
    cfg.seed, cfg.generate.requests = 4, 5
    with open_dict(cfg):
        del cfg["out"]
    again = composing.composed(job, [])
    assert "out" in again and (again.seed, again.generate.requests) != (4, 5)


def test_keys_that_need_quotes_come_in_quoted_braces():
    """Hydra's grammar has no quotes in the keys of a mapping, and few letters without."""
    config = composing.composed(JOBS["replay"], ["plan=out", "slow=\"{n 4é: 2, 'b: c': 3}\""])
    assert composing.options_from(config, JOBS["replay"].options_class).slow == {"n 4é": 2.0, "b: c": 3.0}
    for word in ("slow={é: 2}", 'slow={"é": 2}'):
        with pytest.raises(UserError, match="as 'slow=\"{é: 5}\"'"):
            composing.composed(JOBS["replay"], ["plan=out", word])


def test_interrupt_exits_with_130(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hydra_run, "run_job", interrupted)
    assert run(capsys, "optimize")[0] == 130


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (MemoryError(), 1, "ecjax: out of memory; what was finished is kept"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), 1, "ecjax: out of memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."), 1, "ecjax: out of memory"),
        (OSError(12, "Cannot allocate memory"), 1, "ecjax: out of memory"),
        (OSError(errno.ENOSPC, "x"), 2, "ecjax: No space left on device; what was finished is kept"),
        (OSError(errno.EDQUOT, "x"), 2, "ecjax: Disk quota exceeded; what was finished is kept"),
        (OSError(errno.EROFS, "x"), 2, "ecjax: Read-only file system"),
        (OSError(errno.EIO, "x"), 2, "ecjax: Input/output error"),
        (
            PermissionError(13, "Permission denied", "/some/folder"),
            2,
            "ecjax: /some/folder: Permission denied",
        ),
    ],
)
def test_what_the_machine_refuses_ends_with_a_line(capsys, monkeypatch, error, code, line):
    def refused(*_):
        raise error

    monkeypatch.setattr(hydra_run, "run_job", refused)
    ended, _, err = run(capsys, "optimize")
    assert ended == code
    assert err.startswith(line) and len(err.splitlines()) == 1


PROXY = [
    "adapt",
    "strategy=static",
    "codes=[3,2]",
    "requests=500",
    "load=0.5",
    "capacity=false",
    "figures=[]",
]


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["guide", "optimize"],  # more than a pipe takes at once
        ["optimize", "--cfg", "job"],
        PROXY,
        [*PROXY, "--json"],
        [*PROXY, "-m"],
    ],
)
def test_a_reader_that_has_gone_changes_nothing_else(tmp_path, words):
    read, write = os.pipe()
    os.close(read)
    words = [*words, f"out={tmp_path / 'out'}"] if "adapt" in words else words
    try:
        command = [sys.executable, "-m", "ecjax", *words]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    finally:
        os.close(write)
    assert done.returncode == 0 and "Broken pipe" not in done.stderr
    assert (tmp_path / "out" / "recommended.json").exists() == ("adapt" in words)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is full")
@pytest.mark.parametrize("words", [["--help"], ["guide", "optimize"], PROXY])
def test_output_that_cannot_be_written_is_one_line(tmp_path, words):
    command = [sys.executable, "-m", "ecjax", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "ecjax: No space left on device; what was finished is kept"
    )
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_limit_of_addresses_is_said_before_native_code_meets_it(capsys, monkeypatch):
    resource = pytest.importorskip("resource", reason="limits of addresses are those of POSIX systems")
    monkeypatch.setattr(hydra_run, "run_job", lambda *_: 0)
    monkeypatch.setenv("ECJAX_CORES", "5")
    before = resource.getrlimit(resource.RLIMIT_AS)
    assert run(capsys, "optimize") == (0, "", "")
    for limit, parts in ((5 * 10**9, ("limited to 5 GB (ulimit -v)", "allow 6 GB")), (10**12, ())):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, before[1]))
        code, out, err = run(capsys, "optimize")
        assert (code, out, len(err.splitlines())) == (0, "", len(parts) > 0)
        assert all(part in err for part in parts)


def test_mistakes_of_the_program_are_not_hidden(monkeypatch):
    def wrong(*_):
        raise RuntimeError("a mistake")

    monkeypatch.setattr(hydra_run, "run_job", wrong)
    with pytest.raises(RuntimeError, match="a mistake"):
        cli.main(["optimize"])


@pytest.mark.parametrize("job", sorted(JOBS))
def test_defaults_compose_to_the_options_of_the_library(job):
    kind = JOBS[job].options_class
    needed = {"analyze": {"trace": "a log"}, "ceph": {"dumps": "a folder"}}.get(job, {})
    composed = composing.composed(JOBS[job], [f"{name}='{value}'" for name, value in needed.items()])
    assert hydra_run.options_from(composed, kind) == checked(kind(**needed))


def some(job):
    """Experiments of a job; those with service classes compile for minutes."""
    names = sorted(experiments(job))
    # what takes long is compilation; one of a kind is enough for every day
    quick = ("replay_fig7",)
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.slow]) for name in names]


# all of the others are run by the tests of their studies
@pytest.mark.parametrize("job", sorted(JOBS.keys() - {"cache", "schedule"}))
def test_every_experiment_is_made_of_allowed_options(job):
    for name in experiments(job):
        config = composing.composed(JOBS[job], [f"experiment={name}"])
        options = hydra_run.options_from(config, JOBS[job].options_class)
        assert checked(options) == options


CALIBRATED = ["strategy=[calibrated,tofec]", "k_max=2", "threads=4"]


@pytest.mark.parametrize(
    ("job", "study", "words"),
    [
        # with thresholds that replays of its own have set, which the tests of the study do not wait for
        ("adapt", "proxy_load", [*CALIBRATED, "requests=500", "load=[0.2,0.6]", "capacity=false"]),
        *(("codes", study, []) for study in sorted(experiments("codes"))),
    ],
)
def test_studies_by_question_run_small(capsys, tmp_path, job, study, words):
    code, out, err = run(capsys, job, f"experiment={study}", f"out={tmp_path}", *words)
    assert code == 0, err
    assert list((tmp_path / "figures").glob("*.png")), out


def test_help_has_studies_by_question_apart():
    text = job_help(JOBS["optimize"])
    questions, papers = text.split("studies by question")[1].split("studies of the papers")
    assert "node_failures" in questions and "jlcm_fig8" in papers and "jlcm_fig8" not in questions


@pytest.mark.parametrize("name", some("replay"))
def test_every_replay_experiment_runs_small(capsys, tmp_path, name):
    small = [
        f"out={tmp_path}",
        "requests=500",
        "replications=1",
        "estimate=false",
        "planning.max_iterations=20",
    ]
    small += [] if name == "replay_fig7" else ["planning.cluster.files=12"]
    # each rate has a plan of groups
    small += ["planning.rate_scale=[0.8,1.0]"] if name == "replay_fig12" else []
    code, out, err = run(capsys, "replay", f"experiment={name}", *small)
    assert code == 0, err
    assert list((tmp_path / "figures").glob("*.png")), out


@pytest.mark.parametrize("name", some("optimize"))
def test_every_experiment_runs_small(capsys, tmp_path, name):
    # random placement of so few files overloads some node at the studies' load of 0.8
    small = [
        "cluster.files=24",
        "cluster.load=0.4",
        "max_iterations=60",
        "theta=[2,200]",
        f"out={tmp_path / 'out'}",
    ]
    # plans of groups at twelve points take a minute
    small += ["rate_scale=[0.8,1.0]", "gap=0.01"] if name == "jlcm_fig12" else []
    code, out, err = run(capsys, "optimize", f"experiment={name}", *small)
    assert code == 0, err
    drawn = list((tmp_path / "out" / "figures").glob("*.png"))
    assert drawn and all(path.stat().st_size > 5000 for path in drawn)


def test_a_hydra_sweep_shares_one_out_and_reports_the_worst_code(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = Path(__file__).parents[1] / "traces" / "requests_chunks.parquet"
    sweep = ["-m", f"trace={log},{tmp_path / 'no.parquet'},{log}", "figures=false", "out=both"]
    code, _, err = run(capsys, "analyze", *sweep)
    assert code == 2 and "no.parquet" in err
    assert len(list((tmp_path / "both" / "runs").glob("*.parquet"))) == 1


def test_entry_points_run_from_a_checkout(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [Path(__file__).parents[1] / "jobs" / f"{job}.py" for job in sorted(JOBS)]
    for path in paths:
        assert len(path.read_text().splitlines()) < 80
        monkeypatch.setattr(sys, "argv", [str(path), "nothing=1"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
        assert ended.value.code == 2 and "found option 'nothing'" in capsys.readouterr().err
    # one in a process of its own, which has imported nothing of ecjax
    command = [sys.executable, str(paths[0]), "nothing=1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "found option 'nothing'" in done.stderr


def test_bytes_that_are_not_utf8_are_refused(tmp_path, capsys):
    code, out, err = run(capsys, "optimize", f"out={tmp_path}/b\udcffd", "theta=1")
    assert code == 2 and not out and err.count("\n") == 1 and "not UTF-8" in err
    assert not list(tmp_path.iterdir())
