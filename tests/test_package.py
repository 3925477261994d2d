"""The wheel works outside the checkout, the library without Hydra and Ray, and what is read first is light."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("jax", "numba", "numpy", "scipy", "pandas", "pyarrow", "matplotlib", "ray", "hydra", "omegaconf")


def test_options_and_columns_import_nothing_heavy():
    # lint-imports sees what files say, this what comes of it
    program = f"""
import sys
from importlib import import_module
from ecjax.jobs_index import JOBS
for job in JOBS.values():
    job.options_class()
    import_module(f"ecjax.studies.{{job.name}}.tables")
sys.exit(", ".join(set({HEAVY!r}) & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


WITHOUT = """
import sys
sys.modules["hydra"] = sys.modules["omegaconf"] = sys.modules["ray"] = None
"""


def test_every_study_imports_without_hydra_and_ray_and_one_runs(tmp_path):
    program = f"""{WITHOUT}
from importlib import import_module
from pkgutil import walk_packages
from rich.console import Console
import ecjax.studies
for module in walk_packages(ecjax.studies.__path__, "ecjax.studies."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
from ecjax.studies.adapt.study import adapt_study
from ecjax.studies.adapt.options import AdaptOptions
options = AdaptOptions(out={str(tmp_path / "out")!r}, strategy=["static"], codes=[[3, 2]], requests=500, figures=[])
sys.exit(adapt_study(options, Console()))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # in seconds of compilation
def test_the_library_plans_without_hydra(tmp_path):
    program = f"""{WITHOUT}
from rich.console import Console
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.optimize.options import ClusterOptions, OptimizeOptions
options = OptimizeOptions(out={str(tmp_path / "out")!r}, theta=[30], figures=[], cluster=ClusterOptions(files=12))
sys.exit(optimize_study(options, Console()))
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0


def test_the_wheel_works_outside_the_checkout(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    needed = {"ecjax/conf/optimize.yaml", "ecjax/jobs/optimize.py", "ecjax/conf/hydra/job_logging/ecjax.yaml"}
    needed |= {"ecjax/conf/engine/ray.yaml", "ecjax/conf/hydra/launcher/ray_local.yaml"}
    assert needed <= set(names)
    assert not any(name.startswith(("tests/", "conf/", "jobs/")) for name in names)
    files = [path for path in (ROOT / "ecjax").rglob("*.*") if path.suffix != ".pyc"]
    assert {str(path.relative_to(ROOT)) for path in files} <= set(names)
    words = ["schedule", "experiment=coflow_fig3", "seeds=1", "generate.requests=12", "out=here"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-m", "ecjax", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "here" / "figures").glob("*.png"))
