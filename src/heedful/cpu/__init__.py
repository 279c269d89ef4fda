"""Shared parts of numba kernels: scalar functions, threads, second derivatives and availability."""
