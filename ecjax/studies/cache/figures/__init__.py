"""Figures of ``ecjax cache``, from its result tables."""
