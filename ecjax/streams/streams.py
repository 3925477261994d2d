"""Random numbers by counter: what a request draws at a node depends on the seed, the request and the node only.

Whatever the policy, the queue or the order of events, the same request finds the same service time at the same node
(common random numbers: differences between policies vary less than the policies do), and a plain simulator can be given
the same draws. The generator is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014) whose state is set from the counter.
"""

import math

import numpy as np

from ecjax.machine_code import njit

# of SplitMix64: the step of its state, the factors of its output
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)

SERVICE, CONNECT, DISPATCH = 1, 2, 3  # what a number is drawn for


@njit(inline="always")
def mixed(state):
    """The 64 random bits of a state."""
    z = (state ^ (state >> _30)) * FIRST
    z = (z ^ (z >> _27)) * SECOND
    return z ^ (z >> _31)


@njit()
def key(seed, purpose):
    """Start of all streams of one seed and purpose; uint64."""
    return mixed(mixed(np.uint64(seed) + STEP) + np.uint64(purpose) * STEP)


@njit(inline="always")
def stream(start, counter):
    """State of the stream of a counter (>= 0); ``start`` is a ``key``.

    The first number of a stream is that of the state itself; ``advance`` leads to the others.
    """
    return np.uint64(start) + np.uint64(counter) * STEP


@njit(inline="always")
def advance(state):
    """The next state of the same stream; far from the states of other counters."""
    return mixed(state) ^ STEP


@njit(inline="always")
def uniform(state):
    """A number in (0, 1): 52 bits and a half, so that the largest is not rounded to 1."""
    return (np.float64(mixed(state) >> _12) + 0.5) * 2.220446049250313e-16


@njit(inline="always")
def exponential(state):
    """A draw of the exponential law with mean 1."""
    return -math.log(uniform(state))


@njit(inline="always")
def normal(state):
    """A draw of the standard normal law (Box and Muller), from this state and the next."""
    return math.sqrt(-2.0 * math.log(uniform(state))) * math.cos(2.0 * math.pi * uniform(advance(state)))


@njit()
def gamma(state, shape):
    """A draw of the gamma law with scale 1 (Marsaglia and Tsang, ACM TOMS 26, 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(state) ** (1.0 / shape)
        state = advance(state)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        state = advance(advance(state))
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(uniform(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
                return boost * d * v
        state = advance(state)
