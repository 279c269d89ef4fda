"""CPU loops compiled by Numba: number functions for them, threads that run them, and a test of availability."""
