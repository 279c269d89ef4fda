"""Exercises of the course: right answers are taken, wrong ones are told what to look at."""

from typing import Any

import numpy as np
import pytest

from heedful.course import EXERCISES, check, hint
from heedful.course.checking import remark_on
from heedful.course.exercise import Exercise
from heedful.errors import UsageError

LESSONS = (
    "averages",
    "scores",
    "bottleneck",
    "bahdanau",
    "luong",
    "hard",
    "selfattention",
    "transformer",
    "tasks",
    "trust",
)


def wrong(exercise: Exercise) -> list[Any]:
    """Answers that nobody should get away with."""
    if exercise.inputs is None:
        right = np.asarray(exercise.answer, dtype=float)
        return [right * 1.001 + 1e-3, right[None], right * np.nan, "right", "", {}, lambda: exercise.answer]

    def almost(*arguments: Any) -> Any:
        return np.asarray(exercise.answer(*arguments)) + 1e-3

    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError("of the reader")

    return [almost, broken, lambda *arguments: "text", lambda *arguments: None, 3.0, [1.0]]


def test_every_lesson_has_three_to_five_exercises():
    lessons = [name.partition(".")[0] for name in EXERCISES]
    assert lessons == sorted(lessons, key=LESSONS.index)
    assert all(3 <= lessons.count(lesson) <= 5 for lesson in LESSONS)


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_are_taken_and_wrong_ones_are_not(name: str):
    exercise = EXERCISES[name]
    assert remark_on(name, exercise.answer) is None
    for answer in wrong(exercise):
        english, chinese = remark_on(name, answer) or ("", "")
        assert english, answer
        assert chinese, answer
    for mistake in exercise.mistakes:
        assert remark_on(name, mistake.answer) == mistake.remark
    assert all(exercise.hint)


def test_no_answer_is_no_mistake(capsys: pytest.CaptureFixture[str]):
    check("averages.mean", ...)
    assert capsys.readouterr().out == "averages.mean: no answer yet 还没有答案\n"
    hint("averages.mean")
    assert len(capsys.readouterr().out.split("\n")) == 3


def test_tensors_and_lists_are_numbers():
    torch = pytest.importorskip("torch")
    assert remark_on("bahdanau.context", torch.tensor([0.3, 0.9], requires_grad=True)) is None
    assert remark_on("bahdanau.context", (0.3, 0.9)) is None


def test_derivatives_losses_and_masks_are_those_of_torch():
    torch = pytest.importorskip("torch")

    def derivative(query: Any, key: Any) -> Any:
        keys = torch.from_numpy(key)
        return torch.autograd.functional.jacobian(lambda q: torch.softmax(keys @ q, 0) @ keys, torch.from_numpy(query))

    def loss(log_probs: Any, lengths: Any) -> Any:
        real = np.arange(4) < lengths[:, None]
        return -np.ma.masked_array(log_probs, ~real).mean()

    def masked(scores: Any, lengths: Any) -> Any:
        short = [torch.softmax(torch.from_numpy(row[:length]), 0) for row, length in zip(scores, lengths, strict=True)]
        return torch.nn.utils.rnn.pad_sequence(short, batch_first=True)

    assert remark_on("scores.gradient", derivative) is None
    assert remark_on("bottleneck.loss", loss) is None
    assert remark_on("scores.masked", masked) is None


def test_an_answer_cannot_change_the_question():
    def greedy(x: Any, keys: Any, values: Any, h: float) -> Any:
        values[:] = 0.0
        return EXERCISES["averages.function"].answer(x, keys, values, h)

    assert remark_on("averages.function", greedy) is not None


def test_an_unknown_exercise_is_named():
    with pytest.raises(UsageError, match=r"did you mean .averages\.mean"):
        check("averages.meen", 1)
