"""Starting Ray on this machine, or joining a cluster: what can go wrong there is the user's to mend, in one line."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
# Ray reads its settings when it is imported. Of a cluster that is named it does not look for a token unless it is told
if any(map(os.environ.get, _TOKENS)) or Path("~/.ray/auth_token").expanduser().exists():
    os.environ.setdefault("RAY_AUTH_MODE", "token")
# `uv run` would have Ray pack the working folder and build every worker an environment of its own
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# the driver may be on the machine whose GPUs the workers are to have
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# what Ray prints of dead workers goes to standard output, among the results; the engine says it in log lines
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")

import ray  # noqa: E402
from ray.exceptions import AuthenticationError, RayError  # noqa: E402

from ecjax.engine.private import private_session, watched  # noqa: E402
from ecjax.errors import UserError  # noqa: E402
from ecjax.interrupts import same_answer  # noqa: E402

log = logging.getLogger("ecjax")

_REACHED_S = 5.0


@contextmanager
def join(address: str | None) -> Iterator[None]:
    """Be part of a cluster; one that this process has joined already is taken and left as it is.

    Args:
        address: host:port, or auto; None starts Ray on this machine, for as long as it is needed.

    Raises:
        UserError: there is no such cluster, or it does not let us in.
    """
    if ray.is_initialized():
        yield
        return
    if address is not None:
        _warn_of_open_token()
        _reach(address, _latest() if address == "auto" else address)
    with private_session() if address is None else watched() as folder:
        try:
            with warnings.catch_warnings(), same_answer():
                # of JAX, in a process that has used it: Ray's processes are programs of their own
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                ray.init(
                    address=address or "local",
                    include_dashboard=None if address else False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _temp_dir=folder,
                )
        except (Exception, SystemExit) as error:
            if address is None:
                raise UserError(f"engine=ray: {_not_started(error)}") from error
            raise UserError(f"engine.address={address}: {_why(error)}") from error
        try:
            yield
        finally:
            ray.shutdown()


def _warn_of_open_token() -> None:
    """Say where others on this machine can read the token of a cluster."""
    if os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
    with suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            log.warning(
                "%s: others on this machine can use this token (mode %04o): chmod 600 %s", path, mode, path
            )


def places(cores: int, gpus: float) -> int:
    """How many workers of so many cores and GPUs the nodes have room for, were they idle."""
    total = 0
    for node in ray.nodes():
        if node["Alive"]:
            has = node["Resources"]
            room = int(has.get("CPU", 0) // cores)
            if gpus:
                # a worker has parts of one GPU, or several as a whole
                whole = int(has.get("GPU", 0))
                room = min(room, whole * int(1 / gpus + 1e-9) if gpus < 1 else int(whole // gpus))
            total += room
    return total


def gpus_in_cluster() -> float:
    """GPUs of all nodes."""
    return sum(node["Resources"].get("GPU", 0.0) for node in ray.nodes() if node["Alive"])


def _latest() -> str | None:
    """Where Ray would look for the cluster of this machine: what it notes outlives the cluster."""
    try:
        # there is no public way to ask
        from ray._private.services import get_ray_address_from_environment

        address = get_ray_address_from_environment("auto", None)
    except (ImportError, TypeError, ConnectionError):  # the last where it has noted none
        return None
    return None if address in (None, "auto", "local") else address


def _reach(setting: str, address: str | None) -> None:
    """Look whether a cluster is there and lets us in: Ray itself takes minutes, and many lines, to find that out.

    Args:
        setting: what the user said.
        address: what that means; None where Ray is to find out.

    Raises:
        UserError: nothing listens there, or it asks for another token.
    """
    if address is None:
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACHED_S).close()
    except (OSError, OverflowError) as error:
        where = "there" if setting == address else f"at {address}"
        raise UserError(
            f"engine.address={setting}: nothing answers {where} ({error}); is the cluster up (ray start --head), and "
            "is this its address?"
        ) from error
    with suppress(ImportError):
        # there is no public way to ask
        from ray._raylet import GcsClient  # type: ignore[attr-defined]

        try:
            GcsClient(address=address)
        except RayError as error:
            raise UserError(f"engine.address={setting}: {_why(error)}") from error


def _not_started(error: BaseException) -> str:
    return (
        "Ray did not start on this machine, which may be too busy, or full (engine=serial needs no Ray): "
        f"{_text(error)[:300]}"
    )


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _why(error: BaseException) -> str:
    text = _text(error)
    if isinstance(error, AuthenticationError):
        return (
            "the cluster asks for its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token as on "
            f"its head node ({text[:180]})"
        )
    if isinstance(error, ConnectionError) and "any running Ray" in text:
        return "no cluster runs on this machine; start one (ray start --head), or name its host:port"
    return f"cannot be joined, is it the port of a cluster (6379 unless told otherwise)? {text[:300]}"
