"""Command line: one file a command, imported only when that command runs."""
