"""Plans for the arrivals of a log, with a proof: the wait of ecjax.traffic.lindley is convex in a plan."""
