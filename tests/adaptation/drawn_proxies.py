"""Proxies drawn from a seed (classes, laws, strategies, arrivals), and the delays that ecjax draws for them."""

import math
from typing import NamedTuple

import numpy as np
from plain_proxy import simulate
from scipy import special

from ecjax.adaptation.proxy import EMPIRICAL, EXPONENTIAL, IDLE, LOGNORMAL, Strategy, Tasks
from ecjax.adaptation.replay import PURPOSE, replay
from ecjax.machine_code import njit
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws


class Case(NamedTuple):
    arrival_s: np.ndarray
    class_of: np.ndarray
    tasks: Tasks
    strategy: Strategy
    threads: int
    seed: int

    def replay(self):
        return replay(*self)

    def simulate(self):
        delay = delays(self.tasks, self.class_of, self.seed)
        return simulate(
            self.arrival_s, self.class_of, delay, self.strategy, self.threads, self.tasks.background
        )


@njit()
def numbers(start, request, place):
    """The uniform, exponential and normal number of a task (from 1) of a request; 0 is what its tasks share."""
    state = draws.task_state(streams.stream(start, request), place)
    return streams.uniform(state), draws.exponential(state), draws.normal(state)


def delays(tasks, class_of, seed):
    """``delay(i, j, k)``: every task has numbers of its own, and the tasks of a request share a normal score."""
    start = np.uint64(streams.key(seed, PURPOSE))

    def delay(i, j, k):
        c = class_of[i]
        kind, rho = tasks.kind[c], tasks.rho[c]
        uniform, exponential, score = numbers(start, i, j + 1)
        score = math.sqrt(rho) * numbers(start, i, 0)[2] + math.sqrt(1 - rho) * score
        probability = special.ndtr(score) if rho > 0 else uniform
        if kind == EXPONENTIAL:
            return tasks.shift[c, k] + tasks.scale[c, k] * (
                exponential if rho == 0 else -math.log(special.ndtr(-score))
            )
        if kind == LOGNORMAL:
            return tasks.shift[c, k] + tasks.scale[c, k] * math.exp(tasks.shape[c] * score)
        known = tasks.quantiles[c, k]
        return float(np.interp(probability, np.linspace(0, 1, len(known)), known))

    return delay


def make_tasks(shift, scale, kind=EXPONENTIAL, shape=1.0, rho=0.0, background=False, quantiles=None):
    """One law for each class: ``shift`` and ``scale`` (C, K), by dimension; ``quantiles`` (C, K, Q)."""
    shift = np.atleast_2d(np.asarray(shift, float))
    scale = np.broadcast_to(np.asarray(scale, float), shift.shape)
    classes = len(shift)
    none = np.zeros((classes, 1))
    given = np.zeros((*shift.shape, 0)) if quantiles is None else np.asarray(quantiles, float)
    return Tasks(
        np.broadcast_to(kind, classes).astype(np.int64),
        np.broadcast_to(shape, classes).astype(float),
        np.broadcast_to(rho, classes).astype(float),
        np.hstack([none, shift]),
        np.hstack([none, scale]),
        np.concatenate([np.zeros((classes, 1, given.shape[2])), given], axis=1),
        np.broadcast_to(background, classes).astype(bool),
    )


def static(*codes):
    """The code (n, k) of each class, always."""
    n, k = (np.array(own, np.int64)[:, None] for own in zip(*codes, strict=True))
    return Strategy("static", 0, 0.0, np.zeros((len(codes), 0)), n, k)


def greedy(k_max, r_max, threads):
    """k = min(k_max, l), n = min(floor(r_max k), l) of l idle threads, (1, 1) of none; for each class."""
    idle = np.arange(threads + 1)
    k = np.maximum(np.minimum(np.array(k_max)[:, None], idle), 1)
    n = np.maximum(np.minimum(np.floor(np.array(r_max)[:, None] * k + 1e-9), idle), 1).astype(np.int64)
    return Strategy("greedy", IDLE, 0.0, np.tile(idle[1:] - 0.5, (len(k), 1)), n, k)


def draw_tasks(rng, classes, k_max, ties=False, background=None):
    """Larger dimensions have smaller chunks and shorter delays; with ties all delays are multiples of 1/4 s."""
    size = 1 / np.arange(1, k_max + 1)
    kept = rng.uniform(size=classes) < 0.3 if background is None else background
    if ties:
        return make_tasks(rng.integers(1, 9, (classes, k_max)) / 4, 0.0, background=kept)
    kind = rng.integers(3, size=classes)
    rho = rng.uniform(size=classes) * (rng.uniform(size=classes) < 0.5)
    shift = (
        rng.uniform(0, 1, (classes, 1)) * (rng.uniform(size=(classes, 1)) < 0.8) + rng.uniform(0, 1) * size
    )
    scale = rng.uniform(0.1, 1, (classes, 1)) * (0.2 + size)
    quantiles = None
    if np.any(kind == EMPIRICAL):
        steps = rng.exponential(size=(classes, 1, 30))
        quantiles = np.cumsum(steps, axis=2) / 15 * (0.2 + size[:, None])
    return make_tasks(shift, scale, kind, rng.uniform(0.3, 1.5, classes), rho, kept, quantiles)


def draw_strategy(rng, classes, k_max, longest, threads, signal=None):
    """Static, greedy, or a ladder: levels at increasing signals, with codes as they come."""
    if signal is None and rng.uniform() < 0.2:
        return greedy(rng.integers(1, k_max + 1, classes), rng.uniform(1, longest / k_max, classes), threads)
    levels = rng.integers(0, 6)
    k = rng.integers(1, k_max + 1, (classes, levels + 1))
    n = rng.integers(k, longest + 1)
    edges = np.sort(rng.integers(1, 2 * threads + 3, (classes, levels)).astype(float), axis=1)
    memory = float(rng.choice([0.0, 0.9]))
    if memory > 0:
        edges *= rng.uniform(0.05, 1)
    edges[rng.uniform(size=edges.shape) < 0.1] = np.inf
    signal = rng.integers(3) if signal is None else signal
    return Strategy("ladder", int(signal), memory, np.sort(edges, axis=1), n, k)


def draw_case(
    seed, requests, threads, classes, k_max, longest, load, ties=False, signal=None, background=None
):
    """A case with ``load`` as the share of the threads that (1, 1) would keep busy."""
    rng = np.random.default_rng(seed)
    tasks = draw_tasks(rng, classes, k_max, ties, background)
    strategy = draw_strategy(rng, classes, k_max, longest, threads, signal)
    class_of = rng.integers(classes, size=requests)
    delay = delays(tasks, class_of, seed)
    mean = np.mean([delay(i, 0, 1) for i in range(requests)])
    arrival = np.cumsum(rng.exponential(mean / (threads * load), requests))
    if ties:
        arrival = np.round(arrival * 4) / 4
    return Case(arrival, class_of, tasks, strategy, threads, seed)
