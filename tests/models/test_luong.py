import itertools

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.attention.scores import SCORES
from heedful.layers.recurrent import LongShortTermMemory
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Memory, Seq2Seq, State
from heedful.models.luong import PRESETS, Luong, LuongAttention, LuongConfig, LuongState
from tests.contracts.models import steps_equal_forward
from tests.models.by_hand_luong import luong_logits
from tests.models.tiny import CONFIGS, changed, make_model, make_sources, make_targets

TINY = LuongConfig(embedding_size=5, hidden_size=6, attention=LuongAttention(half_width=2))
GRID = {
    f"{score} {window} {'fed' if has_feeding else 'alone'}": changed(
        TINY, score=score, window=window, has_feeding=has_feeding, alignment_size=5
    )
    for score, window, has_feeding in itertools.product(
        ("dot", "general", "concat", "location"), ("global", "local-m", "local-p"), (True, False)
    )
}
FURTHER = {
    "forwards": changed(TINY, is_source_reversed=False),
    "bidirectional": changed(TINY, is_bidirectional=True),
    "three layers": changed(TINY, num_layers=3, half_width=1),
    "gru": changed(TINY, cell="gru"),
    "gru bidirectional": changed(TINY, cell="gru", is_bidirectional=True, num_layers=1, score="additive"),
    "over the source": changed(TINY, softmax_over="source"),
    "cut from the source": changed(TINY, softmax_over="cut", half_width=1),
    "end not attended": changed(TINY, is_end_attended=False),
    "end not attended, monotonic": changed(TINY, is_end_attended=False, window="local-m"),
    "monotonic to the last": changed(TINY, window="local-m", past_source="last", half_width=1),
    "monotonic to the last word": changed(TINY, window="local-m", past_source="last", is_end_attended=False),
    "output bias": changed(TINY, output_bias=True, has_feeding=False),
    "words": changed(TINY, encoder="words", num_layers=1),
    "words, gru, two layers": changed(TINY, encoder="words", cell="gru", score="general", window="global"),
    "simple heads": changed(TINY, encoder="heads", reader_size=4, head_attention={"normalizer": "softmax"}),
    "structured heads": changed(TINY, encoder="heads", reader_size=4, window="global", is_end_attended=False),
    "structured heads, gru": changed(TINY, encoder="heads", reader_size=4, cell="gru", score="additive"),
    "structured heads, unbounded": changed(TINY, encoder="heads", reader_size=4, head_attention={"is_bounded": False}),
    "simple heads, unbounded": changed(
        TINY, encoder="heads", reader_size=4, head_attention={"is_bounded": False, "normalizer": "softmax"}
    ),
    "coverage": changed(TINY, score="dot", attention={"has_coverage": True}),
    "coverage, monotonic": changed(TINY, score="concat", window="local-m", attention={"has_coverage": True}),
    "coverage alone": changed(TINY, window="global", score="dot", has_feeding=False, attention={"has_coverage": True}),
}


@pytest.mark.parametrize("name", GRID | FURTHER)
def test_it_is_the_papers_equations(name: str):
    config = (GRID | FURTHER)[name]
    model = make_model(config, seed=3)
    # All trees over more words are too many to be listed.
    longest = (5, 2, 4, 1) if config.encoder == "heads" else (5, 2, 7, 1, 9)
    source, lengths = make_sources(longest, seed=3)
    target_in = make_targets(len(source), seed=3)
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        decoded = model(TokenInputs(source, lengths), target_in, need=("weights",))
        logits = model.logits(decoded.features).numpy()
    weights = decoded.attended["cross"].weights
    for row, length in enumerate(lengths.tolist()):
        wanted, alpha = luong_logits(parameters, config, source[row, :length].tolist(), target_in[row].tolist())
        assert np.abs(logits[row] - wanted).max() <= 1e-10
        assert np.abs(weights[row, :, :length].numpy() - alpha).max() <= 1e-12


def test_heads_without_trees_are_not_those_of_trees():
    """Another normalizer fails the test above."""
    config = FURTHER["structured heads"]
    model = make_model(config, seed=3)
    source, lengths = make_sources((5,), seed=3)
    with torch.no_grad():
        logits = model.logits(model(TokenInputs(source, lengths), make_targets(1, seed=3)).features).numpy()
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    other = changed(config, head_attention={"normalizer": "softmax"})
    wanted, _ = luong_logits(parameters, other, source[0].tolist(), make_targets(1, seed=3)[0].tolist())
    assert np.abs(logits[0] - wanted).max() > 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reader_size": 5}, "reader_size 5 must be even"),
        ({"head_attention": {"window": "local-p"}}, "only a decoder's state predicts a centre"),
        ({"head_attention": {"normalizer": "sampled"}}, "head_attention: additive with sampled"),
    ],
)
def test_heads_that_cannot_be_scored_are_refused(settings: dict[str, object], message: str):
    with pytest.raises(ValidationError, match=message):
        changed(TINY, encoder="heads", **settings)


