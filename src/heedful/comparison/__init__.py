"""Comparison of model variants on one corpus: grid, runs, results, and the table of a paper."""
