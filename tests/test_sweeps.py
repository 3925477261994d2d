"""Sweeps of Hydra are the lists that they stand for: as few commands, the same runs, one folder."""

import logging
import math
import shlex
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock, Timeout

from ecjax import hydra_run, sweeps
from ecjax.cli import main
from ecjax.command_words import check_choice, check_engine
from ecjax.composing import composed, load_job
from ecjax.engine import opening
from ecjax.engine.opening import kept_engines, open_engine
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.jobs_index import GROUPS, JOBS, choices, folder
from ecjax.merged_jobs import merged
from ecjax.options import checked
from ecjax.studies.schedule import run as schedule_run
from ecjax.studies.schedule.tables import TABLES as SCHEDULE
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

JOB = JOBS["schedule"]
SMALL = ["scheduler=fair", "sources=random", "generate.requests=20", "figures=[]", "seeds=1"]


def listing(text):
    key, _, value = text.partition("=")
    return (key, [int(value)]) if key in ("a", "b", "c") else None


def product(*lists):
    jobs = [[]]
    for texts in lists:
        jobs = [[*job, text] for job in jobs for text in texts]
    return jobs


def test_all_combinations_are_one_command_with_lists_in_the_order_of_the_sweep():
    (group,) = merged(product(["a=3", "a=1"], ["x=u"], ["b=2", "b=9", "b=4"]), listing)
    assert group.lists == {"a": [3, 1], "b": [2, 9, 4]} and group.jobs == list(range(6))
    assert group.overrides == ["a=3", "x=u", "b=2"]


def test_values_of_a_key_without_a_list_are_commands_of_their_own():
    groups = merged(product(["x=1", "x=2"], ["a=1", "a=2"]), listing)
    assert [group.overrides[0] for group in groups] == ["x=1", "x=2"]
    assert [group.jobs for group in groups] == [[0, 1], [2, 3]]
    assert all(group.lists == {"a": [1, 2]} for group in groups)


def test_combinations_that_nobody_asked_for_are_not_run():
    jobs = [["a=1", "b=1"], ["a=1", "b=2"], ["a=2", "b=2"], ["a=1", "b=1"]]
    groups = merged(jobs, listing)
    pairs = [(a, b) for group in groups for a in group.lists["a"] for b in group.lists["b"]]
    assert sorted(pairs) == [(1, 1), (1, 2), (2, 2)]
    assert sorted(number for group in groups for number in group.jobs) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("job", "text", "values"),
    [
        ("optimize", "theta=1e-3", [0.001]),
        ("optimize", "theta=[1,10]", [1, 10]),
        ("optimize", "theta=null", None),
        ("optimize", "scenarios=node", None),  # of one run
        ("optimize", "seed=3", None),
        ("optimize", "engine=ray", None),
        ("optimize", "experiment=jlcm_fig8", None),
        ("cache", "fail=null", [None]),
        ("cache", "policy=lru", ["lru"]),
        ("ceph", "pools=one", None),
        ("optimize", "cluster.k=[4,5,6,7]", None),  # a value per class
        ("optimize", "importance=[1,0.5]", [(1, 0.5)]),
        ("optimize", "importance=[[1,0.5],[1,1]]", [(1, 0.5), (1, 1)]),
        ("replay", "planning.class_rate_scale=[1,2]", [(1, 2)]),
        ("cache", "neighbours=0.5", [0.5]),
        ("cache", "neighbours=[[0,1],[1,0]]", None),  # distances of all pairs in one run
        ("adapt", "codes=[6,3]", [(6, 3)]),
        ("adapt", "codes=[[6,3],[5,4]]", [(6, 3), (5, 4)]),
        ("adapt", "codes=all", None),
        ("adapt", "steps=[[0,1],[9,0]]", None),
    ],
)
def test_which_overrides_are_values_of_a_list(job, text, values):
    pair = sweeps._listing(JOBS[job], text)
    assert (pair and pair[1]) == values


