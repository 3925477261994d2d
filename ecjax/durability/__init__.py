"""Durability of erasure-coded groups: how often groups and clusters are lost, and how fast they are repaired."""
