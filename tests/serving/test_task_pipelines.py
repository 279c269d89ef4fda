"""Pipelines of labels, vectors, captions and answers, in the shapes of Transformers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.errors import UsageError
from heedful.predictors.answerer import Answer, AnswerSpan
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.serving.task_pipelines import PIPELINES
from heedful.text.stories import Story
from tests.cli.conftest import Trained
from tests.tasks.reviews import write_reviews
from tests.tasks.test_classification import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines")
    Run(write_reviews(folder / "reviews.tsv"), folder / "m", "training.max_steps=20", preset="bag").train()
    return folder / "m"


def test_labels_have_the_shapes_of_transformers(model: Path):
    classify: Any = heedful.pipeline("text-classification", str(model))
    one, other = load(model, kind=Classifier).classify(["a clean room", "rude staff"])
    assert classify("a clean room") == [{"label": one.label, "score": pytest.approx(one.probability)}]
    assert [each["label"] for each in classify(["a clean room", "rude staff"])] == [one.label, other.label]
    everything = classify(["a clean room"], top_k=None)
    assert {each["label"]: each["score"] for each in everything[0]} == pytest.approx(one.probabilities, abs=1e-5)
    assert classify("a clean room", top_k=1) == classify("a clean room")
    assert len(classify("a clean room", top_k=2)) == 2
    with pytest.raises(UsageError, match="unknown argument temperature"):
        classify("a", temperature=1)
    for inputs, message in (([None], "item 0 is None"), (None, "list of texts, got None"), (float("nan"), "got nan")):
        with pytest.raises(UsageError, match=message):
            classify(inputs)


def test_vectors_are_those_of_the_classifier(model: Path):
    extract: Any = heedful.pipeline("feature-extraction", load(model))
    vectors = load(model, kind=Classifier).encode(["a", "b"])
    np.testing.assert_allclose(np.array(extract(["a", "b"]))[:, 0, 0], vectors, atol=1e-6)
    assert np.array(extract("a")).shape == (1, 1, vectors.shape[1])


def test_a_model_of_another_task_is_refused(model: Path, trained: Trained):
    for task, path in (("translation", model), ("text-classification", trained.model), ("image-to-text", model)):
        with pytest.raises(UsageError, match="a model for"):
            heedful.pipeline(task, path)
    with pytest.raises(UsageError, match=r"no such task; known: translation, .*question-answering"):
        heedful.pipeline("text-to-speech", model)


def test_an_answer_is_found_in_the_context_where_the_model_saw_it():
    context = "Ein  Haus und ein Haus"
    passage = "ein haus und ein haus"

    def answer(stories: list[Story]) -> list[Answer]:
        empty: tuple[tuple[int, int], ...] = ()
        span = AnswerSpan(passage, 17, 21, empty, empty, np.zeros((3, 0), dtype=np.float32))
        return [Answer(story, "Haus", 0.5, {}, span=span) for story in stories]

    run = PIPELINES["question-answering"].run
    expected = {"answer": "Haus", "score": 0.5, "start": 18, "end": 22}
    row = {"question": "Was?", "context": context}
    model = SimpleNamespace(answer=answer, labels=())
    assert run(model, None, dict(row)) == expected
    assert run(model, [row, row], {}) == [expected, expected]
    assert context[18:22] == "Haus"
    wrong: list[tuple[Any, str]] = [
        ({"question": "Was?"}, "no 'context'; give question and context"),
        ({"question": "Was?", "context": float("nan")}, "'context' is nan"),
        ([row, None], "item 1: got None"),
        ([row, {**row, "question": 5}], "item 1: 'question' is 5"),
        (float("nan"), "got nan"),
        ("Was?", "got 'Was"),
        (None, "no 'question'"),
    ]
    for inputs, message in wrong:
        with pytest.raises(UsageError, match=message):
            run(model, inputs, {})


def test_captions_are_lists_and_a_picture_that_cannot_be_read_is_refused():
    def caption(images: list[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(text=f"a {each}", error="no picture" if each == "x" else "") for each in images]

    run, model = PIPELINES["image-to-text"].run, SimpleNamespace(caption=caption)
    assert run(model, "dog.png", {}) == [{"generated_text": "a dog.png"}]
    assert run(model, ["dog", "cat"], {}) == [[{"generated_text": "a dog"}], [{"generated_text": "a cat"}]]
    with pytest.raises(UsageError, match="no picture"):
        run(model, ["dog", "x"], {})
