"""Figures of ``ecjax adapt``, from its result tables."""
