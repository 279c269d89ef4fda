from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Memory, State
from heedful.models.rnn_encoder_decoder import PRESETS, RNNEncoderDecoder, RNNEncoderDecoderConfig
from tests.models.by_hand import Parameters
from tests.models.by_hand_rnn_encoder_decoder import cho_logits, d2l_logits, rnnencdec_logits, sutskever_logits
from tests.models.tiny import CONFIGS, Config, changed, make_model, make_sources, make_targets

Formula = Callable[[Parameters, Sequence[int], Sequence[int]], np.ndarray]


def small(name: str, **changes: object) -> Config:
    """A preset's choices at small sizes."""
    return changed(PRESETS[name], embedding_size=5, hidden_size=6, maxout_size=4, **changes)


# Presets with the equations that they stand for.
FORMULAS: dict[str, tuple[Config, Formula]] = {
    "sutskever-paper": (
        small("sutskever-paper", output_bias=True),
        lambda p, source, target: sutskever_logits(p, 4, True, source, target),
    ),
    "rnn_encoder_decoder": (
        small("rnn_encoder_decoder", is_source_reversed=False),
        lambda p, source, target: sutskever_logits(p, 2, False, source, target),
    ),
    "cho-paper": (small("cho-paper"), cho_logits),
    "rnnencdec-paper": (small("rnnencdec-paper"), rnnencdec_logits),
    "d2l-seq2seq": (small("d2l-seq2seq"), lambda p, source, target: d2l_logits(p, 2, source, target)),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_its_papers_equations(preset: str):
    config, formula = FORMULAS[preset]
    model = make_model(config, seed=2)
    source, lengths = make_sources(seed=2)
    target_in = make_targets(len(source), seed=2)
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        logits = model.logits(model(TokenInputs(source, lengths), target_in).features).numpy()
    for row, length in enumerate(lengths.tolist()):
        wanted = formula(parameters, source[row, :length].tolist(), target_in[row].tolist())
        assert np.abs(logits[row] - wanted).max() <= 1e-10


def test_reversing_reads_the_words_from_the_last_to_the_first_and_then_the_end():
    forwards, backwards = (make_model(small("rnn_encoder_decoder", is_source_reversed=r)) for r in (False, True))
    source, lengths = make_sources((5,))
    target_in = make_targets(1)
    turned = torch.cat((source[:, :4].flip(1), source[:, 4:]), dim=1)
    with torch.no_grad():
        features = backwards(TokenInputs(source, lengths), target_in).features
        assert torch.equal(forwards(TokenInputs(turned, lengths), target_in).features, features)
        assert not torch.allclose(forwards(TokenInputs(source, lengths), target_in).features, features)


def test_without_context_the_source_is_seen_at_the_start_alone():
    source, lengths = make_sources()
    for name, num in (("sutskever", 0), ("cho", 2)):
        with torch.no_grad():
            memory = make_model(name).encode(TokenInputs(source, lengths))
        assert len(memory.context) == num  # type: ignore[attr-defined]


def test_an_lstm_may_have_a_context_too():
    model = make_model("lstm-context")
    assert isinstance(model, RNNEncoderDecoder)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    with torch.no_grad():
        before = model(TokenInputs(source, lengths), target_in).features
        model.context_map.weight.mul_(2.0)  # type: ignore[union-attr]
        assert float((model(TokenInputs(source, lengths), target_in).features - before).abs().max()) > 1e-3
        state = model.start(model.encode(TokenInputs(source, lengths)))
    # Mapped: each layer's state is made from the context, cells begin at zero.
    assert all(bool((cell == 0.0).all()) for _, cell in state.layers)
    assert not torch.allclose(state.layers[0][0], state.layers[1][0])


def test_parameters_of_sutskever_et_al():
    # Section 3.4: 384 million, of which 64 million are recurrent connections, 32 million on either side.
    with torch.device("meta"):
        model = PRESETS["sutskever-paper"].build(160_000, 80_000, is_shared=False)
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(384e6, rel=1e-3)
    for side in ("encoder", "decoder"):
        maps = sum(p.numel() for name, p in model.named_parameters() if name.startswith(side) and p.dim() > 1)
        assert maps == 32e6


@pytest.mark.parametrize(
    ("preset", "embedding", "read"), [("cho-paper", 100, 1000 + 100 + 1000), ("rnnencdec-paper", 620, 2620)]
)
def test_the_papers_sizes(preset: str, embedding: int, read: int):
    with torch.device("meta"):
        model = PRESETS[preset].build(15_000, 15_000, is_shared=False)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["source_embedding.weight"] == (15_000, embedding)
    assert shapes["decoder.layers.0.candidate_map"] == (1000, 1000)
    assert shapes["context_map.weight"] == (3000, 1000)
    assert shapes["readout.weight"] == (1000, read)
    assert shapes["output.weight"] == (15_000, 500)
    assert ("summary.weight" in shapes) == (preset == "cho-paper")


def test_first_values_of_sutskever_et_al():
    torch.manual_seed(0)
    model = changed(PRESETS["sutskever-paper"], hidden_size=16, embedding_size=16).build(60, 60, False)
    for name, parameter in model.named_parameters():
        assert 0.06 < float(parameter.detach().abs().max()) <= 0.08 * (1 + 1e-6), name


def test_first_values_of_cho_et_al():
    torch.manual_seed(0)
    model = changed(PRESETS["cho-paper"], hidden_size=40, embedding_size=30).build(60, 60, False)
    assert isinstance(model, RNNEncoderDecoder)
    for name, parameter in model.named_parameters():
        if name.endswith(("gates_map", "candidate_map")):
            for block in parameter.detach().split(40):
                assert torch.allclose(block @ block.T, torch.eye(40), atol=1e-5), name
        elif parameter.dim() == 1:
            assert bool((parameter == 0.0).all()), name
        else:
            assert float(parameter.detach().std()) == pytest.approx(0.01, rel=0.1), name


@pytest.mark.parametrize("name", ["sutskever", "cho", "rnnencdec", "lstm-context"])
@pytest.mark.parametrize("field", ["dropout", "output_dropout"])
def test_each_dropout_is_of_training_alone(name: str, field: str):
    model = make_model(changed(CONFIGS[name], **({"dropout": 0.0, "output_dropout": 0.0} | {field: 0.5})))
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    torch.manual_seed(1)
    with torch.no_grad():
        whole = model(TokenInputs(source, lengths), target_in).features
        assert torch.equal(model(TokenInputs(source, lengths), target_in).features, whole)
        assert not torch.equal(model.train()(TokenInputs(source, lengths), target_in).features, whole)


@pytest.mark.parametrize("name", ["sutskever", "cho", "rnnencdec", "lstm-context"])
def test_target_words_are_dropped_beside_a_context_too(name: str):
    model = make_model(changed(CONFIGS[name], num_layers=1, dropout=0.5, output_dropout=0.0))
    assert isinstance(model, RNNEncoderDecoder)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    torch.manual_seed(0)
    with torch.no_grad():
        model.source_embedding.weight.zero_()  # so that dropout changes nothing in the encoder
        whole = model(TokenInputs(source, lengths), target_in).features
        assert not torch.equal(model.train()(TokenInputs(source, lengths), target_in).features, whole)


def test_forget_gates_begin_wide_where_asked():
    biases: list[torch.Tensor] = []
    for bias in (0.0, 1.0):
        torch.manual_seed(0)
        model = changed(PRESETS["rnn_encoder_decoder"], hidden_size=4, forget_bias=bias).build(9, 9, False)
        assert isinstance(model, RNNEncoderDecoder)
        biases.append(
            torch.stack([unit.input_map.bias.detach() for unit in (*model.encoder.units, *model.decoder.units)])
        )
    wanted = torch.tensor([0.0] * 4 + [1.0] * 4 + [0.0] * 8)
    assert torch.allclose(biases[1] - biases[0], wanted.expand(4, -1), atol=1e-6)


def test_choices_that_do_not_fit_are_refused():
    for values in ({"cell": "lstm", "context": "plain"}, {"cell": "gru"}):
        with pytest.raises(ValidationError, match="with_context"):
            RNNEncoderDecoderConfig(decoder_reset="with_context", **values)  # type: ignore[arg-type]


def test_parts_of_another_model_are_refused():
    model = RNNEncoderDecoder(RNNEncoderDecoderConfig(embedding_size=2, hidden_size=2), 5, 5)
    with pytest.raises(TypeError, match="rnn_encoder_decoder: got Memory"):
        model.start(Memory(torch.ones(1, dtype=torch.int64)))
    source, lengths = make_sources((2,))
    memory = model.encode(TokenInputs(source.clamp(max=4), lengths))
    with pytest.raises(TypeError, match="rnn_encoder_decoder: got State"):
        model.step(torch.ones(1, 1, dtype=torch.int64), State(), memory)
