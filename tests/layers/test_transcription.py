"""Transcription by positions alone, held to a sum over all paths."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.layers.transcription import transcription_log_probs
from tests.models.by_hand_captions import summed_over_paths

LENGTHS = torch.tensor([5, 3, 4, 1])
TARGETS = torch.tensor([[1, 1, 2], [2, 0, 0], [0, 0, 0], [3, 0, 0]])
TARGET_LENGTHS = torch.tensor([3, 1, 0, 1])


def logits() -> Tensor:
    return torch.randn(4, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def check(transcribe: Callable[..., Tensor]) -> None:
    scores = logits()
    likelihood = transcribe(scores, LENGTHS, TARGETS, TARGET_LENGTHS)
    for row in range(len(scores)):
        target = TARGETS[row, : int(TARGET_LENGTHS[row])].tolist()
        wanted = summed_over_paths(scores[row, : int(LENGTHS[row])].numpy(), target)
        assert likelihood[row].item() == pytest.approx(wanted, abs=1e-12)


def test_it_sums_over_all_paths_that_spell_the_target():
    check(transcription_log_probs)


def test_the_comparison_would_see_padding_and_another_blank():
    def without_lengths(scores: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
        return transcription_log_probs(scores, torch.full_like(lengths, 5), targets, target_lengths)

    def last_is_blank(scores: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
        return transcription_log_probs(scores.flip(-1), lengths, targets, target_lengths)

    for wrong in (without_lengths, last_is_blank):
        with pytest.raises(AssertionError):
            check(wrong)


def test_its_gradient_is_that_of_the_sum():
    scores = logits().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda each: transcription_log_probs(each, LENGTHS, TARGETS, TARGET_LENGTHS), scores, atol=1e-6
    )


def test_a_target_that_is_too_long_has_no_gradient():
    scores = logits()[:1, :3].requires_grad_()
    # The two equal tokens need a blank between them, so that three positions are one too few.
    likelihood = transcription_log_probs(scores, torch.tensor([3]), TARGETS[:1], TARGET_LENGTHS[:1])
    likelihood.sum().backward()
    assert likelihood.item() == 0.0
    assert scores.grad is not None
    assert not scores.grad.any()


def test_half_precision_is_summed_in_single():
    exact = transcription_log_probs(logits().bfloat16().float(), LENGTHS, TARGETS, TARGET_LENGTHS)
    assert torch.equal(transcription_log_probs(logits().bfloat16(), LENGTHS, TARGETS, TARGET_LENGTHS), exact)
