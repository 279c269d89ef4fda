"""Offline HTML pages: shared layout, charts, and the page of a training run."""
