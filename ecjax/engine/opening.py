"""Engines by name."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ecjax.engine.options import EngineOptions
from ecjax.engine.serial import Serial
from ecjax.engine.tasks import Engine
from ecjax.errors import UserError
from ecjax.options import checked


@dataclass
class _Kept:
    """Engines that stay open.

    Attributes:
        stack: closes them.
        engines: by what they were opened with.
        in_use: those that somebody has opened and not yet left, the innermost last.
    """

    stack: ExitStack
    engines: dict[Any, Engine] = field(default_factory=dict)
    in_use: list[Engine] = field(default_factory=list)

    @contextmanager
    def lent(self, engine: Engine) -> Iterator[Engine]:
        """One of them, while the others leave it the cores that they do not compute on."""
        for other in self.engines.values():
            if other is not engine:
                other.release()
        self.in_use.append(engine)
        try:
            yield engine
        finally:
            self.in_use.pop()
            if self.in_use and self.in_use[-1] is not engine:
                engine.release()  # whose turn it is now needs the cores


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept_engines() -> Iterator[None]:
    """Within the block an engine that was opened stays open: who asks for the same one again gets it.

    One of them at a time has the cores: the processes of the others end, and start again with their next map.
    """
    with ExitStack() as stack:
        before = _kept.set(_Kept(stack))
        try:
            yield
        finally:
            _kept.reset(before)


@contextmanager
def open_engine(options: EngineOptions, accelerated: bool = False) -> Iterator[Engine]:
    """Start or join what the work is to run on, and leave it at the end.

    Args:
        options: which engine.
        accelerated: whether the work gains from a GPU.

    Raises:
        UserError: an option has a value that is not allowed, or the cluster cannot be reached.
    """
    options = checked(options, "engine.")
    kept = _kept.get()
    if kept is None:
        with _opened(options, accelerated) as engine:
            yield engine
        return
    key = options, accelerated
    if key not in kept.engines:
        kept.engines[key] = kept.stack.enter_context(_opened(options, accelerated))
    with kept.lent(kept.engines[key]) as engine:
        yield engine


@contextmanager
def _opened(options: EngineOptions, accelerated: bool) -> Iterator[Engine]:
    if options.name == "serial":
        yield Serial()
        return
    # Ray is slow to import, and need not be there
    try:
        from ecjax.engine.cluster import joined
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise UserError("engine=ray: Ray is not installed; pip install ray, or take engine=serial") from None
    with joined(options, accelerated) as cluster:
        yield cluster
