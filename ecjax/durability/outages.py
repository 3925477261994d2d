"""Planned outages: a domain that is whole but unavailable while others fail."""

import numpy as np

from ecjax.durability.elimination import Loss, Rates, loss_rate

_State = tuple[int, int]  # chunks lost, chunks unavailable


def unavailable_rate(
    n: int,
    failure_rate: float,
    repair_rates: list[float],
    outages_per_year: float,
    outage_years: float,
    only_when_whole: bool = False,
) -> float:
    """Times per year that a group cannot be read, each of its chunks in a domain with planned outages.

    Exact chain over lost and unavailable chunks, one outage at a time, of exponential length. An outage of a domain
    whose chunk is lost takes nothing more away. To leading order
    R_m + n M t_o R_{m-1}(n-1) + (n - m) M tau_m R_{m-1}(n), R_m the losses per year of a code that survives m.

    Args:
        n: chunks of a group
        failure_rate: failures per chunk and year
        repair_rates: [m] repairs per year with 1, ..., m chunks lost
        outages_per_year: M, per domain
        outage_years: t_o, mean years of one outage
        only_when_whole: whether outages begin only while no chunk is lost
    """
    m = len(repair_rates)

    def steps(state: _State) -> list[tuple[_State | Loss, Rates]]:
        lost, out = state
        more = Loss() if lost + out == m else (lost + 1, out)
        targets: list[tuple[_State | Loss, Rates]] = [(more, np.array((n - lost - out) * failure_rate))]
        if out:
            targets.append(((lost, 0), np.array(1 / outage_years)))
        elif not (only_when_whole and lost):
            begins = np.array((n - lost) * outages_per_year)
            targets.append((Loss() if lost == m else (lost, 1), begins))
        if lost:
            targets.append(((lost - 1, out), np.array(repair_rates[lost - 1])))
        return targets

    return float(loss_rate((0, 0), steps, sum))
