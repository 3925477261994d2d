"""Planned outages against the chain of all that can happen to every domain, in fractions."""

from fractions import Fraction

import pytest

from ecjax.durability.outages import unavailable_rate


def exact_rate(n, m, failures, repairs, outages, length):
    """1 / mean time until fewer than n - m chunks can be read.

    A state is how many chunks are lost, and whether the domain that is out has one of them; outages begin in any
    domain alike, one at a time.
    """
    states = [(lost, out) for lost in range(m + 1) for out in ("", "there", "lost")]
    states = [s for s in states if s[0] + (s[1] == "there") <= m and (s[1] != "lost" or s[0])]
    rows = []
    for lost, out in states:
        steps = [((lost + 1, out), (n - lost - (out == "there")) * failures)]
        if out == "there":
            steps.append(((lost + 1, "lost"), failures))
        if out:
            steps.append(((lost, ""), 1 / length))
        else:
            steps += [((lost, "there"), (n - lost) * outages), ((lost, "lost"), lost * outages)]
        if lost:
            here = Fraction(out == "lost", lost)
            steps += [((lost - 1, "there"), repairs[lost - 1] * here)]
            steps += [((lost - 1, out), repairs[lost - 1] * (1 - here))]
        row = {(lost, out): sum(rate for _, rate in steps)}
        for state, rate in steps:
            if rate and state in states:
                row[state] = row.get(state, Fraction(0)) - rate
        rows.append([row.get(state, Fraction(0)) for state in states] + [Fraction(1)])
    for place in range(len(states)):
        pivot = rows[place] = [each / rows[place][place] for each in rows[place]]
        for other, row in enumerate(rows):
            if other != place and row[place]:
                rows[other] = [a - row[place] * b for a, b in zip(row, pivot, strict=True)]
    return 1 / rows[0][-1]


@pytest.mark.parametrize(("n", "m", "hours"), [(6, 2, 0.25), (6, 2, 1), (11, 3, 1), (3, 2, 4), (4, 1, 1)])
def test_outages_take_away_chunks_that_are_there(n, m, hours):
    """An outage of a domain whose chunk is lost already makes nothing unavailable."""
    failures, outages, length = Fraction(15, 1000), Fraction(4), Fraction(hours) / 8766
    repairs = [Fraction(8766) / time for time in (2, Fraction(1, 2), Fraction(1, 2))[:m]]
    found = unavailable_rate(n, float(failures), list(map(float, repairs)), float(outages), float(length))
    expected = float(exact_rate(n, m, failures, repairs, outages, length))
    assert found == pytest.approx(expected, rel=2e-3, abs=0)
