"""Demonstration of question answering: stories of people who carry things about, and where a thing is."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages

if TYPE_CHECKING:
    from heedful.predictors.answerer import Answer, Answerer
    from heedful.text.stories import Story

NUM_STORIES: Final = 20_000
NUM_VALIDATION: Final = 500
NUM_HELD_OUT: Final = 1_000
NUM_SHOWN: Final = 3
SETTINGS: Final = (
    "model.num_steps=3",
    "training.max_steps=3500",
    "training.validate_every=500",
    "training.patience=100",
    "training.precision=float32",
)
"""Settings that learn this task well within a minute on two cores."""


def demonstrate(out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
    """Generate stories whose answers follow from two facts each, train, and show the weights of the facts.

    Args:
        out: the model's folder; None = `stories.model`.
        minutes: longest training time; 0 = no limit.
        seed: seed of data, weights and order.
        device: PyTorch device.
    """
    from heedful.cli.demo_files import write_examples
    from heedful.cli.train import train_and_watch
    from heedful.predictors.answerer import Answerer
    from heedful.predictors.table import load
    from heedful.runs.finish import ending, export_engines
    from heedful.runs.request import TrainRequest, merged_settings

    out = out or Path("stories.model")
    messages.say(f"making {NUM_STORIES:,} stories of people and things, each with a question")
    train, validation, held_out = _stories(seed)
    lines = {
        "stories.jsonl": "".join(f"{story.to_json()}\n" for story in train),
        "stories-validation.jsonl": "".join(f"{story.to_json()}\n" for story in validation),
    }
    data, dev = write_examples(out, lines, "stories")
    limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
    settings = merged_settings(overrides=(*SETTINGS, *limits))
    request = TrainRequest(data=(data,), out=out, dev=(dev,), task="answering", settings=settings, device=device)
    info, outcome = train_and_watch(request, messages)
    print(ending(info, outcome))
    answerer = load(out, device, kind=Answerer)
    print(_score(answerer, held_out))
    answers = answerer.answer(held_out[:NUM_SHOWN])
    print("\n".join(map(_described, answers)))
    print(_drawn(max(answers, key=lambda answer: len(answer.story.facts)), out, messages))
    export_engines(info, messages.say, messages.warn)
    print(f"\nmodel: {out}\nnext:  heedful answer {shlex.quote(str(out))}")


def _stories(seed: int) -> "tuple[list[Story], list[Story], list[Story]]":
    """Stories for training, validation and testing; none occurs in two of them."""
    from heedful.synthetic.facts import generate

    number = NUM_STORIES + NUM_VALIDATION + NUM_HELD_OUT
    distinct = [*dict.fromkeys(generate(number + number // 100, 2, seed))][:number]
    rest = distinct[NUM_STORIES:]
    return distinct[:NUM_STORIES], rest[:NUM_VALIDATION], rest[NUM_VALIDATION:]


def _score(answerer: "Answerer", held_out: "list[Story]") -> str:
    from heedful.data.stories import Stories
    from heedful.evaluation.answers import SpanReport

    report = answerer.measure(Stories(tuple(held_out)))
    share = report.exact_match if isinstance(report, SpanReport) else report.answers.accuracy
    return (
        f"\n{share:.1f} % of {len(held_out):,} questions about other stories are answered right; "
        f"{report.attended or 0.0:.1f} % of\nthe facts that the answers follow from have the largest weight at some "
        "step\n"
    )


def _described(answer: "Answer") -> str:
    """Facts with the weights of each step, and the answer."""
    weights = answer.weights
    rows = [
        "  ".join([*(f"{weight:4.2f}" for weight in (() if weights is None else weights[:, index])), fact])
        + (" *" if index in answer.story.supporting else "")
        for index, fact in enumerate(answer.story.facts)
    ]
    verdict = "right" if answer.answer == answer.story.answer else f"wrong: {answer.story.answer}"
    lines = [*rows, f"{answer.story.question}  {answer.answer} ({verdict})"]
    return "\n".join(f"  {line}" for line in lines) + "\n"


def _drawn(answer: "Answer", out: Path, messages: Messages) -> str:
    from heedful.inspection.plot import save_heat_map

    if answer.weights is None:
        return ""
    picture = beside(out, "-attention.png")
    steps = [f"step {step}" for step in range(1, len(answer.weights) + 1)]
    title = f"{answer.story.question} {answer.answer}"
    note = save_heat_map(picture, steps, answer.story.facts, answer.weights.T, title, label_columns=40)
    if note:
        messages.say(note)
    return (
        "numbers: weight of each fact at each step; * = a fact that the answer follows from; "
        f"the longest story as a picture: {picture}"
    )
