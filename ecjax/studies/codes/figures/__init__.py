"""Figures of ``ecjax codes``."""
