"""What the README and the pages of the guide show is what runs."""

import re
import shlex
from pathlib import Path

import pytest

from ecjax.cli import main
from ecjax.jobs_index import JOBS, choices
from ecjax.tables.recommendation import read_recommendation

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "ecjax" / "guides").glob("*.md"))]
BLOCKS = [
    block for page in PAGES for block in re.findall(r"```(\w*)\n(.*?)```", page.read_text(), flags=re.S)
]
SET_UP = "pip install uv && uv run "


def commands():
    lines = [line for kind, body in BLOCKS if not kind for line in body.splitlines() if line]
    return list(dict.fromkeys(line.removeprefix(SET_UP).removeprefix("uv run ") for line in lines))


def test_the_two_commands_do_their_own_set_up():
    lines = [line for kind, body in BLOCKS if not kind for line in body.splitlines()]
    assert lines[:2] == [SET_UP + "ecjax optimize", SET_UP + "pytest"]
    assert SET_UP + "pytest" in (ROOT / ".ci" / "run").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    (folder / "traces").symlink_to(ROOT / "traces")
    return folder


@pytest.fixture
def place(folder, monkeypatch):
    """The working folder of all commands; what these and the tests import is imported once."""
    monkeypatch.chdir(folder)


# what plans service classes or a learned cluster, with all that it needs, takes minutes; of the others some are
# done by a faster test, too: strategies of the proxy with a log, sweeps of Hydra, workers of Ray, nodes that are
# described, the jobs as functions
LONG = (
    "results/classes",
    "results/learned",
    "results/planned",
    "results/adapt",
    "results/values",
    "results/spread",
    "results/checked",
    "results/described",
    "results/histograms",
    "ecjax.optimize(",
)


def marked(text):
    return pytest.param(text, marks=[pytest.mark.slow] if any(name in text for name in LONG) else [])


@pytest.mark.parametrize("command", [marked(line) for line in commands() if line.startswith("ecjax ")])
def test_commands_run(place, command):
    assert main(shlex.split(command)[1:]) == 0


@pytest.mark.slow
def test_the_tour_recommends_what_the_readme_shows(place):
    shown = " ".join((ROOT / "README.md").read_text().split())
    for out in ("learned", "planned", "replayed"):
        (command,) = (line for line in commands() if line.endswith(f" out=results/{out}"))
        assert main(shlex.split(command)[1:]) == 0
    for out in ("planned", "replayed"):
        recommendation = read_recommendation(Path("results", out))
        assert recommendation is not None and recommendation.sentence in shown


@pytest.mark.parametrize("body", [marked(body) for kind, body in dict.fromkeys(BLOCKS) if kind == "python"])
def test_python_examples_run(place, body):
    exec(body, {"__name__": "__main__"})


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


def test_pictures_and_pages_are_there():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_studies_are_those_of_the_job_whose_page_names_them():
    for page in PAGES:
        for named, study in re.findall(r"(?:ecjax (\w+) )?experiment=(\w+)", page.read_text()):
            job = named or page.stem
            if job in JOBS and study != "NAME":
                assert study in choices(job, "experiment"), f"{page.name}: ecjax {job} experiment={study}"


def test_every_shell_takes_the_commands():
    """Some refuse brackets, braces and wildcards outside of quotes."""
    for line in commands():
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", line)
        assert not set("[]{}*?~#") & set(bare), line
