"""How many threads a worker's libraries may start, so that the workers of a node do not fight for its cores."""

import os

from ecjax.cores import VARIABLE

_VARIABLES = (
    VARIABLE,
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    # XLA's own pools
    "NPROC",
    "PJRT_NPROC",
)


def limit_threads(cores: int) -> None:
    """Hold this process to ``cores`` threads of computation; to be called before JAX is imported."""
    for name in _VARIABLES:
        os.environ[name] = str(cores)
    import pyarrow as pa
    from threadpoolctl import threadpool_limits

    pa.set_cpu_count(cores)
    # NumPy is loaded already: with it the BLAS that has read its variable
    threadpool_limits(cores)


def choose_device(gpus: float) -> None:
    """Give JAX the GPUs of this worker, or none; to be called before JAX is imported.

    Args:
        gpus: of this worker; workers that share one divide its memory.
    """
    if gpus == 0:
        os.environ["JAX_PLATFORMS"] = "cpu"
    elif gpus < 1:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 * gpus:.2f}"
