"""Plans for service classes whose reads have queues of their own: priority (JLOP) and weighted (JLWO)."""
