"""The regressor of numbers over texts as a scikit-learn estimator."""

import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from heedful.sklearn import TextRegressor

SMALL = {
    "model.embedding_size": 8,
    "model.hidden_size": 4,
    "training.max_steps": 120,
    "training.validate_every": 40,
    "training.precision": "float32",
}
WORTH = {"awful": -3.5, "poor": -1.0, "fair": 0.0, "good": 2.0, "superb": 4.5}


def data(number: int, seed: int) -> tuple[list[str], list[float]]:
    """Sentences with an adjective, whose number is that of the adjective."""
    draw = np.random.default_rng(seed)
    words = [str(draw.choice([*WORTH])) for _ in range(number)]
    fillers = ["the film", "this book", "our meal", "that song", "his talk"]
    texts = [
        f"{draw.choice(fillers)} was {word}, {draw.choice(fillers)} too {index}" for index, word in enumerate(words)
    ]
    return texts, [WORTH[word] for word in words]


@pytest.fixture(scope="module")
def fitted() -> TextRegressor:
    return TextRegressor(settings=SMALL).fit(*data(200, 0))


def test_it_learns_numbers(fitted: TextRegressor):
    texts, numbers = data(40, seed=5)
    predicted = fitted.predict(np.array(texts, dtype=object))
    assert predicted.shape == (40,)
    assert predicted.dtype == np.float64
    assert fitted.score(texts, numbers) >= 0.8
    shuffled = np.random.default_rng(1).permutation(numbers)
    assert fitted.score(texts, shuffled) < 0.3  # a score that could not fall would say nothing


def test_copies_predict_the_same(fitted: TextRegressor):
    texts, _ = data(20, seed=6)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(texts), fitted.predict(texts))
    assert clone(fitted).get_params() == fitted.get_params()


def test_few_texts_with_a_number_of_their_own_each():
    """As prices have; some of the texts blank, the first one too."""
    texts = ["", *(f"item {row} of {row % 7}" for row in range(1, 40)), " "]
    numbers = [row + 0.5 for row in range(41)]
    fitted = TextRegressor(settings={**SMALL, "training.max_steps": 4}).fit(texts, numbers)
    predicted = fitted.predict([*texts, "\x1b[2J", "unseen"])
    assert np.isfinite(predicted).all()
    assert 0.5 <= predicted.min() <= predicted.max() <= 40.5


@pytest.mark.parametrize(
    ("texts", "numbers", "message"),
    [
        (["a", "b"], [1.0], "2 texts, y has 1 numbers"),
        (["a", "b"], [1.0, "x"], "y: row 1 is 'x'; give a number"),
        (["a", "b"], [1.0, float("inf")], "y: row 1 is inf; give a finite number"),
        (["a", "b"], [1.0, None], "y: row 1 is None"),
        (["a", "b"], [1.0, 10**400], "y: row 1 is 1000"),
        ([f"a {row}" for row in range(20)], [1e308, -1e308] * 10, "is too large a number"),
        (["a", "b"], [2.0, 2.0], "y has one value"),
        (["a", 3], [1.0, 2.0], "X: row 1 is 3"),
        (["a", "b"], None, "y is None"),
    ],
)
def test_what_is_no_number_is_named(texts: Any, numbers: Any, message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        TextRegressor(settings=SMALL).fit(texts, numbers)
