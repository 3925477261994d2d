"""Channels told by logs of a plain simulation of nodes with several first-come first-served servers."""

import heapq

import numpy as np
import pandas as pd
import pytest
from channel_logs import LAWS, served

from ecjax.tables.importers import open_trace
from ecjax.tables.statistics.channels import ChannelServices, FinishedServices, StartedServices
from ecjax.tables.statistics.delays import SERVICE
from ecjax.tables.statistics.scan import Merge, scan, scan_piece, with_services_of_channels


def batched(counter, columns, count, rows=1777):
    for begin in range(0, len(columns[0]), rows):
        counter.add(*(np.ascontiguousarray(column[begin : begin + rows]) for column in columns), count)
    return counter.channels(count)


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
@pytest.mark.parametrize("law", LAWS)
def test_starts_tell_the_channels(law, load):
    channels = [1, 2, 4]
    node, arrival, start, finish = served(channels, load, law)
    told = batched(StartedServices(0.0, False), (node, arrival, start, finish), 3)
    assert told.servers.tolist() == channels == told.at_once.tolist()
    # a clock of a hundredth of the mean service
    ticked = [np.round(times, 2) for times in (arrival, start, finish)]
    assert batched(StartedServices(0.01, False), (node, *ticked), 3).servers.tolist() == channels


@pytest.mark.parametrize("load", [0.4, 0.7])
@pytest.mark.parametrize("law", LAWS)
def test_finishes_tell_the_channels_and_the_services(law, load):
    channels = [1, 2, 4]
    node, arrival, start, finish = served(channels, load, law, rows=20_000)
    told = batched(FinishedServices(False), (node, arrival, finish), 3)
    assert told.servers.tolist() == channels and not told.doubtful.any()
    service = ChannelServices(told.servers).add(node, arrival, finish)
    np.testing.assert_allclose(service, finish - start, atol=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_channels_are_never_wrong_where_there_is_little_to_see(law):
    for seed in range(5):
        columns = served([4, 8], 0.2, law, rows=1500, seed=seed)
        node, arrival, _, finish = columns
        for told in (
            batched(StartedServices(0.0, False), columns, 2),
            batched(FinishedServices(False), (node, arrival, finish), 2),
        ):
            right = (told.servers == [4, 8]) | (told.servers == 0) | told.doubtful
            assert right.all(), told


def shared(load, rows, seed):
    """Arrivals and finishes of one processor that all accesses share."""
    random = np.random.default_rng(seed)
    work, arrival = random.exponential(1.0, rows), np.cumsum(random.exponential(1 / load, rows))
    clock, left, finish, i = 0.0, {}, np.empty(rows), 0
    while i < rows or left:
        soonest = min(left, key=left.get, default=None)
        leaves = np.inf if soonest is None else clock + left[soonest] * len(left)
        moment = min(leaves, arrival[i] if i < rows else np.inf)
        left = {each: rest - (moment - clock) / len(left) for each, rest in left.items()}
        clock = moment
        if moment == leaves:
            finish[soonest] = clock
            del left[soonest]
        else:
            left[i] = work[i]
            i += 1
    return arrival, finish


def test_a_sojourn_is_no_service():
    arrival, finish = shared(0.6, 4000, 0)
    node = np.zeros(4000, np.int64)
    assert batched(FinishedServices(False), (node, arrival, finish), 1).servers == [0]
    # taken for the start of service, the arrival tells nothing either
    told = batched(StartedServices(0.0, False), (node, arrival, arrival, finish), 1)
    assert told.servers == [0] and told.at_once > 3


def test_starts_out_of_order_of_arrival():
    """Last come, first served on two channels."""
    random = np.random.default_rng(1)
    rows = 4000
    arrival, service = np.cumsum(random.exponential(0.6, rows)), random.exponential(1.0, rows)
    start, stack, busy, i, clock = np.empty(rows), [], [], 0, 0.0
    while i < rows or stack:
        if len(busy) < 2 and stack:
            each = stack.pop()
            start[each] = clock
            heapq.heappush(busy, clock + service[each])
        elif i < rows and (len(busy) < 2 or arrival[i] <= busy[0]):
            clock = arrival[i]
            while busy and busy[0] <= clock:
                heapq.heappop(busy)
            stack.append(i)
            i += 1
        else:
            clock = heapq.heappop(busy)
    node = np.zeros(rows, np.int64)
    told = batched(StartedServices(0.0, False), (node, arrival, start, start + service), 1)
    assert told.servers == [2] and (start[1:] < start[:-1]).any()


@pytest.mark.parametrize("starts", [True, False])
def test_pieces_of_a_log_tell_the_same(starts, tmp_path):
    node, arrival, start, finish = served([1, 3, 2], 0.6, "shifted exponential", rows=4000)
    frame = pd.DataFrame(
        {
            "request_id": np.arange(len(node)),
            "arrival_s": arrival,
            "file_id": np.arange(len(node)) % 7,
            "op": np.where(np.arange(len(node)) % 5, "read", "write"),
            "bytes": 1e6,
            "node_id": node,
            **({"start_s": start} if starts else {}),
            "finish_s": finish,
        }
    )
    for part in range(4):
        frame[part * 3000 : (part + 1) * 3000].to_parquet(tmp_path / f"{part}.parquet")
    trace = open_trace(tmp_path)
    whole, merge = scan(trace), Merge()
    for piece in trace.pieces(4):
        merge.add(scan_piece(piece))
    pieces = with_services_of_channels(merge.finish(), trace, 0)
    channels = {0: 1, 1: 3, 2: 2}
    for statistics in (whole, pieces):
        ids = statistics.node_ids.to_pylist()
        assert dict(zip(ids, statistics.channels.servers.tolist(), strict=True)) == channels
        cells = statistics.cells.choose(statistics.cells.quantity == SERVICE)
        for number, name in enumerate(ids):
            total = cells.moments[cells.node == number]
            mean = total[:, 0] @ total[:, 1] / total[:, 0].sum()
            np.testing.assert_allclose(mean, (finish - start)[node == name].mean(), rtol=1e-9)
