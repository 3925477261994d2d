"""The families of service laws that a job may be told (``simulation.law_fit.FAMILIES``). Imports nothing heavy."""

LAWS = ("auto", "deterministic", "exponential", "shifted_exponential", "gamma", "lognormal", "pareto")
