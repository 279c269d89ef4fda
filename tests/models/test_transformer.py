import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.layers.positions import LearnedPositions
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Memory, State
from heedful.models.transformer import PRESETS, Transformer, TransformerConfig
from tests.models.by_hand import transformer_logits
from tests.models.tiny import changed, make_model, make_sources, make_targets

TINY = TransformerConfig(num_encoder_layers=1, num_decoder_layers=1, model_size=8, num_heads=2, feedforward_size=10)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_layer_of_the_paper_is_its_equations(seed: int):
    config = changed(TINY, norm="post")
    model = make_model(config, seed, is_shared=True)
    source, lengths = make_sources(seed=seed)
    target_in = make_targets(len(source), seed=seed)
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        logits = model.logits(model(TokenInputs(source, lengths), target_in).features).numpy()
    for row, length in enumerate(lengths.tolist()):
        wanted = transformer_logits(
            parameters, source[row, :length].tolist(), target_in[row].tolist(), config.num_heads
        )
        assert np.abs(logits[row] - wanted).max() <= 1e-10


@pytest.mark.parametrize(
    ("tie", "is_shared", "num_tables"),
    [("all", True, 1), ("all", False, 2), ("target", True, 2), ("target", False, 2), ("none", True, 3)],
)
def test_which_tables_are_one(tie: str, is_shared: bool, num_tables: int):
    model = changed(TINY, tie=tie).build(9, 9, is_shared)
    tables = (model.source_embedding.weight, model.target_embedding.weight, model.output.weight)
    assert len({id(table) for table in tables}) == num_tables
    assert (tables[1] is tables[2]) == (tie != "none")


def test_a_tied_table_is_listed_once():
    names = [name for name, _ in TINY.build(9, 9, is_shared=True).named_parameters()]
    assert "source_embedding.weight" in names
    assert not {"target_embedding.weight", "output.weight", "output.bias"} & set(names)


@pytest.mark.parametrize(("norm", "num_final"), [("pre", 2), ("post", 0)])
def test_only_pre_norm_ends_in_a_normalisation(norm: str, num_final: int):
    names = dict(changed(TINY, norm=norm).build(9, 9, is_shared=False).named_parameters())
    assert sum(name in names for name in ("encoder_norm.weight", "decoder_norm.weight")) == num_final


def test_learned_positions_are_apart_for_source_and_target():
    model = changed(TINY, positions="learned", max_positions=20).build(9, 9, is_shared=True)
    assert isinstance(model.source_positions, LearnedPositions)
    assert isinstance(model.target_positions, LearnedPositions)
    assert model.source_positions.weight is not model.target_positions.weight


@pytest.mark.parametrize(("num_layers", "aligning"), [(1, [0]), (2, [0, 1]), (3, [1, 2]), (6, [4, 5])])
def test_the_last_two_layers_together_align(num_layers: int, aligning: list[int]):
    model = changed(TINY, num_decoder_layers=num_layers).build(9, 9, is_shared=True).eval()
    source, lengths = make_sources((3,))
    given = (TokenInputs(source.clamp(max=8), lengths), torch.tensor([[2, 5]]))
    names = {f"decoder.{i}.{kind}" for i in range(num_layers) for kind in ("self", "cross")}
    assert set(model(*given).attended) == names
    attended = model(*given, need=("weights",)).attended
    assert set(attended) == {*names, model.alignment}
    weights = [attended[f"decoder.{layer}.cross"].weights for layer in aligning]
    assert torch.allclose(attended[model.alignment].weights, sum(weights) / len(weights))


@pytest.mark.parametrize(("preset", "millions"), [("base", 63.0), ("big", 213.0)])
def test_the_papers_parameter_counts(preset: str, millions: float):
    # Table 3: 65 and 213 million with the 37,000 shared pieces of English-German; its formulas give 63 for base.
    config = TransformerConfig(**(PRESETS[preset].model_dump() | {"norm": "post"}))
    with torch.device("meta"):
        model = config.build(37_000, 37_000, is_shared=True)
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(1e6 * millions, rel=0.01)


@pytest.mark.parametrize("dropout", ["dropout", "attention_dropout", "feedforward_dropout"])
def test_each_dropout_is_of_training_alone(dropout: str):
    model = make_model(changed(TINY, **({"dropout": 0.0} | {dropout: 0.5})))
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    with torch.no_grad():
        whole = model(TokenInputs(source, lengths), target_in).features
        assert torch.equal(model(TokenInputs(source, lengths), target_in).features, whole)
        assert not torch.equal(model.train()(TokenInputs(source, lengths), target_in).features, whole)


@pytest.mark.parametrize("values", [{"model_size": 9, "num_heads": 2}, {"model_size": 9, "num_heads": 9}])
def test_sizes_that_do_not_fit_are_refused(values: dict[str, int]):
    with pytest.raises(ValidationError, match=r"not divisible|must be even"):
        TransformerConfig(**values)  # type: ignore[arg-type]


def test_parts_of_another_model_are_refused():
    model = TINY.build(9, 9, is_shared=True)
    assert isinstance(model, Transformer)
    with pytest.raises(TypeError, match="transformer: got State and Memory"):
        model.step(torch.ones(1, 1, dtype=torch.int64), State(), Memory(torch.ones(1, dtype=torch.int64)))
