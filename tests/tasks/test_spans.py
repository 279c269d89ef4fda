"""Answers that are spans of the facts: training learns them, resumes exactly, exports, and refuses other answers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from heedful.engines.folder import commit, open_folder
from heedful.engines.spans import NO_ANSWER_SHIFT
from heedful.errors import DataError, Stopped
from heedful.models.attention_config import AttentionConfig
from heedful.models.bidaf import BidafConfig
from heedful.pages.attention_text import TextView
from heedful.predictors.answerer import Answerer
from heedful.predictors.table import load
from heedful.runs.finish import export_engines, score_test
from heedful.synthetic.notices import generate
from heedful.text.stories import Story
from tests.cli.command import heedful
from tests.cli.test_export import without_torch
from tests.tasks.stories import SPAN_SETTINGS, write_notices
from tests.tasks.test_classification import Run
from tests.thorough import thinned


def make_run(data: Path, out: Path, *settings: str, preset: str = "bidaf") -> Run:
    return Run(data, out, *settings, task="answering", common=SPAN_SETTINGS, preset=preset)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spans")
    data = folder / "stories.jsonl"
    rows = [
        {"passage": f"{who} {verb} the {place}. Emil slept.", "question": f"Where did {who} {verb}?", "answer": place}
        for who in ("Ada", "Boris", "Chen")
        for verb in ("see", "clean", "paint", "leave", "sell", "reach")
        for place in PLACES
    ]
    # Nobody asked about is in the passage, as in SQuAD 2.0.
    rows += [row | {"question": "Where did Dora go?", "answer": {"text": []}} for row in rows[::3]]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    run = make_run(data, folder / "m", "training.max_steps=120", "training.export=true", "text.source_units=pieces")
    outcome = run.train()
    assert outcome.best >= 90.0
    scores = run.watched[-1].validation
    assert scores is not None
    assert scores.scores.keys() == {"loss", "accuracy", "f1"}
    assert "exact match" in score_test(run.started[0], outcome, "cpu", lambda line: None)
    export_engines(run.started[0], lambda line: None)
    return folder / "m"


PLACES = ("old cellar", "garden", "attic", "long corridor", "stable", "market", "tiny kitchen", "house")


def test_it_learns_where_answers_are(model: Path):
    answerer = load(model, kind=Answerer)
    (answer,) = answerer.answer([{"passage": "Ada paint the stable. Emil slept.", "question": "Where did Ada paint?"}])
    assert answer.answer == "stable"
    assert answer.span is not None
    assert answer.span.passage[answer.span.start : answer.span.end] == "stable"
    assert answer.probability == answer.probabilities["stable"] == max(answer.probabilities.values())
    assert sum(answer.probabilities.values()) <= 1.0 + 1e-5
    assert answer.steps == ["start", "end"]
    np.testing.assert_allclose(answer.span.weights.sum(axis=1), 1.0, atol=0.05)  # EOS has the rest
    assert answer.weights is not None
    assert answer.weights.shape == (2, 1)
    facts = open_folder(model).facts
    assert (facts["task"], facts["kind"]) == ("answering", "bidaf")


def test_it_learns_which_questions_have_no_answer(model: Path):
    asked = {"passage": "Chen paint the market. Emil slept.", "question": "Where did Dora go?"}
    other = asked | {"question": "Where did Chen paint?", "answer": "market"}
    answerer = load(model, kind=Answerer)
    none, some = answerer.answer([asked, other])
    assert (none.answer, some.answer) == ("", "market")
    assert none.probability > 0.5
    assert none.span is not None
    assert (none.span.start, none.span.end) == (0, 0)
    report = answerer.evaluate([asked | {"answer": []}, other | {"answer": ["market"]}])
    assert report.to_dict()["num_impossible"] == 1
    assert report.to_dict()["impossible_recognised"] == report.to_dict()["answered_exact_match"] == 100.0


def test_validation_chooses_how_likely_no_answer_has_to_be(model: Path, tmp_path: Path):
    opened = open_folder(model)
    assert isinstance(opened.facts[NO_ANSWER_SHIFT], float)
    shutil.copytree(model, tmp_path / "m")
    others = {key: value for key, value in opened.facts.items() if key not in ("format", "files")}
    commit(tmp_path / "m", {**others, NO_ANSWER_SHIFT: 40.0}, [*opened.facts["files"]])
    asked = {"passage": "Chen paint the market. Emil slept.", "question": "Where did Chen paint?"}
    (answer,) = load(tmp_path / "m", kind=Answerer).answer([asked])
    assert answer.answer == ""
    assert answer.probability > 0.99


def test_a_word_that_training_never_saw_is_an_answer(model: Path):
    """An answer from a list of those of the training data could not have it."""
    (answer,) = load(model, kind=Answerer).answer(
        [Story(("Ada paint the Zwölfkampf. Emil slept.",), "Where did Ada paint?")]
    )
    assert answer.answer in answer.story.facts[0]
    assert answer.answer not in PLACES


@pytest.mark.parametrize("preset", thinned(["bidaf-average", "bidaf"], 2))
def test_an_engine_gives_the_answers_and_weights_of_pytorch(preset: str, tmp_path: Path):
    settings = ("training.max_steps=20", "training.export=true")
    run = make_run(write_notices(tmp_path / "n.jsonl", 120), tmp_path / "m", *settings, preset=preset)
    run.train()
    export_engines(run.started[0], lambda line: None)
    stories = [
        *generate(20, 3),
        Story((), "Where is Ada?"),
        Story(("One.",), ""),
        Story(("word " * 900, "a"), "why " * 900),
    ]
    graph, torch_model = (load(tmp_path / "m", engine=engine, kind=Answerer) for engine in ("onnx", "torch"))
    for one, other in zip(graph.answer(stories), torch_model.answer(stories), strict=True):
        assert one.probability == pytest.approx(other.probability, rel=1e-3, abs=1e-6)
        assert one.span is not None
        assert other.span is not None
        np.testing.assert_allclose(one.span.weights, other.span.weights, atol=1e-5)
        assert one.was_cut == other.was_cut == (len(one.story.question) > 1_000)


def test_neighbours_and_windows_change_nothing_but_rounding(model: Path):
    answerer, stories = load(model, kind=Answerer), [*generate(20, 3), Story((), ""), Story(("a",) * 300, "b")]
    together, alone = answerer.answer(stories), [*answerer.stream(stories, window_stories=1)]
    for one, other in zip(together, alone, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-5)
        assert one.weights == pytest.approx(other.weights, abs=1e-5)


def test_it_runs_without_pytorch_and_a_story_without_facts_has_no_answer(model: Path, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    data = write_notices(tmp_path / "n.jsonl", 5)
    with data.open("a", encoding="utf-8") as stream:
        stream.write('{"facts": [], "question": "Who?"}\n')
    done = without_torch("answer", model, data, "--format", "jsonl")
    assert (done.code, done.err) == (0, f"heedful: warning: {data}:6: no facts, so no answer\n")
    rows = [json.loads(line) for line in done.out.splitlines()]
    for row in rows:
        span = row["span"]
        assert span["passage"][span["start"] : span["end"]] == row["answer"]
        sizes = {len(span[name]) for name in ("tokens", "attention", "start_weights", "end_weights")}
        assert len(sizes) == 1
    assert (rows[-1]["answer"], rows[-1]["weights"]) == ("", [[], []])


def test_a_page_shades_the_words_at_both_ends(model: Path):
    (view,) = load(model, kind=Answerer).attention_views(["Ada paint the stable. | Emil slept. | Where did Ada paint?"])
    assert isinstance(view, TextView)
    assert [word.strip() for word, _ in view.sentences[1]] == ["Emil", "slept", "."]
    assert sum(weight for words in view.sentences for _, weight in words) == pytest.approx(1.0, abs=0.05)
    assert "stable" in view.draw()


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path):
    data = write_notices(tmp_path / "n.jsonl", 120)
    whole = make_run(data, tmp_path / "whole", "training.max_steps=24")
    whole.train()
    parts = make_run(data, tmp_path / "parts", "training.max_steps=24")
    with pytest.raises(Stopped):
        parts.train(stop=20)
    parts.train()
    assert parts.started[-1].step > 0
    assert parts.weights == whole.weights


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (
            [{"passage": "Ada left.", "question": "Who?", "answer": "Boris"}],
            r":1: the answer 'Boris' is not in the facts",
        ),
        ([{"passage": "", "question": "Who?", "answer": "Ada"}], r":1: the answer 'Ada' is not in the facts"),
        ([{"facts": [], "question": "Who?"}], r":1: no answer"),
        ([{"question": "Who?", "answer": "Ada"}], r":1: no key 'facts'"),
        (
            [{"passage": f"{'word ' * 1_200} Ada{i}.", "question": "Who?", "answer": f"Ada{i}"} for i in range(20)],
            "beyond",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused(rows: list[dict[str, object]], complaint: str, tmp_path: Path):
    (tmp_path / "n.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        make_run(tmp_path / "n.jsonl", tmp_path / "m").train()


def test_validation_data_without_any_answer_within_the_limit_is_refused(tmp_path: Path):
    """Only the training passages are short enough."""
    short, long = tmp_path / "short.jsonl", tmp_path / "long.jsonl"
    for path, words, number in ((short, "", 20), (long, "word " * 60, 3)):
        rows = [{"passage": f"{words}Ada{i} left.", "question": "Who?", "answer": f"Ada{i}"} for i in range(number)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    run = Run(
        short, tmp_path / "m", "text.max_tokens=20", task="answering", common=SPAN_SETTINGS, preset="bidaf", dev=(long,)
    )
    with pytest.raises(DataError, match=r"none of the 3 items has an answer .* text.max_tokens = 20"):
        run.train()


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([{"facts": ["Now.", f"It is {i}."], "question": "What is it?", "answer": f"{i}"} for i in range(20)], "bidaf"),
        ([{"passage": f"{i}: It is {i % 2}.", "question": "What?", "answer": f"{i % 2}"} for i in range(20)], "bidaf"),
        (
            [{"facts": [f"{i}.", f"It is {i % 2}."], "question": "What?", "answer": f"{i % 2}"} for i in range(20)],
            "memory_network",
        ),
        (
            [{"passage": f"It is {i}.", "question": "Odd?", "answer": ("no", "yes")[i % 2]} for i in range(20)],
            "memory_network",
        ),
    ],
    ids=["many answers", "one text", "few answers in facts", "not in the text"],
)
def test_the_data_choose_between_spans_and_answers(rows: list[dict[str, object]], kind: str, tmp_path: Path):
    (tmp_path / "n.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    common = [one for one in SPAN_SETTINGS if not one.startswith("model.")]
    run = Run(tmp_path / "n.jsonl", tmp_path / "m", "training.max_steps=1", task="answering", common=common)
    run.train()
    assert run.started[0].experiment.model.kind == kind
    assert any("chosen: a bidaf" in line for line in run.started[0].advice) is (kind == "bidaf")


def test_a_model_that_is_named_is_trained(tmp_path: Path):
    rows = [{"passage": f"{i}: It is {i % 2}.", "question": "What?", "answer": f"{i % 2}"} for i in range(20)]
    (tmp_path / "n.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    common = [one for one in SPAN_SETTINGS if not one.startswith("model.")]
    for number, choice in enumerate(("model.kind=memory_network", "model.num_steps=1")):
        out = tmp_path / str(number)
        run = Run(tmp_path / "n.jsonl", out, "training.max_steps=1", choice, task="answering", common=common)
        run.train()
        assert run.started[0].experiment.model.kind == "memory_network"


def test_many_answers_that_are_no_labels_name_the_preset(tmp_path: Path):
    rows = [{"facts": [f"It is {i}."], "question": "What is it?", "answer": f"no {i}"} for i in range(20)]
    (tmp_path / "n.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    done = heedful("train", tmp_path / "n.jsonl", "--task", "answering", "--out", tmp_path / "m")
    assert done.code == 2
    assert "take --preset bidaf" in done.errors[0]


def test_passages_whose_answers_are_cut_off_are_counted(tmp_path: Path):
    rows = [
        {"passage": f"{'word ' * (60 if n < 3 else 1)}Ada{n}.", "question": "Who?", "answer": f"Ada{n}"}
        for n in range(60)
    ]
    data = tmp_path / "stories.jsonl"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    common = [*SPAN_SETTINGS, "training.max_steps=1", "text.max_tokens=20", "text.source_units=words"]
    run = Run(data, tmp_path / "m", task="answering", common=common, preset="bidaf", dev=(data,))
    run.train()
    assert "3 stories for training left out, whose answers are beyond 20 tokens" in run.started[0].data.report


def test_a_tree_over_passage_and_question_is_refused_before_the_data():
    with pytest.raises(ValidationError, match="normalizer projective_tree: it is for the words of one text"):
        BidafConfig(attention=AttentionConfig(normalizer="projective_tree"))
