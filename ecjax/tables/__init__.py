"""The Arrow boundary: schemas, readers, importers, trace statistics and writers. Knows no JAX."""
