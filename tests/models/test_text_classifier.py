"""The text classifier."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from heedful.engines.label_arrays import LabelArrays
from heedful.engines.labels import run_labels
from heedful.errors import FileRefused
from heedful.models.inputs import TokenInputs
from heedful.models.label_model import label_run
from heedful.models.text_classifier import PRESETS, TextClassifier, TextClassifierConfig
from heedful.search.inputs import TokenArrays
from tests.models.by_hand import Parameters, Vector, with_one_changed
from tests.models.by_hand_classifiers import bag_logits, gru_logits
from tests.models.tiny import perturbed

TEXTS = ([5, 6, 4, 8, 3], [7, 3], [3], [6, 6, 5, 3])
VARIANTS = (("bag", 1), ("gru", 1), ("gru", 2))


def make(encoder: str, num_layers: int = 1) -> TextClassifier:
    torch.manual_seed(1)
    sizes = {"embedding_size": 5, "hidden_size": 3, "num_layers": num_layers}
    return TextClassifierConfig.model_validate({"encoder": encoder, **sizes}).build(9, 3).double().eval()


def computed(encoder: str, num_layers: int) -> tuple[Parameters, list[Vector], list[Vector] | None]:
    """Parameters of a model without special values; its scores of the texts, and its weights over them with padding."""
    model = perturbed(make(encoder, num_layers))
    ids = torch.zeros(4, 5, dtype=torch.int64)
    for row, text in zip(ids, TEXTS, strict=True):
        row[: len(text)] = torch.tensor(text)
    with torch.no_grad():
        scores, encoded = model(TokenInputs(ids, torch.tensor([len(text) for text in TEXTS])), ("weights",))
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    return p, [*scores.numpy()], None if encoded.weights is None else [*encoded.weights.numpy()]


def logits(p: Parameters, encoder: str, num_layers: int) -> list[Vector]:
    return [bag_logits(p, text) if encoder == "bag" else gru_logits(p, text, num_layers)[0] for text in TEXTS]


def difference(one: list[Vector], other: list[Vector]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("encoder", "num_layers"), VARIANTS)
def test_it_is_the_equations_of_its_papers(encoder: str, num_layers: int):
    p, scores, weights = computed(encoder, num_layers)
    assert difference(scores, logits(p, encoder, num_layers)) <= 1e-10
    if encoder == "bag":
        assert weights is None
        return
    assert weights is not None
    for row, text in zip(weights, TEXTS, strict=True):
        np.testing.assert_allclose(row[: len(text)], gru_logits(p, text, num_layers)[1], rtol=0, atol=1e-10)
        assert not row[len(text) :].any()


@pytest.mark.parametrize(("encoder", "num_layers"), VARIANTS)
def test_the_comparison_sees_a_change_of_any_parameter(encoder: str, num_layers: int):
    p, scores, _ = computed(encoder, num_layers)
    for name, others in with_one_changed(p):
        assert difference(scores, logits(others, encoder, num_layers)) > 1e-6, name


def test_the_comparison_sees_other_equations():
    p, scores, _ = computed("bag", 1)
    assert difference(scores, [bag_logits(p, text, num_words=5) for text in TEXTS]) > 1e-3  # a mean over padding too
    p, scores, _ = computed("gru", 2)
    assert difference(scores, [gru_logits(p, text, 2, reset_at="after")[0] for text in TEXTS]) > 1e-3
    assert difference(scores, [gru_logits(p, text, 2, is_attentive=False)[0] for text in TEXTS]) > 1e-3


def test_a_bag_is_the_mean_of_its_embeddings_under_one_matrix():
    model = make("bag")
    scores, encoded = model(TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3])))
    wanted = model.output(model.embedding.weight[[5, 6, 3]].mean(dim=0))
    assert torch.allclose(scores[0], wanted)
    assert encoded.weights is None
    turned, _ = model(TokenInputs(torch.tensor([[6, 5, 3]]), torch.tensor([3])))
    assert torch.allclose(turned, scores)


def test_a_recurrent_encoder_sees_the_order_and_attends():
    model = make("gru")
    inputs = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
    scores, encoded = model(inputs, ("weights",))
    weights = encoded.weights
    assert weights is not None
    assert weights.shape == (1, 3)
    assert float(weights.sum().detach()) == pytest.approx(1.0)
    turned, _ = model(TokenInputs(torch.tensor([[6, 5, 3]]), torch.tensor([3])))
    assert not torch.allclose(turned, scores)


def test_several_query_vectors_attend_to_words():
    torch.manual_seed(1)
    config = TextClassifierConfig(encoder="words", num_queries=2, embedding_size=5)
    model = perturbed(config.build(9, 3).double().eval())
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        scores, encoded = model(TokenInputs(torch.tensor([[5, 6, 3, 0]]), torch.tensor([3])), ("weights",))
    words = p["embedding.weight"][[5, 6, 3]]
    hidden = np.tanh(words @ p["attention.score.key_projection.weight"].T + p["attention.score.key_projection.bias"])
    weights = np.exp(hidden @ p["attention.queries"].T)
    weights /= weights.sum(axis=0)
    vector = np.concatenate([weights[:, query] @ words for query in range(2)])
    np.testing.assert_allclose(scores[0].numpy(), p["output.weight"] @ vector + p["output.bias"], atol=1e-10)
    assert encoded.weights is not None
    np.testing.assert_allclose(encoded.weights[0, :3].numpy(), weights.mean(axis=1), atol=1e-10)


@pytest.mark.parametrize("encoder", ["bag", "gru", "words"])
def test_padding_and_neighbours_are_invisible(encoder: str):
    model = make(encoder)
    with torch.no_grad():
        alone, _ = model(TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3])))
        batch = TokenInputs(torch.tensor([[5, 6, 3, 7, 8], [4, 4, 4, 4, 3]]), torch.tensor([3, 5]))
        together, _ = model(batch)
    assert torch.allclose(together[:1], alone, atol=1e-12)


def test_texts_are_classified_in_the_order_asked():
    model = make("gru")
    texts = [np.array([4] * length + [3]) for length in (0, 5, 2, 9)]
    log_probs, vectors, attention = run_labels(label_run(model), TokenArrays(texts), batch_tokens=7)
    assert vectors.shape == (4, 6)
    assert [None if own is None else own.size for own in attention] == [1, 6, 3, 10]
    for text, row in zip(texts, log_probs, strict=True):
        (alone,), *_ = run_labels(label_run(model), TokenArrays([text]))
        assert row == pytest.approx(alone, abs=1e-6)


def test_results_of_other_texts_are_refused():
    """As the graph of a stranger may give."""
    run, texts = label_run(make("gru")), TokenArrays([np.array([4, 3])] * 3)

    def fewer(batch: LabelArrays) -> Iterator[LabelArrays]:
        yield from (batch._replace(**{name: each[:1]}) for name, each in batch._asdict().items())
        yield batch._replace(vectors=batch.vectors[0])
        yield batch._replace(log_probs=batch.log_probs[0, 0])

    for wrong in fewer(run(texts)):
        with pytest.raises(FileRefused, match=r"the graph gives results of the shapes .* for 3 texts"):
            run_labels(lambda _, wrong=wrong: wrong, texts)


def test_presets_have_all_encoders():
    assert {config.encoder for config in PRESETS.values()} == {"bag", "gru", "words"}
