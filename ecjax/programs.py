"""The one decorator for the programs that JAX compiles, and the cache of what it traced.

JAX keeps compiled programs on disk, and finds them by what it has traced, that is, after it has run the Python of a
program with its arrays replaced by their shapes: seconds for a long one, in every process. Here what was traced is
kept, too (see ``traces``), in a folder whose name has a hash of the source (see ``source_cache``), by a
hash of shapes, types and static arguments. On one CPU device only; elsewhere JAX traces.
"""

import enum
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial, wraps
from importlib import metadata
from inspect import signature
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any, TypeVar

import jax
import jaxlib
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.cache_folder import cache_folder
from ecjax.source_cache import source_folder, source_hash
from ecjax.traces import HAS_TRACES, read_trace, trace, write_trace

_Result = TypeVar("_Result")
# what else of JAX's settings a trace depends on, or fails by
_SETTINGS = (
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
)
# with these JAX has to see the operations themselves
_PLAIN = ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs", "jax_check_tracer_leaks")
_made: dict[tuple[str, int], int] = {}  # programs of a line
_keep = {"traces": True}


def use_compilation_cache() -> None:
    """Keep compiled programs in the user's cache folder (see ``cache_folder``).

    A folder that JAX was already given (``JAX_COMPILATION_CACHE_DIR``) is left alone, and so is a shorter least
    time of compilation.
    """
    if jax.config.values.get("jax_compilation_cache_dir") is None:
        folder = cache_folder()
        if folder is not None:
            jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
    least = min(jax.config.values["jax_persistent_cache_min_compile_time_secs"], 0.1)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # of another process that is still writing it, or that ended meanwhile: it is compiled again, and nothing is wrong
    warnings.filterwarnings("ignore", message="Error reading persistent compilation cache entry")


def keep_traces(keep: bool) -> None:
    """Whether what is traced from now on is kept, and looked for: not where functions have been replaced."""
    _keep["traces"] = keep


@cache
def quick_options() -> dict[str, bool]:
    """Options of ``jax.jit`` for long programs of small arrays on a CPU: less compiling, the same speed.

    Empty where this JAX has no such option.
    """
    # one kernel per operation that is fused, as XLA made them before its emitters
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except Exception:  # XLA has no class of its own for an option that it does not know
        return {}
    return options


