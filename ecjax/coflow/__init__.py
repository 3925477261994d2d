"""Coflows on a fabric: who sends when, how fast and from where, replayed event by event.

The fabric is fluid: every flow has a rate, rates change at events only, and no port is ever above its capacity. Events
are arrivals and ends of flows (flows that end together are one event), and moments that a scheduler asks for. At every
event rates are computed anew unless a scheduler says otherwise. Parts of the rules:

- C_p is the capacity of port p, R_p what is left of it, L_p(c) the remaining bytes of coflow c's unfinished flows at p.
  The remaining bottleneck of c is max_p L_p(c) / C_p. Ties between coflows go to the earlier one.
- MADD (Algorithm 5 of the D-Target paper): for each coflow in order: if all ports that it needs have R_p > 1e-9 C_p, every flow gets
  remaining bytes / g with g = max_p L_p / R_p, and R is reduced. A coflow with a full port gets nothing here.
- Backfill (Algorithm 4, line 3): then for each coflow in order, for its unfinished flows by (source, destination, place in the
  table): rate += min(R_source, R_destination), and R is reduced. Remainders below 1e-9 C_p count as none.
- Share(G, R): n_p counts the unfinished flows of the coflows in G at p; every such flow gets min(R_s / n_s, R_d / n_d);
  then R is reduced.

| scheduler | order | rates |
|---|---|---|
| ``varys`` | smallest remaining bottleneck first (SEBF) | MADD, backfill |
| ``fifo`` | arrival | MADD, backfill |
| ``sincronia`` | Algorithm 1 (BSSI) on the remaining loads L_p / C_p of the active coflows, anew at arrivals and ends of coflows | MADD, backfill |
| ``aalo`` | queue q holds coflows with 10 MB 10^(q-1) <= bytes sent < 10 MB 10^q (q = 0, ..., 9), first come first served within; weights 10 - q | each queue with coflows has its part of every port by weight; in it, coflow by coflow, Share({c}, R); what all queues leave over: backfill by (queue, arrival) |
| ``baraat`` | arrival; a coflow is heavy once it has sent ``heavy_bytes`` (the 80 % quantile of the sizes of the workload); a group is a coflow and, as long as the last one is heavy, the next | group by group Share(group, R); backfill by arrival |
| ``pfabric`` | flows, smallest (remaining bytes, place in the table) first | rate = min(R_source, R_destination) |
| ``fair`` | none | max-min fair per flow |
| ``equal_share`` | none | min over both ports of C_p / unfinished flows |
"""
