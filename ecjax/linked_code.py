"""Functions that compiled functions call are optimized with these, and only there.

Numba makes machine code of every function, optimized together with all that it calls, and links that into its callers,
where it is optimized again: a function five calls deep five times. Machine code is of use only where Python calls. Here
what compiled functions call stays as it was translated, and is optimized once, with the function that Python calls.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import binding
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.dispatcher import Dispatcher


class _WithoutMachineCode:
    """Numba's code generator, as a library sees it that has no machine code."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: object) -> None:
        """Nothing: there is no variable to set."""

    def unserialize_library(self, state: tuple[str, str, bytes]) -> "LinkedLibrary":
        """A library from its bitcode."""
        name, _, bitcode = state
        library = LinkedLibrary(self._codegen, name)
        library.read(bitcode)
        return library


class LinkedLibrary(CPUCodeLibrary):
    """Code of a function to be linked into its callers."""

    @property
    def codegen(self) -> _WithoutMachineCode:
        """What Numba asks to set up machine code."""
        return _WithoutMachineCode(self._codegen)

    def read(self, bitcode: bytes) -> None:
        """Take the code from bitcode."""
        self._final_module = binding.parse_bitcode(bitcode)
        self._finalize_final_module()

    def _optimize_final_module(self) -> None:
        """Not here, but with the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None."""
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """For the cache: bitcode."""
        state: tuple[str, str, bytes] = self.serialize_using_bitcode()
        return state


class LinkedCompiler(Compiler):
    """Numba's compiler, of functions that only compiled functions call."""

    def define_pipelines(self) -> list[Any]:
        """The passes of Numba's own, into another library."""
        state = self.state
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        pipelines: list[Any] = super().define_pipelines()
        return pipelines


class _Linked:
    """A target of compilation whose libraries have no machine code."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def codegen(self) -> _WithoutMachineCode:
        """The code generator."""
        return _WithoutMachineCode(self._target.codegen())


def rebuilt(target: Any, payload: Sequence[Any]) -> CompileResult:
    """A function to be linked from what a cache has of it.

    Args:
        target: for which it was compiled.
        payload: as ``CompileResult`` gives it to be kept.
    """
    return CompileResult._rebuild(_Linked(target), *payload)


def set_environments(dispatcher: Dispatcher) -> None:
    """Let a function that Python calls set up the environments of those that are linked into it."""
    add: Callable[[Any], None] = dispatcher.add_overload

    def add_overload(result: Any) -> None:
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        add(result)

    setattr(dispatcher, "add_overload", add_overload)  # noqa: B010  (Numba asks the instance)


def call_linked(dispatcher: Dispatcher, linked: Dispatcher) -> None:
    """Let compiled functions that call ``dispatcher`` call ``linked``, the same function without machine code."""
    setattr(dispatcher, "get_call_template", linked.get_call_template)  # noqa: B010  (Numba asks the instance)
    setattr(dispatcher, "get_overload", linked.get_overload)  # noqa: B010
