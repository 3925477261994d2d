"""The cheapest whole choice of every row at prices: k hot chunks, f cold ones, at most q of them per site.

    A = max over delta of  k delta + the sum of the k + f cheapest min(hot - delta, cold), of each site its q cheapest.

The choice is a flow of least cost, whose polytope has whole corners: this dual has no gap. Its slopes are whole
numbers, k less the hot ones among the cheapest, so that a few tangents reach its top.
"""

from typing import Any, NamedTuple

from ecjax.planning.smoothed.backend import Backend

_ROUNDING = 1e-13
_BEYOND = 30.0  # temperatures above the last chosen node, where no other could follow


class Choices(NamedTuple):
    """Of every row, (R,).

    Attributes:
        value: A, s; infinite where there is no choice.
        shift: delta, s.
        level: s, between the last chosen min(hot - delta, cold) and the next one.
    """

    value: Any
    shift: Any
    level: Any


class _Lines(NamedTuple):
    left_slope: Any  # tangents: value at delta = 0 and slope
    left_value: Any
    right_slope: Any
    right_value: Any
    shift: Any
    value: Any
    level: Any
    open: Any
    turn: Any


def cheapest(
    backend: Backend, hot: Any, cold: Any, k: Any, extra: Any, per_site: int, margin: Any
) -> Choices:
    """The cheapest choices.

    Args:
        backend: of the arrays.
        hot: (R, S, g) s, cost of a chunk that reads use; infinite where there may be none.
        cold: (R, S, g) s, cost of a chunk that they do not use.
        k: (R,) hot chunks.
        extra: (R,) f, cold chunks.
        per_site: q, a number.
        margin: (R,) s; how far above the last chosen node the level lies where there is no next one, in thirtieths.
    """
    xp = backend.xp
    number, sites, width = hot.shape
    keeps = extra > 0
    cold = xp.where(keeps[:, None, None], cold, xp.inf)
    length = k + extra
    k, extra, number_of = (each.astype(hot.dtype) for each in (k, extra, length))
    candidates = sites * min(per_site, width)

    chosen = xp.arange(candidates)[None] < length[:, None]

    def total_of(values: Any) -> Any:
        total = xp.sum(xp.where(chosen, values, 0.0), axis=1)
        return xp.where(length > candidates, xp.inf, total)

    def least(values: Any) -> Any:
        """Of values (R, S, g): the sum of the k + f cheapest."""
        if per_site < width:
            values = xp.sort(values, axis=2)[:, :, :per_site]
        return total_of(xp.sort(values.reshape(number, candidates), axis=1))

    def select(values: Any, marks: Any) -> tuple[Any, Any, Any]:
        """The same, how many of those have marks, and the level."""
        if per_site < width:
            values, marks = (each[:, :, :per_site] for each in backend.sort(values, marks, 2))
        values, marks = (each.reshape(number, candidates) for each in (values, marks))
        values, marks = backend.sort(values, marks, 1)
        total = total_of(values)
        last = xp.take_along_axis(values, xp.clip(length - 1, 0, candidates - 1)[:, None], axis=1)[:, 0]
        following = xp.take_along_axis(values, xp.clip(length, 0, candidates - 1)[:, None], axis=1)[:, 0]
        more = (length < candidates) & xp.isfinite(following)
        level = xp.where(more, 0.5 * (last + xp.where(more, following, 0.0)), last + _BEYOND * margin)
        return total, xp.sum(chosen & marks, axis=1).astype(hot.dtype), level

    all_cold, all_hot = least(cold), least(hot)
    start_shift = xp.where(keeps, (all_hot - all_cold) / xp.maximum(number_of, 1.0), 0.0)
    # where one of the lines does not exist, the other end is good enough to start from
    start_shift = xp.where(xp.isfinite(start_shift), start_shift, 0.0)

    def body(state: _Lines) -> _Lines:
        shifted = hot - state.shift[:, None, None]
        total, of_hot, level = select(xp.minimum(shifted, cold), shifted <= cold)
        slope = k - of_hot
        value = k * state.shift + total
        promised = state.left_value + state.left_slope * state.shift
        scale = _ROUNDING * (xp.abs(value) + xp.abs(k * state.shift))
        top = (slope == 0) | ~(value < promised - scale) | ~keeps | ~xp.isfinite(value)
        better = state.open & ~(value < state.value)
        done = ~state.open | top
        at_zero = value - slope * state.shift
        left = (slope > 0) & ~done
        right = (slope < 0) & ~done
        left_slope = xp.where(left, slope, state.left_slope)
        left_value = xp.where(left, at_zero, state.left_value)
        right_slope = xp.where(right, slope, state.right_slope)
        right_value = xp.where(right, at_zero, state.right_value)
        shift = (right_value - left_value) / xp.where(left_slope > right_slope, left_slope - right_slope, 1.0)
        return _Lines(
            left_slope,
            left_value,
            right_slope,
            right_value,
            xp.where(done, state.shift, shift),
            xp.where(better, value, state.value),
            xp.where(better, level, state.level),
            ~done,
            state.turn + 1,
        )

    none = xp.full(number, -xp.inf)
    first = _Lines(
        k,
        all_cold,
        -extra,
        all_hot,
        start_shift,
        none,
        none,
        xp.ones(number, bool),
        xp.asarray(0),
    )
    most = candidates + 4
    last = backend.while_loop(lambda s: xp.any(s.open) & (s.turn < most), body, first)
    return Choices(last.value, last.shift, last.level)
