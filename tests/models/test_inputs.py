"""Inputs of encoders."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from heedful.models.inputs import Inputs, TokenInputs, token_inputs


@dataclass(frozen=True)
class ColourInputs(Inputs):
    colours: Tensor


def test_token_inputs_are_selected_together():
    inputs = TokenInputs(torch.tensor([[4, 3, 0], [5, 6, 3]]), torch.tensor([2, 3]))
    kept = inputs.select(torch.tensor([1]))
    assert (kept.ids.tolist(), kept.lengths.tolist()) == ([[5, 6, 3]], [3])
    assert token_inputs(kept) is kept


def test_another_kind_of_source_is_refused():
    with pytest.raises(TypeError, match="reads token ids, got ColourInputs"):
        token_inputs(ColourInputs(torch.zeros(1)))
