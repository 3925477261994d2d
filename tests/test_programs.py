"""What JAX traced once is found again by source, shapes, types, static arguments and settings, and by nothing less."""

import enum
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecjax import programs, source_cache
from ecjax.programs import program

TRACED = []


class Point(NamedTuple):
    x: jax.Array
    y: jax.Array | None


@dataclass(frozen=True)
class Settings:
    factor: float
    name: str = "plain"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Queue:
    rate: jax.Array
    servers: int = field(metadata={"static": True})
    name: str = field(default="fcfs", metadata={"static": True})


class Kind(enum.Enum):
    SUM = 1
    DIFFERENCE = 2


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


def _point(x, y=None, factor=1.0):
    TRACED.append("point")
    return Point(factor * x + (0 if y is None else y), y)


def _reduced(how, x, settings=None):
    TRACED.append("reduced")
    value = how(x) if callable(how) else x - 1
    return value * (1.0 if settings is None else settings.factor)


def _one(x):
    TRACED.append("one")
    return x + 1


def _other(x):
    TRACED.append("other")
    return x + 2


def _weak(x):
    TRACED.append("weak")
    return x, jnp.where(True, 1.0, 2.0)


def _failing(x):
    TRACED.append("failing")
    raise ValueError(f"{x.shape} is no shape for this")


def _solved(x):
    TRACED.append("solved")
    return jnp.linalg.solve(x @ x.T + jnp.eye(len(x)), x)


def _calling(x):
    TRACED.append("calling")
    jax.debug.callback(lambda x: None, x)
    return x + 3


def _python(x):
    TRACED.append("python")
    return jax.pure_callback(lambda x: np.asarray(2 * x), jax.ShapeDtypeStruct((), float), x)


def _load(queue):
    TRACED.append("load")
    return Queue(queue.rate / queue.servers, queue.servers, queue.name)


