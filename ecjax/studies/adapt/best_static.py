"""The best static code of a point, found by replays."""

import itertools
import json
from collections.abc import Callable
from typing import Any

from ecjax.adapt import static_code
from ecjax.adapt.thresholds import fitted
from ecjax.intervals import LEVELS
from ecjax.studies.adapt.inputs import Case
from ecjax.studies.adapt.strategies import Code

_PASSES = 4  # over the classes: their codes hardly depend on each other
_FINALISTS = 8


def envelope(found: dict[tuple[Code, ...], dict[str, Any]]) -> str:
    """JSON: the least quantiles that any static code has, each with that code.

    Args:
        found: statistics by the codes of the classes, one class.
    """
    least = {}
    for name in LEVELS:
        ((n, k),) = best = min(found, key=lambda codes: found[codes][name])
        least[name] = {"value": found[best][name], "n": n, "k": k}
    return json.dumps(least)


def searched(
    case: Case, rate: float, threads: int, mean: Callable[[tuple[Code, ...]], float]
) -> list[tuple[Code, ...]]:
    """Codes of several classes with small mean latencies: some of the best, for replays that are longer.

    One class after the other is changed until none gets better, from the best codes of TOFEC's model. As short replays
    know a mean only roughly, the codes with the least ones that were met are returned, and (1, 1) for all.

    Args:
        case: classes and delays.
        rate: requests/s.
        threads: L.
        mean: mean latency with the codes of the classes, s; asked once for each.
    """
    allowed = [static_code.all_codes(given.k_max, given.r_max) for given in case.classes]
    models = [fitted(given, model) for given, model in zip(case.classes, case.models, strict=True)]
    best = tuple(static_code.best_codes(case.classes, models, threads, rate))
    known = {best: mean(best)}
    unchanged = 0
    for c in itertools.islice(itertools.cycle(range(len(allowed))), _PASSES * len(allowed)):
        before = best
        for code in allowed[c]:
            other = (*best[:c], code, *best[c + 1 :])
            if other not in known:
                known[other] = mean(other)
            if known[other] < known[best]:
                best = other
        unchanged = unchanged + 1 if best == before else 0
        if unchanged >= len(allowed):
            break
    basic = ((1, 1),) * len(allowed)
    return list(dict.fromkeys([*sorted(known, key=lambda codes: known[codes])[:_FINALISTS], basic]))
