"""Nadaraya-Watson attention from squared distances: fused and streaming, on CPUs by Numba, on GPUs by Triton."""
