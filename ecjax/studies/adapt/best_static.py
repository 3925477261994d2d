"""The best static code of a point, by replays."""

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from ecjax.adaptation import static_code
from ecjax.adaptation.thresholds import fitted
from ecjax.intervals import LEVELS
from ecjax.studies.adapt.inputs import Proxy
from ecjax.studies.adapt.options import Code

_PASSES = 4  # over the classes: their codes hardly depend on each other
_FINALISTS = 8


def envelope(statistics: Mapping[tuple[Code, ...], dict[str, Any]]) -> str:
    """JSON: the least quantiles that any static code has, each with that code.

    Args:
        statistics: by the codes of the classes, one class.
    """
    least = {}
    for name in LEVELS:
        ((n, k),) = best = min(statistics, key=lambda codes: statistics[codes][name])
        least[name] = {"value": statistics[best][name], "n": n, "k": k}
    return json.dumps(least)


def searched(proxy: Proxy, rate: float, mean: Callable[[tuple[Code, ...]], float]) -> list[tuple[Code, ...]]:
    """Codes of several classes with small mean latencies: some of the best, for replays that are longer.

    One class after the other is changed until none gets better, from the best codes of TOFEC's model. As short replays
    tell a mean only roughly, the codes with the least ones that were met are returned, and (1, 1) for all.

    Args:
        proxy: classes, delays and threads.
        rate: requests/s.
        mean: mean latency with the codes of the classes, s; called once for each.
    """
    allowed = [static_code.all_codes(each.k_max, each.r_max) for each in proxy.classes]
    models = [fitted(each, model) for each, model in zip(proxy.classes, proxy.models, strict=True)]
    best = tuple(static_code.best_codes(proxy.classes, models, proxy.threads, rate))
    means = {best: mean(best)}
    unchanged = 0
    for c in itertools.islice(itertools.cycle(range(len(allowed))), _PASSES * len(allowed)):
        before = best
        for code in allowed[c]:
            other = (*best[:c], code, *best[c + 1 :])
            if other not in means:
                means[other] = mean(other)
            if means[other] < means[best]:
                best = other
        unchanged = unchanged + 1 if best == before else 0
        if unchanged >= len(allowed):
            break
    basic = ((1, 1),) * len(allowed)
    return list(dict.fromkeys([*sorted(means, key=lambda codes: means[codes])[:_FINALISTS], basic]))
