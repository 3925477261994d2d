"""Codes in the order of the price of thread time: from the shortest delay to the least use of the threads.

At price p a class takes the code with the least mean service delay + p x usage (thread-seconds). With a growing price
its codes run along the lower hull of (usage, delay). All classes share the threads, and so the price.
"""

import numpy as np

from ecjax.adaptation.delays import DelayModel, tasks_of
from ecjax.adaptation.proxy import RequestClass
from ecjax.adaptation.replay import alone
from ecjax.adaptation.static_code import all_codes

Code = tuple[int, int]  # n, k
Plan = tuple[Code, ...]  # a code per class
Profile = dict[Code, tuple[float, float]]  # mean service delay and usage of a code, s

_ALONE = 20_000  # requests by which a code is known without a queue
_MOST_PLANS = 12
_NEAR_HULL = 1.05  # codes whose delay is so near to the hull may be the best for the 99 % quantile


def profile(request_class: RequestClass, model: DelayModel, seed: int) -> Profile:
    """Mean service delay and usage (thread-seconds) of every code of a class, each request alone, s."""
    tasks = tasks_of([request_class], [model])
    codes = all_codes(request_class.k_max, request_class.r_max)
    return {code: alone(tasks, code, _ALONE, seed) for code in codes}


def plans_by_price(profiles: list[Profile]) -> list[Plan]:
    """Codes per class, from the most to the least usage: those of a growing price of thread time.

    For one class, codes near the hull are among them too.
    """
    hulls = [_hull(values) for values in profiles]
    prices = np.unique(np.concatenate([price for _, price in hulls]))
    if len(prices) >= _MOST_PLANS:
        prices = np.geomspace(prices[0], prices[-1], _MOST_PLANS - 1)
    plans = {
        tuple(codes[int(np.searchsorted(price, level, side="right"))] for codes, price in hulls)
        for level in [0.0, *(prices * (1 + 1e-9))]
    }
    if len(profiles) == 1:
        values, codes = profiles[0], hulls[0][0]
        delay, used = np.array([values[code] for code in codes[::-1]]).T
        plans |= {
            (code,)
            for code, (mean, usage) in values.items()
            if mean <= _NEAR_HULL * np.interp(usage, used, delay)
        }
    return sorted(
        plans, key=lambda plan: -sum(values[code][1] for values, code in zip(profiles, plan, strict=True))
    )


def _hull(profile: Profile) -> tuple[list[Code], np.ndarray]:
    """Codes on the lower hull of (usage, delay), the longest first, and the prices between neighbours, ascending."""
    codes: list[Code] = []
    prices: list[float] = []
    for code in sorted(profile, key=lambda code: profile[code]):  # by delay: the best without a price first
        delay, usage = profile[code]
        if codes and usage >= profile[codes[-1]][1]:
            continue
        price = 0.0
        while codes:
            before = profile[codes[-1]]
            price = (delay - before[0]) / (before[1] - usage)
            if not prices or price > prices[-1]:
                break
            codes.pop()
            prices.pop()
        if codes:
            prices.append(price)
        codes.append(code)
    return codes, np.array(prices)
