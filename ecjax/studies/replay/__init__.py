"""``ecjax replay``."""
