"""The strategies of ``ecjax adapt`` by name, for the classes and delays of one case."""

from typing import NamedTuple

from ecjax.adapt import strategies
from ecjax.adapt.calibrated import calibrated
from ecjax.adapt.proxy import RequestClass, Strategy
from ecjax.adapt.static_code import all_codes
from ecjax.errors import UserError
from ecjax.studies.adapt.inputs import Case

STATIC, BEST_STATIC, TOFEC = "static", "best_static", "tofec"
STRATEGIES = (STATIC, BEST_STATIC, "replication", "greedy", "fast_cloud", TOFEC, "calibrated")
_SEED = 0x7EA5  # of the replays that calibrate; none that are reported should be among them

Code = tuple[int, int]  # n, k


class Choice(NamedTuple):
    """One strategy; of ``static`` with its codes."""

    strategy: str
    codes: tuple[Code, ...] = ()  # one per class


def choices(names: list[str], codes: list[Code] | str, classes: list[RequestClass]) -> list[Choice]:
    """What the options ``strategy`` and ``codes`` ask for.

    Args:
        names: of STRATEGIES.
        codes: of ``static``: (n, k), or "all".
        classes: C of them; all have the same code under ``static``.

    Raises:
        UserError: a class does not allow a code.
    """
    found = []
    for name in names:
        if name == STATIC:
            found += [Choice(name, (code,) * len(classes)) for code in _static(codes, classes)]
        else:
            found.append(Choice(name))
    return found


def _static(codes: list[Code] | str, classes: list[RequestClass]) -> list[Code]:
    allowed = [all_codes(given.k_max, given.r_max) for given in classes]
    if isinstance(codes, str):
        return [code for code in allowed[0] if all(code in own for own in allowed)]
    for n, k in codes:
        for given, own in zip(classes, allowed, strict=True):
            if (n, k) not in own:
                raise UserError(
                    f"codes: found [{n}, {k}]; class {given.name} allows k up to k_max={given.k_max} and n up to "
                    f"r_max={given.r_max:g} times k"
                )
    return list(codes)


def strategy(choice: Choice, case: Case, threads: int, memory: float) -> Strategy:
    """The table of codes of a choice.

    Args:
        choice: any but static codes.
        case: classes and delays.
        threads: L.
        memory: of ``tofec``.
    """
    if choice.strategy == "replication":
        return strategies.replication(case.classes)
    if choice.strategy == "greedy":
        return strategies.greedy(case.classes)
    if choice.strategy == "fast_cloud":
        return strategies.fast_cloud(case.classes, case.models, threads)
    if choice.strategy == "calibrated":
        return calibrated(case.classes, case.models, threads, _SEED)
    return strategies.tofec(case.classes, case.models, threads, memory)
