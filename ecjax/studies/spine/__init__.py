"""What every study does the same way."""
