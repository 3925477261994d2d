"""The proxy of one case: its strategies, and how much it can serve with each."""

from collections.abc import Iterable
from concurrent.futures import Executor, Future

import numpy as np

from ecjax.adapt import strategies
from ecjax.adapt.capacity import capacity
from ecjax.adapt.delays import tasks_of
from ecjax.adapt.proxy import Strategy
from ecjax.studies.adapt_inputs import Case
from ecjax.studies.adapt_strategies import BEST_STATIC, STATIC, Choice, choices, strategy

_REQUESTS = 200_000  # per replay of the search for a capacity
_ROUGH = 10_000  # of that which code has the largest


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
        self._capacities: dict[Choice, Future[float]] = {}

    def prepare(self, wanted: Iterable[Choice]) -> None:
        """Make the tables of codes of choices, where that is not done; ``calibrated`` takes all cores for it."""
        for choice in wanted:
            if choice not in self._strategies and choice.strategy not in (STATIC, BEST_STATIC):
                self._strategies[choice] = strategy(choice, self.case, self.threads, self._memory)

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
            codes = choices([STATIC], "all", self.case.classes)
            choice = max(codes, key=lambda code: self._capacity(code, _ROUGH))
        return self._capacity(choice, _REQUESTS)

    def _capacity(self, choice: Choice, requests: int) -> float:
        shares = np.array([given.share for given in self.case.classes])
        return capacity(self.strategy(choice), shares, self.tasks, self.threads, self._seed, requests).per_s
