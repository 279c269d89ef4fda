"""Shared parts of numba kernels: scalar functions, threads, and a test of availability."""
