"""Figures of ``ecjax optimize``, from its result tables."""
