"""``ecjax analyze``."""
