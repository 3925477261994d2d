"""A limit on the address space of the process, under which native code ends without a word of Python's."""

from ecjax.cores import available_cores
from ecjax.units import bytes_text

# `ecjax optimize` of 200 files maps 3.6 GB on two cores (VmPeak of /proc/self/status), and data want room;
# every thread of XLA and of BLAS adds its stack and an arena of the allocator
_LIBRARIES_BYTES, _CORE_BYTES = 5e9, 2e8


def limit_warning() -> str | None:
    """What to say of ``ulimit -v`` where it leaves less than compilers and libraries map; None where it leaves enough.

    Where XLA or a native thread gets no memory it aborts or waits for ever, and nothing in Python can say why.
    """
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ImportError:  # not on Windows
        return None
    limit, enough = getrlimit(RLIMIT_AS)[0], _LIBRARIES_BYTES + _CORE_BYTES * available_cores()
    if limit == RLIM_INFINITY or limit >= enough:
        return None
    return (
        f"the address space is limited to {bytes_text(limit)} (ulimit -v): a job may end, or stand still, without a "
        f"line; allow {bytes_text(enough)}, and limit resident memory otherwise (systemd-run -p MemoryMax=)"
    )
