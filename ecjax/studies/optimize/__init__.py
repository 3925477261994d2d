"""``ecjax optimize``."""