def program(
    function: Callable[..., _Result],
    *,
    quick: bool = False,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[..., _Result]:
    """The same, compiled by ``jax.jit``, and traced once per installation; no device is looked for before it is called.

    Args:
        function: of arrays. Programs are made where a module is loaded, in the same order each time.
        quick: whether with ``quick_options``; not for what other compiled functions call.
        static_argnums: places of arguments that are no arrays, as ``jax.jit`` has them.
        static_argnames: their names.
    """
    caller = sys._getframe(1)
    line = (os.path.abspath(caller.f_code.co_filename), caller.f_lineno)
    _made[line] = place = _made.get(line, -1) + 1
    how: dict[str, Any] = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    kept_trace = _Kept(
        function, line[0], f"{line[1]}-{place}", *_static(function, static_argnums, static_argnames)
    )
    one = Lock()

    @wraps(function)
    def kept(*args: Any, **kwargs: Any) -> _Result:
        return kept_trace(*args, **kwargs)

    @cache
    def compiled() -> tuple[Callable[..., _Result], Callable[..., _Result]]:
        if quick:
            how["compiler_options"] = quick_options()
        return jax.jit(function, **how), jax.jit(kept, **how)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> _Result:
        # of two threads each would make a program of its own
        with one:
            traced_here, recorded = compiled()
        # what has been traced before can neither be differentiated nor mapped
        inside = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        return (traced_here if inside else recorded)(*args, **kwargs)

    return call


def function_of(compiled: Callable[..., _Result]) -> Callable[..., _Result]:
    """What a program was made of, to be mapped, or compiled as a part of another one."""
    return vars(compiled)["__wrapped__"]


class _Kept:
    """What JAX traced of a function, from disk where it is there."""

    def __init__(
        self,
        function: Callable[..., Any],
        file: str,
        place: str,
        positions: frozenset[int],
        names: frozenset[str],
    ) -> None:
        self._function, self._file, self._place = function, file, place
        self._positions, self._names = positions, names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function, as ``jax.jit`` traces it."""
        leaves, tree = jax.tree.flatten(self._arrays(args, kwargs))
        path = self._path(leaves, tree, args, kwargs) if _usable() else None
        if path is None:
            return self._function(*args, **kwargs)
        kept = read_trace(path)
        if kept is None:
            # a function that fails is traced once more by JAX itself, whose message is the better one
            with suppress(Exception):
                kept = trace(self._of_leaves(tree, args, kwargs), leaves)
            if kept is None:
                return self._function(*args, **kwargs)
            write_trace(path, kept)
        return kept(leaves)

    def _of_leaves(self, tree: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
        """The function of all its arrays, with these static arguments."""

        @wraps(self._function)
        def flat(*leaves: Any) -> Any:
            positional, named = jax.tree.unflatten(tree, leaves)
            rest = iter(positional)
            both = [args[i] if i in self._positions else next(rest) for i in range(len(args))]
            static = {name: value for name, value in kwargs.items() if name in self._names}
            return self._function(*both, **named, **static)

        return flat

    def _arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """All arguments that are not static."""
        positional = [value for i, value in enumerate(args) if i not in self._positions]
        return positional, {name: value for name, value in kwargs.items() if name not in self._names}

    def _path(
        self, leaves: list[Any], tree: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Path | None:
        """Where it is kept; None where there is no place, or nothing to know it by."""
        folder = _folder(self._file)
        if folder is None:
            return None
        static = [args[i] for i in sorted(self._positions) if i < len(args)]
        named = [(name, kwargs[name]) for name in sorted(self._names) if name in kwargs]
        form = str(tree)
        try:
            words = _word((*static, *named))
        except TypeError:
            return None
        if " at 0x" in form:
            return None
        types = [(leaf.shape, str(leaf.dtype), leaf.weak_type) for leaf in leaves]
        settings = [str(getattr(jax.config, name, None)) for name in _SETTINGS]
        digest = hashlib.sha256(repr((form, types, words, settings)).encode())
        return folder / f"{self._place}-{digest.hexdigest()[:24]}"


def _static(
    function: Callable[..., Any], numbers: int | Iterable[int] | None, names: str | Iterable[str] | None
) -> tuple[frozenset[int], frozenset[str]]:
    """Places and names of static arguments, either from the other, as ``jax.jit`` has them."""
    places = {numbers} if isinstance(numbers, int) else set(numbers or ())
    words = {names} if isinstance(names, str) else set(names or ())
    if None not in (numbers, names):
        return frozenset(places), frozenset(words)
    parameters = signature(function).parameters.values()
    for place, parameter in enumerate(parameters):
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            if parameter.name in words:
                places.add(place)
            elif place in places:
                words.add(parameter.name)
    return frozenset(places), frozenset(words)


def _usable() -> bool:
    """Whether traces are kept here: for one device, without the means to look into programs."""
    return (
        _keep["traces"]
        and HAS_TRACES
        and not any(getattr(jax.config, name, False) for name in _PLAIN)
        and jax.default_backend() == "cpu"
        and jax.device_count() == 1
    )


@cache
def _folder(file: str) -> Path | None:
    """Where the traces of the programs of a file are kept."""
    base = cache_folder()
    versions = (jax.__version__, jaxlib.__version__, np.__version__, metadata.version("optax"), sys.version)
    return None if base is None else source_folder(base / "traces", file, repr(versions))


def _word(value: Hashable) -> str:
    """What tells a static argument from others, in every process.

    Raises:
        TypeError: where nothing does.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, enum.Enum):
        return f"{_of_class(type(value))} {value.name}"
    if isinstance(value, tuple):
        return f"{_of_class(type(value))} ({', '.join(map(_word, value))})"
    if isinstance(value, partial):
        named = tuple(sorted(value.keywords.items()))
        return f"partial {_word((value.func, value.args, named))}"
    if isinstance(value, FunctionType):
        if value.__closure__ or "<" in value.__qualname__:
            raise TypeError("a function that others of the same name may stand beside")
        return f"{value.__module__}.{value.__qualname__} {source_hash(value.__code__.co_filename)}"
    if isinstance(value, np.dtype):
        return f"dtype {value}"
    if isinstance(value, jax.Device):
        return f"device {value.platform} {value.id}"
    if is_dataclass(value) and not isinstance(value, type):
        of_fields = tuple((field.name, getattr(value, field.name)) for field in fields(value))
        return f"{_of_class(type(value))} {_word(of_fields)}"
    raise TypeError(f"nothing tells one {type(value).__name__} from another")


def _of_class(kind: type) -> str:
    """A class, with what it is made of where that is a file."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return f"{kind.__module__}.{kind.__qualname__} {source_hash(file) if file else ''}"
