"""What is found once per law and strategy of ``ecjax adapt``, before the replays: tables of codes, and capacities."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ecjax.adapt import strategies
from ecjax.adapt.arrivals import constant, poisson
from ecjax.adapt.capacity import capacity
from ecjax.adapt.proxy import Strategy
from ecjax.adapt.replay import replay
from ecjax.console import log, progress
from ecjax.engine import Engine, Task, Worker
from ecjax.errors import UserError
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.proxy import Prepared, Proxy, fastest
from ecjax.studies.adapt.strategies import BEST_STATIC, STATIC, Choice, choices, strategy

_ROUGH = 10_000  # requests by which a capacity is roughly known
_LONG = ("calibrated", BEST_STATIC)  # to be begun first


class _Wanted(NamedTuple):
    """One choice under the law of one proxy."""

    proxy: int  # place
    choice: Choice


def prepared(
    proxies: list[Proxy], wanted: Iterable[tuple[int, Choice]], options: AdaptOptions, engine: Engine
) -> tuple[list[Proxy], dict[tuple[int, Choice], str]]:
    """The proxies, ready for the replays of choices, and why some choices cannot be replayed.

    Args:
        proxies: one per law of delays.
        wanted: choices with the places of their proxies.
        options: checked.
        engine: where the work runs.

    Raises:
        UserError: something the user gave is wrong.
    """
    pairs = [_Wanted(*pair) for pair in dict.fromkeys(wanted)]
    pairs = [pair for pair in pairs if options.capacity or pair.choice.strategy != STATIC]
    if not pairs:
        return proxies, {}
    pairs.sort(key=lambda pair: pair.choice.strategy not in _LONG)
    # requests of a trace are large, and not needed for this
    bare = [replace(proxy, case=replace(proxy.case, points=[])) for proxy in proxies]
    tasks = [Task(bare, {_name(bare, pair): pair}) for pair in pairs]
    found: list[dict[Choice, Prepared]] = [{} for _ in proxies]
    failed = {}
    with progress("preparing strategies", len(tasks)) as advance:
        for task, value, error in engine.map(partial(_prepare, options), tasks, advance):
            if isinstance(error, UserError):
                raise error
            for name, (proxy, choice) in task.items.items():
                if error is None:
                    found[proxy][choice] = value[name]
                else:
                    log.error("%s is not prepared: %s\n%s", name, error, getattr(error, "trace", ""))
                    failed[proxy, choice] = str(error)
    return [replace(proxy, prepared=own) for proxy, own in zip(proxies, found, strict=True)], failed


def _name(proxies: list[Proxy], pair: _Wanted) -> str:
    """Names it, for messages."""
    codes = " ".join(f"({n}, {k})" for n, k in pair.choice.codes[:1])
    return " ".join([proxies[pair.proxy].case.delays, pair.choice.strategy, codes]).strip()


def _prepare(
    options: AdaptOptions, proxies: list[Proxy], items: dict[str, _Wanted], worker: Worker
) -> dict[str, Prepared]:
    return {name: _one(proxies[place], choice, options, worker) for name, (place, choice) in items.items()}


def _one(proxy: Proxy, choice: Choice, options: AdaptOptions, worker: Worker) -> Prepared:
    own, throughput, served = None, {}, choice
    if choice.strategy == BEST_STATIC:
        shared = choices([STATIC], "all", proxy.case.classes)
        rates = worker.pool.map(partial(_saturated, proxy, seed=options.seed), shared)
        throughput = dict(zip(shared, rates, strict=True))
        served = fastest(throughput)
    elif choice.strategy != STATIC:
        own = strategy(choice, proxy.case, proxy.threads, options.memory)
    if not options.capacity:
        return Prepared(own, throughput, None)
    codes = strategies.static(list(served.codes)) if own is None else own
    most = worker.pool.submit(_capacity, proxy, codes, options.seed).result()
    return Prepared(own, throughput, most)


def _capacity(proxy: Proxy, codes: Strategy, seed: int) -> float:
    """Largest rate that can be served with a table of codes, requests/s."""
    return capacity(codes, _shares(proxy), proxy.tasks, proxy.threads, seed).per_s


def _saturated(proxy: Proxy, choice: Choice, seed: int) -> float:
    """Requests/s while none but the first find an idle thread: about the capacity of static codes."""
    unit = poisson(constant(1.0, _shares(proxy)), _ROUGH, seed)
    together = np.zeros(_ROUGH)
    found = replay(together, unit.class_of, proxy.tasks, proxy.strategy(choice), proxy.threads, seed)
    settled = found.admitted_s[_ROUGH // 4 :]
    return (len(settled) - 1) / float(settled[-1] - settled[0])


def _shares(proxy: Proxy) -> np.ndarray:
    return np.array([given.share for given in proxy.case.classes])
