"""The proxy of one case, and what was prepared for its strategies."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ecjax.adapt import strategies
from ecjax.adapt.delays import tasks_of
from ecjax.adapt.proxy import Strategy, Tasks
from ecjax.studies.adapt.inputs import Case
from ecjax.studies.adapt.strategies import BEST_STATIC, STATIC, Choice

_CLEARLY = 1.1  # times what a code can serve, a rate is too much for it


class Prepared(NamedTuple):
    """What all replays of a choice take from one preparation.

    Attributes:
        strategy: its table of codes; None of static codes, which need none, and of ``best_static``, whose code depends
            on the requests.
        throughput: of ``best_static``: about the capacity of every static code that all classes share, requests/s.
        capacity_per_s: largest rate that it can serve, requests/s; None where it was not searched.
    """

    strategy: Strategy | None
    throughput: dict[Choice, float]
    capacity_per_s: float | None


@dataclass(frozen=True)
class Proxy:
    """A proxy with the classes and delays of a case.

    Attributes:
        case: classes, delays, arrivals.
        threads: L.
        prepared: by choice; of static codes only where their capacities are wanted.
    """

    case: Case
    threads: int
    prepared: dict[Choice, Prepared] = field(default_factory=dict)

    @cached_property
    def tasks(self) -> Tasks:
        """Delays of the tasks of every class."""
        return tasks_of(self.case.classes, self.case.models)

    def candidates(self, rate: float | None) -> list[Choice]:
        """Static codes that may be the best at a rate (requests/s): not those that are clearly overloaded.

        All of them where the rate is None. Codes that all classes share; ``best_static`` is prepared.
        """
        throughput = self.prepared[Choice(BEST_STATIC)].throughput
        fast = fastest(throughput)
        return [
            choice
            for choice, most in throughput.items()
            if rate is None or choice == fast or rate < _CLEARLY * most
        ]

    def strategy(self, choice: Choice) -> Strategy:
        """The table of codes of a choice that was prepared, or of a static one."""
        if choice.strategy == STATIC:
            return strategies.static(list(choice.codes))
        found = self.prepared[choice].strategy
        assert found is not None
        return found

    def capacity_per_s(self, choice: Choice) -> float | None:
        """Largest rate that a choice can serve, requests/s; None where it was not searched.

        Of ``best_static`` it is that of the best code that all classes may share.
        """
        return self.prepared[choice].capacity_per_s if choice in self.prepared else None


def fastest(throughput: dict[Choice, float]) -> Choice:
    """The static code that serves the most requests/s."""
    return max(throughput, key=lambda choice: throughput[choice])
