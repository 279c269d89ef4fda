"""The loss of labels."""

import pytest
import torch

from heedful.models.inputs import TokenInputs
from heedful.models.text_classifier import TextClassifier, TextClassifierConfig
from heedful.training.label_step import LabelStep

IDS = torch.tensor([[5, 6, 3], [4, 3, 0]])
LENGTHS, LABELS = torch.tensor([3, 2]), torch.tensor([2, 0])


def make(encoder: str) -> TextClassifier:
    torch.manual_seed(1)
    config = TextClassifierConfig.model_validate({"encoder": encoder, "embedding_size": 5, "hidden_size": 3})
    return config.build(9, 3).double().eval()


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_the_loss_is_the_smoothed_cross_entropy_summed(encoder: str):
    model = make(encoder)
    sums = LabelStep(model, 0.1)(IDS, LENGTHS, LABELS)
    log_probs = torch.log_softmax(model(TokenInputs(IDS, LENGTHS))[0], dim=-1)
    gold = log_probs[torch.arange(2), LABELS]
    wanted = -(0.9 * gold + 0.1 * log_probs.mean(dim=-1)).sum()
    assert sums.total.item() == pytest.approx(wanted.item(), abs=1e-12)
    assert sums.log_likelihood.item() == pytest.approx(gold.sum().item(), abs=1e-12)
    assert int(sums.num_units) == 2
    assert int(sums.num_correct) == int((log_probs.argmax(dim=-1) == LABELS).sum())
    sums.total.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
