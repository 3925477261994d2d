"""``ecjax cache``."""
