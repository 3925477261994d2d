"""The proxy of one case: its strategies, and how much it can serve with each."""

from collections.abc import Iterable
from concurrent.futures import Executor, Future

import numpy as np

from ecjax.adapt import strategies
from ecjax.adapt.arrivals import constant, poisson
from ecjax.adapt.capacity import capacity
from ecjax.adapt.delays import tasks_of
from ecjax.adapt.proxy import Strategy
from ecjax.adapt.replay import replay
from ecjax.studies.adapt_inputs import Case
from ecjax.studies.adapt_strategies import BEST_STATIC, STATIC, Choice, choices, strategy

_ROUGH = 10_000  # requests by which a capacity is roughly known
_CLEARLY = 1.1  # times that, a rate is too much for a code


class Proxy:
    """A proxy with the classes and delays of a case.

    Args:
        case: classes, delays.
        threads: L.
        memory: of ``tofec``.
        seed: of the search for capacities.
    """

    def __init__(self, case: Case, threads: int, memory: float, seed: int) -> None:
        self.case, self.threads = case, threads
        self.tasks = tasks_of(case.classes, case.models)
        self._memory, self._seed = memory, seed
        self._strategies: dict[Choice, Strategy] = {}
        self._shares = np.array([given.share for given in case.classes])
        self._throughput: dict[Choice, float] = {}  # of static codes that all classes share
        self._capacities: dict[Choice, Future[float]] = {}

    def prepare(self, wanted: Iterable[Choice]) -> None:
        """Make the tables of codes of choices, where that is not done; ``calibrated`` takes all cores for it."""
        for choice in wanted:
            if choice.strategy == BEST_STATIC:
                for shared in choices([STATIC], "all", self.case.classes):
                    if shared not in self._throughput:
                        self._throughput[shared] = self._saturated(shared)
            elif choice.strategy != STATIC and choice not in self._strategies:
                self._strategies[choice] = strategy(choice, self.case, self.threads, self._memory)

    def candidates(self, rate: float | None) -> list[Choice]:
        """Static codes that may be the best at a rate (requests/s): not those that are clearly overloaded.

        All of them where the rate is None. Codes that all classes share; ``best_static`` is prepared.
        """
        fast = max(self._throughput, key=lambda choice: self._throughput[choice])
        return [
            choice
            for choice, most in self._throughput.items()
            if rate is None or choice == fast or rate < _CLEARLY * most
        ]

    def strategy(self, choice: Choice) -> Strategy:
        """The table of codes of a choice that was prepared, or of a static one."""
        if choice.strategy == STATIC:
            return strategies.static(list(choice.codes))
        return self._strategies[choice]

    def search(self, pool: Executor, wanted: Iterable[Choice]) -> None:
        """Begin to search the capacities of choices."""
        for choice in wanted:
            if choice not in self._capacities:
                self._capacities[choice] = pool.submit(self._searched, choice)

    def capacity_per_s(self, choice: Choice) -> float | None:
        """Largest rate that a choice can serve, requests/s; None where it was not searched.

        Of ``best_static`` it is that of the best code that all classes may share.
        """
        return self._capacities[choice].result() if choice in self._capacities else None

    def _searched(self, choice: Choice) -> float:
        if choice.strategy == BEST_STATIC:
            choice = max(self._throughput, key=lambda shared: self._throughput[shared])
        return capacity(self.strategy(choice), self._shares, self.tasks, self.threads, self._seed).per_s

    def _saturated(self, choice: Choice) -> float:
        """Requests/s while none but the first find an idle thread: about the capacity of static codes."""
        unit = poisson(constant(1.0, self._shares), _ROUGH, self._seed)
        together = np.zeros(_ROUGH)
        found = replay(together, unit.class_of, self.tasks, self.strategy(choice), self.threads, self._seed)
        settled = found.admitted_s[_ROUGH // 4 :]
        return (len(settled) - 1) / float(settled[-1] - settled[0])
