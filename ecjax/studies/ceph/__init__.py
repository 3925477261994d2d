"""``ecjax ceph``."""
