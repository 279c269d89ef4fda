"""Models: one paper, one file, each with its Config, its Model and its PRESETS."""
