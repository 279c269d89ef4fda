"""The hierarchical attention network."""

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.models.hierarchical import PRESETS, HierarchicalClassifier, HierarchicalConfig, Sentences
from heedful.models.inputs import TokenInputs
from heedful.text.vocabulary import EOS
from tests.models.by_hand import with_one_changed
from tests.models.by_hand_classifiers import hierarchical_log_probs
from tests.models.tiny import perturbed

POOLINGS = ("attention", "average", "max")
DOCUMENTS = ([[5, 6, EOS], [7, EOS], [5, 8, 8, 4, 6, EOS]], [[EOS]], [[4, EOS]] * 4, [[6, 5, 4, 7, 8, 5, EOS]])


def make(pooling: str) -> HierarchicalClassifier:
    torch.manual_seed(2)
    sizes = {"pooling": pooling, "embedding_size": 5, "hidden_size": 3}
    return HierarchicalConfig.model_validate(sizes).build(9, 3).double().eval()


def inputs_of(documents: list[list[list[int]]]) -> TokenInputs:
    flat = [[word for sentence in document for word in sentence] for document in documents]
    lengths = torch.tensor([len(ids) for ids in flat])
    ids = torch.zeros(len(flat), int(lengths.max()), dtype=torch.int64)
    for row, own in zip(ids, flat, strict=True):
        row[: len(own)] = torch.tensor(own)
    return TokenInputs(ids, lengths)


def numbers(model: HierarchicalClassifier) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("pooling", POOLINGS)
def test_it_is_the_equations_of_the_paper(pooling: str):
    model = perturbed(make(pooling))
    scores, encoded = model(inputs_of([*DOCUMENTS]), ("weights",))
    for index, document in enumerate(DOCUMENTS):
        log_probs, words, sentences = hierarchical_log_probs(numbers(model), pooling, document)
        np.testing.assert_allclose(torch.log_softmax(scores[index], -1).detach().numpy(), log_probs, rtol=0, atol=1e-10)
        if pooling == "attention":
            assert encoded.weights is not None
            products = np.concatenate([own * share for own, share in zip(words, sentences, strict=True)])
            given = encoded.weights[index].detach().numpy()
            np.testing.assert_allclose(given[: len(products)], products, rtol=0, atol=1e-10)
            assert not given[len(products) :].any()
    assert (encoded.weights is None) == (pooling != "attention")


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_comparison_sees_a_change_of_any_parameter(pooling: str):
    model = perturbed(make(pooling))
    log_probs = torch.log_softmax(model(inputs_of([*DOCUMENTS]))[0], -1).detach().numpy()
    for name, others in with_one_changed(numbers(model)):
        wanted = [hierarchical_log_probs(others, pooling, document)[0] for document in DOCUMENTS]
        assert np.abs(log_probs - wanted).max() > 1e-6, name


def test_the_comparison_sees_another_pooling():
    model = perturbed(make("attention"))
    log_probs = torch.log_softmax(model(inputs_of([*DOCUMENTS]))[0], -1).detach().numpy()
    for pooling in ("average", "max"):
        wanted = [hierarchical_log_probs(numbers(model), pooling, document)[0] for document in DOCUMENTS]
        assert np.abs(log_probs - wanted).max() > 1e-3


def test_a_document_cut_within_a_sentence_ends_in_a_sentence():
    layout = Sentences.of(TokenInputs(torch.tensor([[5, EOS, 6, 7], [4, EOS, 0, 0]]), torch.tensor([4, 2])))
    assert (layout.lengths.tolist(), layout.counts.tolist()) == ([2, 2, 2], [2, 1])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_do_not_depend_on_the_batch(pooling: str):
    model = make(pooling)

    def gradients(documents: list[list[list[int]]]) -> list[Tensor]:
        loss = torch.stack([model(inputs_of([document]))[0].square().sum() for document in documents]).sum()
        return [*torch.autograd.grad(loss, [*model.parameters()])]

    together = torch.autograd.grad(model(inputs_of([*DOCUMENTS]))[0].square().sum(), [*model.parameters()])
    for one, other in zip(together, gradients([*DOCUMENTS]), strict=True):
        torch.testing.assert_close(one, other)


def test_a_word_weighs_more_where_its_query_finds_it():
    model = make("attention")
    assert model.words.attention is not None
    with torch.no_grad():
        model.words.attention.queries.mul_(50.0)
    _, encoded = model(inputs_of([DOCUMENTS[0]]), ("weights",))
    assert encoded.weights is not None
    assert encoded.weights.amax().item() > 0.3
    assert encoded.weights.sum().item() == pytest.approx(1.0)


def test_presets_are_the_variants_of_the_paper():
    assert {config.pooling for config in PRESETS.values()} == set(POOLINGS)
