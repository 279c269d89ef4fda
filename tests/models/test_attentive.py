import pytest
import torch
from pydantic import ValidationError

from heedful.models.attentive import AttentiveSeq2Seq, coverage_loss
from heedful.models.inputs import TokenInputs
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from tests.models.tiny import changed, make_model, make_sources, make_targets


def test_coverage_loss_is_the_papers_sum():
    weights = torch.rand(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    real = torch.tensor([[True] * 4, [True, True, False, False]])
    wanted = 0.0
    for row in range(2):
        for t in range(4):
            for j in range(3):
                covered = sum(weights[row, before, j].item() for before in range(t))
                wanted += min(weights[row, t, j].item(), covered) if real[row, t] else 0.0
    assert coverage_loss(weights, real).item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("has_coverage", [False, True])
def test_coverage_loss_is_added_in_training_alone(has_coverage: bool):
    config = changed(RNNsearchConfig(embedding_size=4, hidden_size=5), attention={"hidden_size": 3})
    model = make_model(changed(config, attention={"has_coverage": has_coverage, "coverage_weight": 0.5}))
    assert isinstance(model, AttentiveSeq2Seq)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    real = torch.ones_like(target_in, dtype=torch.bool)
    for is_training in (True, False):
        model.train(is_training)
        decoded = model(TokenInputs(source, lengths), target_in)
        losses = model.extra_losses(decoded, torch.zeros(target_in.shape), real)
        assert set(losses) == ({"coverage"} if is_training else set())
        if is_training:
            weights = decoded.attended["cross"].weights
            assert losses["coverage"].item() == pytest.approx(0.5 * coverage_loss(weights, real).item())


def test_coverage_changes_the_weights_of_later_steps_alone():
    config = RNNsearchConfig(embedding_size=4, hidden_size=5)
    model = make_model(changed(config, attention={"hidden_size": 3, "has_coverage": True}))
    assert isinstance(model, AttentiveSeq2Seq)
    source, lengths = make_sources()
    target_in = make_targets(len(source))

    def weights() -> torch.Tensor:
        return model(TokenInputs(source, lengths), target_in, need=("weights",)).attended["cross"].weights.detach()

    with_coverage = weights()
    assert model.coverage_map is not None
    model.coverage_map.data.zero_()
    without = weights()
    assert torch.allclose(with_coverage[:, 0], without[:, 0], atol=1e-12)
    assert (with_coverage[:3, 1:] - without[:3, 1:]).abs().amax() > 1e-3


@pytest.mark.parametrize("attention", [{"has_coverage": True}, {"coverage_weight": 1.0}])
def test_the_transformer_has_no_coverage(attention: dict[str, object]):
    with pytest.raises(ValidationError, match="coverage is for decoders that attend step by step: rnnsearch"):
        TransformerConfig(attention=attention)  # type: ignore[arg-type]


def test_a_score_without_keys_has_no_coverage():
    with pytest.raises(ValidationError, match="coverage is added to keys, which this score does not read"):
        RNNsearchConfig(attention={"score": "location", "has_coverage": True})  # type: ignore[arg-type]


def test_location_filters_see_the_weights_of_the_step_before_alone():
    model = make_model("rnnsearch-filters")
    assert isinstance(model, AttentiveSeq2Seq)
    assert model.location is not None
    model.location.map.weight.data.mul_(4.0)
    (source, lengths), target_in = make_sources(), make_targets(4)

    def weights() -> torch.Tensor:
        attended = model(TokenInputs(source, lengths), target_in, ("weights",)).attended["cross"].weights
        assert attended is not None
        return attended

    with_filters = weights()
    model.location.map.weight.data.zero_()
    without = weights()
    assert torch.allclose(with_filters[:, 0], without[:, 0], atol=1e-12)
    assert (with_filters[:3, 1:] - without[:3, 1:]).abs().amax() > 1e-3


def test_what_has_no_location_filters_says_so():
    for build, attention, words in (
        (TransformerConfig, {"location_filters": 2}, "location filters are for decoders that attend step by step"),
        (RNNsearchConfig, {"score": "location", "location_filters": 2}, "location filters see is added to keys"),
        (RNNsearchConfig, {"location_filters": 2, "location_width": 4}, "location_width 4: expected an odd number"),
    ):
        with pytest.raises(ValidationError, match=words):
            build(attention=attention)  # type: ignore[arg-type]