def test_a_sweep_gives_the_rows_of_lists_and_goes_on_where_it_ended(tmp_path, capsys):
    out, other = tmp_path / "lists", tmp_path / "sweep"
    lists = [*SMALL, "rate_scale=[1,2]", "share_at_zero=[0.5,1]", f"out='{out}'"]
    assert load_job(JOB).run(composed(JOB, lists)) == 0
    jobs = product(*[[word] for word in SMALL], ["rate_scale=1", "rate_scale=2"])
    jobs = [[*job, f"share_at_zero={share}", f"out='{other}'"] for job in jobs for share in (0.5, 1)]
    # the second one as after a kill: a part of the jobs is there
    assert sweeps.run_jobs(JOB, jobs[1:2], [], 0).worst == 0
    assert sweeps.run_jobs(JOB, jobs, [], 0) == ([0, 0, 0, 0], 0)
    tables = [
        read_results(place, name).sort_values("run_id", ignore_index=True)
        for name in ("runs", "coflows")
        for place in (out, other)
    ]
    for first, second in (tables[:2], tables[2:]):
        same = [name for name in first if name not in ("solve_s", "batch_id", "batch_runs", "batch_files")]
        assert len(first) and first[same].equals(second[same])
    capsys.readouterr()
    returned = sweeps.run_jobs(JOB, jobs[:2], ["makespan_s", "seed"], 0)
    rows = tables[1][tables[1]["rate_scale"] == 1].sort_values("share_at_zero")
    assert [value[0] for value in returned.values] == rows["makespan_s"].tolist()
    with pytest.raises(UserError, match="objective: found nothing; allowed: .*makespan_s"):
        sweeps.run_jobs(JOB, jobs[:1], ["nothing"], 0)


def test_a_run_that_fails_is_a_row_and_the_exit_code_of_its_jobs(tmp_path, monkeypatch, capsys):
    replay = schedule_run.replay

    def fails(workload, fabric, scheduler, sources, seed, **watching):
        if seed == 4:
            raise MemoryError("no room")
        return replay(workload, fabric, scheduler, sources, seed, **watching)

    words = ["-m", *SMALL, "seed=3,4,5", "rate_scale=1,2", f"out={tmp_path}/out"]
    monkeypatch.setattr(schedule_run, "replay", fails)
    assert hydra_run.run_job(JOB, words) == 1
    runs = read_results(tmp_path / "out", "runs").set_index(["seed", "rate_scale"]).sort_index()
    assert runs["status"].tolist() == ["ok", "ok", "failed", "failed", "ok", "ok"]
    jobs = [[*SMALL, f"seed={seed}", f"out={tmp_path}/out"] for seed in (3, 4)]
    returned = sweeps.run_jobs(JOB, jobs, ["makespan_s"], 0)
    assert returned.values[0] > 0 and math.isnan(returned.values[1]) and returned.worst == 1
    monkeypatch.undo()
    assert hydra_run.run_job(JOB, words) == 0
    assert set(read_results(tmp_path / "out", "runs")["status"]) == {"ok"}


def test_handlers_of_other_libraries_stay_open(tmp_path, capsys):
    handler = logging.FileHandler(tmp_path / "library.log")  # closed, it closes its stream
    try:
        before = [*logging.getLogger().handlers]
        assert hydra_run.run_job(JOB, ["-m", *SMALL, "seed=3,4", f"out={tmp_path}/out"]) == 0
        assert not handler.stream.closed and logging.getLogger().handlers == before
        capsys.readouterr()
        assert (
            hydra_run.run_job(JOB, ["-m", *SMALL, "seed=3", "hydra.verbose=true", f"out={tmp_path}/out"]) == 0
        )
        assert "Validated configs" in capsys.readouterr().err  # a line of Hydra's at the level of details
        assert logging.getLogger().level == logging.WARNING
    finally:
        handler.close()


