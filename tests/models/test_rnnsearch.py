from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Memory, State
from heedful.models.rnnsearch import PRESETS, RNNsearch, RNNsearchConfig, RNNsearchState
from tests.models.by_hand import (
    Parameters,
    alignment,
    conditional_logits,
    convolutional_encoder,
    rnnsearch_logits,
)
from tests.models.tiny import CONFIGS, changed, make_model, make_sources, make_targets

Formula = Callable[[Parameters, Sequence[int], Sequence[int]], tuple[np.ndarray, np.ndarray]]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("rnnsearch", rnnsearch_logits),
        ("rnnsearch-conditional", conditional_logits),
        ("rnnsearch-coverage", rnnsearch_logits),
        ("rnnsearch-filters", rnnsearch_logits),
    ],
)
def test_it_is_the_papers_equations(name: str, formula: Formula, seed: int):
    model = make_model(name, seed)
    source, lengths = make_sources(seed=seed)
    target_in = make_targets(len(source), seed=seed)
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        decoded = model(TokenInputs(source, lengths), target_in, need=("weights",))
        logits = model.logits(decoded.features).numpy()
    weights = decoded.attended["cross"].weights
    for row, length in enumerate(lengths.tolist()):
        wanted, alpha = formula(parameters, source[row, :length].tolist(), target_in[row].tolist())
        assert np.abs(logits[row] - wanted).max() <= 1e-10
        assert np.abs(weights[row, :, :length].numpy() - alpha).max() <= 1e-12


def test_a_convolutional_encoder_gives_keys_and_values():
    model = make_model("rnnsearch-convolutional")
    assert isinstance(model, RNNsearch)
    source, lengths = make_sources()
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        memory = model.encode(TokenInputs(source, lengths))
        state = model.start(memory)
        tokens = make_targets(len(source))[:, :1]
        decoded, _ = model.step(tokens, state, memory, need=("weights",))
    attended = decoded.attended["cross"]
    for row, length in enumerate(lengths.tolist()):
        embedded = [p["source_embedding.weight"][token] for token in source[row, :length].tolist()]
        keys, values = convolutional_encoder(p, "encoder.", embedded, num_layers=2, width=3)
        before = np.tanh(p["initial.weight"] @ (sum(values) / len(values)) + p["initial.bias"])
        assert np.abs(state.hidden[row, 0].numpy() - before).max() <= 1e-12
        alpha = alignment(p, before, keys)
        assert np.abs(attended.weights[row, 0, :length].numpy() - alpha).max() <= 1e-12
        context = sum(a * h for a, h in zip(alpha, values, strict=True))
        assert np.abs(attended.context[row, 0].numpy() - context).max() <= 1e-12


def test_maxout_may_read_the_new_state():
    model = make_model(changed(CONFIGS["rnnsearch"], readout_state="after"))
    assert isinstance(model, RNNsearch)
    source, lengths = make_sources()
    tokens = make_targets(len(source))[:, :1]
    with torch.no_grad():
        memory = model.encode(TokenInputs(source, lengths))
        decoded, state = model.step(tokens, model.start(memory), memory)
        read = (state.hidden, model.target_embedding(tokens), decoded.attended["cross"].context)
        pairs = model.readout(torch.cat(read, dim=-1))
    assert torch.equal(decoded.features, torch.maximum(pairs[..., ::2], pairs[..., 1::2]))


def test_the_initial_state_may_take_both_directions():
    model = make_model("rnnsearch-last")
    assert isinstance(model, RNNsearch)
    source, lengths = make_sources()
    with torch.no_grad():
        memory = model.encode(TokenInputs(source, lengths))
        state = model.start(memory).hidden
        for row, length in enumerate(lengths.tolist()):
            both = torch.cat((memory.annotations[row, length - 1, :6], memory.annotations[row, 0, 6:]))
            wanted = torch.tanh(model.initial.weight @ both + model.initial.bias)
            assert float((state[row, 0] - wanted).abs().max()) <= 1e-14


def test_the_state_readout_is_the_new_state():
    model = make_model("rnnsearch-state")
    source, lengths = make_sources()
    with torch.no_grad():
        memory = model.encode(TokenInputs(source, lengths))
        decoded, state = model.step(make_targets(len(source))[:, :1], model.start(memory), memory)
    assert isinstance(state, RNNsearchState)
    assert torch.equal(decoded.features, state.hidden)


def test_reset_after_is_another_function():
    before, after = make_model("rnnsearch"), make_model("rnnsearch-after")
    after.load_state_dict(before.state_dict())
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    with torch.no_grad():
        features = [model(TokenInputs(source, lengths), target_in).features for model in (before, after)]
    assert float((features[0] - features[1]).abs().max()) > 1e-3


def test_dropout_is_of_training_alone():
    model = make_model("rnnsearch")
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    with torch.no_grad():
        assert torch.equal(
            model(TokenInputs(source, lengths), target_in).features,
            model(TokenInputs(source, lengths), target_in).features,
        )
        model.train()
        assert not torch.equal(
            model(TokenInputs(source, lengths), target_in).features,
            model(TokenInputs(source, lengths), target_in).features,
        )


def test_the_papers_sizes():
    config = PRESETS["rnnsearch-paper"]
    with torch.device("meta"):
        model = config.build(30_000, 30_000, is_shared=False)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["source_embedding.weight"] == (30_000, 620)
    assert shapes["score.query_projection.weight"] == (1000, 1000)
    assert shapes["score.key_projection.weight"] == (1000, 2000)
    assert shapes["readout.weight"] == (1000, 1000 + 620 + 2000)
    assert shapes["output.weight"] == (30_000, 500)
    assert (config.dropout, config.readout, config.initial_state, config.reset) == (0, "maxout", "backward", "before")
    assert (config.encoder, config.decoder, config.readout_state) == ("recurrent", "gru", "before")
    assert config.initialization == "paper"


def test_first_values_are_the_papers():
    torch.manual_seed(0)
    sizes = {"embedding_size": 40, "hidden_size": 40, "alignment_size": 40, "maxout_size": 40}
    model = changed(PRESETS["rnnsearch-paper"], **sizes).build(60, 60, False)
    for name, parameter in model.named_parameters():
        values = parameter.detach()
        if name.endswith(("gates_map", "candidate_map")):
            for block in values.split(40):
                assert torch.allclose(block @ block.T, torch.eye(40), atol=1e-5), name
        elif values.dim() == 1:
            assert bool((values == 0.0).all()), name
        else:
            std = 0.001 if name.startswith("score.") else 0.01
            assert float(values.std()) == pytest.approx(std, rel=0.1), name


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"encoder": "convolutional"}, 'set initial_state to "mean"'),
        ({"convolution_width": 4}, "convolution_width 4 must be odd"),
    ],
)
def test_choices_that_do_not_fit_are_refused(values: dict[str, object], complaint: str):
    with pytest.raises(ValidationError, match=complaint):
        RNNsearchConfig(**values)  # type: ignore[arg-type]


def test_parts_of_another_model_are_refused():
    model = RNNsearch(RNNsearchConfig(embedding_size=2, hidden_size=2), 5, 5)
    with pytest.raises(TypeError, match="rnnsearch: got Memory"):
        model.start(Memory(torch.ones(1, dtype=torch.int64)))
    source, lengths = make_sources((2,))
    memory = model.encode(TokenInputs(source.clamp(max=4), lengths))
    with pytest.raises(TypeError, match="rnnsearch: got State"):
        model.step(torch.ones(1, 1, dtype=torch.int64), State(), memory)
