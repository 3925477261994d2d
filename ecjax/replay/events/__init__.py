"""The event-exact engine: every dispatch policy with every queue of the nodes, and outages of nodes."""

from ecjax.replay.events.engine import Run, finish, replay_block
from ecjax.replay.events.settings import POLICIES, QUEUES, Settings, settings

__all__ = ["POLICIES", "QUEUES", "Run", "Settings", "finish", "replay_block", "settings"]
