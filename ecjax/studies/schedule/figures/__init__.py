"""Figures of ``ecjax schedule``, from its result tables."""
