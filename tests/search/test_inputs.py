"""Sources of a batch as named arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful.errors import ShapeError
from heedful.search.inputs import InputArrays, IntArray, TokenArrays, as_inputs, token_draw, token_sequences
from heedful.text.vocabulary import EOS, PAD, UNK


class Colours(InputArrays):
    """Sources of one number each."""

    def __init__(self, values: Sequence[float]) -> None:
        self.values = list(values)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> "Colours":
        return Colours([self.values[row] for row in rows])

    def named_arrays(self) -> dict[str, NDArray[Any]]:
        return {"colours": np.array(self.values)}

    @property
    def num_positions(self) -> IntArray:
        return np.ones(len(self), dtype=np.int64)

    @property
    def length_hint(self) -> IntArray:
        return np.full(len(self), 9)

    def widened(self, width: int) -> "Colours":
        return self

    def with_fillers(self, num_positions: Sequence[int]) -> "Colours":
        return Colours([*self.values, *[0.0] * len(num_positions)])


def test_token_arrays_are_padded_and_an_empty_source_is_its_end():
    inputs = as_inputs([np.array([4, EOS]), np.array([]), np.array([5, 6, 7])])
    ids, lengths = inputs.named_arrays().values()
    assert ids.tolist() == [[4, EOS, PAD], [EOS, PAD, PAD], [5, 6, 7]]
    assert lengths.tolist() == inputs.num_positions.tolist() == [2, 1, 3]
    assert inputs.length_hint.tolist() == [1, 0, 3]
    assert ids.dtype == lengths.dtype == np.int64
    assert (len(inputs), inputs.width) == (3, 3)
    assert [len(as_inputs([])), as_inputs([]).width] == [0, 0]


def test_chosen_sources_are_padded_no_wider_than_they_need():
    inputs = as_inputs([np.array([4, EOS]), np.array([5, 6, EOS])]).widened(7)
    assert inputs.named_arrays()["source"].shape == (2, 7)
    assert inputs.width == 7
    taken = inputs.take([0, 0])
    assert taken.named_arrays()["source"].tolist() == [[4, EOS]] * 2


def test_fillers_have_the_length_asked_for():
    filled = TokenArrays([np.array([4, EOS])]).with_fillers([3, 1])
    assert filled.named_arrays()["source"].tolist() == [[4, EOS, PAD], [UNK, UNK, EOS], [EOS, PAD, PAD]]


def test_a_source_that_is_not_flat_is_refused():
    with pytest.raises(ShapeError, match=r"source 1 has shape \[1, 2\]"):
        as_inputs([np.array([EOS]), np.array([[4, EOS]])])


def test_another_kind_of_source_stays_what_it_is_and_is_no_tokens():
    colours = Colours([0.5, 0.25])
    assert as_inputs(colours) is colours
    assert colours.width == 1
    with pytest.raises(TypeError, match="reads token ids, got Colours"):
        token_sequences(colours)


@pytest.mark.parametrize(("num_tokens", "lowest"), [(9, 4), (3, 2)])
def test_drawn_sources_have_the_lengths_asked_for(num_tokens: int, lowest: int):
    lengths = np.array([1, 5, 30])
    drawn = token_draw(num_tokens)(lengths, np.random.default_rng(0))
    assert drawn.num_positions.tolist() == lengths.tolist()
    for ids in token_sequences(drawn):
        assert ids[-1] == EOS
        assert ((lowest <= ids[:-1]) & (ids[:-1] < num_tokens)).all()
