"""The text classifier with a learned query vector for each step."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.config.base import validate
from heedful.engines.labels import run_labels
from heedful.errors import ConfigError
from heedful.layers.query_vectors import StepQueryVectorAttention, TanhDot
from heedful.models.inputs import TokenInputs
from heedful.models.label_model import label_run
from heedful.models.table import PRESETS
from heedful.models.text_classifier import TextClassifier, TextClassifierConfig
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.runs.finish import export_engines
from heedful.search.inputs import TokenArrays
from heedful.training.label_step import LabelStep
from tests.models.by_hand import Parameters, Vector, gru, softmax
from tests.tasks.reviews import reviews, write_reviews
from tests.tasks.test_classification import Run
from tests.thorough import thinned, thorough

POOLINGS = ("last", "average")
TEXTS = ([5, 6, 4, 8, 7, 3], [7, 3], [3], [6, 8, 5, 3])
NUM_STEPS = 4
"""Fewer than the longest text has positions."""


def make(pooling: str, num_steps: int = NUM_STEPS, **changes: Any) -> TextClassifier:
    torch.manual_seed(2)
    sizes = {"embedding_size": 5, "hidden_size": 3, "num_steps": num_steps, "dropout": 0.0}
    settings = {"encoder": "gru", "query_vectors": "step", "pooling": pooling, **sizes, **changes}
    model = TextClassifierConfig.model_validate(settings).build(9, 3).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def inputs(texts: Sequence[Sequence[int]] = TEXTS) -> TokenInputs:
    ids = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.int64)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.tensor(text)
    return TokenInputs(ids, torch.tensor([len(text) for text in texts]))


def by_hand(p: Parameters, text: Sequence[int], pooling: str) -> tuple[Vector, Vector]:
    """Log probabilities of the labels, and the weights of the positions, with loops."""
    hidden = p["encoder.layers.0.forward_unit.candidate_map"].shape[0]
    words = [p["embedding.weight"][word] for word in text]
    halves: list[list[Vector]] = []
    for name, items in (("forward_unit", words), ("backward_unit", words[::-1])):
        state, states = np.zeros(hidden), []
        for x in items:
            state = gru(p, f"encoder.layers.0.{name}", x, state)
            states.append(state)
        halves.append(states)
    h = [np.concatenate(both) for both in zip(halves[0], halves[1][::-1], strict=True)]
    w, b = p["attention.score.key_projection.weight"], p["attention.score.key_projection.bias"]
    u = [np.tanh(w @ state + b) for state in h]
    queries = p["attention.queries"]
    alpha: list[Vector] = []
    s: list[Vector] = []
    for t in range(len(text)):
        query = queries[t] if t < len(queries) else queries[-1]
        alpha.append(softmax([float(u_i @ query) for u_i in u]))
        s.append(np.sum([weight * h_i for weight, h_i in zip(alpha[t], h, strict=True)], axis=0))
    vector, weights = (s[-1], alpha[-1]) if pooling == "last" else (sum(s) / len(s), sum(alpha) / len(alpha))
    return np.log(softmax((p["output.weight"] @ vector + p["output.bias"]).tolist())), np.asarray(weights)


def largest_error(model: TextClassifier) -> float:
    """Largest difference of log probabilities and weights from those by hand."""
    scores, encoded = model(inputs(), ("weights",))
    assert encoded.weights is not None
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    errors: list[float] = []
    for row, text in enumerate(TEXTS):
        log_probs, weights = by_hand(p, text, model.config.pooling)
        errors.append(float(np.abs(torch.log_softmax(scores[row], -1).detach().numpy() - log_probs).max()))
        errors.append(float(np.abs(encoded.weights[row, : len(text)].detach().numpy() - weights).max()))
        assert encoded.weights[row, len(text) :].count_nonzero() == 0
    return max(errors)


@pytest.mark.parametrize("num_steps", [1, NUM_STEPS, 50])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_it_is_the_equations(pooling: str, num_steps: int):
    assert largest_error(make(pooling, num_steps)) <= 1e-10


WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "one vector for all steps": lambda steps: steps * 0,
    "the step after": lambda steps: steps + 1,
    "the steps counted from the end": lambda steps: steps.amax() - steps,
    "the length of the longest text": lambda steps: steps.amax().expand_as(steps),
}


@pytest.mark.parametrize("mistake", WRONG)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_query_of_another_step_is_seen(pooling: str, mistake: str, monkeypatch: pytest.MonkeyPatch):
    right = StepQueryVectorAttention.forward

    def wrong(layer: StepQueryVectorAttention, steps: Tensor, *others: Any) -> Any:
        return right(layer, WRONG[mistake](steps), *others)

    monkeypatch.setattr(StepQueryVectorAttention, "forward", wrong)
    assert largest_error(make(pooling, 50)) > 1e-3


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_other_pooling_is_seen(pooling: str):
    (other,) = {*POOLINGS} - {pooling}
    model = make(other)
    scores, _ = model(inputs())
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    log_probs, _ = by_hand(p, TEXTS[0], pooling)
    assert np.abs(torch.log_softmax(scores[0], -1).detach().numpy() - log_probs).max() > 1e-3


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_and_neighbours_are_invisible(pooling: str):
    model = make(pooling)
    together, _ = model(inputs())
    for row, text in enumerate(TEXTS):
        alone, _ = model(inputs([text]))
        assert float((together[row] - alone[0]).detach().abs().max()) <= 1e-12


def test_the_query_of_the_last_step_depends_on_the_length_alone():
    model = make("last")
    asked: list[Tensor] = []
    assert isinstance(model.attention, StepQueryVectorAttention)
    model.attention.register_forward_pre_hook(lambda _, operands: asked.append(operands[0]))
    model.attention.register_forward_hook(lambda _, operands, attended: asked.append(attended.context))
    model(inputs())
    steps, contexts = asked
    assert steps.tolist() == [[5], [1], [0], [3]]
    assert contexts.shape == (4, 1, 6)  # one query for each text


def test_later_steps_share_the_last_vector():
    short, long = make("last", num_steps=2), make("last", num_steps=6)
    state = short.state_dict()
    queries = state["attention.queries"]
    long.load_state_dict({**state, "attention.queries": torch.cat([queries, queries[-1:].expand(4, -1)])})
    assert torch.equal(short(inputs())[0], long(inputs())[0])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_only_vectors_of_steps_in_the_batch_learn(pooling: str):
    model = make(pooling, num_steps=8).train()
    texts = inputs([[5, 6, 4, 3], [7, 3]])
    LabelStep(model, 0.0)(texts.ids, texts.lengths, torch.tensor([0, 1])).total.backward()
    assert model.attention is not None
    gradient = model.attention.queries.grad
    assert gradient is not None
    steps = gradient.abs().sum(dim=1).nonzero().flatten().tolist()
    assert steps == ([1, 3] if pooling == "last" else [0, 1, 2, 3])
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("pooling", POOLINGS)
def test_before_training_the_weights_are_equal(pooling: str):
    settings = {"encoder": "gru", "query_vectors": "step", "pooling": pooling, "embedding_size": 5, "hidden_size": 3}
    _, encoded = TextClassifierConfig.model_validate(settings).build(9, 3).eval()(inputs(), ("weights",))
    assert encoded.weights is not None
    np.testing.assert_allclose(encoded.weights[1].detach(), [0.5, 0.5, 0, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_are_those_of_the_function(pooling: str):
    layer = StepQueryVectorAttention(3, TanhDot(4, 2, has_bias=True)).double()
    nn.init.normal_(layer.queries)
    steps = torch.arange(5) if pooling == "average" else torch.tensor([[4], [1]])
    states = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each, _: layer(steps, each, each).context, (states, layer.queries))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_texts_are_classified_in_the_order_asked(pooling: str):
    texts = [np.array([4] * length + [3]) for length in (0, 5, 2, 9)]
    _, vectors, attention = run_labels(label_run(make(pooling)), TokenArrays(texts), batch_tokens=7)
    assert vectors.shape == (4, 6)
    assert [None if own is None else own.size for own in attention] == [1, 6, 3, 10]


@thorough
@pytest.mark.parametrize("pooling", thinned(POOLINGS, 2))
def test_it_trains_and_its_engine_gives_what_pytorch_gives(pooling: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    own = ("model.query_vectors=step", f"model.pooling={pooling}", "model.num_steps=6")
    settings = (*own, "training.max_steps=150", "training.export=true")
    run = Run(write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", *settings, preset="text_classifier")
    assert run.train().best >= 95.0
    export_engines(run.started[0], lambda line: None)
    texts = ["a clean room", "", "quiet", "rude staff " * 30, *(text for text, _ in reviews(20, seed=4))]
    graph, model = (load(tmp_path / "m", engine=engine, kind=Classifier) for engine in ("onnx", "torch"))
    assert graph.exported["onnx"].parity.is_exact
    for one, other in zip(graph.classify(texts), model.classify(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
        assert one.attention is not None
        assert one.attention == pytest.approx(other.attention, abs=1e-5)
        assert float(one.attention.sum()) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(graph.encode(texts), model.encode(texts), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"encoder": "bag", "query_vectors": "step"}, "a bag of words has no attention"),
        ({"encoder": "gru", "pooling": "average"}, "all steps are equal"),
        ({"encoder": "gru", "query_vectors": "step", "num_steps": 0}, "num_steps: expected 1 or more"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        validate(TextClassifierConfig, settings, "model")


def test_settings_and_weights_from_before_are_read_as_one_shared_vector():
    config = validate(TextClassifierConfig, {"kind": "text_classifier", "encoder": "gru"}, "model")
    assert config == PRESETS["text_classifier"]
    names = [name for name, _ in config.build(9, 3).named_parameters() if name.startswith("attention.")]
    assert names == [
        "attention.queries",
        "attention.score.key_projection.weight",
        "attention.score.key_projection.bias",
    ]
