"""The law of the wait of every service class under non-preemptive priority, on a lattice.

A chunk access of class k waits for the work V of the classes 1..k that it finds (with what is left of an access of a
later class that is in service) and for the work of the classes before k that comes meanwhile. V is a wait by
Pollaczek and Khinchine with what is in service of others, as in ``wait_law``; ``ballot`` adds what comes meanwhile::

    E[s^V_k] = (idle + sum_{l > k} rho_l E[s^R_l]) / (1 - sum_{i <= k} rho_i E[s^R_i]),   idle = 1 - sum_l rho_l
    W_k      = time in which V_k is worked off, while the classes before k arrive

It is the law of Kella and Yechiali ("Priorities in M/G/1 queue with server vacations", Naval Research Logistics 35,
1988), of which ``priority`` has the moments.
"""

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.ballot import worked_off
from ecjax.queueing.lattice import mass_of, residual_mass, service_mass, transform
from ecjax.queueing.service_classes import priority_waiting
from ecjax.queueing.service_law import ServiceLaw
from ecjax.queueing.wait_law import MOST_LOAD, WaitLaw, background_residual, lattice_length


def priority_wait_law(
    rates: jax.Array, chunk_bytes: jax.Array, service: ServiceLaw, background: jax.Array | None, points: int
) -> WaitLaw:
    """Waits of K classes at m nodes: a ``WaitLaw`` with a further axis, (K, ...), in front.

    Of a class that is not stable as much is served as those before it leave, as in ``priority_waiting``.

    Args:
        rates: chunk rates of each class and size at each node, 1/s, (K, b, m); the first class goes first.
        chunk_bytes: the sizes, B, (b, m).
        service: laws of the service times.
        background: (3, m) load, A_2 (s), A_3 (s^2) of other work, served with the last class: a gamma law of its
            residual service is taken.
        points: N, a multiple of 64.
    """
    count = rates.shape[0]
    sums = [jnp.einsum("kbm,bm->km", rates, moment) for moment in service.moments(chunk_bytes)]
    other = jnp.zeros((3, service.nodes)) if background is None else background
    load, square, cube = (part.at[-1].add(more) for part, more in zip(sums, other, strict=True))
    through = jnp.cumsum(load, axis=0)
    served = jnp.clip((1 - through + load) / jnp.where(load > 0, load, 1), 0, 1)
    # above that load the lattice law is that of the least stable node that it can hold
    stable_share = jnp.minimum(1, MOST_LOAD / jnp.maximum(through, MOST_LOAD))
    offset, scale = service.parts(chunk_bytes)

    def of_class(k):
        # what delays class k: the classes to its own, and of those after it what is in service
        share = jnp.where(jnp.arange(count)[:, None] <= k, stable_share[k][None], served)
        wait = priority_waiting(share * load, share * square, share * cube)
        length = lattice_length(wait.mean[k], wait.variance[k], chunk_bytes, rates.sum(axis=0), service)
        step = lax.stop_gradient(length / points)
        place = jnp.arange(count)[:, None, None]
        parts = jnp.stack(
            [
                jnp.sum(jnp.where(mask, rates * share[:, None, :], 0), axis=0)
                for mask in (place < k, place <= k, place > k)
            ]
        )

        def at_node(law, parts, offset, scale, step):
            unit, stalls = law
            residuals = jax.vmap(lambda a, b: residual_mass(unit, a, b, step, points, False, stalls))
            services = jax.vmap(lambda a, b: service_mass(unit, a, b, step, points, False, stalls))
            residual, whole = residuals(offset, scale), services(offset, scale)
            return parts[0] @ whole, parts[1] @ residual, parts[2] @ residual

        first, before, later = jax.vmap(at_node, in_axes=(0, 2, 1, 1, 0))(
            (service.unit, service.stalls), parts, offset, scale, step
        )
        if background is not None:
            more = share[-1][:, None] * background_residual(other, step, points)
            last = k == count - 1
            before, later = before + jnp.where(last, more, 0), later + jnp.where(last, 0, more)
        idle = jnp.maximum(1 - jnp.sum(share * load, axis=0), 0)
        spectrum = transform(before)
        waiting_mass = mass_of(transform(later + idle[:, None] * before) / (1 - spectrum), points)
        # a sum of transformed numbers can be below 0 by their rounding
        mass = jnp.maximum(jax.vmap(worked_off)(waiting_mass, first, step), 0)
        return WaitLaw(step, idle, mass, through[k] < 1)

    return lax.map(of_class, jnp.arange(count))