def test_a_mistake_in_one_command_costs_no_other(tmp_path, capsys):
    out = tmp_path / "out"
    jobs = [[*SMALL, f"trace={trace}", f"out='{out}'"] for trace in ("nowhere.parquet", "null")]
    returned = sweeps.run_jobs(JOB, jobs, ["makespan_s"], 0)
    assert returned.worst == 2 and "nowhere.parquet" in capsys.readouterr().err
    assert math.isnan(returned.values[0]) and returned.values[1] > 0


def test_a_mistake_in_one_value_of_a_list_costs_no_other(tmp_path, capsys):
    words = ["-m", "policy=lru", "capacity=50", "fail=null,atlantis,null", "reads=2000", "figures=[]"]
    assert hydra_run.run_job(JOBS["cache"], [*words, f"out={tmp_path}/out"]) == 2
    error = capsys.readouterr().err
    assert sum(line.startswith("ecjax: ") and "found" in line for line in error.splitlines()) == 1
    assert "ecjax: 1 of 3 jobs of the sweep have a mistake: fail=atlantis" in error
    assert read_results(tmp_path / "out", "runs")["status"].tolist() == ["ok"]


def test_a_sweep_of_mistakes_leaves_nothing(tmp_path, capsys):
    words = ["-m", *SMALL, "trace=nowhere.parquet,elsewhere.parquet", f"out={tmp_path}/out"]
    assert hydra_run.run_job(JOB, words) == 2
    assert "2 of 2 jobs of the sweep have a mistake" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_has_its_folder_between_its_commands_too(tmp_path, monkeypatch):
    jobs = [[*SMALL, f"generate.servers={servers}", f"out={tmp_path}/out"] for servers in (20, 30)]
    other, there = FileLock(tmp_path / "out" / ".lock", blocking=False), []

    def run(cfg):
        with pytest.raises(Timeout):
            other.acquire()
        with ResultStore(cfg.out, SCHEDULE, {}):  # this process may write
            there.append(cfg.generate.servers)
        with pytest.raises(Timeout):
            other.acquire()
        return 0

    monkeypatch.setattr(sweeps, "load_job", lambda job: SimpleNamespace(run=run))
    assert sweeps.run_jobs(JOB, jobs, [], 0).values == [0, 0] and there == [20, 30]
    (tmp_path / "out").mkdir(exist_ok=True)
    other.acquire()
    other.release()


def test_nothing_starts_where_a_job_has_a_value_that_is_not_allowed(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match="seeds"):
        sweeps.run_jobs(JOB, [[*SMALL, f"out='{out}'"], [*SMALL, "seeds=0", f"out='{out}'"]], [], 0)
    assert not out.exists()


def test_values_that_are_lists_are_one_command():
    words = ["queue=weighted", "importance=[1,0.4]", "importance=[1,1]"]
    jobs = [[words[0], each] for each in words[1:]]
    ((group, cfg),) = sweeps._commands(JOBS["optimize"], jobs)
    assert group.jobs == [0, 1] and cfg.importance == [[1, 0.4], [1, 1]]
    assert sweeps._words_of(group) == ["queue=[weighted]", "importance=[[1,0.4],[1,1]]"]


def test_several_commands_have_one_progress_and_one_engine(tmp_path, caplog, capsys):
    jobs = [[*SMALL, f"generate.servers={servers}", f"out={tmp_path}/out"] for servers in (20, 30)]
    with caplog.at_level("INFO", "ecjax"):
        assert sweeps.run_jobs(JOB, jobs, [], 0).values == [0, 0]
    lines = caplog.messages
    ours = [line for line in lines if line.startswith("schedule: jobs of the sweep: ") and ";" not in line]
    assert len(ours) == 2
    assert not any(line.startswith("replaying transfers: ") for line in lines)
    assert lines[-1] == f"runs of the whole sweep: ecjax show {tmp_path}/out"
    capsys.readouterr()
    assert main(["show", f"{tmp_path}/out"]) == 0
    assert "of the last command, 1 of these 2 runs:" in capsys.readouterr().out
    with kept_engines():
        with open_engine(EngineOptions()) as first:
            pass
        with open_engine(EngineOptions()) as second:
            assert second is first
    with open_engine(EngineOptions()) as other:
        assert other is not first


