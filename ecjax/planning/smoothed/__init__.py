"""Prices of node work from a smoothed dual, for rows that stand for many files: one program for NumPy and for JAX."""
