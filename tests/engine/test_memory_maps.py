"""Programs that JAX has compiled are forgotten before the kernel gives a process no more memory maps."""

import jax
import jax.numpy as jnp
import pytest

from ecjax.engine import memory_maps

pytestmark = pytest.mark.skipif(
    not memory_maps._MAPS.exists(), reason="only Linux lists the maps of a process"
)


@pytest.fixture(autouse=True)
def no_look_before(monkeypatch):
    """Tests follow each other faster than the process looks."""
    monkeypatch.setitem(memory_maps._looked_s, "last", -memory_maps._EVERY_S)


def compiled(number):
    function = jax.jit(lambda x: jnp.sin(x * number))
    function(jnp.ones(3))
    return function


def test_programs_are_kept_while_there_is_room():
    function = compiled(2.5)
    assert not memory_maps.forget_programs()
    assert function._cache_size() == 1


def test_programs_are_forgotten_near_the_limit(tmp_path, monkeypatch):
    function = compiled(3.5)
    limit = tmp_path / "max_map_count"
    limit.write_text("100\n")
    monkeypatch.setattr(memory_maps, "_LIMIT", limit)
    assert memory_maps.forget_programs()
    assert function._cache_size() == 0
    assert float(function(jnp.zeros(3)).sum()) == 0


def test_a_limit_that_cannot_be_read_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_maps, "_LIMIT", tmp_path / "absent")
    assert not memory_maps.forget_programs()


def test_the_process_looks_once_a_second(tmp_path, monkeypatch):
    limit = tmp_path / "max_map_count"
    limit.write_text("100\n")
    monkeypatch.setattr(memory_maps, "_LIMIT", limit)
    monkeypatch.setattr(memory_maps.time, "monotonic", lambda: 50.0)
    assert memory_maps.forget_programs()
    assert not memory_maps.forget_programs()
    monkeypatch.setattr(memory_maps.time, "monotonic", lambda: 51.0)
    assert memory_maps.forget_programs()
