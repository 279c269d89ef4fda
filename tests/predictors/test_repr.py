"""Short and telling representations of predictors and of their results."""

import numpy as np
import pytest

from heedful.data.prepare import EvaluationSet
from heedful.engines.scored_pairs import ScoredPair
from heedful.evaluation.labels import score_labels
from heedful.predictors.answerer import Answerer
from heedful.predictors.classifier import Classification, Classifier
from heedful.predictors.label_predictor import LabelPredictor
from heedful.predictors.table import load
from heedful.predictors.translation import Alternative, Translation
from heedful.predictors.translator import Translator
from tests.cli.conftest import Trained

LONG = "word " * 1000
WEIGHTS = np.zeros((500, 500), dtype=np.float32)
MOST = 200
"""Most characters of a representation, whatever it represents."""


def test_a_translator_names_its_model(trained: Trained):
    text = repr(load(trained.model, kind=Translator))
    assert text == f"<Translator {str(trained.model)!r}: transformer, source to target, engine auto>"


def test_results_show_texts_and_scores(trained: Trained):
    translator = load(trained.model, kind=Translator)
    (one,) = translator.translate(["abc"], nbest=2, attention=True)
    assert (
        repr(one) == f"<Translation 'abc' -> {one.text!r}, log_prob {one.log_prob:.2f}, 2 alternatives, with attention>"
    )
    (scored,) = translator.score([("abc", "ABC")])
    assert repr(scored) == f"<ScoredPair 'abc' -> 'ABC', log_prob {scored.log_prob:.2f}>"
    measured = translator.measure(EvaluationSet(["abc", "fed"], [["ABC"], ["FED"]]))
    assert repr(measured.report).startswith("<Report of 2 items: exact match 0.00, character error rate ")
    assert repr(measured).startswith("<MeasuredTranslations <Report of 2 items: ")


@pytest.mark.parametrize(
    "result",
    [
        Translation(LONG, LONG, -1.0, -1.0, (Alternative(LONG, -1.0, -1.0),) * 9, (LONG,), (LONG,), WEIGHTS),
        ScoredPair(LONG, LONG, (-1.0,) * 1000, (LONG,), (LONG,), WEIGHTS),
        Classification(LONG, "good", 0.75, {"good": 0.75, "bad": 0.25}, (LONG,), WEIGHTS),
        score_labels(["a"] * 1000, ["a", "b"] * 500),
    ],
    ids=lambda result: type(result).__name__,
)
def test_a_long_result_is_short(result: object):
    assert len(repr(result)) <= MOST
    assert "\n" not in repr(result)


@pytest.mark.parametrize("predictor", [Classifier, Answerer])
def test_predictors_of_labels_have_their_own(predictor: type[LabelPredictor]):
    assert predictor.__repr__ is LabelPredictor.__repr__