@pytest.mark.parametrize("window", ["global", "local-p"])
@pytest.mark.parametrize("score", SCORES)
def test_every_score_goes_with_it(score: str, window: str):
    model = make_model(changed(TINY, score=score, window=window))
    with torch.no_grad():
        steps_equal_forward(model)


def test_half_of_the_source_where_nothing_is_learnt_yet():
    model = make_model(changed(TINY, score="uniform", has_feeding=False))
    assert isinstance(model, Luong)
    assert model.position_vector is not None
    source, lengths = make_sources((9,))
    with torch.no_grad():
        model.position_vector.zero_()
        weights = model(TokenInputs(source, lengths), make_targets(1), need=("weights",)).attended["cross"].weights
    # v_p = 0: p_t = S sigmoid(0) = 4.5, so with D = 2 the window is 3, 4, 5, 6, and sigma is 1.
    wanted = torch.tensor([0, 0, 0, 1.5, 0.5, 0.5, 1.5, 0, 0], dtype=torch.float64)
    wanted = torch.where(wanted > 0, torch.exp(-wanted.square() / 2.0) / 4.0, 0.0)
    assert float((weights - wanted).abs().max()) <= 1e-15


def test_gradient_reaches_the_position():
    model = make_model(changed(TINY, has_feeding=False))
    assert isinstance(model, Luong)
    source, lengths = make_sources()
    features = model(TokenInputs(source, lengths), make_targets(len(source))).features
    features.square().sum().backward()
    for parameter in (model.position_vector, model.position_map.weight):  # type: ignore[union-attr]
        assert float(parameter.grad.abs().max()) > 1e-6


def test_reversing_moves_no_alignment():
    """Reversed or not, an encoder that knows nothing but the word at hand gives states at the same places."""
    source, lengths = make_sources()
    states: list[torch.Tensor] = []
    for is_source_reversed in (False, True):
        model = make_model(changed(TINY, is_source_reversed=is_source_reversed, num_layers=1))
        assert isinstance(model, Luong)
        with torch.no_grad():
            for unit in model.encoder.units:  # type: ignore[union-attr]
                assert isinstance(unit, LongShortTermMemory)
                unit.gates_map.zero_()
                unit.input_map.bias[6:12] = -1000.0
            states.append(model.encode(TokenInputs(source, lengths)).annotations)
    real = torch.arange(source.shape[1]) < lengths[:, None]
    assert float((states[0] - states[1])[real].abs().max()) <= 1e-15


def test_the_decoder_starts_where_the_encoder_ended():
    model = make_model("luong-monotonic")
    source, lengths = make_sources()
    with torch.no_grad():
        memory = model.encode(TokenInputs(source, lengths))
        state = model.start(memory, num_hypotheses=3)
    assert isinstance(memory, Memory)
    assert isinstance(state, LuongState)
    for mine, theirs in zip(state.layers, memory.states, strict=True):  # type: ignore[attr-defined]
        for one, other in zip(mine, theirs, strict=True):
            assert torch.equal(one, other[:, None].expand(-1, 3, -1))
    assert bool((state.fed[0] == 0.0).all())
    assert state.place[0].tolist() == [[0, 0, 0]] * 4


@pytest.mark.parametrize("name", ["luong", "luong-global", "luong-gru"])
def test_dropout_is_of_training_alone(name: str):
    model = make_model(name)
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


def zeroed(model: Seq2Seq, source: torch.Tensor, lengths: torch.Tensor, target_in: torch.Tensor) -> float:
    """The share of features that are exactly zero while training."""
    with torch.no_grad():
        return float((model.train()(TokenInputs(source, lengths), target_in).features == 0.0).double().mean())


