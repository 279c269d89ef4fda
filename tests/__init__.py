"""The tests; they mirror src/heedful file for file."""
