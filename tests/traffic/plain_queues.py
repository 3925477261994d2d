"""A slow, plain simulation of reads that take k nodes each, first come, first served, and logs to replay."""

import numpy as np


def latencies(times, file, sets, k, mean, nodes, seed):
    """Latencies of reads (N,) with exponential services; each takes k of its file's nodes at random."""
    rng = np.random.default_rng(seed)
    free = [0.0] * nodes
    result = np.empty(len(times))
    service = rng.exponential(mean, (len(times), k)).tolist()
    chosen = [rng.permutation(places)[:k].tolist() for places in (sets[i] for i in file.tolist())]
    for number, (now, used, times_of) in enumerate(zip(times.tolist(), chosen, service, strict=True)):
        last = now
        for node, time in zip(used, times_of, strict=True):
            free[node] = max(free[node], now) + time
            last = max(last, free[node])
        result[number] = last - now
    return result


def probabilities(sets, k, nodes):
    """pi, (files, nodes): all nodes of a file alike."""
    rows = np.zeros((len(sets), nodes))
    for row, places in zip(rows, sets, strict=True):
        row[places] = k / len(places)
    return rows


def segments(lengths, rates, cycles, rng):
    """Poisson arrivals, times (N,) and files (N,), whose rates (files, segments) repeat."""
    times, files, begin = [], [], 0.0
    for _ in range(cycles):
        for segment, length in enumerate(lengths):
            for file, row in enumerate(rates):
                count = rng.poisson(row[segment] * length)
                times.append(rng.uniform(begin, begin + length, count))
                files.append(np.full(count, file))
            begin += length
    order = np.argsort(np.concatenate(times))
    return np.concatenate(times)[order], np.concatenate(files)[order]


def bursts(length, rate, burst_s, rng, factor=5.0, share=0.1):
    """Arrivals whose rate is ``factor`` times the mean in bursts, a ``share`` of the time."""
    times, now, on = [], 0.0, False
    while now < length:
        lasts = rng.exponential(burst_s if on else burst_s * (1 - share) / share)
        level = rate * (factor if on else (1 - factor * share) / (1 - share))
        times.append(np.sort(rng.uniform(now, now + lasts, rng.poisson(level * lasts))))
        now, on = now + lasts, not on
    every = np.concatenate(times)
    return every[every < length]
