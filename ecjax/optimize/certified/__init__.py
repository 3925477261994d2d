"""Plans with a proof of how far they are from the best: a Lagrangian lower bound and a rounded primal."""
