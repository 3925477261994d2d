"""What replays of ``ecjax adapt`` share by law and strategy, computed before them: tables of codes, capacities."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ecjax.adaptation.arrivals import constant, poisson
from ecjax.adaptation.capacity import capacity
from ecjax.adaptation.proxy import Strategy
from ecjax.adaptation.replay import replay
from ecjax.console import log
from ecjax.engine import Engine, Task, Worker
from ecjax.errors import UserError
from ecjax.progress import detail, progress
from ecjax.studies.adapt.inputs import Proxy
from ecjax.studies.adapt.options import ALL
from ecjax.studies.adapt.run import Settings
from ecjax.studies.adapt.strategies import Choice, Prepared, choices, fastest, static, strategy
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.spine.batches import Batch

_SEED = 0  # of what is prepared: the same for all seeds of a study, which one of them may be
_ROUGH = 10_000  # requests by which a capacity is roughly measured,
_ROUGH_PER_THREAD = 8  # at least so many: the first ones are all admitted at once
_LONG = ("calibrated", BEST_STATIC)  # to be begun first


def prepared(batches: Sequence[Batch], settings: Settings, engine: Engine) -> list[Batch]:
    """The batches, ready for their replays; what could not be prepared says so.

    Args:
        batches: of cases and items.
        settings: of the study.
        engine: where the work runs.

    Raises:
        UserError: something the user gave is wrong.
    """
    needs = [
        (cases[item.case].proxy, item.choice)
        for cases, items in batches
        for item in items.values()
        if settings.capacity or item.choice.strategy != STATIC
    ]
    pairs = sorted(dict.fromkeys(needs), key=lambda pair: pair[1].strategy not in _LONG)
    if not pairs:
        return list(batches)
    results: dict[tuple[Proxy, Choice], Prepared] = {}
    tasks = [Task(proxy, {_name(proxy, choice): choice}) for proxy, choice in pairs]
    with progress("preparing strategies", len(tasks)) as advance:
        for task, value, error in engine.map(partial(_prepare, settings), tasks, advance):
            if isinstance(error, UserError):
                raise error
            for name, choice in task.items.items():
                if error is not None:
                    log.error("%s is not prepared: %s\n%s", name, error, getattr(error, "trace", ""))
                results[task.shared, choice] = value[name] if error is None else Prepared(error=str(error))
    return [
        Batch(
            cases,
            {
                name: replace(item, prepared=results.get((cases[item.case].proxy, item.choice), Prepared()))
                for name, item in items.items()
            },
        )
        for cases, items in batches
    ]


def _name(proxy: Proxy, choice: Choice) -> str:
    """Names it, for messages."""
    codes = " ".join(f"({n}, {k})" for n, k in choice.codes[:1])
    return " ".join([proxy.delays, choice.strategy, codes]).strip()


def _prepare(
    settings: Settings, proxy: Proxy, items: dict[str, Choice], worker: Worker
) -> dict[str, Prepared]:
    return {name: _one(proxy, choice, settings, worker) for name, choice in items.items()}


def _one(proxy: Proxy, choice: Choice, settings: Settings, worker: Worker) -> Prepared:
    detail(_name(proxy, choice))
    table, throughput = None, None
    if choice.strategy == BEST_STATIC:
        if len(proxy.classes) > 1 and not settings.capacity:
            return Prepared()  # its codes are searched with the requests
        by_class = [
            _throughput(replace(proxy, classes=[each], models=[model]), worker)
            for each, model in zip(proxy.classes, proxy.models, strict=True)
        ]
        throughput = by_class[0] if len(by_class) == 1 else None
        # the codes that need the threads for the least time are those of every class alone
        served = static(Choice(STATIC, tuple(code for each in by_class for code in fastest(each).codes)))
    elif choice.strategy == STATIC:
        served = static(choice)
    else:
        served = table = strategy(choice, proxy, settings.memory)
    if not settings.capacity:
        return Prepared(table, throughput)
    return Prepared(table, throughput, worker.pool.submit(_capacity, proxy, served, _SEED).result())


def _throughput(proxy: Proxy, worker: Worker) -> dict[Choice, float]:
    """About the capacity of every static code of a proxy with one class, requests/s."""
    codes = choices([STATIC], ALL, proxy.classes)
    return dict(zip(codes, worker.pool.map(partial(_saturated, proxy, seed=_SEED), codes), strict=True))


def _capacity(proxy: Proxy, codes: Strategy, seed: int) -> float:
    """Largest rate that can be served with a table of codes, requests/s."""
    return capacity(codes, proxy.shares, proxy.tasks, proxy.threads, seed).per_s


def _saturated(proxy: Proxy, choice: Choice, seed: int) -> float:
    """Requests/s while none but the first find an idle thread: about the capacity of static codes."""
    requests = max(_ROUGH, _ROUGH_PER_THREAD * proxy.threads)
    unit = poisson(constant(1.0, proxy.shares), requests, seed)
    outcome = replay(np.zeros(requests), unit.class_of, proxy.tasks, static(choice), proxy.threads, seed)
    settled = outcome.admitted_s[requests // 4 :]
    return (len(settled) - 1) / float(settled[-1] - settled[0])
