"""Text classifier with the interface of scikit-learn: `fit`, `predict`, `predict_proba`, `score`, clone and pickle."""

from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import needed_for
from heedful.sklearn.text_estimator import TextEstimator, labels_of, texts_of

with needed_for("heedful.sklearn"):
    from sklearn.base import ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted


@final
class TextClassifier(ClassifierMixin, TextEstimator):
    """Classifier of texts, trained as by `heedful train --task classification`.

    X is a list, array or Series of texts, or a DataFrame of one column; y has a label for each, of any type that
    `numpy.unique` sorts. Texts need no preparation. A fitted estimator holds its model in memory, so that pickle and
    joblib carry it.

    Attributes:
        classes_: [label] labels in ascending order.
        files_: contents of the files of the model's folder, by name.

    Example:
        >>> texts = [f"{kind} room {number}" for number in range(50) for kind in ("quiet", "loud")]  # doctest: +SKIP
        >>> fitted = TextClassifier(minutes=1).fit(texts, ["good", "bad"] * 50)  # doctest: +SKIP
        >>> fitted.predict(["quiet hall"]).tolist()  # doctest: +SKIP
        ['good']
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train a model; a tenth of the texts validates it, where there are 100 or more.

        Args:
            X: [text] texts.
            y: label of each.

        Raises:
            ValueError: X or y is not of this form, or there are too few texts or labels.

        Cost: that of `heedful train`: seconds for hundreds of texts, a minute for thousands.
        """
        texts = texts_of(X)
        labels = labels_of(y)
        if len(texts) != len(labels):
            raise ValueError(f"X has {len(texts)} texts, y has {len(labels)} labels; give one for each")
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class; give texts of 2 or more")
        self.fit_rows(texts, [f"{number:06d}" for number in numbers.tolist()], {})
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the probabilities of labels.

        Returns:
            [text, label] probabilities in the order of `classes_`, which sum to 1.

        Raises:
            ValueError: X is not of this form.
        """
        check_is_fitted(self)
        texts = texts_of(X)
        shares = np.zeros((len(texts), len(self.classes_)))
        for row, result in zip(shares, self.classifier.stream(texts), strict=True):
            for label, share in result.probabilities.items():
                row[int(label)] = share
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Returns:
            [text] the most probable label of each.

        Raises:
            ValueError: X is not of this form.
        """
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]
