"""Beam search, sampling and forced decoding over any engine, in NumPy; scores of hypotheses."""