POINT = program(_point)
LOAD = program(_load)
PYTHON = program(_python)
CALLING = program(_calling)
QUICK = program(_point, quick=True)
SCALED = program(_point, static_argnames="factor")
REDUCED = partial(program, static_argnums=0, static_argnames="settings")(_reduced)
PAIR = [program(each) for each in (_one, _other)]
WEAK, FAILING, SOLVED = program(_weak), program(_failing), program(_solved)
GRADIENT = program(jax.value_and_grad(lambda x: (x**3).sum()))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache, as of a first start."""
    monkeypatch.setenv("ECJAX_CACHE", str(tmp_path / "cache"))
    programs._folder.cache_clear()
    programs.keep_traces(True)
    forget()
    yield tmp_path / "cache" / "traces"
    programs._folder.cache_clear()
    jax.clear_caches()


def forget():
    """As in another process."""
    jax.clear_caches()
    TRACED.clear()


def times_traced(function, *args, **kwargs):
    forget()
    result = function(*args, **kwargs)
    return result, len(TRACED)


@pytest.mark.parametrize("function", [POINT, QUICK], ids=["plain", "quick"])
def test_another_process_does_not_trace_again(function):
    x, y = np.arange(3.0), np.ones(3)
    first, traced = times_traced(function, x, y=y)
    assert traced > 0
    again, traced = times_traced(function, x, y=y)
    assert traced == 0
    assert type(again) is Point
    for result in (first, again):
        np.testing.assert_array_equal(result.x, x + 1)
        np.testing.assert_array_equal(result.y, y)


def test_nothing_stays_nothing():
    times_traced(POINT, np.arange(3.0))
    result, traced = times_traced(POINT, np.arange(3.0))
    assert (result.y, traced) == (None, 0)


def test_other_shapes_and_types_are_other_programs():
    times_traced(POINT, np.arange(3.0))
    assert times_traced(POINT, np.arange(4.0))[1] > 0
    assert times_traced(POINT, np.ones(3, np.float32))[1] > 0
    assert times_traced(POINT, 3.0)[1] > 0  # gives way to the types of others
    assert times_traced(POINT, np.float64(3.0))[1] > 0
    assert times_traced(POINT, np.arange(3.0), np.ones(3))[1] > 0


@pytest.mark.parametrize("how", [double, triple, Kind.SUM, Kind.DIFFERENCE, partial(double), (1, "a", None)])
def test_static_arguments_are_part_of_it(how):
    for other in (double, triple):
        times_traced(REDUCED, other, np.arange(3.0))
    expected = how(np.arange(3.0)) if callable(how) else np.arange(3.0) - 1
    for settings in (None, Settings(2.0), Settings(2.0, "other")):
        for factor in (1.0, 5.0):
            known = None if settings is None else Settings(factor, settings.name)
            forget()
            result = REDUCED(how, np.arange(3.0), settings=known)
            forget()
            again = REDUCED(how, np.arange(3.0), settings=known)
            assert not TRACED
            np.testing.assert_array_equal(result, expected * (1.0 if known is None else factor))
            np.testing.assert_array_equal(again, result)


def test_static_fields_are_part_of_it():
    for servers, name in ((2, "fcfs"), (4, "fcfs"), (4, "priority")):
        queue = Queue(np.ones(3), servers, name)
        result, traced = times_traced(LOAD, queue)
        assert traced > 0
        again, traced = times_traced(LOAD, queue)
        assert traced == 0
        for each in (result, again):
            assert (each.servers, each.name) == (servers, name)
            np.testing.assert_allclose(each.rate, 1 / servers)


def test_static_arguments_by_name_and_by_place():
    np.testing.assert_array_equal(SCALED(np.arange(3.0), factor=2.0).x, [0, 2, 4])
    np.testing.assert_array_equal(SCALED(np.arange(3.0), None, 3.0).x, [0, 3, 6])
    again, traced = times_traced(SCALED, np.arange(3.0), None, 3.0)
    assert traced == 0
    np.testing.assert_array_equal(again.x, [0, 3, 6])


def test_functions_without_a_name_of_their_own_are_traced_each_time(folder):
    for number in (2.0, 3.0):
        np.testing.assert_array_equal(REDUCED(lambda x: number * x, np.arange(3.0)), number * np.arange(3.0))  # noqa: B023
    assert not folder.exists()


def test_two_programs_of_a_line_are_two():
    for _ in range(2):
        forget()
        assert [float(each(np.float64(1.0))) for each in PAIR] == [2.0, 3.0]
    assert not TRACED


def test_results_that_give_way_to_other_types_still_do():
    for _ in range(2):
        forget()
        assert (WEAK(np.float32(1.0))[1] + jnp.float32(1.0)).dtype == jnp.float32
    assert not TRACED


def test_results_are_on_no_device_of_their_own():
    """Committed arrays would be other programs further on."""
    for _ in range(2):
        forget()
        assert not POINT(np.arange(3.0)).x.committed


@pytest.mark.parametrize(("function", "expected"), [(CALLING, 5.0), (PYTHON, 4.0)], ids=["effect", "result"])
def test_what_calls_python_is_traced(folder, function, expected):
    for _ in range(2):
        forget()
        assert float(function(np.float64(2.0))) == expected
    assert TRACED
    assert not folder.exists()


def test_what_fails_says_so_itself(folder):
    with pytest.raises(ValueError, match=r"\(3,\) is no shape for this"):
        FAILING(np.arange(3.0))
    assert not folder.exists()


def test_inside_of_other_programs_it_is_theirs():
    x = jnp.arange(3.0)
    np.testing.assert_allclose(jax.jit(lambda x: POINT(x).x.sum())(x), 3.0)
    np.testing.assert_allclose(jax.vmap(lambda x: POINT(x).x)(x), x)
    np.testing.assert_allclose(jax.grad(lambda x: POINT(x, x).x.sum())(x), [2, 2, 2])
    np.testing.assert_allclose(jax.jit(lambda x: POINT(jnp.arange(3.0)).x + x)(x), 2 * x)


def test_gradients_and_factorizations_are_kept():
    x = np.random.default_rng(1).normal(size=(4, 4))
    for _ in range(2):
        forget()
        value, slope = GRADIENT(x)
        solved = SOLVED(x)
    assert not TRACED
    np.testing.assert_allclose(value, (x**3).sum())
    np.testing.assert_allclose(slope, 3 * x**2)
    np.testing.assert_allclose((x @ x.T + np.eye(4)) @ solved, x, atol=1e-12)


def test_a_damaged_file_is_replaced(folder):
    times_traced(POINT, np.arange(3.0))
    (path,) = (each for each in folder.rglob("*") if each.is_file())
    whole = path.read_bytes()
    for content in (b"", whole[:100], b"x" * 100, whole[: len(whole) // 2]):
        path.write_bytes(content)
        result, traced = times_traced(POINT, np.arange(3.0))
        assert traced > 0
        np.testing.assert_array_equal(result.x, np.arange(3.0))
        assert times_traced(POINT, np.arange(3.0))[1] == 0


def test_without_a_place_it_traces(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ECJAX_CACHE", str(tmp_path / "file" / "cache"))
    programs._folder.cache_clear()
    for _ in range(2):
        result, traced = times_traced(POINT, np.arange(3.0))
        assert traced > 0
        np.testing.assert_array_equal(result.x, np.arange(3.0))


@pytest.mark.parametrize(
    "setting",
    [
        ("jax_numpy_dtype_promotion", "standard"),
        ("jax_enable_x64", False),
        ("jax_disable_jit", True),
        ("jax_debug_nans", True),
    ],
)
def test_settings_of_a_trace_are_part_of_it(setting):
    name, value = setting
    times_traced(POINT, np.ones(3, np.float32))
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        assert times_traced(POINT, np.ones(3, np.float32))[1] > 0
    finally:
        jax.config.update(name, before)


def test_where_functions_are_replaced_nothing_is_kept(folder):
    programs.keep_traces(False)
    times_traced(POINT, np.arange(3.0))
    assert not folder.exists()


def test_several_devices_trace(folder, monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 2)
    times_traced(POINT, np.arange(3.0))
    assert not folder.exists()


def test_a_hash_knows_of_all_that_is_imported(tmp_path, monkeypatch):
    monkeypatch.setattr(source_cache, "_PACKAGE", str(tmp_path))
    files = {
        "walk.py": "from ecjax.steps import up\n\ndef f():\n    from ecjax.far import FAR\n    import ecjax.deep.down",
        "steps.py": "from ecjax.deep import (\n    down as under,  # (no such\n    up,\n)\n",
        "far.py": "FAR = 1\n",
        "deep/__init__.py": "",
        "deep/down.py": "X = 1\n",
        "deep/up.py": "X = 1\n",
        "alone.py": "X = 1\n",
    }
    (tmp_path / "deep").mkdir()

    def hashed(**changed):
        for name, content in files.items():
            (tmp_path / name).write_text(changed.get(name, content))
        source_cache._source.cache_clear()
        source_cache._place.cache_clear()
        return source_cache.source_hash(str(tmp_path / "walk.py"))

    whole = hashed()
    assert hashed() == whole
    assert hashed(**{"alone.py": "X = 2\n"}) == whole
    others = {
        hashed(**{name: f"{content}# other\n"}) for name, content in files.items() if name != "alone.py"
    }
    assert len(others | {whole}) == len(files)
    source_cache._source.cache_clear()
    source_cache._place.cache_clear()


def run(script):
    """What a script prints, in a process of its own."""
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_factorizations_of_another_process(tmp_path, folder):
    """Where the process has lowered none itself."""
    script = tmp_path / "solve.py"
    script.write_text(
        "import jax.numpy as jnp, numpy as np\nfrom ecjax.programs import program\n"
        "SOLVE = program(jnp.linalg.solve)\n"
        "print(SOLVE(2 * np.eye(3), np.ones(3)).tolist())\n"
    )
    assert run(script) == "[0.5, 0.5, 0.5]"
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1
    assert run(script) == "[0.5, 0.5, 0.5]"


def test_another_source_is_another_program(tmp_path):
    """In processes of its own, as a user would edit a file."""
    script = tmp_path / "walk.py"
    for number, expected in ((1, "2.0 1"), (1, "2.0 0"), (4, "5.0 1"), (1, "2.0 0")):
        script.write_text(
            "import numpy as np\nfrom ecjax.programs import program\nTRACED = []\n"
            f"def _walk(x):\n    TRACED.append(1)\n    return x + {number}\n"
            "WALK = program(_walk)\nprint(float(WALK(np.float64(1.0))), min(1, len(TRACED)))\n"
        )
        assert run(script) == expected


def test_a_jax_without_what_keeps_traces_traces(folder, monkeypatch):
    monkeypatch.setattr(programs, "HAS_TRACES", False)
    for _ in range(2):
        assert times_traced(POINT, np.arange(3.0))[1] > 0
    assert not folder.exists()
