"""Erasure-coded pools of Ceph: dumps of a cluster, plans for their groups, commands, the monitor's rules.

Pure functions on plain data; nothing but ``ecjax.rados.live`` runs a command. Facts about Ceph that the modules rest on
were measured on Ceph 16.2.15 unless a docstring says where else they are from.
"""
