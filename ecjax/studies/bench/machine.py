"""What the benchmarks ran on, and the memory that they took."""

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

PACKAGES = ("jax", "jaxlib", "optax", "numpy", "scipy", "numba", "pyarrow", "pandas", "hydra-core", "ray")
_PROCESS_STATUS = Path("/proc/self/status")


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Name of the processor."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def device() -> str:
    """Where arrays are: JAX's device if this process has loaded JAX and it is no CPU, else the processor."""
    if "jax" in sys.modules:
        first = sys.modules["jax"].devices()[0]
        if first.platform != "cpu":
            return str(first.device_kind)
    return processor()


def describe() -> dict[str, object]:
    """Processor, cores, memory and versions."""
    return {
        "processor": processor(),
        "cores": cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "platform": platform.system(),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # the suite gpu needs neither Ray nor Hydra
            versions[name] = version(name)
    return versions


def peak_rss_bytes() -> int:
    """Largest resident set of this process so far, B.

    Linux counts it per program image; getrusage would count the parent's memory at the fork too.
    """
    if _PROCESS_STATUS.exists():
        for line in _PROCESS_STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not on every platform

    unit = 1 if psutil.MACOS else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
