"""A module per kind of section."""