def test_one_engine_at_a_time_has_the_cores(monkeypatch):
    """Others are let go of when one is opened, one within another when it is left."""
    said = []

    class Told:
        def __init__(self, retries):
            self.retries = retries

        def release(self):
            said.append(self.retries)

    monkeypatch.setattr(opening, "_opened", lambda options, _: nullcontext(Told(options.retries)))
    first, second = EngineOptions(retries=1), EngineOptions(retries=2)
    with kept_engines():
        with open_engine(first) as outer:
            assert said == []
            with open_engine(first) as same:
                assert same is outer
            assert said == []
            with open_engine(second):
                assert said == [1]
            assert said == [1, 2]
        said.clear()
        with open_engine(second):
            assert said == [1]
        assert said == [1]  # it may be the next one again


@pytest.mark.parametrize(
    ("words", "together"), [(["optimize"], False), (["ceph", "dumps=dumps", "apply=true"], True)]
)
def test_jobs_whose_rows_are_read_again_have_the_ids_that_they_have_alone(words, together):
    name, *others = words
    swept = {"optimize": "method", "ceph": "within"}[name]
    values = {"optimize": ("certified", "published"), "ceph": ("0.01", "0.05")}[name]
    jobs = [[*others, f"{swept}={value}"] for value in values]
    assert len(sweeps._commands(JOBS[name], jobs)) == 1
    groups = [group.jobs for group, _ in sweeps._commands(JOBS[name], jobs, with_objectives=True)]
    assert groups == ([[0, 1]] if together else [[0], [1]])
    same = sweeps._commands(JOBS[name], [jobs[0], jobs[0]], with_objectives=True)
    assert [group.jobs for group, _ in same] == [[0, 1]]


