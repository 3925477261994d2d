"""The proxy of one case: its strategies, and how much it can serve with each."""

from collections.abc import Iterable
from concurrent.futures import Executor, Future

import numpy as np

from ecjax.adapt.capacity import capacity
from ecjax.adapt.delays import tasks_of
from ecjax.adapt.proxy import Strategy
from ecjax.studies.adapt_inputs import Case
from ecjax.studies.adapt_strategies import BEST_STATIC, STATIC, Choice, choices, strategy


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

    def strategy(self, choice: Choice) -> Strategy:
        """The table of codes of a choice other than ``best_static``."""
        if choice not in self._strategies:
            self._strategies[choice] = strategy(choice, self.case, self.threads, self._memory)
        return self._strategies[choice]

    def search(self, pool: Executor, wanted: Iterable[Choice]) -> None:
        """Begin to search the capacities of choices."""
        for choice in wanted:
            for part in self._parts(choice):
                if part not in self._capacities:
                    self._capacities[part] = pool.submit(self._searched, part)

    def capacity_per_s(self, choice: Choice) -> float | None:
        """Largest rate that a choice can serve, requests/s; None where it was not searched.

        Of ``best_static`` it is that of the best code that all classes may share.
        """
        parts = self._parts(choice)
        if parts[0] not in self._capacities:
            return None
        return max(self._capacities[part].result() for part in parts)

    def _parts(self, choice: Choice) -> list[Choice]:
        if choice.strategy == BEST_STATIC:
            return choices([STATIC], "all", self.case.classes)
        return [choice]

    def _searched(self, choice: Choice) -> float:
        shares = np.array([given.share for given in self.case.classes])
        return capacity(self.strategy(choice), shares, self.tasks, self.threads, self._seed).per_s
