"""Additive scores, exact and in memory linear in query + key: on CPUs by Numba, on GPUs by Triton."""