def test_an_objective_of_plans_of_which_the_whole_sweep_has_one(tmp_path, capsys):
    """Without prices all theta are one plan: of the first in a list, of its own in the row of each job."""
    nodes = {"node_id": ["x", "y"], "delta_s": [0.2, 0.3], "psi_s": [0.3, 0.2]}
    nodes |= {"delta_s_per_byte": [0.0, 0.0], "psi_s_per_byte": [0.0, 0.0]}
    files = {"file_id": [1, 2], "bytes": [1.0, 1.0], "k": [1, 1], "rate_per_s": [0.3, 0.2]}
    for name, columns in (("nodes", nodes), ("files", files)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    words = [f"{name}={tmp_path}/{name}.parquet" for name in ("nodes", "files")]
    words += ["method=max_ec", "device=host", "estimate=false", "figures=[]", f"out={tmp_path}/out"]
    jobs = [[*words, f"theta={theta}"] for theta in (1, 10)]
    returned = sweeps.run_jobs(JOBS["optimize"], jobs, ["theta", "latency_s"], 0)
    assert returned.worst == 0 and [theta for theta, _ in returned.values] == [1.0, 10.0]
    assert returned.values[0][1] == pytest.approx(returned.values[1][1], rel=1e-9)


@pytest.mark.parametrize(("more", "commands"), [([], 3), (["apply=true"], 1), (["collect=new"], 1)])
def test_what_acts_on_a_cluster_and_is_refused_is_not_done_job_by_job(
    tmp_path, monkeypatch, capsys, more, commands
):
    seen = []

    def run(cfg):
        seen.append(cfg.within)
        raise UserError("ceph osd: found EPERM; allowed: a command that the cluster accepts")

    monkeypatch.setattr(sweeps, "load_job", lambda job: SimpleNamespace(run=run))
    monkeypatch.chdir(tmp_path)
    jobs = [["dumps=dumps", f"within={value}", *more] for value in ("0.01", "0.05")]
    assert sweeps.run_jobs(JOBS["ceph"], jobs, [], 0) == ([2, 2], 2)
    assert len(seen) == commands
    assert capsys.readouterr().err.count("found EPERM") == 1


def test_folders_named_as_numbers_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    module = SimpleNamespace(run=lambda cfg: seen.append(cfg.out) or 0)
    monkeypatch.setattr(sweeps, "load_job", lambda job: module)
    assert hydra_run.run_job(JOB, ["-m", "out=2024,2025"]) == 0
    assert seen == ["2024", "2025"]


@pytest.mark.parametrize(
    "words", [["experiment=null"], ["-m", "experiment=null"], ["-m", "experiment=null,coflow_fig5"]]
)
def test_no_study_is_no_name_of_one(words):
    with pytest.raises(UserError, match="experiment: found 'null'; allowed: one of coflow"):
        hydra_run.run_job(JOB, words)


def test_names_of_studies_that_a_pattern_stands_for(study):
    folders = [study]
    words = sweeps.without_globs(JOB, ["experiment=glob([mine,coflow_fig4*])", "seed=1,2"], folders)
    assert words == ["experiment=coflow_fig4a,coflow_fig4b,coflow_fig4c,mine", "seed=1,2"]
    assert sweeps.without_globs(JOB, ["engine=glob(*)"], []) == ["engine=cluster,ray,serial"]
    with pytest.raises(UserError, match=r"experiment: found glob\(jlcm\*\); allowed: some of coflow"):
        sweeps.without_globs(JOB, ["experiment=glob(jlcm*)"], folders)
    with pytest.raises(
        UserError, match=r"scheduler: found glob\(v\*\); allowed: values, as in scheduler=a,b"
    ):
        sweeps.without_globs(JOB, ["scheduler=glob(v*)"], folders)


def test_hydras_own_files_are_here_where_out_is_in_an_object_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeps, "load_job", lambda job: SimpleNamespace(run=lambda cfg: 0))
    assert hydra_run.run_job(JOB, ["-m", "rate_scale=1,2", "out=memory://sweep/out"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert hydra_run.run_job(JOB, ["-m", "rate_scale=1,2", "out=memory://out", "hydra.sweep.dir=other"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "other"]


@pytest.mark.parametrize("flag", ["--cfg=job", "--info"])
def test_a_sweep_is_run_or_shown(flag):
    with pytest.raises(UserError, match=f"found -m with {flag}; allowed: one of them"):
        hydra_run.run_job(JOB, ["-m", flag, *SMALL])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--cfg", "job", "--package", "generate", "generate.requests=20"], "# @package generate\n"),
        (["-c=job", "--resolve", "generate.requests=20"], "requests: 20\n"),
        (["--info", "searchpath", "rate_scale=2"], "provider"),
        (["--info", "rate_scale=2"], "provider"),
    ],
)
def test_hydra_shows_what_its_flags_say(words, shown, capfd):
    assert main(["schedule", *words]) == 0
    out, err = capfd.readouterr()
    assert shown in (out + err).replace("Provider", "provider") and "usage:" not in err


def test_an_interval_needs_a_sweeper_that_chooses(tmp_path):
    words = [*SMALL, f"out={tmp_path}/out", "share_at_zero=interval(0,1)"]
    with pytest.raises(UserError, match="share_at_zero: found an interval; allowed: values, as in 1,2"):
        hydra_run.run_job(JOB, ["-m", *words])
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["hydra.mode=MULTIRUN", "rate_scale=1,2", "seed=3,4"]),
        ("hydra:\n  mode: MULTIRUN\n  sweeper:\n    params: {rate_scale: '1,2', seed: '3,4'}\n", []),
        ("", ["-m", "rate_scale=range(1,3)", "+hydra.sweeper.params.seed='3,4'"]),
    ],
)
def test_a_sweep_that_is_told_in_hydras_own_keys(study, monkeypatch, text, words):
    (study / "experiment" / "mine.yaml").write_text("# @package _global_\nwidths: [1]\n" + text)
    seen = []
    module = SimpleNamespace(run=lambda cfg: seen.append((cfg.rate_scale, cfg.seed, cfg.widths)) or 0)
    monkeypatch.setattr(sweeps, "load_job", lambda job: module)
    plain = ["experiment=mine", "out=out", *words]
    assert hydra_run.run_job(JOB, plain) == 0
    assert seen == [([1, 2], 3, [1]), ([1, 2], 4, [1])]


