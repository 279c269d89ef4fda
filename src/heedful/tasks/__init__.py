"""Tasks: one file each, from data files to a trained model; `table.py` lists them."""
