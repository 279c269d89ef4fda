"""Implementations of attention, one file each; all equal the oracle in attention/reference.py."""
