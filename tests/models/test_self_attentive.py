"""The structured self-attentive classifier."""

import numpy as np
import torch

from heedful.models.inputs import TokenInputs
from heedful.models.self_attentive import SelfAttentiveClassifier, SelfAttentiveConfig
from heedful.training.label_step import LabelStep
from tests.models.by_hand import with_one_changed
from tests.models.by_hand_classifiers import self_attentive
from tests.models.tiny import perturbed

SIZES = {
    "embedding_size": 5,
    "hidden_size": 3,
    "num_hops": 3,
    "attention_size": 4,
    "classifier_size": 6,
    "dropout": 0.0,
}
TEXTS = ([5, 6, 4, 8, 3], [7, 3], [3])


def make(penalty: float = 0.7) -> SelfAttentiveClassifier:
    torch.manual_seed(3)
    return SelfAttentiveConfig.model_validate({**SIZES, "penalty": penalty}).build(9, 3).double()


def inputs() -> TokenInputs:
    ids = torch.zeros(3, 5, dtype=torch.int64)
    for row, text in zip(ids, TEXTS, strict=True):
        row[: len(text)] = torch.tensor(text)
    return TokenInputs(ids, torch.tensor([5, 2, 1]))


def test_it_is_the_equations_of_the_paper():
    model = perturbed(make())
    scores, encoded = model(inputs(), ("weights",))
    assert encoded.weights is not None
    assert encoded.penalty is not None
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    for index, text in enumerate(TEXTS):
        log_probs, weights, penalty = self_attentive(p, text)
        np.testing.assert_allclose(torch.log_softmax(scores[index], -1).detach().numpy(), log_probs, rtol=0, atol=1e-10)
        given = encoded.weights[index, : len(text)].detach().numpy()
        np.testing.assert_allclose(given, weights.mean(axis=0), rtol=0, atol=1e-10)
        np.testing.assert_allclose(encoded.penalty[index].detach().numpy(), 0.7 * penalty, rtol=0, atol=1e-10)


def test_the_comparison_sees_a_change_of_any_parameter():
    model = perturbed(make())
    log_probs = torch.log_softmax(model(inputs())[0], -1).detach().numpy()
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    for name, others in with_one_changed(p):
        assert np.abs(log_probs - [self_attentive(others, text)[0] for text in TEXTS]).max() > 1e-6, name


def test_the_penalty_is_in_the_loss_of_training_alone():
    labels = torch.tensor([0, 1, 2])
    tensors = inputs()
    with_penalty, without = (
        LabelStep(make(penalty), 0.0)(tensors.ids, tensors.lengths, labels) for penalty in (1.0, 0.0)
    )
    assert with_penalty.total.item() > without.total.item()
    evaluated = LabelStep(make(1.0).eval(), 0.0)(tensors.ids, tensors.lengths, labels)
    assert evaluated.total.item() == without.total.item()
