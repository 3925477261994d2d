"""How bursty a log is, in words: the verdicts of its scales put together."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from ecjax.studies.spine.sentences import listed
from ecjax.traffic.burstiness import BURSTIER, POISSON, REGULAR, UNKNOWN
from ecjax.units import time_text

_PHRASES = {
    BURSTIER: "burstier than Poisson",
    REGULAR: "more regular than Poisson",
    POISSON: "as Poisson",
}
_FINE_S = 1e-3  # nobody asks what is below
_ORDER = tuple(_PHRASES)


def scale_text(scale_s: float) -> str:
    """A time scale: in seconds from 1 to 1000, so that scales are easy to compare; else in the unit that fits."""
    return f"{scale_s:.4g} s" if 1 <= scale_s < 1000 else time_text(scale_s)


def stretches(scales_s: Sequence[float], verdicts: Sequence[str]) -> list[tuple[str, float, float | None]]:
    """Runs of scales with one verdict, the shortest first: verdict, first scale, and last scale.

    Scales that cannot tell end no run; a run that no other verdict follows has no last scale.
    """
    telling = [pair for pair in zip(verdicts, scales_s, strict=True) if pair[0] != UNKNOWN]
    runs = [
        (verdict, [scale for _, scale in pairs]) for verdict, pairs in groupby(telling, lambda pair: pair[0])
    ]
    return [
        (verdict, scales[0], scales[-1] if place + 1 < len(runs) or verdict == POISSON else None)
        for place, (verdict, scales) in enumerate(runs)
    ]


def burstiness_text(scales_s: Sequence[float], verdicts: Sequence[str]) -> str:
    """What all scales say: ``burstier than Poisson at scales above 2 s; as Poisson at scales up to 1 s``.

    Args:
        scales_s: ascending.
        verdicts: of each.
    """
    runs = stretches(scales_s, verdicts)
    clauses = []
    for verdict in _ORDER:
        ranges = [_range(first, last, scales_s[0]) for each, first, last in runs if each == verdict]
        if ranges:
            clauses.append(f"{_PHRASES[verdict]} at scales {listed(ranges)}")
    return "; ".join(clauses) or "too few to tell whether they are Poisson, at any scale"


def _range(first: float, last: float | None, shortest: float) -> str:
    if last is None:
        return f"above {scale_text(first)}"
    if first == last:
        return f"of {scale_text(first)}"
    if first == shortest <= _FINE_S:
        return f"up to {scale_text(last)}"
    return f"of {scale_text(first)} to {scale_text(last)}"


def burstier_from(scales_s: Iterable[float], verdicts: Iterable[str]) -> float | None:
    """The shortest scale at which arrivals are burstier than Poisson (s); None where none is."""
    return next((s for s, verdict in zip(scales_s, verdicts, strict=True) if verdict == BURSTIER), None)


def window_text(window_s: float) -> str:
    """A window by its name: second, minute, hour, day."""
    return {1.0: "second", 60.0: "minute", 3600.0: "hour", 86400.0: "day"}[window_s]
