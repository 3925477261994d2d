"""What JAX has traced of a function: kept on disk, and used by programs as if they had traced it themselves.

A trace is a module of StableHLO with the types of its results. A program that uses one has a single operation for it,
which is replaced by a call of the module's function where JAX lowers the program.
"""

import hashlib
import os
import pickle
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from ecjax.source_cache import make_folder

try:
    from jax.extend.core import Primitive
    from jax.interpreters import mlir
    from jaxlib.mlir.dialects import func

    _merge, _to_bytecode = mlir.merge_mlir_modules, mlir.module_to_bytecode
    HAS_TRACES = True
except (ImportError, AttributeError):  # a JAX that has other names for them
    HAS_TRACES = False

_DIGEST_BYTES = hashlib.sha256().digest_size  # that a file begins with
_CALLED = re.compile(r"custom_call @([\w.$]+)")


@dataclass(frozen=True, eq=False)
class Trace:
    """Of a function of flat arrays.

    Attributes:
        name: of the function.
        module: StableHLO, in MLIR's bytecode; it takes all arguments.
        results: shape, type, and whether that gives way to others, of each result.
        form: the results as the function returns them, with their places in place of the arrays.
        factorizes: whether it calls LAPACK.
    """

    name: str
    module: bytes
    results: tuple[tuple[tuple[int, ...], str, bool], ...]
    form: Any
    factorizes: bool

    def __call__(self, leaves: Sequence[jax.Array]) -> Any:
        """The results, within a program that is traced."""
        if self.factorizes:
            _find_lapack()
        return jax.tree.unflatten(jax.tree.structure(self.form), _TRACED.bind(*leaves, trace=self))


def trace(function: Callable[..., Any], leaves: Sequence[jax.Array]) -> Trace | None:
    """Trace a function of flat arrays.

    Args:
        function: of arrays, whose results are a tree of arrays.
        leaves: its arguments, or what stands for them.

    Returns:
        None where its module does not say all that it does: where it calls Python, or code of this process.
    """
    forms: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        results, structure = jax.tree.flatten(function(*values))
        forms.append(jax.tree.unflatten(structure, range(len(results))))
        return results

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in leaves]
    traced = jax.jit(flat, keep_unused=True).trace(*shapes)
    if traced.jaxpr.effects:
        return None
    lowered = traced.lower()
    called = set(_CALLED.findall(lowered.as_text()))
    if not all(name.startswith("lapack_") for name in called):
        return None
    module = _to_bytecode(lowered.compiler_ir("stablehlo"))
    results = tuple((x.shape, str(x.dtype), x.weak_type) for x in traced.jaxpr.out_avals)
    return Trace(getattr(function, "__name__", "function"), module, results, forms[-1], bool(called))


def read_trace(path: Path) -> Trace | None:
    """The trace of a file; None where there is none that can be read."""
    try:
        content = path.read_bytes()
        digest, parts = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(parts).digest() != digest:
            raise ValueError("damaged")
        return Trace(*pickle.loads(parts))
    except OSError:  # absent, or another user's
        return None
    except Exception:  # damaged, or of classes that are gone
        with suppress(OSError):
            path.unlink()
        return None


def write_trace(path: Path, traced: Trace) -> None:
    """Keep it for other processes, where that is possible."""
    try:
        parts = (traced.name, traced.module, traced.results, traced.form, traced.factorizes)
        pickled = pickle.dumps(parts)
    except Exception:  # results of a class that cannot be found by its name
        return
    with suppress(OSError):
        make_folder(path.parent)
        # under a name of its own until it is whole; what others may read of the folder they may of the file
        beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            beside.write_bytes(hashlib.sha256(pickled).digest() + pickled)
            os.replace(beside, path)
        except OSError:  # a full disk
            beside.unlink()
            raise


@cache
def _find_lapack() -> None:
    """JAX looks for LAPACK's functions where it lowers a factorization; without, a process that calls them dies."""
    jax.jit(jax.numpy.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), float))


def _types(*_: Any, trace: Trace) -> list[Any]:
    return [
        jax.core.ShapedArray(shape, jax.numpy.dtype(kind), weak_type=weak)
        for shape, kind, weak in trace.results
    ]


def _lower(context: Any, *values: Any, trace: Trace) -> Any:
    target = context.module_context
    with target.context:
        module = mlir.ir.Module.parse(trace.module)
    main: Any = mlir.ir.SymbolTable(module.operation)["main"]
    kinds = main.type.results
    name = _merge(target.module, trace.name, module, dst_symtab=target.symbol_table)
    return func.CallOp(kinds, mlir.ir.FlatSymbolRefAttr.get(name), list(values)).results


if HAS_TRACES:
    _TRACED = Primitive("traced_before")
    _TRACED.multiple_results = True
    _TRACED.def_abstract_eval(_types)
    mlir.register_lowering(_TRACED, _lower)
