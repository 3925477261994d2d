"""Laws of the delay of a task by the size of its chunk, and TOFEC's linear model of them."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from ecjax.adaptation.proxy import EMPIRICAL, EXPONENTIAL, LOGNORMAL, RequestClass, Tasks

_MB, _MS = 1e6, 1e-3
_TRIMMED = 0.1  # share of the delays, the longest, that TOFEC's estimation leaves out
_GRID = 4096  # probabilities by which moments of a law are integrated
_QUANTILES = 2001  # of an empirical law, as tabulated for the replay


class DelayModel(NamedTuple):
    """Delay of a task for a chunk of B bytes: (shift_0 + shift_1 B) + (scale_0 + scale_1 B) U, or quantiles by size.

    U is exponential with mean 1 (EXPONENTIAL) or exp(shape N) (LOGNORMAL). EMPIRICAL takes quantiles, linear in B
    between the sizes that were measured; beyond them the line through the two nearest goes on, but never below 0, and
    towards smaller sizes not below what is in proportion to the size, as that line may cross 0 before the size does.
    """

    name: str
    kind: int
    shape: float = 0.0  # standard deviation of log U; lognormal only
    rho: float = 0.0  # correlation of the normal scores of two tasks of one request
    shift_s: float = 0.0
    shift_s_per_byte: float = 0.0
    scale_s: float = 0.0
    scale_s_per_byte: float = 0.0
    sizes: np.ndarray = np.empty(0)  # (S,) bytes, ascending; empirical only
    quantiles: np.ndarray = np.empty((0, 0))  # (S, Q) s, at probabilities 0, 1/(Q-1), ..., 1


class LinearDelays(NamedTuple):
    """TOFEC's model: D = Delta + Exp(mean Psi), both linear in the bytes of the chunk."""

    delta_s: float
    delta_s_per_byte: float
    psi_s: float
    psi_s_per_byte: float


def _lognormal_rho(correlation: float, shape: float) -> float:
    """Correlation of normal scores that gives lognormal delays this correlation."""
    return math.log1p(correlation * math.expm1(shape**2)) / shape**2


# reads of 3 MB from a public object store: laws with the means and medians that the TOFEC paper reports
BUILT_IN = {
    model.name: model
    for model in (
        DelayModel(
            "shifted_exp",
            EXPONENTIAL,
            shift_s=11.3 * _MS,
            shift_s_per_byte=28.56 * _MS / _MB,
            scale_s=85.7 * _MS,
            scale_s_per_byte=7.44 * _MS / _MB,
        ),
        DelayModel(
            "shifted_lognormal",
            LOGNORMAL,
            shape=1.33,
            shift_s=49.0 * _MS,
            shift_s_per_byte=24.20 * _MS / _MB,
            scale_s=21.3 * _MS,
            scale_s_per_byte=4.39 * _MS / _MB,
        ),
        # tasks of one request read the same object (Shared Key): their delays correlate by 0.14
        DelayModel(
            "correlated",
            LOGNORMAL,
            shape=1.189,
            rho=_lognormal_rho(0.14, 1.189),
            shift_s=23.4 * _MS,
            shift_s_per_byte=28.92 * _MS / _MB,
            scale_s=38.9 * _MS,
            scale_s_per_byte=2.37 * _MS / _MB,
        ),
    )
}


def quantile(model: DelayModel, size: float, probability: np.ndarray) -> np.ndarray:
    """Quantiles of the delay of a task, s.

    Args:
        model: law of the delays.
        size: bytes of the chunk.
        probability: any shape, in [0, 1).
    """
    if model.kind == EMPIRICAL:
        return np.interp(probability, np.linspace(0, 1, model.quantiles.shape[1]), _empirical(model, size))
    shift, scale = _affine(model, size)
    if model.kind == EXPONENTIAL:
        return shift - scale * np.log1p(-probability)
    return shift + scale * np.exp(model.shape * special.ndtri(probability))


def mean_delay(model: DelayModel, size: float) -> float:
    """Mean delay of a task for a chunk of ``size`` bytes, s."""
    if model.kind == EMPIRICAL:
        return float(np.trapezoid(_empirical(model, size), dx=1 / (model.quantiles.shape[1] - 1)))
    shift, scale = _affine(model, size)
    return shift + scale * (1.0 if model.kind == EXPONENTIAL else math.exp(model.shape**2 / 2))


def linear_delays(model: DelayModel, sizes: np.ndarray) -> LinearDelays:
    """TOFEC's linear model of a law of delays.

    A shifted exponential is its own. Otherwise as TOFEC estimates it: the worst 10 % of the delays of every chunk size
    are left out, mean and standard deviation of the others are fitted by least squares on the size, Psi is the
    deviation, Delta the mean less the deviation (Sections III-C, V-A).

    Args:
        model: law of the delays.
        sizes: (S,) bytes, chunk sizes to fit on, at least one.
    """
    if model.kind == EXPONENTIAL:
        return LinearDelays(model.shift_s, model.shift_s_per_byte, model.scale_s, model.scale_s_per_byte)
    sizes = np.unique(np.asarray(sizes, float))
    probability = (np.arange(_GRID) + 0.5) / _GRID * (1 - _TRIMMED)
    trimmed = np.array([quantile(model, size, probability) for size in sizes])
    mean, deviation = trimmed.mean(axis=1), trimmed.std(axis=1)
    if len(sizes) == 1:
        return LinearDelays(float(mean[0] - deviation[0]), 0.0, float(deviation[0]), 0.0)
    psi_slope, psi = np.polyfit(sizes, deviation, 1)
    delta_slope, delta = np.polyfit(sizes, mean - deviation, 1)
    return LinearDelays(float(delta), float(delta_slope), float(psi), float(psi_slope))


def tasks_of(classes: list[RequestClass], models: list[DelayModel]) -> Tasks:
    """What the replay needs to know of the delays of C classes, each with its own law (C,)."""
    most = max(c.k_max for c in classes)
    shift, scale = np.zeros((2, len(classes), most + 1))
    empirical = any(model.kind == EMPIRICAL for model in models)
    quantiles = np.zeros((len(classes), most + 1, _QUANTILES if empirical else 0))
    grid = np.linspace(0, 1, _QUANTILES)
    for c, (request_class, model) in enumerate(zip(classes, models, strict=True)):
        for k in range(1, most + 1):
            if model.kind == EMPIRICAL:
                quantiles[c, k] = quantile(model, request_class.bytes / k, grid)
            else:
                shift[c, k], scale[c, k] = _affine(model, request_class.bytes / k)
    return Tasks(
        np.array([model.kind for model in models]),
        np.array([model.shape for model in models], float),
        np.array([model.rho for model in models], float),
        shift,
        scale,
        quantiles,
        np.array([c.background for c in classes]),
    )


def _affine(model: DelayModel, size: float) -> tuple[float, float]:
    return model.shift_s + model.shift_s_per_byte * size, model.scale_s + model.scale_s_per_byte * size


def _empirical(model: DelayModel, size: float) -> np.ndarray:
    """(Q,) quantiles for a chunk of ``size`` bytes."""
    sizes, quantiles = model.sizes, model.quantiles
    if len(sizes) == 1:
        return quantiles[0]
    right = int(np.clip(np.searchsorted(sizes, size), 1, len(sizes) - 1))
    part = (size - sizes[right - 1]) / (sizes[right] - sizes[right - 1])
    line = quantiles[right - 1] + part * (quantiles[right] - quantiles[right - 1])
    least = quantiles[0] * size / sizes[0] if size < sizes[0] else 0.0
    return np.maximum.accumulate(np.maximum(line, least))
