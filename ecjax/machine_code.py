"""The one decorator for what Numba compiles, and the cache of its machine code.

Numba's own cache looks at the file of a function only: where another file changes, from which the function inlines code
or takes a constant, it goes on with the old machine code. Here the code of a module is kept in a folder whose name has
a hash of that file and of all that it imports from ecjax, directly or not:
``~/.cache/ecjax/numba/caching.exchange-0123456789abcdef`` (see ``cache_folder``; ``NUMBA_CACHE_DIR`` stands for
``~/.cache/ecjax/numba``). Installations with the same source share it, and may be read-only.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, TypeVar

import numba
import numpy as np
from numba import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numpy.typing import ArrayLike, DTypeLike

from ecjax.cache_folder import cache_folder
from ecjax.linked_code import LinkedCompiler, call_linked, rebuilt, set_environments
from ecjax.one_compiler import compile_alone
from ecjax.source_cache import make_folder, source_folder

_Function = TypeVar("_Function", bound=Callable[..., object])
# what reading a damaged file raises, or one of types that have been renamed since
_UNREADABLE = (
    OSError,
    EOFError,
    ImportError,
    AttributeError,
    pickle.UnpicklingError,
    ValueError,
    TypeError,
    KeyError,
)


def njit(
    *,
    inner: bool = False,
    inline: Literal["never", "always"] = "never",
    error_model: Literal["python", "numpy"] = "python",
    fastmath: bool = False,
) -> Callable[[_Function], "Dispatcher[_Function]"]:
    """Decorator of a function that Numba compiles without the interpreter lock, once per installation.

    Args:
        inner: only compiled functions call it; Python is refused, rather than made to wait for code of its own.
        inline: "always": into Numba's representation of its callers.
        error_model: "numpy": dividing by zero is no error.
        fastmath: sums may be taken in another order.
    """
    # C calls nothing
    common: dict[str, Any] = {"nogil": True, "inline": inline, "error_model": error_model}
    common |= {"fastmath": fastmath, "no_cfunc_wrapper": True}
    # what compiled functions call has nothing that Python could call; Numba's types do not know of all these words
    linked_only: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": LinkedCompiler}
    decorate_linked: Any = numba.njit(**common, **linked_only)
    decorate: Any = numba.njit(**common)

    def compiled(function: _Function) -> "Dispatcher[_Function]":
        folder = code_folder(function.__code__.co_filename)
        linked = decorate_linked(function)
        # NUMBA_DISABLE_JIT leaves functions as they are
        if not isinstance(linked, Dispatcher):
            return linked
        if folder is not None:
            setattr(linked, "_cache", _LinkedCache(function))  # noqa: B010  (a private name of Numba's)
            compile_alone(linked, folder, " linked")
        _of_any_number(linked)
        if inner:
            _refuse_python(linked)
            return linked
        dispatcher = decorate(function)
        if folder is not None:
            setattr(dispatcher, "_cache", _Cache(function))  # noqa: B010
            compile_alone(dispatcher, folder)
        set_environments(dispatcher)
        call_linked(dispatcher, linked)
        return dispatcher

    return compiled


def _of_any_number(dispatcher: Dispatcher) -> None:
    """Let callers share one version: Numba makes another for each constant that it sees as an argument."""
    template = dispatcher.get_call_template

    def get_call_template(args: Sequence[types.Type], kws: Mapping[str, types.Type]) -> Any:
        named = {name: types.unliteral(value) for name, value in kws.items()}
        return template([types.unliteral(value) for value in args], named)

    setattr(dispatcher, "get_call_template", get_call_template)  # noqa: B010  (Numba asks the instance)


def _refuse_python(dispatcher: Dispatcher) -> None:
    """Numba would call what is not there."""

    def refuse(*args: object, **kws: object) -> None:
        raise TypeError(f"{dispatcher.py_func.__qualname__} is for compiled functions: call it with .py_func")

    def insert(*args: object, **kws: object) -> None:
        """The table of what Python calls stays empty."""

    setattr(dispatcher, "_compile_for_args", refuse)  # noqa: B010  (Numba asks the instance)
    setattr(dispatcher, "_insert", insert)  # noqa: B010


def writable(values: ArrayLike, dtype: DTypeLike | None = None) -> np.ndarray:
    """The same values in C order, in an array that may be written to: a copy where they are in no such one.

    For Numba an array that is read-only, as those that JAX lends, or laid out otherwise, is another type: functions
    would be compiled once more for it.
    """
    return np.require(values, dtype, ["C", "A", "W"])


def read_only(values: np.ndarray) -> np.ndarray:
    """The same values in C order, in an array that may not be written to: for functions that get such arrays of JAX.

    Unlike ``writable`` it copies no large array of JAX.
    """
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


@cache
def code_folder(file: str) -> Path | None:
    """Where the machine code of the functions of a file is kept; None where there is no place."""
    return source_folder(_base(), file, numba.__version__)


class _Locator(_CacheLocator):
    """Where Numba keeps the code of a function."""

    def __init__(self, folder: Path, line: int) -> None:
        self._folder, self._line = folder, line

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> "_Locator | None":
        """As Numba asks for it."""
        folder = code_folder(py_file)
        return None if folder is None else cls(folder, py_func.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """What has to be the same for code to be fresh: the name of the folder says it."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """What tells functions of the same name apart."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        make_folder(self._folder)


class _LinkedLocator(_Locator):
    """Where it keeps the code that is linked into the callers of a function."""

    def get_disambiguator(self) -> str:
        return f"{super().get_disambiguator()}-linked"


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _LinkedImplementation(CompileResultCacheImpl):
    _locator_classes = [_LinkedLocator]

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        return rebuilt(target_context, payload)


class _Cache(FunctionCache):
    """The cache of a function. What cannot be read is compiled anew, what cannot be written is compiled each time."""

    _impl_class: type[CompileResultCacheImpl] = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except _UNREADABLE:
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


class _LinkedCache(_Cache):
    _impl_class = _LinkedImplementation


@cache
def _base() -> Path | None:
    """The folder of all machine code; None where there is none and none can be made."""
    user, default = vars(config)["CACHE_DIR"], cache_folder()
    folder = Path(user) if user else default / "numba" if default is not None else None
    if folder is not None:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
    return folder if folder is not None and folder.is_dir() else None


@njit(inner=True)
def copy_into(target, source):
    """Assign the numbers of an array to those of another, by place; both are one-dimensional.

    ``target[:] = source`` compiles the text of an error message too, which takes longer than most loops.
    """
    for i in range(len(source)):
        target[i] = source[i]
