"""The page of a run: every figure is there, nothing is fetched, nothing of the data is taken for HTML."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.data.split import on_training
from heedful.errors import ResourceError
from heedful.pages.attention_map import AttentionMap
from heedful.pages.record import RunRecord
from heedful.pages.training import ended, training_page, write_training_page
from tests.pages.read import Read


def line(step: int, output: str, is_best: bool = True) -> dict[str, Any]:
    return {
        "step": step, "epoch": step / 100, "loss": 5.0 - step / 100, "tokens_per_second": 1000.0 + step,
        "learning_rate": 0.001, "seconds": 2.0 * step, "is_best": is_best,
        "scores": {"loss": 4.0 - step / 100, "bleu": step / 10}, "sample": ["x", "y", "z"],
        "samples": [["<i>Haus</i>", "house & home", output], ["مرحبا", "hello", "hello"]],
    }  # fmt: skip


HISTORY = (
    {"event": "began", "step": 0, "time": "T1", "num_parameters": 12345, "device": "cpu", "report": ["7 <pairs>"]},
    {"event": "stopped", "step": 150, "time": "T2", "reason": "stopped at step 150"},
    {"event": "resumed", "step": 150, "time": "T3", "report": ["8 <pairs>"]},
    {"event": "finished", "step": 300, "time": "T4", "reason": "300 steps"},
)
TESTED = {"results": [{"name": "BLEU", "score": 21.5, "low": 20.0, "high": 23.0}]}


def record(*validations: dict[str, Any], history: tuple[dict[str, Any], ...] = HISTORY, **changes: Any) -> RunRecord:
    given = validations or (line(100, "car"), line(200, "house"), line(300, "house", is_best=False))
    about = {"kind": "transformer", "languages": ["de", "en"]}
    state = {"step": 300, "finished": "300 steps"}
    return RunRecord(
        "<m>", given, history, 'select_by = "bleu"\nodd = "<x>"', about, changes.get("tested", TESTED), state
    )


def test_everything_is_there():
    read = Read(training_page(record()))
    for words in (
        "Training of <m>", "transformer, 12,345 parameters", "de to en", "finished: 300 steps; resumed once",
        "the model of step 200: BLEU 20 on validation", "BLEU 21.50 [20.00, 23.00]", "<i>Haus</i>", "8 <pairs>",
        "T2 stopped at step 150: stopped at step 150", 'odd = "<x>"', "resumed at step 150", "kept: step 200",
    ):  # fmt: skip
        assert words in read.text, words
    assert "7 <pairs>" not in read.text
    assert read.text.count("Learning rate") == 1
    # Curves: loss of training and of validation, BLEU, learning rate, speed; three validations each.
    assert read.tags.count("circle") == 15
    assert ["100", "1.00", "3 min 20 s", "4", "10", "3", "1e-03", "1,100"] == read.cells[
        (at := read.cells.index("100")) : at + 8
    ]


def test_scores_on_the_training_pairs_are_called_so():
    report = ["90 pairs for training", on_training("pairs")]
    text = Read(training_page(record(history=({**HISTORY[0], "report": report},)))).text
    assert "the model of step 200: BLEU 20 on the training pairs" in text
    assert "Validation was on the training pairs, and says nothing about new ones." in text
    assert "Sources of the training pairs, short to long" in text
    usual = Read(training_page(record())).text
    assert "the training pairs" not in usual
    assert "Sources of validation, short to long" in usual


def test_outputs_that_stay_the_same_are_shown_once_and_the_kept_models_is_marked():
    page = training_page(record())
    assert page.count(">house</td>") == 1
    assert '<tr class="marked"><th scope="row">step 200</th><td dir="auto">house</td>' in page
    assert '<tr class="marked"><th scope="row">step 100</th><td dir="auto">hello</td>' in page


def test_of_many_outputs_some_are_shown_with_the_kept_one():
    lines = [line(step, f"v{step}", is_best=step <= 37) for step in range(1, 41)]
    page = training_page(record(*lines))
    shown = [step for step in range(1, 41) if f">v{step}</td>" in page]
    assert shown[0] == 1
    assert shown[-1] == 40
    assert 37 in shown
    assert len(shown) <= 8


def test_nothing_is_fetched():
    page = training_page(record())
    read = Read(page)
    assert not {"script", "link", "img", "iframe"} & set(read.tags)
    assert not any(name in ("src", "href") or name.startswith("on") for name, _ in read.attributes)
    assert "http" not in page
    assert "url(" not in page
    assert "@import" not in page


@pytest.mark.parametrize(
    ("num_events", "words"),
    [(1, "in training, or ended without a word"), (2, "stopped: stopped at step 150"), (4, "finished: 300 steps")],
)
def test_how_it_stands(num_events: int, words: str):
    assert ended(record(history=HISTORY[:num_events])).startswith(words)


def test_older_runs_have_no_history():
    read = Read(training_page(record(history=())))
    assert "finished: 300 steps" in read.text
    assert "Data" not in read.text


def test_a_run_before_its_first_validation():
    found = RunRecord("m", (), HISTORY[:1], "", {}, {}, {})
    assert "12,345 parameters" in Read(training_page(found)).text


def test_a_page_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "history.jsonl").write_bytes(b'{"event": "began", "step": 0}\n')
    write_training_page(tmp_path, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes().startswith(b"<!DOCTYPE html>")
    with pytest.raises(ResourceError, match="not written"):
        write_training_page(tmp_path, tmp_path / "none" / "page.html")


@pytest.mark.parametrize(
    ("config", "unit"),
    [
        ('task = "translation"\n[training]\nlabel_smoothing = 0.1', "Loss: nats a token, in training label-smoothed."),
        ('task = "translation"\n[training]\nlabel_smoothing = 0.0', "Loss: nats a token."),
        (
            'task = "classification"\n[training]\nlabel_smoothing = 0.1',
            "Loss: nats a label, in training label-smoothed.",
        ),
        ("damaged", "Loss: nats a token."),
    ],
)
def test_the_loss_is_called_label_smoothed_only_where_it_is(config: str, unit: str):
    assert f"{unit} Dashed" in training_page(replace(record(), config=config))


@pytest.mark.parametrize(
    ("task", "title", "head", "loss"),
    [
        ("translation", "Target tokens a second", "tokens/s", "Loss: nats a token."),
        ("classification", "Texts a second", "texts/s", "Loss: nats a label."),
        ("answering", "Questions a second", "questions/s", "Loss: nats an answer."),
    ],
)
def test_units_are_those_of_the_task(task: str, title: str, head: str, loss: str):
    run = replace(record(), config=f'task = "{task}"')
    for known in (run, replace(run, config="damaged", about={"task": task})):
        read = Read(training_page(known))
        assert title in read.text
        assert head in read.cells
        assert loss in read.text


def test_attention_of_samples_is_drawn():
    maps = [AttentionMap("a → <b>", ["a"], ["b"], [[1.0]]), AttentionMap("too long", ["a"] * 99, ["b"], [[1.0] * 99])]
    read = Read(training_page(record(), maps))
    assert "Attention" in read.text
    assert "a → <b>" in read.text
    assert "too long" not in read.text
    assert "Attention" not in Read(training_page(record())).text
