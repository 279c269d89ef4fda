"""Kernels of additive scores, exact and with memory linear in query + key: Numba on CPUs, Triton on GPUs."""
