"""Coflows on a fabric: who sends when, how fast and from where, replayed event by event.

The fabric is fluid: every flow has a rate, rates change at events only, and no port is ever above its capacity.
Events are arrivals and ends of flows (flows that end together are one event), and moments that a scheduler asks
for. At every event rates are computed anew. Parts of the rules:

- C_p is the capacity of port p, R_p what is left of it, L_p(c) the remaining bytes of coflow c's unfinished flows
  at p. The remaining bottleneck of c is max_p L_p(c) / C_p; its full bottleneck is the same with the full sizes of
  its unfinished flows. Ties between coflows go to the earlier one.
- MADD (Algorithm 5 of the D-Target paper): for each coflow in order: if all ports that it needs have R_p > 1e-9
  C_p, every flow gets remaining bytes / g with g = max_p L_p / R_p, and R is reduced. A coflow with a full port
  gets nothing here. Full MADD is the same with full sizes in place of remaining bytes.
- Backfill (Algorithm 4, line 3): then for each coflow in order, for its unfinished flows by (source, destination,
  place in the table): rate += min(R_source, R_destination), and R is reduced. Remainders below 1e-9 C_p count as
  none.
- Share(G, R): n_p counts the unfinished flows of the coflows in G at p; every such flow gets
  min(R_source / n_source, R_destination / n_destination); then R is reduced.

Schedulers with an order of coflows; rates are MADD, then backfill, in this order:

- ``dtarget``: smallest full bottleneck first, set at arrivals; full MADD. Algorithm 2 as printed, but for the
  direction: it sorts 1 / bottleneck upwards, which would serve the largest first.
- ``dtarget_remaining``: smallest remaining bottleneck first, set at arrivals.
- ``varys``: smallest remaining bottleneck first (SEBF), at every event.
- ``sincronia``: Algorithm 1 (BSSI) on the remaining loads L_p / C_p of the active coflows, at arrivals and ends of
  coflows.
- ``fifo``: by arrival.
- ``local_search`` (ours): smallest remaining bottleneck first, then neighbours exchanged while the sum of completion
  times in the concurrent open shop falls (C_c = max over the ports of c of the sum of L_p / C_p up to c); the same from
  the order of ``sincronia``; of the two the one with the smaller sum; at arrivals and ends of coflows.

Algorithm 4 is printed as run on arrival. A server that ends a chunk between arrivals would then leave its port
idle, so here rates are anew at every event; what is set on arrival only is D-Target's order.

The other schedulers:

- ``aalo``: queue q holds the coflows with 10 MB 10^(q-1) <= bytes sent < 10 MB 10^q (q = 0, ..., 9) and has weight
  10 - q. Each queue with coflows has its part of every port by weight; in it, first come first served, Share({c},
  R) coflow by coflow. What all queues leave over: backfill by (queue, arrival). Events too: a coflow changes its
  queue.
- ``baraat``: by arrival; a coflow is heavy once it has sent ``heavy_bytes`` (the 80 % quantile of the sizes of the
  workload). A group is a coflow and, as long as the last one is heavy, the next. Share(group, R) group by group,
  then backfill by arrival. Events too: a coflow becomes heavy.
- ``pfabric``: flows by (remaining bytes, place in the table), smallest first: rate = min(R_source, R_destination).
- ``fair``: max-min fair per flow, which is what TCP would like to be.
- ``equal_share``: min over both ports of C_p / unfinished flows.

Reads choose k of the servers that keep a chunk, one read after another when they arrive together:

- ``random``: k at random.
- ``smallest_load``: those with the fewest remaining bytes queued (Algorithm 3), of all active coflows.
- ``least_bottleneck``: those with the least (queued bytes + chunk) / C_p. As the client's port is the same for all
  choices, this makes the read's own bottleneck least.
- ``least_work_ahead`` (ours): on arrival as ``least_bottleneck``; then, under schedulers with an order of coflows,
  at arrivals and ends of coflows every active coflow in that order takes its chunks that have not begun from the
  servers with the least (bytes of coflows before it + chunk) / C_p.

Ties between servers: the present one, then a random order that depends on the seed alone, so that all schedulers
see the same.
"""