@pytest.mark.parametrize("has_feeding", [True, False])
def test_output_dropout_is_of_the_vectors_and_not_of_what_is_fed(has_feeding: bool):
    source, lengths = make_sources()
    target_in = make_targets(len(source), length=40)
    config = changed(TINY, has_feeding=has_feeding, dropout=0.0)
    torch.manual_seed(0)
    assert zeroed(make_model(changed(config, output_dropout=0.0)), source, lengths, target_in) == 0.0
    dropping = make_model(changed(config, output_dropout=0.4))
    assert zeroed(dropping, source, lengths, target_in) == pytest.approx(0.4, abs=0.05)
    # What is not left out is what it would be without dropout, but for its scale: nothing dropped was fed.
    with torch.no_grad():
        kept = dropping(TokenInputs(source, lengths), target_in).features
        whole = dropping.eval()(TokenInputs(source, lengths), target_in).features
    assert float((kept * 0.6 - whole)[kept != 0.0].abs().max()) <= 1e-4  # the probability is rounded to 2^-16


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_what_is_fed_is_dropped_as_words_are(cell: str):
    model = make_model(changed(TINY, cell=cell, num_layers=1, dropout=0.5, output_dropout=0.0))
    assert isinstance(model, Luong)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    torch.manual_seed(0)
    with torch.no_grad():
        # Words of zeros cannot lose a feature: what is left is the dropout of h~_{t-1}, which is zero at the start.
        model.source_embedding.weight.zero_()
        model.target_embedding.weight.zero_()
        whole = model(TokenInputs(source, lengths), target_in).features
        dropped = model.train()(TokenInputs(source, lengths), target_in).features
    assert torch.equal(dropped[:, 0], whole[:, 0])
    assert bool((dropped[:, 1] != whole[:, 1]).any(dim=-1).all())


def test_first_values_are_the_papers():
    torch.manual_seed(0)
    model = changed(TINY, hidden_size=32, init_range=0.05, forget_bias=1.0, output_bias=True).build(50, 40, False)
    for name, parameter in model.named_parameters():
        values = parameter.detach().clone()
        if name.endswith("input_map.bias"):
            values[32:64] -= 1.0
        assert float(values.abs().max()) <= 0.05 * (1 + 1e-5), name
        if values.numel() > 500:
            assert float(values.std()) == pytest.approx(0.05 / 3**0.5, rel=0.1), name
    assert isinstance(model, Luong)
    assert bool((model.source_embedding.weight[0] == 0.0).all())


def test_the_papers_sizes():
    config = PRESETS["luong-paper"]
    with torch.device("meta"):
        model = config.build(50_000, 50_000, is_shared=False)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["source_embedding.weight"] == shapes["output.weight"] == (50_000, 1000)
    assert shapes["combine.weight"] == (1000, 2000)
    assert shapes["position_map.weight"] == shapes["score.weight"] == (1000, 1000)
    # Input feeding doubles the input of the first layer of the decoder.
    assert shapes["feed_map.weight"] == shapes["decoder.layers.0.input_map.weight"] == (4000, 1000)
    assert {name.split(".")[2] for name in shapes if name.startswith("encoder.layers")} == set("0123")
    assert (config.dropout, config.init_range, config.attention.half_width) == (0.2, 0.1, 10)
    assert (config.attention.window, config.attention.score, config.has_feeding, config.is_source_reversed) == (
        ("local-p", "general", True, True)
    )
    assert (config.output_bias, config.forget_bias, config.is_bidirectional, config.cell) == (False, 0, False, "lstm")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"score": "genral"}, "no score 'genral'; did you mean 'general'"),
        ({"hidden_size": 7, "is_bidirectional": True}, "hidden_size 7 must be even"),
        ({"half_width": 0}, "half_width"),
        ({"window": "local"}, "window"),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, object], complaint: str):
    with pytest.raises(ValidationError, match=complaint):
        LuongConfig(**values)  # type: ignore[arg-type]


def test_parts_of_another_model_are_refused():
    model = Luong(LuongConfig(embedding_size=2, hidden_size=2), 5, 5)
    with pytest.raises(TypeError, match="luong: got Memory"):
        model.start(Memory(torch.ones(1, dtype=torch.int64)))
    source, lengths = make_sources((2,))
    memory = model.encode(TokenInputs(source.clamp(max=4), lengths))
    with pytest.raises(TypeError, match="luong: got State"):
        model.step(torch.ones(1, 1, dtype=torch.int64), State(), memory)


@pytest.mark.parametrize("name", ["luong", "luong-bidirectional"])
def test_in_float32_the_fused_path_gives_the_same(name: str):
    model = make_model(changed(CONFIGS[name], dropout=0.0))
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    with torch.no_grad():
        exact = model(TokenInputs(source, lengths), target_in).features
        narrow = model.float()(TokenInputs(source, lengths), target_in).features
    assert float((narrow - exact).abs().max()) <= 1e-5
