"""Algorithm 1 for a dense table of loads."""

import numpy as np

from ecjax.coflow.order import bssi_order


def ordered(load):
    """Coflows first to last (C,), and the dual value, s, for the seconds of each coflow at each port (C, P)."""
    coflows, ports = load.shape
    coflow, port = np.nonzero(load)
    first = np.searchsorted(coflow, np.arange(coflows + 1))
    order = np.empty(coflows, dtype=np.int64)
    dual = bssi_order(np.arange(coflows), first, port, load[coflow, port].astype(float), ports, order)
    return order, dual
