"""One metric a file; `table.py` lists them all."""
