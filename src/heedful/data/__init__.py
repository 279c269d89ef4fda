"""Pairs of texts as training data: corpora, preparation, batches, and the data doctor. NumPy only."""
