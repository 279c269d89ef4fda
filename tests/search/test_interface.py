import dataclasses

import numpy as np
import pytest

from heedful.search.array_scores import ArrayScores
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Adjust, Engine, FloatArray, Hypothesis, IntArray, StepScores, WeightsArray
from tests.search.engines import Toy


def test_an_adjust_of_nothing_changes_nothing() -> None:
    scores = ArrayScores(np.log([[[0.2, 0.3, 0.5]]]))
    for plain, adjusted in zip(scores.top(3), scores.top(3, Adjust()), strict=True):
        np.testing.assert_array_equal(plain, adjusted)


def test_hypotheses_compare_by_value_and_cannot_be_changed() -> None:
    one, other = (
        Hypothesis((4, 5), -1.5, -0.5, (-0.5, -0.5, -0.5), "eos", np.full((3, 2), value, dtype=np.float32))
        for value in (0.5, 0.25)
    )
    assert one == other  # weights follow from the tokens
    assert one != dataclasses.replace(one, finish_reason="length")
    assert hash(one) == hash(other)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.score = 0.0  # type: ignore[misc]


def test_toys_fit_the_protocols() -> None:
    engine: Engine = Toy()  # the type checker proves it; this runs it
    state = engine.start(TokenArrays([np.array([4, 3])]), 1)
    scores: StepScores
    scores, _ = engine.step(state, np.array([[2]]), None, None)
    assert scores.full().shape == (1, 1, 7)
    assert scores.weights.shape == (1, 1, 2)


def test_what_an_engine_need_not_write_itself_comes_from_its_whole_vocabulary() -> None:
    class Plain(StepScores):
        def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
            raise AssertionError("not asked for")

        def full(self) -> np.ndarray:
            return np.arange(12, dtype=np.float32).reshape(1, 3, 4)

        @property
        def weights(self) -> WeightsArray:
            raise AssertionError("not asked for")

    values = Plain().of(np.array([0, 0]), np.array([2, 1]), np.array([3, 0]))
    assert (values.tolist(), values.dtype) == ([11.0, 4.0], np.float64)
    assert Plain().vocab_size == 4
