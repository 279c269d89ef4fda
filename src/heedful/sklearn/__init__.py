"""Classifiers of texts, and regressors over them, as scikit-learn estimators."""

from heedful.sklearn.text_classifier import TextClassifier
from heedful.sklearn.text_regressor import TextRegressor

__all__ = ["TextClassifier", "TextRegressor"]
