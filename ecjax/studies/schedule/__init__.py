"""``ecjax schedule``."""
