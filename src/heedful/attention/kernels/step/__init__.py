"""Kernel of attention by few queries on a CPU, such as a step of a decoder: all of it in one compiled loop."""
