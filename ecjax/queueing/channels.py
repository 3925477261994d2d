"""Nodes that serve several requests at once: M/G/c from M/G/1.

In M/M/c a request waits with the probability C of Erlang, and then for an exponential time of rate c mu - lambda: the
wait of M/M/1 with a server c times as fast, given that there is one. For other laws of service the same is taken with
the wait of M/G/1 (Lee and Longton's approximation for the mean, for all moments)::

    W_c = 0 with probability 1 - C,   else W given W > 0 of M/G/1 with services X / c
    E[W_c] = C / rho E[W] = (1 + v) / 2 E[W of M/M/c],   v the squared coefficient of variation of service

It is exact for exponential services and for c = 1. As C <= rho, W itself is never less.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaincc, gammaln

from ecjax.queueing.mg1 import Delay
from ecjax.queueing.wait_law import MOST_LOAD, WaitLaw


def erlang_c(load: jax.Array, channels: jax.Array) -> jax.Array:
    """Probability that a request of M/M/c waits, by the continuous form of Erlang's B; differentiable by the load.

    Args:
        load: rho of a channel, in [0, 1).
        channels: c, at least 1.
    """
    offered = jnp.maximum(load * channels, 1e-12)
    # B = (a^c e^-a / c!) / Pr(Poisson(a) <= c)
    logarithm = channels * jnp.log(offered) - offered - gammaln(channels + 1)
    blocked = jnp.exp(logarithm) / gammaincc(channels + 1, offered)
    return blocked / (1 - load + load * blocked)


def delay_over_channels(wait: Delay, load: jax.Array, channels: jax.Array) -> Delay:
    """Mean and variance of waits at nodes with several channels; arguments as of ``over_channels``."""
    busy = jnp.clip(load, 1e-12, MOST_LOAD)
    part = erlang_c(busy, channels) / busy
    mean = part * wait.mean
    return Delay(mean, part * (wait.variance + wait.mean**2) - mean**2)


def over_channels(wait: WaitLaw, load: jax.Array, channels: jax.Array) -> WaitLaw:
    """Waits at nodes with several channels.

    Args:
        wait: of one server as fast as all channels of the node.
        load: (m,) rho.
        channels: (m,).
    """
    busy = jnp.clip(load, 1e-12, MOST_LOAD)
    waiting = erlang_c(busy, channels)
    return WaitLaw(wait.step, 1 - waiting, wait.mass * (waiting / busy)[:, None], wait.stable)
