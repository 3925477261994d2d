"""Plans for the arrivals of a log, with a proof: the smoothed Lindley recursion of ecjax.traffic is convex in a plan."""
