"""Classifiers and models that answer questions in JavaScript: what Python says, over the same graphs."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.data.stories import IMPOSSIBLE
from heedful.engines.folder import commit, open_folder
from heedful.engines.spans import NO_ANSWER_SHIFT
from heedful.export.archive import described, folding
from heedful.export.archived_labels import ArchivedLabels, sentence_facts
from heedful.predictors.answerer import Answer, Answerer
from heedful.predictors.classifier import Classification, Classifier
from heedful.predictors.table import load
from heedful.synthetic.facts import generate as generate_stories
from heedful.synthetic.notices import generate as generate_notices
from heedful.text.folding import fold
from heedful.text.marian import MarianTokenizer
from heedful.text.sentences import split_sentences
from heedful.text.stories import Story
from heedful.text.tokenizer import TextConfig
from tests.js.node import Run, answers, changed_package, needs_node
from tests.js.test_tokenizers import texts as odd_texts
from tests.js.test_tokenizers import tokenizers
from tests.serving.task_models import TaskModels
from tests.tasks.reviews import reviews, write_reviews
from tests.tasks.test_classification import Run as Training
from tests.text.test_sentences import CASES
from tests.thorough import thorough

pytestmark = needs_node

TIE = 1e-4
DESCRIBED = {"units": "characters", "normalization": "none", "tokens": ["<pad>", "<unk>", "<bos>", "<eos>"], "most": 9}
"""A tokenizer, for calls that need no model."""


def documents(number: int) -> list[str]:
    """Documents of several sentences, some of them odd."""
    source = random.Random(3)
    sentences = [text for text, _ in reviews(60, seed=5)]
    marks = (". ", "! ", "… ", '." ', "? ", ".\n", "。", " Dr. ", " 3. ", ") ", "... ", "! 😀 ")
    drawn = [
        "".join(source.choice(sentences) + source.choice(marks) for _ in range(source.randint(1, 4)))
        for _ in range(number)
    ]
    return [*odd_texts()[: number // 4], *drawn][:number]


def test_sentences_and_folded_texts_are_those_of_python(tmp_path: Path):
    source = random.Random(0)
    known = [text for text, _ in CASES]
    alphabet = " .!?…。！？\"'”“»«)(（）》』\n<br>IXV3JPrDr am Mai und Ünß中说「」😀\u200d\u00a0,:"
    drawn = ["".join(source.choices(alphabet, k=source.randint(1, 40))) for _ in range(2000)]
    joined = [" ".join(source.choices(known, k=3)) for _ in range(300)]
    documents = [*known, *joined, *drawn]
    characters = [
        "".join(chr(code) for code in range(start, start + 64) if not 0xD800 <= code < 0xE000)
        for start in range(0, 0x11000, 64)
    ]
    folded = [*odd_texts(), *characters, "ΑΣ Σας ß ŉ ǰ İI ﬁ ＡＢＣ ½ ﷺ"]
    tables = folding(TextConfig(normalization="folded"))
    run = Run(DESCRIBED, [["split", sentence_facts(), documents], ["fold", tables, folded]])
    wrong = changed_package(
        tmp_path / "wrong", "documents.js", "this.words.numbered.has(last) &&", "this.words.numbered.has(last) ||"
    )
    split, ours, other, _ = answers(run, run._replace(folder=wrong))
    assert [(text, got) for text, got in zip(documents, split, strict=True) if got != split_sentences(text)] == []
    # Python and Node have tables of different versions of Unicode, which differ in the newest characters.
    differing = [text for text, got in zip(folded, ours, strict=True) if got != fold(text)]
    assert len(differing) <= len(folded) // 100, differing
    assert other != split


def test_places_of_tokens_are_those_of_python():
    for tokenizer in tokenizers():
        if isinstance(tokenizer, MarianTokenizer):  # is of no classifier, and does not locate tokens
            continue
        texts = [text for text in odd_texts() if "\0" not in text]
        texts = [tokenizer.normalize(text) for text in texts if len(text) < 200]
        (ranges,) = answers(Run({**described(tokenizer), "most": 30}, [["ranges", texts]]))
        for text, places in zip(texts, ranges, strict=True):
            units = text.encode("utf-16-le")
            got = [units[2 * start : 2 * end].decode("utf-16-le") for start, end in places]
            assert got == [text[start:end] for start, end in tokenizer.ranges(text)], text


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with a linear model of n-grams beside it."""
    folder = tmp_path_factory.mktemp("mixed")
    Training(
        write_reviews(folder / "reviews.tsv", 120), folder / "m", "training.max_steps=4", preset="classifier"
    ).train()
    return folder / "m"


def exported(path: Path, folder: Path) -> tuple[Any, Path]:
    """Opened model, and its archive with every bit of its weights."""
    export_web(load(path, engine="torch"), "js", Messages(True), folder / f"{path.name}.tgz", "float32")
    return load(path, engine="onnx"), folder / f"{path.name}.tgz"


