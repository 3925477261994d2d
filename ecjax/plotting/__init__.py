"""Drawing from result tables: panels, grids, legends, saving. Never recomputes; knows no JAX."""
