"""Service laws on the host: what JAX would compile anew for every number of files."""

import numpy as np

from ecjax.model import with_stalls
from ecjax.queueing.service_law import ServiceLaw
from ecjax.queueing.wait_law import TAIL


def host_parts(service: ServiceLaw, chunk_bytes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offset and scale, s, of chunks of these bytes, (r,): each (r, m); stalls come on top."""
    size = np.asarray(chunk_bytes, float)[:, None]
    offset, by_offset, scale, by_scale = (
        np.asarray(part)[None, :]
        for part in (service.offset, service.offset_per_byte, service.scale, service.scale_per_byte)
    )
    return offset + by_offset * size, scale + by_scale * size


def host_longest(service: ServiceLaw, chunk_bytes: np.ndarray) -> np.ndarray:
    """A time that all but 1e-6 of the services of chunks of these bytes, (r,), stay below, s: (r, m)."""
    value, level = np.asarray(service.unit.value), np.asarray(service.unit.level)
    offset, scale = host_parts(service, chunk_bytes)
    longest = offset + scale * value[np.arange(len(value)), np.argmax(level >= 1 - TAIL, axis=1)]
    if service.stalls is None:
        return longest
    probability, time = map(np.asarray, service.stalls)
    return longest + np.where(probability > TAIL, time, 0.0).max(axis=1)


def host_medians(service: ServiceLaw, chunk_bytes: np.ndarray) -> np.ndarray:
    """Medians of the services of chunks of these bytes, (r,), without stalls, s: (r, m)."""
    value, level = np.asarray(service.unit.value), np.asarray(service.unit.level)
    offset, scale = host_parts(service, chunk_bytes)
    median: np.ndarray = offset + scale * value[np.arange(len(value)), np.argmax(level >= 0.5, axis=1)]
    return median


def host_moments(service: ServiceLaw, chunk_bytes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raw moments E[X], E[X^2], E[X^3] (s, s^2, s^3) of chunks of these bytes, (r,): each (r, m)."""
    value, level = np.asarray(service.unit.value), np.asarray(service.unit.level)
    low, high, mass = value[:, :-1], value[:, 1:], np.diff(level, axis=1)
    first = np.sum(mass * (low + high), axis=1) / 2
    second = np.sum(mass * (low * low + low * high + high * high), axis=1) / 3
    third = np.sum(mass * (low + high) * (low * low + high * high), axis=1) / 4
    a, b = host_parts(service, chunk_bytes)
    one = a + b * first
    two = a**2 + 2 * a * b * first + b**2 * second
    three = a**3 + 3 * a**2 * b * first + 3 * a * b**2 * second + b**3 * third
    if service.stalls is None:
        return one, two, three
    probability, time = map(np.asarray, service.stalls)
    stall = [np.sum(probability * time**n, axis=1) for n in (1, 2, 3)]
    return with_stalls((one, two, three), stall)
