"""Machine code of Numba is never that of an earlier source, and does without a cache where there can be none."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
import pytest

from ecjax import machine_code, one_compiler, source_cache
from ecjax.compiling import announced

PACKAGE = Path(machine_code.__file__).parent
INNER = """from ecjax.constants import STEP
from ecjax.machine_code import njit

@njit()
def step(x):
    return x + STEP
"""
OUTER = """from ecjax.inner import step
from ecjax.machine_code import njit

@njit()
def walk(x):
    return step(step(x))

print(walk(0), sum(walk.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """A package of the name with functions in two files and a constant in a third."""
    folder = tmp_path / "ecjax"
    folder.mkdir()
    modules = ("machine_code", "linked_code", "cache_folder", "source_cache", "one_compiler", "stopwatch")
    for name in modules:
        shutil.copy(PACKAGE / f"{name}.py", folder)
    (folder / "__init__.py").touch()
    (folder / "constants.py").write_text("STEP = 1\n")
    (folder / "inner.py").write_text(INNER)
    (folder / "outer.py").write_text(OUTER)
    return folder


# processes that have imported Numba already; each line is a folder with the package, a cache and a file to write to
WALKERS = """
import json, os, sys
import filelock, numba
numba.njit(lambda x: x)(0)
children = {}
for line in sys.stdin:
    folder, cache, out = json.loads(line)
    if cache is None:
        print(os.waitpid(children[out], 0)[1], flush=True)
        continue
    children[out] = os.fork()
    if children[out] == 0:
        os.chdir(folder)
        sys.path.insert(0, folder)
        os.environ["ECJAX_CACHE"] = cache
        with open(out, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        import ecjax.outer
        sys.stdout.flush()
        os._exit(0)
"""


@pytest.fixture(scope="module")
def walkers():
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-c", WALKERS], env=environment, **pipes) as process:
        yield process
        process.stdin.close()


class Walking:
    """A process that calls the function."""

    def __init__(self, walkers, package, place="cache"):
        self._walkers, self._folder = walkers, str(package.parent)
        handle, self._out = tempfile.mkstemp(dir=package.parent)
        os.close(handle)
        self._tell(str(package.parent / place))

    def _tell(self, cache):
        print(json.dumps([self._folder, cache, self._out]), file=self._walkers.stdin)

    def result(self):
        """Result of the function, and how often its code came from the cache."""
        self._tell(None)
        status, said = int(self._walkers.stdout.readline()), Path(self._out).read_text()
        assert status == 0, said
        return tuple(map(int, said.split()))


@pytest.fixture
def walked(walkers, package):
    """What a process of its own gives."""
    return lambda place="cache": Walking(walkers, package, place).result()


def test_code_is_compiled_anew_where_another_file_has_changed(package, walked):
    assert walked() == (2, 0) and walked() == (2, 1)
    (package / "constants.py").write_text("STEP = 10\n")
    assert walked() == (20, 0)
    # a cache that cannot be read, of types that are no longer there or because it is damaged, is none
    for index in (package.parent / "cache").rglob("outer.walk*.nbi"):
        index.write_bytes(b"\x80\x04\x8c\x0becjax.gone\x94\x8c\x04Gone\x94\x93\x94.")
    assert walked() == (20, 0) and walked() == (20, 1)


@machine_code.njit(inner=True)
def _below(x):
    return x - 1


@machine_code.njit()
def _two_below(x):
    return _below(_below(x))


def test_python_does_not_call_inner_functions():
    assert _two_below(3) == 1
    with pytest.raises(TypeError, match="_below is for compiled functions"):
        _below(3)
    assert _below.py_func(3) == 2


@machine_code.njit()
def _root(x):
    if x < 0:
        # with a value that only the run knows
        raise ValueError("below zero", x)
    return np.sqrt(np.full(3, x)).sum()


@machine_code.njit()
def _two_roots(x):
    return _root(x) + _root(x - 1)


@machine_code.njit()
def _fibonacci(x):
    return x if x < 2 else _fibonacci(x - 1) + _fibonacci(x - 2)


def test_functions_are_called_by_python_and_by_others():
    assert _two_roots(5) == pytest.approx(3 * (5**0.5 + 2))
    # nothing was compiled for Python but what Python has called
    assert not _root.signatures and len(_two_roots.signatures) == 1
    assert _root(4) == 6.0
    for function in (_root, _two_roots):
        with pytest.raises(ValueError, match="below zero.*-0.5"):
            function(-0.5)
    assert _fibonacci(10) == 55


def test_code_to_be_linked_comes_from_the_cache(package, walked):
    assert walked() == (2, 0)
    (package / "inner.py").write_text(INNER)
    (package / "outer.py").write_text(OUTER.replace("step(step(x))", "step(step(step(x)))"))
    (kept,) = (package.parent / "cache").rglob("inner.step*.nbc")
    before = kept.stat().st_mtime_ns
    assert walked() == (3, 0) and walked() == (3, 1)
    assert list((package.parent / "cache").rglob("inner.step*.nbc")) == [kept]
    assert kept.stat().st_mtime_ns == before


def test_processes_that_start_together_compile_once(walkers, package):
    processes = [Walking(walkers, package) for _ in range(2)]
    assert sorted(process.result() for process in processes) == [(2, 0), (2, 1)]


def test_who_has_a_lock_for_too_long_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(one_compiler, "_LONGEST_S", 0.0)
    function = numba.njit(lambda x: x + 1)
    one_compiler.compile_alone(function, tmp_path / "module-0123")
    assert function(1) == 2
    (lock,) = (tmp_path / "locks").iterdir()
    with open(lock) as held, announced() as compilation:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert function(1.0) == 2.0
    assert compilation.programs >= 2  # the wait is announced, too


def test_without_a_place_for_a_cache(package, walked):
    (package.parent / "file").touch()
    assert walked("file") == (2, 0)
    folder = package.parent / "cache" / "numba"
    folder.mkdir(parents=True)
    folder.chmod(0o500)  # root may write all the same
    assert walked()[0] == 2


def test_a_key_follows_imports_and_nothing_else(package, monkeypatch):
    monkeypatch.setattr(source_cache, "_PACKAGE", str(package))
    (package / "parts").mkdir()
    (package / "parts" / "__init__.py").touch()
    (package / "parts" / "sums.py").write_text("from ecjax import (\n    inner,  # a module\n)\n")
    (package / "other.py").touch()

    def key():
        source_cache._source.cache_clear()
        source_cache._place.cache_clear()
        return source_cache.source_hash(str(package / "parts" / "sums.py"))

    first = key()
    (package / "other.py").write_text("X = 1\n")
    assert key() == first
    (package / "constants.py").write_text("STEP = 2\n")
    second = key()
    assert second != first
    (package / "parts" / "__init__.py").write_text("# not imported by its modules\n")
    assert key() == second
    # jobs are named at the top for users, and import everything
    (package / "__init__.py").write_text("from ecjax import other\n")
    assert key() == second
    source_cache._place.cache_clear()
    source_cache._source.cache_clear()


def test_old_folders_go(tmp_path):
    for age in range(7):
        folder = tmp_path / f"caching.exchange-{age}"
        folder.mkdir()
        os.utime(folder, (1e9 - age, 1e9 - age))
    (tmp_path / "caching.exchanges-0").mkdir()
    machine_code._Locator(tmp_path / "caching.exchange-new", 1).ensure_cache_path()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == [
        *(f"caching.exchange-{age}" for age in ("0", "1", "2", "new")),
        "caching.exchanges-0",
    ]


def test_all_that_is_compiled_is_kept_so():
    """And takes from modules that it names: what a package passes on is not followed."""
    files = [path for path in PACKAGE.rglob("*.py") if "@njit" in path.read_text()]
    assert len(files) > 50
    for path in files:
        text = path.read_text()
        assert "cache=True" not in text and "from numba import njit" not in text, path
        for module, names, _ in source_cache._IMPORT.findall(text):
            if source_cache._place(module).endswith("__init__.py"):
                words = [word.split()[0] for word in re.sub(r"#.*|[()\n]", "", names).split(",") if word]
                assert all(source_cache._place(f"{module}.{word}") for word in words), (path, module)
