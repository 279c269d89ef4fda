"""Fused attention on GPUs by Triton: scores, mask, normalizer, dropout and context in one pass."""
