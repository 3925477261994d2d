"""How rules say what they decide."""

from collections.abc import Sequence

import numpy as np

from ecjax.studies.reproduce.claim import Finding, Verdict


def exact(error: float, tolerance: float, why: str = "") -> Finding:
    """A formula that agrees with another computation: the largest relative difference is within the tolerance."""
    if error <= tolerance:
        return Finding(Verdict.HOLDS, error, why=why)
    return Finding(
        Verdict.FAILS, error, why=f"differs by {error:.2g}, relatively; allowed {tolerance:.2g}. {why}"
    )


def judge(
    holds: bool, ours: float | None, why: str, low: float | None = None, high: float | None = None
) -> Finding:
    """A claim that holds or does not; ``why`` is the evidence for either."""
    return Finding(Verdict.HOLDS if holds else Verdict.FAILS, ours, low, high, why)


def in_shape(
    holds: bool, ours: float | None, why: str, low: float | None = None, high: float | None = None
) -> Finding:
    """A claim that can hold in shape only, as ``why`` says."""
    return Finding(Verdict.IN_SHAPE if holds else Verdict.FAILS, ours, low, high, why)


def refuted(
    differs: bool, ours: float | None, why: str, low: float | None = None, high: float | None = None
) -> Finding:
    """A claim that is expected to differ, for the reason in ``why``; it holds where it does not."""
    return Finding(Verdict.FAILS if differs else Verdict.HOLDS, ours, low, high, why)


def testbed(ours: float | None, why: str, low: float | None = None, high: float | None = None) -> Finding:
    """Seconds of the authors' machines, with ours beside them."""
    return Finding(Verdict.TESTBED, ours, low, high, why)


def rises(values: Sequence[float] | np.ndarray, slack: float = 0.0) -> bool:
    """Whether every value is at least its predecessor, up to a relative slack."""
    numbers = np.asarray(values, float)
    return bool((numbers[1:] >= numbers[:-1] * (1 - slack)).all())


def texts(values: Sequence[float] | np.ndarray, form: str = ".3g") -> str:
    """Numbers in a sentence."""
    return ", ".join(format(value, form) for value in values)


def least_ratio(bounds: np.ndarray, means: np.ndarray, halves: np.ndarray) -> tuple[float, float, float]:
    """The least bound over the mean that it bounds, and its interval.

    Args:
        bounds: (r,) s.
        means: (r,) s, replayed.
        halves: (r,) s, half widths of their 95 % intervals.

    Returns:
        The least ratio, the least lower end of all ratios, and the upper end of the least one.
    """
    ratios = bounds / means
    least = int(np.argmin(ratios))
    upper = bounds[least] / (means[least] - halves[least])
    return float(ratios[least]), float((bounds / (means + halves)).min()), float(upper)
