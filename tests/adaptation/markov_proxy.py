"""The proxy as a Markov chain: exponential delays without a shift, an unsmoothed signal, one class, a finite queue."""

from typing import NamedTuple

import numpy as np
from plain_proxy import level_of
from scipy import sparse
from scipy.sparse.linalg import spsolve


class Served(NamedTuple):
    """A request in service; with tasks in the background also after it is done."""

    level: int
    running: int
    completed: int
    unstarted: int


class Chain:
    """States: (requests in service, the one with tasks not started last; levels of those in the queue)."""

    def __init__(self, rate, mean_delay, strategy, threads, room, background=False):
        """``mean_delay[k]`` of a task, s; no more than ``room`` requests wait, others are lost."""
        self.rate, self.mean_delay, self.strategy = rate, mean_delay, strategy
        self.threads, self.room, self.background = threads, room, background
        self.states = {((), ()): 0}
        self.flows = []  # (from, to, rate)
        todo = [((), ())]
        while todo:
            state = todo.pop()
            for target, flow in self.successors(state):
                if target not in self.states:
                    self.states[target] = len(self.states)
                    todo.append(target)
                self.flows.append((self.states[state], self.states[target], flow))
        self.probability = self.solve()

    def code(self, level):
        return int(self.strategy.n[0, level]), int(self.strategy.k[0, level])

    def idle(self, served):
        return self.threads - sum(one.running for one in served)

    def in_system(self, state):
        served, queue = state
        return len(queue) + sum(one.completed < self.code(one.level)[1] for one in served)

    def successors(self, state):
        served, queue = state
        if len(queue) < self.room:
            signals = len(queue), self.in_system(state), self.idle(served)
            level = level_of(self.strategy.edges[0], signals[self.strategy.signal])
            yield self.dispatched(served, (*queue, level)), self.rate
        for place, one in enumerate(served):
            if one.running:
                n, k = self.code(one.level)
                after = one._replace(running=one.running - 1, completed=one.completed + 1)
                ended = after.completed == n if self.background else after.completed == k
                others = served[:place] + (() if ended else (after,)) + served[place + 1 :]
                yield self.dispatched(others, queue), one.running / self.mean_delay[k]

    def dispatched(self, served, queue):
        served, queue = list(served), list(queue)
        while self.idle(served) > 0:
            if served and served[-1].unstarted:
                served[-1] = served[-1]._replace(
                    running=served[-1].running + 1, unstarted=served[-1].unstarted - 1
                )
            elif queue:
                level = queue.pop(0)
                served.append(Served(level, 0, 0, self.code(level)[0]))
            else:
                break
        order = sorted(range(len(served)), key=lambda place: (served[place].unstarted > 0, served[place]))
        return tuple(served[place] for place in order), tuple(queue)

    def solve(self):
        size = len(self.states)
        start, end, flow = np.array(self.flows).T
        start, end = start.astype(int), end.astype(int)
        generator = sparse.coo_matrix(
            (np.concatenate([flow, -flow]), (np.concatenate([end, start]), np.concatenate([start, start]))),
            shape=(size, size),
        ).tolil()
        generator[0] = np.ones(size)  # one balance equation follows from the others
        return spsolve(generator.tocsc(), np.eye(1, size)[0])

    def mean(self, function):
        return sum(self.probability[place] * function(state) for state, place in self.states.items())

    def mean_latency(self):
        """By Little's law."""
        return self.mean(self.in_system) / (self.rate * (1 - self.lost()))

    def lost(self):
        return self.mean(lambda state: len(state[1]) == self.room)

    def waits(self):
        """Share of the requests that find no idle thread."""
        return self.mean(lambda state: self.idle(state[0]) == 0)
