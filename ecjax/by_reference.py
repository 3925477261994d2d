"""Records of many arrays, passed by reference between functions that Numba compiles.

Numba passes a named tuple by value: one of 47 arrays is 330 arguments of every function that gets it, of all that these
call, and of every call in them. Compiling is mostly that. Behind a reference they are one argument.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.manager import DataModelManager
from numba.core.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate


class Reference(types.Type):
    """Numba's type of a reference to a named tuple."""

    def __init__(self, record: types.NamedTuple) -> None:
        self.record = record
        # names of types are part of the names of functions
        digest = hashlib.sha256(str(record).encode()).hexdigest()[:16]
        super().__init__(name=f"Reference({record.instance_class.__name__}-{digest})")

    @property
    def key(self) -> types.NamedTuple:
        """What makes two of them the same type."""
        return self.record


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    """A pointer to the values of the tuple."""

    def __init__(self, manager: DataModelManager, reference: Reference) -> None:
        values = manager.lookup(reference.record).get_value_type()
        super().__init__(manager, reference, values.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        record = value.record
        if attr not in record.fields:
            return None
        field = record.types[record.fields.index(attr)]
        return Reference(field) if isinstance(field, types.NamedTuple) else field


@lower_getattr_generic(Reference)
def _read(
    context: Any, builder: ir.IRBuilder, reference: Reference, pointer: ir.Value, name: str
) -> ir.Value:
    place = reference.record.fields.index(name)
    field = reference.record.types[place]
    address = cgutils.gep_inbounds(builder, pointer, 0, place)
    if isinstance(field, types.NamedTuple):
        return address
    return impl_ret_borrowed(context, builder, field, builder.load(address))


def _by_reference(
    typingctx: Any, record: types.NamedTuple | Reference
) -> tuple[Any, Callable[..., ir.Value]]:
    """A reference to a named tuple (or to what a reference is to), whose fields are read from it as from the tuple.

    Fields that are named tuples themselves are references, too.

    For the function that Python calls, to pass on to those that it calls. The tuple is to be an argument of that
    function, or a field of one: the reference keeps nothing alive, and ends with the function.
    """
    reference = record if isinstance(record, Reference) else Reference(record)

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        return args[0] if reference is record else cgutils.alloca_once_value(builder, args[0])

    return reference(record), codegen


# to Python's types it takes what compiled functions pass: the record alone
by_reference: Any = intrinsic(_by_reference)
