"""Version of heedful, in a module of its own, so that it can be read without importing the package root."""

__version__ = "0.9.0.dev0"
