"""Inspection of attention: capture of weights in a running model, heat maps, plots by length, TensorBoard."""
