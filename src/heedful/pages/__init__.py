"""Offline HTML pages: what all of them share, curves, and the page of a training run."""
