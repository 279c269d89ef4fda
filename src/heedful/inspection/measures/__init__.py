"""Measures of the influence of source positions on outputs: attention weights, and what other formulas make of them."""
