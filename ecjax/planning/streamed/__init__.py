"""Certified plans for files that are read in pieces, twice: their rates are counted, then each file is placed.

With one chunk size the relaxation and its bound depend on the files by how many there are of each code and step of the
rate (see ``certified.collapse``): some ten thousand numbers, whatever the files. A file then needs its step and its
rank to be placed. Nothing is kept per file but two bit masks of nodes.
"""
