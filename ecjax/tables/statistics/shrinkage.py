"""Rates of files of which most were read once or never: what all files tell together about each.

Reads of file i in T seconds are Poisson with mean lambda_i T, and the rates are from one gamma law of shape a and rate
b (s). Counts are then negative binomial, which gives a and b by maximum likelihood (empirical Bayes), and of a count c

    E[lambda | c] = (c + a) / (T + b)        sd[lambda | c] = sqrt(c + a) / (T + b)

A log names only files that were accessed: the likelihood is then that of counts above 0. Two things differ from the
plain formula:

- Popularity often has a heavier tail than any gamma law, which would take a fifth and more from the rates of files read
  thousands of times. Files with a count that the fitted law reaches with a probability of less than 5 %, for the most
  read of all files, keep c / T and its error sqrt(c) / T.
- Rates are scaled to add up to all reads / T. At the maximum of the likelihood of all counts they do by themselves, but
  for these files; of counts above 0 the rest is what files without a read would have.

References:
    H. Robbins, An empirical Bayes approach to statistics, Proc. 3rd Berkeley Symposium, 1956.
    R. A. Fisher, A. S. Corbet and C. B. Williams, The relation between the number of species and the number of
    individuals in a random sample of an animal population, J. Animal Ecology 12 (1943) 42-58.
    B. Efron and C. Morris, Limiting the risk of Bayes and empirical Bayes estimators, part II, JASA 67 (1972) 130-139.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betainc, gammaln

from ecjax.units import count_text

_SHAPES = np.log(1e-6), np.log(1e6)  # between a logarithmic series of counts and one rate for all files
_LEVEL = 0.05


def poisson_error(counts: np.ndarray, duration_s: float) -> np.ndarray:
    """Standard errors (1/s) of counts / duration, where reads are Poisson, (files,); 0 of a count of 0."""
    return np.sqrt(counts) / duration_s


class GammaLaw(NamedTuple):
    """A gamma law of rates, in counts.

    Attributes:
        shape: a.
        mean: expected count of a file, a T / b.
    """

    shape: float
    mean: float

    @property
    def unread(self) -> float:
        """Probability of a count of 0."""
        return float(np.exp(-self.shape * np.log1p(self.mean / self.shape)))


class Shrunk(NamedTuple):
    """Rates of files.

    Attributes:
        rate: (files,) 1/s.
        error: (files,) 1/s, standard errors for Poisson reads.
        law: of all rates; None: the counts tell none, and rates are as counted.
        as_counted: files that keep the rate of their own count.
        unnamed: share of reads to come of files that are not in the log.
    """

    rate: np.ndarray
    error: np.ndarray
    law: GammaLaw | None
    as_counted: int = 0
    unnamed: float = 0.0


def fit_gamma(counts: np.ndarray, truncated: bool) -> GammaLaw | None:
    """The gamma law of rates with the largest likelihood; None where counts tell none, as those that are all 1.

    Args:
        counts: (files,) of reads, at least 1 where truncated.
        truncated: whether files without a read are missing.
    """
    values, files = np.unique(counts, return_counts=True)
    if len(counts) < 2 or values[-1] <= int(truncated):
        return None
    average = float(values @ files / files.sum())

    def law(log_shape: float) -> GammaLaw:
        shape = float(np.exp(log_shape))
        if not truncated:
            return GammaLaw(shape, average)

        def excess(mean: float) -> float:
            return mean + average * np.expm1(-shape * np.log1p(mean / shape))

        return GammaLaw(shape, brentq(excess, average * 1e-12, average, xtol=1e-300, rtol=1e-13))

    def loss(log_shape: float) -> float:
        shape, mean = one = law(log_shape)
        terms = gammaln(shape + values) - gammaln(shape) - gammaln(values + 1)
        terms += values * np.log(mean / (shape + mean)) - shape * np.log1p(mean / shape)
        return float(-files @ terms + (files.sum() * np.log1p(-one.unread) if truncated else 0.0))

    return law(minimize_scalar(loss, bounds=_SHAPES, method="bounded", options={"xatol": 1e-9}).x)


def shrinkage_sentence(shrunk: Shrunk) -> str:
    """What was done to rates, and what it assumes."""
    if shrunk.law is None:
        return "Rates are as counted: so few reads tell no law that files share."
    text = (
        f"Rates are those that all files together make likely: a gamma law of shape {shrunk.law.shape:.3g} and Poisson "
        "reads, which bursts are not"
    )
    if shrunk.as_counted:
        keeps = count_text(shrunk.as_counted, "file keeps", "files keep")
        text += f"; {keeps} the counted rate, which that law does not allow"
    if shrunk.unnamed > 0:
        text += (
            f"; {shrunk.unnamed:.1%} of reads to come are of files that this log does not name, and those named "
            "have their rates (catalog=FILE names all)"
        )
    return f"{text}. They add up to the reads counted."


def shrunk_rates(counts: np.ndarray, duration_s: float, truncated: bool) -> Shrunk:
    """Rates of files from what all of them show.

    Args:
        counts: (files,) of reads.
        duration_s: T, in which they came.
        truncated: whether files that were not accessed are missing; those with a count of 0 are then left out of the
            fit.
    """
    counts = np.asarray(counts, np.float64)
    law = fit_gamma(counts[counts > 0] if truncated else counts, truncated)
    rate, error = counts / duration_s, poisson_error(counts, duration_s)
    if law is None:
        return Shrunk(rate, error, None)
    prior_s = law.shape * duration_s / law.mean
    # P(count >= c) of a negative binomial is a regularised incomplete beta function
    tail = betainc(np.maximum(counts, 1.0), law.shape, law.mean / (law.shape + law.mean))
    named = 1 - law.unread if truncated else 1.0
    popular = (counts > 0) & (tail / named * len(counts) < _LEVEL)
    posterior = (counts + law.shape) / (duration_s + prior_s)
    total = counts.sum() / duration_s
    unnamed = max(0.0, 1 - posterior.sum() / total) if truncated else 0.0
    factor = (total - rate[popular].sum()) / posterior[~popular].sum() if not popular.all() else 1.0
    return Shrunk(
        np.where(popular, rate, factor * posterior),
        np.where(popular, error, factor * np.sqrt(counts + law.shape) / (duration_s + prior_s)),
        law,
        int(np.count_nonzero(popular)),
        unnamed,
    )
