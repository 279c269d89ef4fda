"""Attention kernels; all agree with the oracle in attention/reference.py."""
