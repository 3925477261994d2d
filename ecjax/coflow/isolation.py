"""What coflows ask of the ports whatever else happens: seconds at each port, and how long each takes alone."""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.workload import CHOSEN_LATER, Fabric, Workload


class Loads(NamedTuple):
    """Seconds of work that coflows bring to ports, for every choice of sources.

    Sending ports come first, then receiving ports, then one more if sources are to be chosen: all servers that may
    send, taken together (no schedule sends more than the sum of their capacities).
    """

    first: np.ndarray  # (C + 1,) the entries of coflow c are first[c] to first[c + 1] - 1, by port
    port: np.ndarray  # (N,)
    load: np.ndarray  # (N,) seconds at the full capacity of the port, above 0
    ports: int

    @property
    def coflow(self) -> np.ndarray:
        """Coflow of each entry, (N,)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


def port_loads(workload: Workload, fabric: Fabric) -> Loads:
    """Loads at the ports that are certain.

    Given sources and all destinations are. A read whose sources are to be chosen burdens a server for certain only if
    all its candidates must send, and otherwise the servers taken together.
    """
    coflows, sends, receives = len(workload.arrival_s), len(fabric.send), len(fabric.receive)
    of = workload.coflow_of_flow
    later = workload.source == CHOSEN_LATER
    owners = [of[~later], of]
    ports = [workload.source[~later], sends + workload.destination]
    seconds = [
        workload.bytes[~later] / fabric.send[workload.source[~later]],
        workload.bytes / fabric.receive[workload.destination],
    ]
    count = sends + receives
    if later.any():
        candidates = np.diff(workload.first_candidate)
        reader = np.repeat(np.arange(coflows), candidates)
        width = np.bincount(of[later], minlength=coflows)
        smallest = np.full(coflows, np.inf)
        np.minimum.at(smallest, of[later], workload.bytes[later])
        forced = (candidates == width)[reader]
        owners.append(reader[forced])
        ports.append(workload.candidate[forced])
        seconds.append(smallest[reader[forced]] / fabric.send[workload.candidate[forced]])
        servers = np.union1d(workload.candidate, workload.source[~later])
        owners.append(of)
        ports.append(np.full(len(of), count))
        seconds.append(workload.bytes / fabric.send[servers].sum())
        count += 1
    key, entry = np.unique(np.concatenate(owners) * count + np.concatenate(ports), return_inverse=True)
    load = np.bincount(entry, np.concatenate(seconds), len(key))
    first = np.searchsorted(key, np.arange(coflows + 1) * count)
    return Loads(first, key % count, load, count)


def isolation_s(workload: Workload, fabric: Fabric) -> np.ndarray:
    """Time that each coflow takes if it is alone, seconds (C,): no schedule completes it faster.

    It is the most that any port has to do for it, and a rate of bytes / time for every flow reaches it. Reads choose
    the fastest of their candidates, the largest chunk from the fastest: an exchange of two chunks cannot help.
    """
    return isolation_of(port_loads(workload, fabric), workload, fabric)


def isolation_of(loads: Loads, workload: Workload, fabric: Fabric) -> np.ndarray:
    """``isolation_s`` for those who have the loads."""
    return np.maximum(
        np.maximum.reduceat(loads.load, loads.first[:-1]), _fastest_candidates(workload, fabric)
    )


def _fastest_candidates(workload: Workload, fabric: Fabric) -> np.ndarray:
    coflows = len(workload.arrival_s)
    slowest = np.zeros(coflows)
    later = np.flatnonzero(workload.source == CHOSEN_LATER)
    if not len(later):
        return slowest
    of = workload.coflow_of_flow[later]
    later = later[np.lexsort((-workload.bytes[later], of))]
    width = np.bincount(of, minlength=coflows)
    rank = np.arange(len(of)) - (np.cumsum(width) - width)[of]
    reader = np.repeat(np.arange(coflows), np.diff(workload.first_candidate))
    by_speed = workload.candidate[np.lexsort((-fabric.send[workload.candidate], reader))]
    server = by_speed[workload.first_candidate[of] + rank]
    np.maximum.at(slowest, of, workload.bytes[later] / fabric.send[server])
    return slowest
