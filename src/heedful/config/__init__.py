"""Configuration: validated settings from TOML files and dotted overrides, and custom code allowed by name."""
