"""Nadaraya-Watson kernel regression as a scikit-learn estimator. NumPy only."""
