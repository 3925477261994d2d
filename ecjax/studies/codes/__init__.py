"""``ecjax codes``: candidate codes beside each other in one cluster: durability, overhead, repair."""
