"""Options of the engine. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass

from ecjax.errors import UserError
from ecjax.options import Special, Whole, Words, Wrong, is_number, option, shown

NAMES = ("serial", "ray")
_ADDRESSES = (
    "host:port, or auto, of a cluster (ray start --head prints it); without it Ray is started on this machine"
)


def _address(value: object) -> str:
    text = str(value)
    host, _, port = text.rpartition(":")
    named = bool(host) and "/" not in host and port.isdigit() and 0 < int(port) < 65536
    if not (text == "auto" or named):
        client = text.startswith("ray://")
        raise Wrong(
            repr(value), f"{_ADDRESSES}; ray:// is for Ray Client, which is not used" if client else None
        )
    return text


def _part(value: object) -> float:
    if not is_number(value) or not (value == 0 or 0.01 <= value < 1 or value == int(value) >= 1):  # type: ignore
        raise Wrong(shown(value))
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class EngineOptions:
    """Where a study runs."""

    name: str = option(
        "serial", "serial (this process, all its cores) or ray; engine=ray sets it", Words(*NAMES)
    )
    address: str | None = option(
        None,
        "of a Ray cluster: host:port, or auto (that of this machine); default: Ray is started on this machine",
        Special(_ADDRESSES, _address),
    )
    actors: int | None = option(
        None, "worker processes; default: as many as there are cores (or GPUs) for", Whole(1)
    )
    cpus_per_actor: int = option(1, "cores that each of them takes", Whole(1))
    gpus_per_actor: float | None = option(
        None,
        "GPUs that each takes (0.5: half of one); default: 1 where there are any and the job gains from them, else 0",
        Special("0, a part of 1 (0.01 at least), or a whole number", _part),
    )
    retries: int = option(
        2,
        "how often a run is tried again that was lost with its worker or node (batches are halved, too)",
        Whole(0),
    )

    def completed(self) -> "EngineOptions":
        """These options, if they go together.

        Raises:
            UserError: they do not.
        """
        if self.name == "serial":
            for name in ("address", "actors", "gpus_per_actor"):
                if getattr(self, name) is not None:
                    raise UserError(
                        f"engine.{name}: found {getattr(self, name)!r}; allowed: nothing with engine=serial; "
                        "engine=ray takes it"
                    )
        return self
