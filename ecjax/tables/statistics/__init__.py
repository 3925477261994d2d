"""Statistics of a request trace, gathered in one pass over its record batches in bounded memory."""
