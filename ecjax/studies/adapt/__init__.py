"""``ecjax adapt``."""
