"""What the claims of the TOFEC paper have in common: reads of 3 MB with 16 threads."""

import numpy as np

from ecjax.adaptation.delays import DelayModel
from ecjax.adaptation.proxy import RequestClass

THREADS = 16
MB = 1e6
FILE_MB = 3
K_MAX, R_MAX = 6, 2
WHY_LAW = "the delays of the object store are not public; the laws here were fitted to its printed means and medians"


def read(megabytes: float = FILE_MB, k_max: int = K_MAX) -> RequestClass:
    """The class of reads of files of a size."""
    return RequestClass("read", "read", megabytes * MB, 1.0, k_max, float(R_MAX), False)


def parts(model: DelayModel, megabytes: float) -> tuple[float, float]:
    """Delta and Psi of a chunk, s."""
    size = megabytes * MB
    return model.shift_s + model.shift_s_per_byte * size, model.scale_s + model.scale_s_per_byte * size


def service(model: DelayModel, n: int, k: int) -> float:
    """Delta + Psi (H_n - H_(n-k)): mean of the k-th of n delays, exponential beyond Delta, s."""
    delta, psi = parts(model, FILE_MB / k)
    return delta + psi * float((1 / np.arange(n - k + 1, n + 1)).sum())


def usage(model: DelayModel, n: int, k: int) -> float:
    """N Delta + k Psi: thread-seconds that a request takes."""
    delta, psi = parts(model, FILE_MB / k)
    return n * delta + k * psi
