"""Question answering: it trains, resumes exactly, exports, and refuses what is no story in one line."""

import json
from pathlib import Path

import numpy as np
import pytest

from heedful.data.stories import find_stories
from heedful.engines.folder import open_folder
from heedful.errors import ConfigError, DataError, Stopped, UsageError
from heedful.predictors.answerer import Answerer
from heedful.predictors.table import load
from heedful.runs.finish import export_engines, score_test
from heedful.synthetic.facts import generate
from heedful.text.stories import Story
from tests.tasks.stories import SETTINGS, write_stories
from tests.tasks.test_classification import Run
from tests.tasks.two_processes import assert_two_processes_agree
from tests.thorough import thinned, thorough

PRESETS = ("memory_network", "memory_network-average", "memory_network-hard", "memory_network-chain")


def make_run(data: Path, out: Path, *settings: str, **options: str) -> Run:
    return Run(data, out, *settings, task="answering", common=SETTINGS, **options)


def test_it_learns_which_facts_tell_and_says_how_well(tmp_path: Path):
    run = make_run(
        write_stories(tmp_path / "stories.jsonl", 4_000),
        tmp_path / "m",
        "training.max_steps=300",
        "training.batch_tokens=2048",
        "model.num_steps=1",
        "model.hidden_size=32",
    )
    outcome = run.train()
    assert outcome.best > 80.0
    text = score_test(run.started[0], outcome, "cpu", lambda line: None)
    assert "supporting facts have the largest weight" in text
    answerer = load(tmp_path / "m", kind=Answerer)
    report = answerer.evaluate(write_stories(tmp_path / "others.jsonl", 200, seed=7))
    assert report.answers.accuracy > 80.0
    assert report.attended is not None
    assert report.attended > 80.0
    facts = open_folder(tmp_path / "m").facts
    assert (facts["task"], facts["kind"]) == ("answering", "memory_network")


@pytest.mark.parametrize("preset", thinned(PRESETS, 4))
def test_an_engine_gives_the_answers_and_weights_of_pytorch(preset: str, tmp_path: Path):
    data = write_stories(tmp_path / "stories.jsonl")
    run = make_run(data, tmp_path / "m", "training.max_steps=20", "training.export=true", preset=preset)
    run.train()
    export_engines(run.started[0], lambda line: None)
    stories = [
        *generate(20, 1, seed=3),
        Story((), "Where is Ada?"),
        Story(("One.",), "?"),
        Story(("word " * 90, "Ada went to the attic."), "Where is Ada? " * 9),
    ]
    graph, model = (load(tmp_path / "m", engine=engine, kind=Answerer) for engine in ("onnx", "torch"))
    for one, other in zip(graph.answer(stories), model.answer(stories), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
        assert one.weights is not None
        assert other.weights is not None
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)
        assert one.weights.shape == (3, len(one.story.facts))
        if one.story.facts:
            np.testing.assert_allclose(one.weights.sum(axis=1), 1.0, atol=1e-5)


def test_an_attention_that_no_graph_can_hold_runs_with_pytorch(tmp_path: Path):
    run = make_run(
        write_stories(tmp_path / "stories.jsonl"),
        tmp_path / "m",
        "training.max_steps=20",
        "training.export=true",
        "model.attention.normalizer=normalized_linear_chain",
    )
    run.train()
    lines: list[str] = []
    export_engines(run.started[0], lines.append)
    assert "a chain needs a loop over keys" in lines[-1]
    assert load(tmp_path / "m", kind=Answerer).answer([Story(("Ada went home.",), "Where is Ada?")])[0].answer


@thorough
def test_two_processes_train_the_model_of_one(tmp_path: Path):
    settings = (*SETTINGS, "training.max_steps=20", "model.dropout=0", "training.optimizer.learning_rate=0.1")
    assert_two_processes_agree("answering", write_stories(tmp_path / "s.jsonl"), tmp_path, settings)


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path):
    data = write_stories(tmp_path / "stories.jsonl")
    whole = make_run(data, tmp_path / "whole", "training.max_steps=30")
    whole.train()
    parts = make_run(data, tmp_path / "parts", "training.max_steps=30")
    with pytest.raises(Stopped):
        parts.train(stop=20)
    parts.train()
    assert parts.started[-1].step > 0
    assert parts.weights == whole.weights


@pytest.mark.parametrize("damage", thinned([b'{"format": 1, "labels": [1]}', b"", b"{}"], 3))
def test_damaged_stories_are_prepared_again(damage: bytes, tmp_path: Path):
    data = write_stories(tmp_path / "stories.jsonl")
    make_run(data, tmp_path / "m", "training.max_steps=20").train()
    (tmp_path / "m/run/data/answering.json").write_bytes(damage)
    longer = make_run(data, tmp_path / "m", "training.max_steps=40")
    longer.train()
    assert any("prepared again" in line for line in longer.started[0].data.report)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (['{"facts": [], "question": "Where?"}'] * 20, r"stories.jsonl:1: no answer"),
        (['{"facts": ["a"], "question": " ", "answer": "b"}'], r"stories.jsonl:1: the question is blank"),
        (['{"facts": ["a"], "question": "Where?", "answer": "b"}'] * 20, "1 story; training needs at least 10"),
        (['{"facts": ["a"], "question": "b", "answer": "c"}', "d\te\tf"], "2 stories; training needs at least 10"),
        (
            [json.dumps({"facts": [f"fact {i}"], "question": "Where?", "answer": "b"}) for i in range(20)],
            "1 different answer in 20 stories",
        ),
        (
            [json.dumps({"facts": [f"fact {i}"], "question": "Where?", "answer": f"b{i}"}) for i in range(20)],
            "20 different answers in 20 stories",
        ),
        (["a story"], r"stories.jsonl:1: neither JSON nor facts"),
    ],
)
def test_what_cannot_be_learned_is_refused(lines: list[str], complaint: str, tmp_path: Path):
    (tmp_path / "stories.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        make_run(tmp_path / "stories.jsonl", tmp_path / "m").train()


def test_two_files_and_a_model_of_another_task_are_refused(tmp_path: Path):
    data = write_stories(tmp_path / "stories.jsonl")
    run = Run(data, tmp_path / "m", "model.kind=text_classifier", task="answering", common=())
    with pytest.raises(ConfigError, match="text_classifier is not a model for answering"):
        run.train()
    with pytest.raises(UsageError, match="expected one file of stories, got 2"):
        find_stories((data, data))
