"""Engines by name."""

from collections.abc import Iterator
from contextlib import contextmanager

from ecjax.engine.options import EngineOptions
from ecjax.engine.serial import Serial
from ecjax.engine.tasks import Engine
from ecjax.errors import UserError
from ecjax.options import checked


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
