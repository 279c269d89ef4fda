"""Kernel of sums over alignments on a CPU: the forward algorithm and its gradient, in Numba."""
