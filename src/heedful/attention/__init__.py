"""The attention core: every classic mechanism is score x mask x normalizer, read out against values."""
