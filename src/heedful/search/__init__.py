"""Greedy and beam search over any engine, in NumPy; scores of hypotheses; word alignments."""
