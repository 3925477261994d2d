"""Strict numerics for every test: 64-bit floats, no silent promotion; few, repeatable examples.

Most of the time of the tests is compilation. Those of every day compile quickly: JAX without most optimizations, and
without the fusion emitters, which take half of the time that is left. So do the commands that they start. Any other
selection (``-m slow``) runs JAX as users do. What is compiled is kept in pytest's cache folder (emptied by ``pytest
--cache-clear``), where commands, the other processes of a run and the next run find it.
"""

import gc
import os
from functools import wraps
from pathlib import Path

# SciPy's matrices are tiny here: threads of BLAS, which read this when they are loaded, spin for longer than they work
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import psutil
import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

import ecjax.precision  # noqa: F401  (turns on 64-bit floats before any array exists)
from ecjax.cores import available_cores
from ecjax.engine.memory_maps import forget_programs
from ecjax.programs import keep_traces

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Ray, where a test imports it before ecjax does, would make an environment for its workers as uv runs the tests
os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"

HERE = Path(__file__).parent
# where a test asks for optimized programs, those that cost little
QUICK = " ".join(
    (
        "--xla_cpu_use_fusion_emitters=false",
        # a program in parts is compiled by several threads, which here have no core of their own
        "--xla_cpu_parallel_codegen_split_count=1",
        "--xla_backend_optimization_level=1",
        "--xla_llvm_disable_expensive_passes=true",
    )
)

settings.register_profile("ecjax", max_examples=25, deadline=None, derandomize=True, database=None)
settings.load_profile("ecjax")


def compile_quickly():
    """In this process, and by the environment in those that are started from it; XLA reads its flags once."""
    jax.config.update("jax_disable_most_optimizations", True)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    flags = os.environ.get("XLA_FLAGS", "")
    if QUICK not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {QUICK}".strip()


@pytest.fixture(scope="module")
def optimized():
    """For modules whose programs run for longer than optimizing them takes."""
    quick = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", quick)


def keep_programs(folder):
    """One cache for all processes of this run."""
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    # as in pyproject.toml: commands that read half of a program say nothing, and compile it
    os.environ.setdefault("PYTHONWARNINGS", "ignore:Error reading persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def pytest_configure(config):
    if config.option.markexpr == "not slow":
        compile_quickly()
    # commands keep theirs in it, too; workers inherit the folder from the process that started them
    folder = os.environ.setdefault("ECJAX_CACHE", str(config.cache.mkdir("programs")))
    keep_programs(Path(folder) / "jax")


def without_traces(replace):
    """What is traced after a test has replaced something is not for others, nor the others' for it."""

    @wraps(replace)
    def replaced(*args, **kwargs):
        keep_traces(False)
        return replace(*args, **kwargs)

    return replaced


pytest.MonkeyPatch.setattr = without_traces(pytest.MonkeyPatch.setattr)
pytest.MonkeyPatch.setitem = without_traces(pytest.MonkeyPatch.setitem)


@pytest.fixture(autouse=True)
def kept_traces():
    """Those of the next test again, whatever this one replaced."""
    yield
    keep_traces(True)


def pytest_xdist_auto_num_workers():
    """One more than cores: tests wait for Ray, for locks and for the disk."""
    return (psutil.cpu_count(logical=False) or available_cores()) + 1


def pytest_runtest_teardown(item, nextitem):
    """What the tests of all folders have compiled may be more than one process can hold."""
    if nextitem is None or nextitem.path != item.path:
        forget_programs()


def pytest_collection_finish():
    """Modules and tests stay: looking for garbage among them is a tenth of the time of the tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 50)


class ByFolder(LoadScopeScheduling):
    """Tests of a folder go to one process: they are of the same shapes, and share what it has traced and compiled."""

    def _split_scope(self, nodeid):
        return folder_of(nodeid.split("::", 1)[0])


def folder_of(path):
    """Folder below ``tests``, for those that are right in it the file."""
    parts = Path(path).parts
    parts = parts[parts.index("tests") + 1 :] if "tests" in parts else parts
    return "/".join(parts[:-1] or parts)


def pytest_xdist_make_scheduler(config, log):
    return ByFolder(config, log) if config.option.dist == "loadfile" else None


# the longest first; the engine, which mostly waits, when the README's commands have compiled what it runs
FIRST = ("test_readme.py", "planning/certified", "planning", "studies/optimize", "simulation", "engine")
FIRST += ("planning/classes", "queueing", "studies/replay", "studies/bench", "adaptation")
SLOW_FIRST = ("predict", "planning/certified", "attack", "queueing", "test_readme.py", "engine", "ceph")
SLOW_FIRST += (
    "studies/bench",
    "studies/reproduce",
    "tables",
    "studies/optimize",
    "planning/classes",
    "test_cli.py",
)


def pytest_collection_modifyitems(config, items):
    folders = [folder_of(item.path.relative_to(HERE.parent)) for item in items]
    first = SLOW_FIRST if config.option.markexpr == "slow" else FIRST
    rank = {folder: first.index(folder) if folder in first else len(first) for folder in folders}
    order = sorted(range(len(items)), key=lambda place: (rank[folders[place]], folders[place]))
    items[:] = [items[place] for place in order]
