"""Text classifier with the interface of scikit-learn: `fit`, `predict`, `predict_proba`, `score`, clone and pickle."""

from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import needed_for
from heedful.sklearn.text_estimator import TextEstimator, labels_of, texts_of

with needed_for("heedful.sklearn"):
    from sklearn.base import ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets, is_multilabel
    from sklearn.utils.validation import check_is_fitted

_SEPARATOR: Final = "|"
"""Separator of the labels of a text in the file of a training."""
_SEVERAL: Final = (
    "where texts have several labels, give a matrix of 0 and 1: "
    "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
)


@final
class TextClassifier(ClassifierMixin, TextEstimator):
    """Classifier of texts, trained as by `heedful train --task classification`.

    X is a list, array or Series of texts, or a DataFrame of one column; y has a label for each, of any type that
    `numpy.unique` sorts. Where texts have any number of labels, y is a matrix [text, label] of 0 and 1, as
    scikit-learn's MultiLabelBinarizer makes it. Texts need no preparation. A fitted estimator holds its model in
    memory, so that pickle and joblib carry it.

    Attributes:
        classes_: [label] labels in ascending order; of a matrix the numbers of its columns.
        multilabel_: True where y was a matrix.
        files_: contents of the files of the model's folder, by name.

    Example:
        >>> texts = [f"{kind} room {number}" for number in range(50) for kind in ("quiet", "loud")]  # doctest: +SKIP
        >>> fitted = TextClassifier(minutes=1).fit(texts, ["good", "bad"] * 50)  # doctest: +SKIP
        >>> fitted.predict(["quiet hall"]).tolist()  # doctest: +SKIP
        ['good']
    """

    multilabel_: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Train a model; a tenth of the texts validates it, where there are 100 or more.

        Args:
            X: [text] texts.
            y: label of each; or a matrix [text, label] of 0 and 1.

        Raises:
            ValueError: X or y is not of this form, or there are too few texts or labels.

        Cost: that of `heedful train`: seconds for hundreds of texts, a minute for thousands.
        """
        texts = texts_of(X)
        matrix = _indicators(y)
        labels = labels_of(y, _SEVERAL) if matrix is None else matrix
        if len(texts) != len(labels):
            raise ValueError(f"X has {len(texts)} texts, y has {len(labels)} labels; give one for each")
        self.multilabel_ = matrix is not None
        if matrix is not None:
            if not matrix.any():
                raise ValueError("y: no 1; give texts with labels")
            self.classes_ = np.arange(matrix.shape[1])
            rows = [_SEPARATOR.join(f"{number:06d}" for number in np.flatnonzero(row).tolist()) for row in matrix]
            self.fit_rows(texts, rows, {}, _SEPARATOR)
            return self
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class; give texts of 2 or more")
        if len(self.classes_) > max(5, len(texts) // 2):  # fewer than 10 texts have a message of their own
            raise ValueError(
                f"y has {len(self.classes_)} different labels for {len(texts)} texts; a label needs two on average; "
                "for numbers, TextRegressor"
            )
        self.fit_rows(texts, [f"{number:06d}" for number in numbers.tolist()], {})
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the probabilities of labels.

        Returns:
            [text, label] probabilities in the order of `classes_`, which sum to 1; after a fit to a matrix, that the
            text has the label, each by itself, and 0 for a label that no text had.

        Raises:
            ValueError: X is not of this form.
        """
        check_is_fitted(self)
        texts = texts_of(X)
        shares = np.zeros((len(texts), len(self.classes_)))
        for row, result in zip(shares, self.classifier.stream(texts), strict=True):
            for label, share in result.probabilities.items():
                row[int(label)] = share
        return shares if self.multilabel_ else shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Returns:
            [text] the most probable label of each; after a fit to a matrix, a matrix [text, label] of 0 and 1.

        Raises:
            ValueError: X is not of this form.
        """
        check_is_fitted(self)
        if self.multilabel_:
            texts = texts_of(X)
            matrix = np.zeros((len(texts), len(self.classes_)), dtype=np.int64)
            for row, result in zip(matrix, self.classifier.stream(texts), strict=True):
                row[[int(label) for label in result.labels]] = 1
            return matrix
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _indicators(values: Any) -> NDArray[np.bool_] | None:
    """Labels of a matrix with a column for each; None where the values are no matrix of 0 and 1."""
    array = values.toarray() if hasattr(values, "toarray") else values  # of SciPy's sparse matrices
    array = array.to_numpy() if hasattr(array, "to_numpy") else array
    if not is_multilabel(array):
        return None
    matrix = np.asarray(array)
    return matrix.astype(np.bool_) if {*np.unique(matrix).tolist()} <= {0, 1} else None
