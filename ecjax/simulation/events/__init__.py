"""The event-exact engine: every dispatch policy with every queue of the nodes, and outages of nodes.

Rules:

- A request is complete once ``need`` of its chunks are at the client (end of service + connection delay) and, where its
  link is limited, have passed it one by one in the order in which they came. Requests of group -1 are never hedged;
  others are as far as the budget goes that those which have arrived make, and never after their delay.
- Least loaded, power of d: the fewest accesses waiting or in service, of all classes; ties in the random order of the
  row drawn for the request, of which power of d looks at the first min(n, d need).
- Fork and join, hedging: with cancellation the accesses that are left when the request is complete leave the nodes at
  once, from service too. Further accesses of hedging go to nodes of the row, in a random order, that have none of it.
- Late binding (the MDS queue: Shah, Lee and Ramchandran, "The MDS queue", ISIT 2014): an idle node takes the first
  request, by class under priority, that keeps a chunk on it, has no access there and needs one more. A new request goes
  to idle nodes in the random order of its row. Where classes have servers of their own those take their class only.
- Sharing is generalised processor sharing: the classes with work at a node have its speed in proportion to their
  weights, first come, first served within a class.
- A node that is down serves nothing. When it goes down its accesses, those in service first (by class), then those
  waiting (by class, in order), are lost: each is sent at once to the up node of the row without one of its request
  that has the fewest accesses (ties: lowest entry), to the end of the queue and with the draw of that node. Where there
  is none it waits in its old place, and is served from the beginning once the node is up.
- While nodes are down new requests go to up nodes: down ones among those drawn, or whose turn it is, are replaced by
  up nodes of the row in the order of the draw, or of the turns; least loaded and power of d look at up nodes only, and
  fork and join takes them all. Where fewer than ``need`` are up the rest waits at the down nodes of the row with the
  fewest accesses (ties: lowest entry). Hedging sends nothing to down nodes.
- Late binding: an access lost goes back to its request, which has kept its place in the order of arrivals.
- At the same time services end first (by node, then class); then requests are complete, nodes come up, nodes go down,
  further accesses are sent, requests arrive.
"""

from ecjax.simulation.events.engine import Run, finish, hedged_share, replay_block
from ecjax.simulation.events.settings import POLICIES, QUEUES, Settings, settings

__all__ = ["POLICIES", "QUEUES", "Run", "Settings", "finish", "hedged_share", "replay_block", "settings"]
