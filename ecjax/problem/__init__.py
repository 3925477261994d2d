"""From checked tables to a problem of placement: arrays, constraints, feasibility, lengths, classes."""
