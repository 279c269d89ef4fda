"""Attention kernels; all agree with the oracle in tests/attention/reference.py."""
