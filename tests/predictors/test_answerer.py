"""The question answerer that a user holds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cli.inspect_labels import inspect_labels
from heedful.cli.messages import Messages
from heedful.data.labelled_texts import LabelledTexts
from heedful.data.stories import Stories
from heedful.engines.folder import open_folder
from heedful.errors import DataError, UsageError
from heedful.predictors.answerer import Answerer
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.runs.finish import export_engines
from heedful.synthetic.facts import generate
from heedful.text.stories import Story
from tests.cli.test_export import without_torch
from tests.tasks.stories import SETTINGS, write_stories
from tests.tasks.test_classification import Run
from tests.thorough import thorough


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answerer")
    settings = ("training.max_steps=100", "training.batch_tokens=4096", "training.export=true", "model.num_steps=2")
    data = write_stories(folder / "stories.jsonl", 2_000)
    run = Run(data, folder / "m", *settings, task="answering", common=SETTINGS)
    run.train()
    export_engines(run.started[0], lambda line: None)
    return folder / "m"


def test_probabilities_are_a_distribution_and_weights_are_one_for_each_step(model: Path):
    row = {
        "facts": ["Ada went to the attic.", "Boris ran to the cellar.", "Ada ran to the garden."],
        "question": "Who?",
    }
    (answer,) = load(model, kind=Answerer).answer([row])
    assert sum(answer.probabilities.values()) == pytest.approx(1.0, abs=1e-5)
    assert next(iter(answer.probabilities)) == answer.answer
    assert answer.probability == max(answer.probabilities.values())
    assert answer.weights is not None
    assert answer.weights.shape == (2, 3)
    np.testing.assert_allclose(answer.weights.sum(axis=1), 1.0, atol=1e-5)
    assert repr(answer).startswith("<Answer 'Who?' -> ")


def test_weights_are_in_the_order_of_the_facts(model: Path):
    """The weight of a fact that only ages differ by is that of its own age."""
    answerer = load(model, kind=Answerer)
    facts = ("Ada went to the attic.", "Boris ran to the cellar.")
    (first,) = answerer.answer([Story(facts, "Where is Ada?")])
    (second,) = answerer.answer([Story(("x",) * 990 + facts, "Where is Ada?")])
    assert second.was_cut
    assert second.weights is not None
    assert first.weights is not None
    assert second.weights.shape == (2, 992)
    assert not second.weights[:, :10].any()
    assert second.weights[0, -1] / second.weights[0, -2] == pytest.approx(
        first.weights[0, 1] / first.weights[0, 0], 1e-4
    )


@thorough
def test_neighbours_and_windows_change_nothing_but_rounding(model: Path):
    answerer, stories = load(model, kind=Answerer), [*generate(30, 1, seed=3), Story((), ""), Story(("a",) * 300, "b")]
    together = answerer.answer(stories)
    alone = list(answerer.stream(stories, window_stories=1))
    for one, other in zip(together, alone, strict=True):
        assert np.isclose(one.probability, other.probability, atol=1e-5)
        assert one.weights == pytest.approx(other.weights, abs=1e-5)


def test_what_does_not_fit_is_refused(model: Path, tmp_path: Path):
    answerer, folder = load(model, kind=Answerer), open_folder(model)
    with pytest.raises(UsageError, match="got a single one"):
        answerer.answer(Story((), "?"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="answer: item 0: no key 'question'"):
        answerer.answer([{"facts": []}])
    hostile: Any = (None, float("nan"), "Ada went home. Where is Ada?")
    for item in hostile:
        with pytest.raises(UsageError, match=f"answer: item 1 is {item!r:.20}.*; give a story"):
            answerer.answer([Story((), "?"), item])
        with pytest.raises(UsageError, match="answer: expected a list of stories, got"):
            answerer.answer(item)
    with pytest.raises(UsageError, match="columns are for pairs"):
        answerer.evaluate([], columns=(2, 1))
    with pytest.raises(UsageError, match="an ensemble of question answerers runs in PyTorch"):
        Answerer(folder, engine="onnx", ensemble=[folder])
    with pytest.raises(UsageError, match="a model for answering, not for classification"):
        load(model, kind=Classifier)
    with pytest.raises(TypeError, match="got LabelledTexts"):
        answerer.measure(LabelledTexts([], []))
    (tmp_path / "empty.tsv").write_text("\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="no stories"):
        answerer.evaluate(tmp_path / "empty.tsv")


def test_measuring_a_file_is_measuring_its_items(model: Path, tmp_path: Path):
    answerer = load(model, kind=Answerer)
    data = write_stories(tmp_path / "other.jsonl", 40, seed=5)
    expected = answerer.measure(Stories(tuple(generate(40, 1, seed=5))))
    assert answerer.evaluate(data) == expected
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    assert answerer.evaluate(rows) == expected


def test_a_page_has_a_map_for_each_question_about_facts(model: Path):
    maps = load(model, kind=Answerer).attention_views(["a | b | where?", "where?"])
    assert [(len(one.weights), one.source_pieces) for one in maps] == [(2, ("a", "b"))]


def test_inspection_shows_each_fact_with_its_weights(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    answerer, messages = load(model, kind=Answerer), Messages(True)
    shown: list[str] = []
    for text in (
        "Ada went to the attic. Boris ran to the cellar. Where is Ada?",
        "Ada went to the attic. | Boris ran to the cellar. | Where is Ada?",
        "Ada went to the attic. | Boris ran to the cellar.\tWhere is Ada?",
        '{"facts": ["Ada went to the attic.", "Boris ran to the cellar."], "question": "Where is Ada?"}',
    ):
        inspect_labels(answerer, text, None, None, messages)
        shown.append(capsys.readouterr().out)
    assert len({*shown}) == 1
    lines = shown[0].splitlines()
    assert lines[2] == "   step 1   step 2  fact"
    assert [line.split("  ")[-1] for line in lines[3:]] == ["Ada went to the attic.", "Boris ran to the cellar."]
    html, png = tmp_path / "page.html", tmp_path / "map.png"
    inspect_labels(answerer, text, html, png, messages)
    assert capsys.readouterr().out == f"{png}\n{html}\n"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "Boris ran" in html.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="TEXT has no facts"):
        inspect_labels(answerer, "Where is Ada?", None, None, messages)


def test_it_runs_without_pytorch(model: Path, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    data = write_stories(tmp_path / "other.jsonl", 20, seed=5)
    done = without_torch("answer", model, data)
    assert (done.code, done.err) == (0, "")
    answers = load(model, engine="torch", kind=Answerer).answer(generate(20, 1, seed=5))
    assert [line.split("\t")[0] for line in done.out.splitlines()] == [one.answer for one in answers]
