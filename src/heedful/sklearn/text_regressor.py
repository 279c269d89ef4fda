"""Regressor of numbers over texts with the interface of scikit-learn: `fit`, `predict`, `score`, clone and pickle."""

from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import needed_for
from heedful.sklearn.text_estimator import TextEstimator, labels_of, texts_of

with needed_for("heedful.sklearn"):
    from sklearn.base import RegressorMixin
    from sklearn.utils.validation import check_is_fitted


@final
class TextRegressor(RegressorMixin, TextEstimator):
    """Regressor of numbers over texts, such as ratings, prices or ages.

    X is as for `TextClassifier`; y has a finite number for each text. Predictions stay within the range of y.

    Example:
        >>> texts = [f"{kind} room {number}" for number in range(50) for kind in ("quiet", "loud")]  # doctest: +SKIP
        >>> fitted = TextRegressor(minutes=1).fit(texts, [5, 2] * 50)  # doctest: +SKIP
        >>> fitted.predict(["quiet hall"]).tolist()  # doctest: +SKIP
        [4.81]
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train a model; a tenth of the texts validates it, where there are 100 or more.

        Args:
            X: [text] texts.
            y: number of each text.

        Raises:
            ValueError: X or y is not of this form, or there are too few texts.

        Cost: that of `heedful train`: seconds for hundreds of texts, a minute for thousands.
        """
        texts, numbers = texts_of(X), _numbers(y)
        if len(texts) != len(numbers):
            raise ValueError(f"X has {len(texts)} texts, y has {len(numbers)} numbers; give one for each")
        if len(np.unique(numbers)) < 2:
            raise ValueError("y has one value; give texts with 2 or more")
        self.fit_rows(texts, [repr(number) for number in numbers.tolist()], {"text.labels": "number"})
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict numbers.

        Returns:
            [text] the number of each.

        Raises:
            ValueError: X is not of this form.
        """
        check_is_fitted(self)
        return np.array([float(one.label) for one in self.classifier.stream(texts_of(X))])


def _numbers(values: Any) -> NDArray[np.float64]:
    """Array of numbers.

    Raises:
        ValueError: there are none, or a value is no finite number; the message names the row.
    """
    items = labels_of(values)
    numbers = np.empty(len(items))
    for row, item in enumerate(items.tolist()):
        try:
            numbers[row] = float(item)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"y: row {row} is {item!r:.40}; give a number") from None
        if not np.isfinite(numbers[row]):
            raise ValueError(f"y: row {row} is {item!r}; give a finite number")
    return numbers
