"""Figures of ``ecjax ceph``, from its result tables."""
