"""A log held against its prediction."""
