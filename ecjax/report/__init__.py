"""Figures and pages from result tables; never recomputes."""
