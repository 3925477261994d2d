"""Figures of ``ecjax replay``, from its result tables."""
