"""Kernels of Nadaraya-Watson attention from squared distances, fused and streaming: Numba on CPUs, Triton on GPUs."""
