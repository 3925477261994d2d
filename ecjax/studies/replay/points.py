"""What a replay is asked to vary."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One replay of a plan: a policy, queues, a service law, scalings."""

    policy: str
    queue: str
    service: str
    rate_scale: float
    size_scale: float
