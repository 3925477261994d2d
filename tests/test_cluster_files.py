"""The files for ``ray up`` are what Ray takes, and what they start asks for its token."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
autoscaler = pytest.importorskip("ray.autoscaler._private.util", reason="Ray reads the files")

FOLDER = Path(__file__).parents[1] / "conf" / "cluster"
FILES = sorted(FOLDER.glob("*.yaml"))


def read(path):
    return yaml.safe_load(path.read_text())


def test_there_is_one_for_a_cloud_and_one_for_machines_of_ones_own():
    assert {read(path)["provider"]["type"] for path in FILES} == {"aws", "local"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_ray_takes_it(path):
    filled = autoscaler.prepare_config(read(path))
    autoscaler.validate_config(filled)
    assert filled["head_node_type"] in filled["available_node_types"]
    room = [kind["max_workers"] for kind in filled["available_node_types"].values()]
    assert 0 < max(room) <= filled["max_workers"]


def test_a_misspelt_key_is_refused():
    wrong = read(FOLDER / "aws.yaml") | {"max_worker": 3}
    with pytest.raises(Exception, match="max_worker"):
        autoscaler.validate_config(autoscaler.prepare_config(wrong))


def test_a_cloud_cluster_shrinks_to_its_head():
    kinds = read(FOLDER / "aws.yaml")["available_node_types"]
    assert sum(kind.get("min_workers", 0) for kind in kinds.values()) == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_ray_asks_for_the_token_and_all_nodes_have_it(path):
    config = read(path)
    starts = [
        command
        for key in ("head_start_ray_commands", "worker_start_ray_commands")
        for command in config[key]
        if "ray start" in command
    ]
    assert len(starts) == 2 and all("RAY_AUTH_MODE=token ray start" in command for command in starts)
    assert config["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    assert any("RAY_AUTH_MODE=token" in command for command in config["setup_commands"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nodes_get_the_ray_that_was_tested(path):
    (install,) = [command for command in read(path)["setup_commands"] if "pip install" in command]
    assert f"=={version('ray')}" in install and "~/ecjax_dist/*.whl" in install
    assert read(path)["file_mounts"]["~/ecjax_dist"] == "dist"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("before", [None, "return\nexport OTHER=1\n"])
def test_shells_of_the_nodes_know_token_and_path(tmp_path, path, before):
    (command,) = [command for command in read(path)["setup_commands"] if ".bashrc" in command]
    if before:
        (tmp_path / ".bashrc").write_text(before)
    for _ in range(2):  # a node that is set up again changes no more
        subprocess.run(["bash", "-c", command], env={"HOME": str(tmp_path), "PATH": os.defpath}, check=False)
    wanted = "export RAY_AUTH_MODE=token PATH=$HOME/ecjax/bin:$PATH\n"
    assert (tmp_path / ".bashrc").read_text() == wanted + (before or "")
