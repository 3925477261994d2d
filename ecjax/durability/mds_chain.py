"""Loss of one group of an MDS code whose chunks fail one by one."""

import math

import numpy as np

HOURS_PER_YEAR = 8766.0
DAYS_PER_YEAR_OF_WINDOWS = 365.0


def mean_years_to_loss(n: int, failure_rate: float, repair_rates: list[float]) -> float:
    """Mean time until m + 1 of n chunks are missing, m = len(repair_rates).

    MTTDL = sum_{i=0..m} e_i with e_0 = 1 / lambda_0 and e_i = (1 + mu_i e_{i-1}) / lambda_i,
    lambda_i = (n - i) lambda: exact, and without a subtraction.

    Args:
        n: chunks of a group
        failure_rate: failures per chunk and year, > 0
        repair_rates: [m] repairs per year with 1, ..., m chunks missing, one at a time

    Returns:
        years
    """
    years = time = 1 / (n * failure_rate)
    for missing, repair_rate in enumerate(repair_rates, start=1):
        time = (1 + repair_rate * time) / ((n - missing) * failure_rate)
        years += time
    return years


def product_years_to_loss(n: int, failure_rate: float, repair_rates: list[float]) -> float:
    """The usual product prod mu_i / prod lambda_i for the mean time to loss; below the exact value.

    Args:
        n: chunks of a group
        failure_rate: failures per chunk and year, > 0
        repair_rates: [m] repairs per year with 1, ..., m chunks missing
    """
    years = 1 / (n * failure_rate)
    for missing, repair_rate in enumerate(repair_rates, start=1):
        years *= repair_rate / ((n - missing) * failure_rate)
    return years


def loss_within(years: float, n: int, failure_rate: float, repair_rates: list[float]) -> float:
    """Probability that a group that begins whole is lost within `years`.

    The time to loss is a sum of independent exponentials whose rates a_0 < a_1 < ... are the eigenvalues of the chain
    (Keilson): F(t) = sum_i C_i (1 - e^{-a_i t}), C_i = prod_{j != i} a_j / (a_j - a_i). The smallest one is far below
    the precision of an eigenvalue solver; it follows from prod a_i = prod lambda_i.
    """
    failures = failure_rate * (n - np.arange(len(repair_rates) + 1))
    repairs = np.concatenate([[0.0], repair_rates])
    beside = np.sqrt(failures[:-1] * repairs[1:])
    symmetric = np.diag(failures + repairs) + np.diag(beside, 1) + np.diag(beside, -1)
    decays = np.linalg.eigvalsh(symmetric)
    decays[0] = math.exp(np.sum(np.log(failures)) - np.sum(np.log(decays[1:])))
    shares = [np.prod([b / (b - a) for j, b in enumerate(decays) if j != i]) for i, a in enumerate(decays)]
    return float(sum(share * -math.expm1(-a * years) for share, a in zip(shares, decays, strict=True)))


def fixed_windows_loss(n: int, m: int, failure_rate: float, days: float) -> float:
    """Annual loss as Backblaze counts it: more than m of n failures within one of 365 / days windows.

    Failures that overlap across the border of two windows are not counted, so this is about m + 1 times too small
    for repairs that take `days`.

    Args:
        n: chunks of a group
        m: chunks that may be missing
        failure_rate: failures per chunk and year
        days: length of a window, the time of a repair
    """
    windows = DAYS_PER_YEAR_OF_WINDOWS / days
    fails = -math.expm1(-failure_rate / windows)
    lost = sum(math.comb(n, f) * fails**f * (1 - fails) ** (n - f) for f in range(m + 1, n + 1))
    return -math.expm1(windows * math.log1p(-lost))
