"""Classifiers of texts as scikit-learn estimators."""

from heedful.sklearn.text_classifier import TextClassifier

__all__ = ["TextClassifier"]
