"""Engines by name."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from ecjax.engine.options import EngineOptions
from ecjax.engine.serial import Serial
from ecjax.engine.tasks import Engine
from ecjax.errors import UserError
from ecjax.options import checked

_kept: ContextVar[tuple[ExitStack, dict[Any, Engine]] | None] = ContextVar("kept", default=None)


@contextmanager
def kept_engines() -> Iterator[None]:
    """Within the block an engine that was opened stays open: who asks for the same one again gets it."""
    with ExitStack() as stack:
        before = _kept.set((stack, {}))
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
    stack, engines = kept
    if (options, accelerated) not in engines:
        engines[options, accelerated] = stack.enter_context(_opened(options, accelerated))
    yield engines[options, accelerated]


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
