"""Replay coflows on a fabric under one scheduler and one rule of source selection."""

from typing import NamedTuple

import numpy as np

from ecjax.coflow import coflow_level, sources as rules
from ecjax.coflow.coflow_level import ARRIVAL, ASKED, COFLOW_END, FLOW_END
from ecjax.coflow.state import fresh
from ecjax.coflow.workload import Fabric, Workload, check
from ecjax.errors import UserError

_EVERY = ARRIVAL | ASKED | COFLOW_END | FLOW_END

class Outcome(NamedTuple):
    """What became of C coflows with F flows."""

    completion_s: np.ndarray  # (C,) seconds from arrival to the end of the last flow
    finish_s: np.ndarray  # (F,) time when each flow ended
    source: np.ndarray  # (F,) server that sent it
    events: int  # moments at which something changed
    moved: int  # flows that changed their source before they began
    log: np.ndarray  # (rows, 4) start_s, end_s, flow, rate (bytes/s), where it was asked for

def replay(workload, fabric, scheduler, sources="given", seed=0, log=False, recompute=_EVERY):
    C, F = len(workload.arrival_s), len(workload.bytes)
    state, flow = fresh(workload, fabric)
    settings = coflow_level.Settings(
        coflow_level.CODES[scheduler], recompute, rules.CODES.get(sources, 0),
        float(np.quantile(workload.coflow_bytes, 0.8)),
    )
    candidate = rules.random_order(workload, seed)
    finish, completion = np.zeros(F), np.zeros(C)
    rows = np.zeros((1_000_000 if log else 0, 4))
    events, used = coflow_level.run(state, settings, workload.arrival_s, workload.first_candidate, candidate, finish, completion, rows)
    fin = np.empty(F); fin[flow] = finish
    src = np.empty(F, dtype=np.int64); src[flow] = state.source
    return Outcome(completion - workload.arrival_s, fin, src, events, 0, rows[:used])