def test_a_value_that_is_a_list_stays_one_where_it_is_alone():
    ((_, cfg),) = sweeps._commands(JOBS["adapt"], [["strategy=static", "codes=[6,3]"]])
    assert cfg.codes == [6, 3]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with a study of the user's, in its ``conf``; ``tmp_path`` is the working folder."""
    path = tmp_path / "conf" / "experiment" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# @package _global_\nrate_scale: 7\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "conf"


@pytest.mark.parametrize("flags", [[], ["--config-dir", "other"], ["--config-dir=other"]])
def test_studies_of_the_users_own_folder(study, monkeypatch, flags):
    if flags:
        study.rename(study.with_name("other"))
    seen = []
    module = SimpleNamespace(run=lambda cfg: seen.append(cfg.rate_scale) or 0)
    monkeypatch.setattr(hydra_run, "load_job", lambda job: module)
    assert hydra_run.run_job(JOB, [*flags, "experiment=mine"]) == 0
    assert seen == [7]
    with pytest.raises(UserError, match="experiment: found 'no'"):
        hydra_run.run_job(JOB, [*flags, "experiment=no"])


@pytest.mark.parametrize("flags", [[], ["-m"]])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# @package _global_\nrate_scal: 7\n", "found option 'rate_scal' .*did you mean rate_scale"),
        ("# @package _global_\nengine: {nam: ray}\n", "'engine.nam' .*did you mean engine.name"),
        ("# @package _global_\nload: [0.1]\n", "found option 'load' in a file of conf"),  # of adapt
        ("rate_scale: 7\n", "found option 'experiment' .*allowed: .*# @package _global_"),
        ("# @package _global_\nrate_scale: [7\n", "mine.yaml.*line 2"),
        ("# @package _global_\n\trate_scale: 7\n", "mine.yaml.*line 2"),
    ],
)
def test_mistakes_in_the_users_studies_are_told(study, flags, text, message):
    (study / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        hydra_run.run_job(JOB, [*flags, "experiment=mine", "scheduler=fair,fifo"])


@pytest.mark.parametrize("flag", ["--json", "--quiet"])
def test_a_study_that_is_a_sweep_prints_no_single_object(study, capsys, flag):
    text = '# @package _global_\nhydra: {mode: MULTIRUN, sweeper: {params: {rate_scale: "1,2"}}}\n'
    (study / "experiment" / "mine.yaml").write_text(text)
    assert main(["schedule", "experiment=mine", flag]) == 2
    printed = capsys.readouterr()
    assert f"found {flag} with a sweep" in printed.err and not printed.out


@pytest.mark.parametrize("flags", [[], ["-m"]])
@pytest.mark.parametrize(("group", "name"), [("experiment", "coflow_fig5"), ("engine", "serial")])
def test_a_file_of_the_user_under_a_name_of_ecjax_is_told(study, flags, group, name):
    own = study / group / f"{name}.yaml"
    own.parent.mkdir(exist_ok=True)
    own.write_text("# another\n")
    with pytest.raises(UserError, match=f"{group}={name}: found .*{name}.yaml, and one of ecjax"):
        hydra_run.run_job(JOB, [*flags, f"{group}={name}", "scheduler=fair,fifo"])
    own.write_bytes((folder("conf") / group / f"{name}.yaml").read_bytes())
    check_engine(name, [study]) if group == "engine" else check_choice(JOB, group, name, [study])


def test_engines_are_the_files_of_conf(monkeypatch):
    seen = []
    module = SimpleNamespace(run=lambda cfg: seen.append((cfg.engine.name, cfg.engine.address)) or 0)
    monkeypatch.setattr(hydra_run, "load_job", lambda job: module)
    for name in ("serial", "ray", "cluster"):
        assert hydra_run.run_job(JOB, [f"engine={name}"]) == 0
    assert seen == [("serial", None), ("ray", None), ("ray", "auto")]
    for flags in ([], ["-m"]):
        with pytest.raises(UserError, match="engine: found 'spark'; allowed: cluster, ray, serial"):
            hydra_run.run_job(JOB, [*flags, "engine=spark"])


@pytest.mark.parametrize("flags", [["--config-dir", "nowhere"], ["--config-dir=nowhere"], ["--config-dir"]])
def test_a_folder_that_is_none_is_told(flags):
    with pytest.raises(UserError, match="--config-dir: found (nowhere|no folder); allowed"):
        hydra_run.run_job(JOB, flags)


CHOICES = [(job, group, name) for job in JOBS for group in GROUPS for name in choices(job, group)]


@pytest.mark.parametrize(("job", "group", "name"), [each for each in CHOICES if each[1] != "experiment"])
def test_files_of_groups_are_made_of_allowed_options(job, group, name):
    cfg = composed(JOBS[job], [f"{group}={name}"])
    assert checked(hydra_run.options_from(cfg, JOBS[job].options_class))


def test_groups_say_what_they_are_and_belong_to_jobs(monkeypatch):
    texts = [path.read_text() for path in folder("conf").rglob("*.yaml")]
    assert all("# " in text.split("\n\n")[0] for text in texts)
    assert all(about for job, group, _ in CHOICES for about in [choices(job, group).values()])
    seen = []
    module = SimpleNamespace(run=lambda cfg: seen.append(list(cfg.policy)) or 0)
    monkeypatch.setattr(hydra_run, "load_job", lambda job: module)
    assert hydra_run.run_job(JOBS["replay"], ["policies=redundant"]) == 0
    assert seen == [["probabilistic", "fork_join", "late_binding", "hedged"]]
    with pytest.raises(UserError, match="policies: found 'online'; allowed: one of dispatch, redundant"):
        hydra_run.run_job(JOBS["replay"], ["policies=online"])
    with pytest.raises(UserError, match="found option 'policies'"):
        hydra_run.run_job(JOBS["ceph"], ["policies=online"])


def test_folders_of_a_sweep_are_named_by_a_command_that_takes_them(tmp_path, caplog, capsys):
    first, second = tmp_path / "first", tmp_path / "the second"
    nothing = [*SMALL, "trace=nowhere.parquet", f"out='{tmp_path}/third'"]
    jobs = [[*SMALL, f"out='{first}'"], [*SMALL, f"out='{second}'"], nothing]
    with caplog.at_level("INFO", "ecjax"):
        assert sweeps.run_jobs(JOB, jobs, [], 0).values == [0, 0, 2]
    told, _, command = caplog.messages[-1].partition(": ecjax ")
    assert told == "runs of the whole sweep"
    assert shlex.split(command) == ["report", str(first), str(second)]
    assert main(shlex.split(command)) == 0 and (first / "report.html").exists()


@pytest.mark.parametrize("job", ["bench", "reproduce"])
def test_jobs_without_rows_to_learn_from_do_not_start(job, monkeypatch):
    monkeypatch.setattr(sweeps, "load_job", lambda job: pytest.fail("started"))
    with pytest.raises(UserError, match=f"objective: found seed with ecjax {job}; allowed: null"):
        sweeps.run_jobs(JOBS[job], [["seed=1"], ["seed=2"]], ["seed"], 0)


def test_jobs_with_rows_to_learn_from_can_read_them_again():
    """A job that computes nothing within ``only_rows`` goes through the steps that all studies share."""
    for job in JOBS.values():
        source = Path(import_module(f"ecjax.studies.{job.name}.study").__file__).read_text()
        assert job.objectives == ("run_study(" in source), job.name
