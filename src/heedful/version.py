"""The version of heedful, by itself: modules that state it need not import the package's root."""

__version__ = "0.1.0"
