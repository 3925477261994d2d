"""Random streams that belong to what they drive, and arrivals."""
