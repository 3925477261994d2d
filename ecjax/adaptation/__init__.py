"""Adaptive coding at a proxy: how many chunks to ask for, by what the proxy sees of its own backlog.

Source: Liang and Kozat, "TOFEC: Achieving Optimal Throughput-Delay Trade-off of Cloud Storage Using Erasure Codes",
INFOCOM 2014, whose formulas are given here as checked; FAST CLOUD is their arXiv:1301.1294.

A proxy has L threads (connections to the storage), a FIFO queue of requests and a FIFO queue of tasks:

- A request of J bytes served with an (n, k) code makes n tasks, each for a chunk of J / k bytes; it is done when k of
  them are. Its other tasks are cancelled at once, those that run and those that wait. Where a class lets them finish in
  the background (writes), they are not: all n chunks are stored.
- The first request in the queue leaves it (is admitted) only when a thread is idle and no task waits. Its tasks
  start on idle threads, the others wait for the next threads that become free.
- The code is fixed when the request arrives.

So every task of a request has started or is cancelled before the next request is admitted, and a replay needs no event
heap: it is a recursion, request by request, over the times at which the L threads become free.

A strategy looks at one signal when a request arrives, the arriving request not counted:

- ``waiting``: requests in the request queue, q;
- ``in_system``: requests that are not done, in the queue or in service, N;
- ``idle``: idle threads.

It smooths the signal, s <- a s + (1 - a) signal at every arrival, from s = 0, and takes the level that w s + (1 - w)
signal has reached; every class has a code per level. TOFEC has w = 1, Greedy a = 0.
"""
