"""Version of heedful, in a module of its own, so that it can be read without importing the package root."""

import time

IMPORTED_AT = time.time()
"""Seconds since 1970 when this process began to import the package: sources that changed later may not be its own."""
__version__ = "1.0.0"
