"""Random numbers of the delays of tasks, by counter: the seed, the request and the task decide them, nothing else.

Exponential and normal numbers are drawn by the ziggurat (Marsaglia and Tsang, "The ziggurat method for generating
random variables", J. Statistical Software 5, 2000) in 256 layers: in 99 of 100 cases one number of the stream, one
comparison and no logarithm. A replay draws up to a dozen per request, and little else takes time.
"""

import math

import numpy as np

from ecjax.machine_code import njit
from ecjax.streams import streams

_LAYERS = 256
_TASK = np.uint64(0xD1B54A32D192ED03)  # apart from the step between requests
_LAYER, _8, _12, _SIGN = np.uint64(_LAYERS - 1), np.uint64(8), np.uint64(12), np.uint64(1)
_UNIT = 2.0**-52
# where the tails begin, for 256 layers
_EXPONENTIAL_TAIL = 7.69711747013104972
_NORMAL_TAIL = 3.6541528853610088


def _layers(tail, density, inverse, area):
    """Right edges of the layers, the lowest (with the tail) first, and the density there, (257,)."""
    edges = np.zeros(_LAYERS + 1)
    edges[0], edges[1] = area / density(tail), tail
    for i in range(1, _LAYERS - 1):
        edges[i + 1] = inverse(density(edges[i]) + area / edges[i])
    return edges, np.array([density(x) for x in edges])


_EXPONENTIAL_X, _EXPONENTIAL_F = _layers(
    _EXPONENTIAL_TAIL,
    lambda x: math.exp(-x),
    lambda y: -math.log(y),
    (1.0 + _EXPONENTIAL_TAIL) * math.exp(-_EXPONENTIAL_TAIL),
)
_NORMAL_X, _NORMAL_F = _layers(
    _NORMAL_TAIL,
    lambda x: math.exp(-0.5 * x * x),
    lambda y: math.sqrt(-2.0 * math.log(y)),
    _NORMAL_TAIL * math.exp(-0.5 * _NORMAL_TAIL**2)
    + math.sqrt(math.pi / 2) * math.erfc(_NORMAL_TAIL / math.sqrt(2)),
)


@njit(inline="always")
def task_state(state, place):
    """State of a number of a request: 0 is what its tasks share, 1, 2, ... are its tasks.

    Args:
        state: ``streams.stream`` of the request, uint64.
        place: >= 0.
    """
    return state + np.uint64(place) * _TASK


@njit(inline="always", error_model="numpy")
def _in_a_layer(bits, edges):
    """A layer, and a place below its right edge."""
    layer = np.int64(bits & _LAYER)
    return layer, (np.float64(bits >> _12) + 0.5) * _UNIT * edges[layer]


@njit(inner=True, error_model="numpy")
def _exponential_otherwise(state, layer, x):
    """What is not below the layer above: the wedge or the tail, or anew."""
    while True:
        state = streams.advance(state)
        if layer == 0:
            return _EXPONENTIAL_TAIL - math.log(streams.uniform(state))
        low = _EXPONENTIAL_F[layer]
        if low + streams.uniform(state) * (_EXPONENTIAL_F[layer + 1] - low) < math.exp(-x):
            return x
        state = streams.advance(state)
        layer, x = _in_a_layer(streams.mixed(state), _EXPONENTIAL_X)
        if x < _EXPONENTIAL_X[layer + 1]:
            return x


@njit(inline="always", error_model="numpy")
def exponential(state):
    """A draw of the exponential law with mean 1."""
    layer, x = _in_a_layer(streams.mixed(state), _EXPONENTIAL_X)
    if x >= _EXPONENTIAL_X[layer + 1]:
        x = _exponential_otherwise(state, layer, x)
    return x


@njit(inner=True, error_model="numpy")
def _normal_otherwise(state, layer, x):
    """As above, of |N|."""
    while True:
        state = streams.advance(state)
        if layer == 0:
            while True:
                over = -math.log(streams.uniform(state)) / _NORMAL_TAIL
                state = streams.advance(state)
                if -2.0 * math.log(streams.uniform(state)) > over * over:
                    return _NORMAL_TAIL + over
                state = streams.advance(state)
        low = _NORMAL_F[layer]
        if low + streams.uniform(state) * (_NORMAL_F[layer + 1] - low) < math.exp(-0.5 * x * x):
            return x
        state = streams.advance(state)
        layer, x = _in_a_layer(streams.mixed(state), _NORMAL_X)
        if x < _NORMAL_X[layer + 1]:
            return x


@njit(inline="always", error_model="numpy")
def normal(state):
    """A draw of the standard normal law."""
    bits = streams.mixed(state)
    layer, x = _in_a_layer(bits, _NORMAL_X)
    if x >= _NORMAL_X[layer + 1]:
        x = _normal_otherwise(state, layer, x)
    return -x if (bits >> _8) & _SIGN else x
