"""The strategies of ``ecjax adapt`` by name, for the classes and delays of a proxy, and what is prepared for them."""

from collections.abc import Callable
from typing import NamedTuple

from ecjax.adaptation import strategies
from ecjax.adaptation.calibrated import calibrated
from ecjax.adaptation.proxy import RequestClass, Strategy
from ecjax.adaptation.static_code import all_codes
from ecjax.errors import UserError
from ecjax.studies.adapt.inputs import Proxy
from ecjax.studies.adapt.options import TOFEC, Code
from ecjax.studies.adapt.tables import STATIC

_SEED = 0x7EA5  # of the replays that calibrate; none that are reported should be among them
_CLEARLY = 1.1  # times what a code can serve, a rate is too much for it

# tables of codes of all but static ones, of a proxy and the memory of TOFEC
TABLES_OF_CODES: dict[str, Callable[[Proxy, float], Strategy]] = {
    "replication": lambda proxy, _: strategies.replication(proxy.classes),
    "greedy": lambda proxy, _: strategies.greedy(proxy.classes),
    "fast_cloud": lambda proxy, _: strategies.fast_cloud(proxy.classes, proxy.models, proxy.threads),
    TOFEC: lambda proxy, memory: strategies.tofec(proxy.classes, proxy.models, proxy.threads, memory),
    "calibrated": lambda proxy, _: calibrated(proxy.classes, proxy.models, proxy.threads, _SEED),
}


class Choice(NamedTuple):
    """One strategy; of ``static`` with its codes."""

    strategy: str
    codes: tuple[Code, ...] = ()  # one per class


class Prepared(NamedTuple):
    """What all replays of a choice at a proxy take from one preparation.

    Attributes:
        strategy: its table of codes; None of static codes, which need none, and of ``best_static``, whose code depends
            on the requests.
        throughput: of ``best_static`` with one class: about the capacity of every static code, requests/s.
        capacity_per_s: largest rate that it can serve, requests/s; None where it was not searched. Of ``best_static``
            it is that of the codes that need the threads for the least time, one per class.
        error: why there is none of the above.
    """

    strategy: Strategy | None = None
    throughput: dict[Choice, float] | None = None
    capacity_per_s: float | None = None
    error: str | None = None


def choices(names: list[str], codes: list[Code] | str, classes: list[RequestClass]) -> list[Choice]:
    """What the options ``strategy`` and ``codes`` ask for.

    Args:
        names: of the strategies.
        codes: of ``static``: (n, k), or "all".
        classes: C of them; all have the same code under ``static``.

    Raises:
        UserError: a class does not allow a code.
    """
    shared = [Choice(STATIC, (code,) * len(classes)) for code in _allowed(codes, classes)]
    return [choice for name in names for choice in (shared if name == STATIC else [Choice(name)])]


def _allowed(codes: list[Code] | str, classes: list[RequestClass]) -> list[Code]:
    allowed = [all_codes(each.k_max, each.r_max) for each in classes]
    if isinstance(codes, str):
        return [code for code in allowed[0] if all(code in of_class for of_class in allowed)]
    for n, k in codes:
        for each, of_class in zip(classes, allowed, strict=True):
            if (n, k) not in of_class:
                raise UserError(
                    f"codes: found [{n}, {k}]; class {each.name} allows k up to k_max={each.k_max} and n up to "
                    f"r_max={each.r_max:g} times k"
                )
    return list(codes)


def strategy(choice: Choice, proxy: Proxy, memory: float) -> Strategy:
    """The table of codes of a choice other than static codes.

    Args:
        choice: in TABLES_OF_CODES.
        proxy: its classes, delays and threads.
        memory: of ``tofec``.
    """
    return TABLES_OF_CODES[choice.strategy](proxy, memory)


def static(choice: Choice) -> Strategy:
    """The table of static codes."""
    return strategies.static(list(choice.codes))


def fastest(throughput: dict[Choice, float]) -> Choice:
    """The static code that serves the most requests/s."""
    return max(throughput, key=lambda choice: throughput[choice])


def candidates(throughput: dict[Choice, float], rate: float | None) -> list[Choice]:
    """Static codes that may be the best at a rate (requests/s): not those that are clearly overloaded; None: all."""
    fast = fastest(throughput)
    return [
        choice
        for choice, most in throughput.items()
        if rate is None or choice == fast or rate < _CLEARLY * most
    ]
