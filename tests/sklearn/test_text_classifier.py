"""The text classifier as a scikit-learn estimator."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer

from heedful.sklearn import TextClassifier
from tests.tasks.reviews import reviews
from tests.thorough import thorough

SMALL = {
    "model.embedding_size": 8,
    "model.hidden_size": 4,
    "training.max_steps": 20,
    "training.validate_every": 20,
    "training.precision": "float32",
}


def data(number: int = 60, seed: int = 0) -> tuple[list[str], list[str]]:
    texts, labels = zip(*reviews(number, seed), strict=True)
    return [*texts], [*labels]


@pytest.fixture(scope="module")
def fitted() -> TextClassifier:
    return TextClassifier(settings=SMALL).fit(*data())


def test_it_learns_and_gives_probabilities(fitted: TextClassifier):
    texts, labels = data(40, seed=5)
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.score(texts, labels) >= 0.9
    shares = fitted.predict_proba(np.array(texts, dtype=object))
    assert shares.shape == (40, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (fitted.classes_[shares.argmax(axis=1)] == fitted.predict(texts)).all()


def test_copies_predict_the_same(fitted: TextClassifier):
    texts, _ = data(20, seed=6)
    wanted = fitted.predict_proba(texts)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert np.array_equal(other.predict_proba(texts), wanted)
    fresh: Any = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(texts)


def test_it_works_with_the_tools_of_scikit_learn():
    texts, labels = data()
    numbers = [len(label) for label in labels]  # labels of any type
    pipeline = make_pipeline(
        FunctionTransformer(lambda rows: [row.lower() for row in rows]), TextClassifier("bag", settings=SMALL)
    )
    assert set(pipeline.fit(texts, numbers).predict(["clean", "dirty"])) <= {3, 4}
    assert cross_val_score(TextClassifier(settings=SMALL), texts, labels, cv=2).mean() >= 0.9
    search = GridSearchCV(TextClassifier(settings=SMALL), {"random_state": [1]}, cv=2, refit=False)
    assert search.fit(texts, labels).best_score_ >= 0.9


def test_a_matrix_of_several_labels():
    texts, labels = data(80)
    several = [[label, *(["room"] if "room" in text else [])] for text, label in zip(texts, labels, strict=True)]
    several[0] = []
    matrix = np.hstack([np.asarray(MultiLabelBinarizer().fit_transform(several)), np.zeros((80, 1), dtype=int)])
    fitted = TextClassifier(settings={**SMALL, "training.max_steps": 60}).fit(texts, matrix)
    assert fitted.classes_.tolist() == [0, 1, 2, 3]
    shares, predicted = fitted.predict_proba(texts), fitted.predict(texts)
    assert shares.shape == predicted.shape == (80, 4)
    assert not shares[:, 3].any()  # a label of no text
    assert np.array_equal(predicted, shares >= 0.5)
    assert fitted.score(texts, matrix) == np.mean((predicted == matrix).all(axis=1)) >= 0.7
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.predict(texts), predicted)
    assert np.array_equal(fitted.fit(texts, csr_matrix(matrix)).predict(texts), predicted)
    with pytest.raises(ValueError, match="y: no 1"):
        fitted.fit(texts, np.zeros((80, 2)))


@thorough
def test_the_same_seed_gives_the_same_model():
    one, other = (TextClassifier(settings=SMALL, random_state=3).fit(*data()) for _ in range(2))
    texts, _ = data(10, seed=7)
    assert np.array_equal(one.predict_proba(texts), other.predict_proba(texts))


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_what_is_no_column_of_texts_is_refused_with_its_row(fitted: TextClassifier):
    texts, labels = data()
    cases: list[tuple[Any, Any, str]] = [
        ("one text", labels, "give a list of texts"),
        ([*texts[:2], None, *texts[3:]], labels, "row 2 is None"),
        ([float("nan"), *texts[1:]], labels, "row 0 is nan"),
        (texts, [*labels[:3], None, *labels[4:]], "y: row 3 is None"),
        (texts, [float("nan"), *([1.0, 2.0] * 40)][: len(texts)], "y: row 0 is nan"),
        (texts, labels[1:], "60 texts, y has 59 labels"),
        (texts, ["one"] * 60, "1 class"),
        (texts, [*map(str, range(60))], "60 different labels for 60 texts; .* TextRegressor"),
        (texts[:5], labels[:5], "^X and y: 5 of 5 texts kept.*at least 10"),
        (texts, [["a"], ["a", "b"], *([["b"]] * 58)], "y: row 0 is a list; .*MultiLabelBinarizer"),
        (texts, np.arange(120).reshape(60, 2), "give one column"),
        (np.zeros((3, 2)), labels, "give one column"),
        ([], [], "no texts"),
        (texts, None, "requires y"),
    ]
    for one, other, complaint in cases:
        with pytest.raises(ValueError, match=complaint):
            TextClassifier(settings=SMALL).fit(one, other)
    with pytest.raises(ValueError, match="row 1"):
        fitted.predict(["clean", 3])
    with pytest.raises(ValueError, match="no such preset"):
        TextClassifier("nothing").fit(texts, labels)
    with pytest.raises(ValueError, match=r"minutes=-1; give 0 or more"):
        TextClassifier(minutes=-1).fit(texts, labels)
