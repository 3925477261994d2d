"""Options of the engine. Light on purpose: the command line reads it before anything heavy loads."""

import math
from dataclasses import dataclass, field
from typing import Any

from ecjax.errors import UserError

NAMES = ("serial", "ray")


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class EngineOptions:
    """Where a study runs."""

    name: str = _option("serial", "serial (this process, all its cores) or ray; engine=ray sets it")
    address: str | None = _option(
        None,
        "of a Ray cluster: host:port, or auto (that of this machine); default: Ray is started on this machine",
    )
    actors: int | None = _option(None, "worker processes; default: as many as there are cores (or GPUs) for")
    cpus_per_actor: int = _option(1, "cores that each of them takes")
    gpus_per_actor: float | None = _option(
        None,
        "GPUs that each takes (0.5: half of one); default: 1 where there are any and the job gains from them, else 0",
    )
    retries: int = _option(2, "how often a run is tried again that was lost with its worker or node")


def check(options: EngineOptions) -> None:
    """Refuse values that are not allowed.

    Raises:
        UserError: with the option, what was found and what is allowed.
    """

    def refuse(name: str, allowed: str) -> UserError:
        return UserError(f"engine.{name}: found {getattr(options, name)!r}; allowed: {allowed}")

    if options.name not in NAMES:
        raise refuse("name", ", ".join(NAMES))
    for name, least in (("actors", 1), ("cpus_per_actor", 1), ("retries", 0)):
        found = getattr(options, name)
        if name == "actors" and found is None:
            continue
        if isinstance(found, bool) or not isinstance(found, int) or found < least:
            raise refuse(name, f"integers >= {least}")
    gpus = options.gpus_per_actor
    if gpus is not None and (
        isinstance(gpus, bool)
        or not isinstance(gpus, int | float)
        or not math.isfinite(gpus)
        or not (gpus == 0 or 0.01 <= gpus < 1 or gpus == int(gpus) >= 1)
    ):
        raise refuse("gpus_per_actor", "0, a part of 1 (0.01 at least), or a whole number")
    if options.name == "serial":
        given = [
            name for name in ("address", "actors", "gpus_per_actor") if getattr(options, name) is not None
        ]
        if given:
            raise refuse(given[0], "nothing with engine=serial; engine=ray takes it")