def assert_same_labels(ours: Sequence[Classification], theirs: Sequence[dict[str, Any]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.label, list(one.labels), one.was_cut) == (other["label"], other["labels"], other["wasCut"])
        assert list(one.pieces) == other["pieces"]
        assert [label for label, _ in other["probabilities"]] == list(one.probabilities)
        np.testing.assert_allclose(
            [share for _, share in other["probabilities"]], [*one.probabilities.values()], atol=TIE
        )
        assert other["probability"] == pytest.approx(one.probability, abs=TIE)
        assert (one.attention is None) == (other["attention"] is None)
        if one.attention is not None:
            np.testing.assert_allclose(other["attention"], one.attention, atol=TIE)


def test_labels_weights_and_vectors_are_those_of_python(task_models: TaskModels, mixed: Path, tmp_path: Path):
    texts = documents(200)
    for path in (task_models.classifier, mixed):
        classifier, archive = exported(path, tmp_path)
        labels, vectors = answers(Run(archive, [["classify", texts], ["encodeTexts", texts[:20]]]))
        assert_same_labels(classifier.classify(texts), labels)
        np.testing.assert_allclose(vectors, classifier.encode(texts[:20]), atol=TIE)
    assert isinstance(classifier, Classifier)
    assert classifier.ngrams is not None
    run = Run(archive, [["ngrams", texts]])
    wrong = changed_package(tmp_path / "wrong", "ngrams.js", "(1 + Math.log(count))", "count")
    scores, others = answers(run, run._replace(folder=wrong))
    np.testing.assert_allclose(scores, classifier.ngrams.scores(texts), atol=TIE)
    assert np.abs(np.array(others) - scores).max() > 10 * TIE
    # The words that it keeps hold no texts in memory: 60 texts of 100,000 characters.
    greedy = changed_package(tmp_path / "greedy", "ngrams.js", "new TextDecoder().decode(bytes)", "word")
    run = Run(archive, [["wordBytes", 60, 7000]])
    kept, held = answers(run, run._replace(folder=greedy))
    assert kept < 500_000, f"{kept:,} bytes"
    assert held > 2_000_000, f"{held:,} bytes: the test does not see texts that are held"


def assert_same_answers(ours: Sequence[Answer], theirs: Sequence[dict[str, Any]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.answer, one.was_cut) == (other["answer"], other["wasCut"])
        assert [text for text, _ in other["probabilities"]] == list(one.probabilities)
        np.testing.assert_allclose(
            [share for _, share in other["probabilities"]], [*one.probabilities.values()], atol=TIE
        )
        if one.weights is not None:
            np.testing.assert_allclose(np.reshape(other["weights"], one.weights.shape), one.weights, atol=TIE)
        if one.span is not None:
            span = other["span"]
            assert span["passage"] == one.span.passage
            np.testing.assert_allclose([span["attention"], span["starts"], span["ends"]], one.span.weights, atol=TIE)
            assert one.span.passage[one.span.start : one.span.end] == one.answer


@thorough
def test_answers_weights_and_spans_are_those_of_python(task_models: TaskModels, tmp_path: Path):
    odd = [
        Story((), "Where?"),
        Story(("", "  "), ""),
        Story(("One.", "Two. Three.", "Ünï 😀 \0x"), "?"),
        Story(("a b c. " * 400,), "q " * 300),
        Story(tuple(f"Fact {index}." for index in range(300)), "Where is Ada?"),
    ]
    for path, stories in (
        (task_models.answerer, generate_stories(200, 1, seed=9)),
        (task_models.finder, generate_notices(200, seed=9)),
    ):
        answerer, archive = exported(path, tmp_path)
        assert isinstance(answerer, Answerer)
        asked = [*odd, *stories]
        (results,) = answers(
            Run(archive, [["answer", [{"facts": one.facts, "question": one.question} for one in asked]]])
        )
        assert_same_answers(answerer.answer(asked), results)


def test_no_answer_is_as_likely_as_in_python(task_models: TaskModels, tmp_path: Path):
    folder = tmp_path / "shifted"
    shutil.copytree(task_models.finder, folder)
    facts = open_folder(folder).facts
    others = {key: value for key, value in facts.items() if key not in ("format", "files")}
    commit(folder, {**others, IMPOSSIBLE: True, NO_ANSWER_SHIFT: 4.0}, [*facts["files"]])
    answerer, archive = exported(folder, tmp_path)
    asked = [*generate_notices(50, seed=9)]
    (results,) = answers(Run(archive, [["answer", [{"facts": one.facts, "question": one.question} for one in asked]]]))
    ours = answerer.answer(asked)
    assert_same_answers(ours, results)
    assert not any(one.answer for one in ours)


def test_wrong_calls_are_refused(task_models: TaskModels, tmp_path: Path):
    _, labels = exported(task_models.classifier, tmp_path)
    _, facts = exported(task_models.answerer, tmp_path)
    calls = [["classify", "a"], ["classify", [1]]]
    got = answers(Run(labels, calls), Run(facts, [["answer", "a"], ["answer", [{"question": 1, "facts": []}]]]))
    assert [one["error"] for one in got] == ["usage"] * 4


def test_the_description_has_no_text_of_the_user(task_models: TaskModels):
    classifier = load(task_models.classifier, kind=Classifier)
    model = ArchivedLabels(classifier.folder, classifier.tokenizer, classifier.text, classifier.labels)
    assert model.description().keys() == {
        "format", "heedful", "task", "name", "kind", "languages", "max_tokens", "tokenizer", "labels", "label_kind",
        "separator", "rules", "unspaced", "ngrams", "shifts", "has_impossible", "no_answer_shift", "folding",
    }  # fmt: skip
