"""Metrics, one a file; `table.py` lists them all."""
