"""Replay of plans and dispatch policies on arrivals: queues of nodes, event by event, on the host's cores."""
