"""The configuration of attention: defaults, older keys, refusals; and every mechanism trains in every model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.attention.biases import BIASES, Biased, RelativeBuckets, RelativeKeys
from heedful.attention.interface import Normalized, Normalizer
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.attention.softmax import SOFTMAX
from heedful.attention.stochastic import GumbelSoftmax, Hard, Sampled
from heedful.config.base import read_toml, to_toml, validate
from heedful.errors import ConfigError
from heedful.models.attention_config import AttentionConfig, build_normalizer, build_score, is_scaled_dot_softmax
from heedful.models.inputs import TokenInputs
from heedful.models.luong import LuongConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.table import PRESETS
from heedful.models.transformer import TransformerConfig
from heedful.tasks.experiment import Experiment
from tests.models.tiny import CONFIGS, changed, make_model, make_sources, make_targets
from tests.prove.mechanisms import (
    MODELS,
    VARIANTS,
    WINDOWS,
    Combination,
    combinations,
    complaint,
    find_attention,
)
from tests.requests import load_experiment
from tests.thorough import sampled

STORED = Path(__file__).with_name("stored")


# ------------------------------------------------------------------------------------------------ keys and defaults
def test_each_model_has_the_attention_of_its_paper():
    attention = {kind: type(config)().attention for kind, config in PRESETS.items() if hasattr(config, "attention")}
    assert {(a.score, a.normalizer, a.window) for a in (attention["small"], attention["base"])} == {
        ("scaled_dot", "softmax", "global")
    }
    assert (attention["rnnsearch"].score, attention["rnnsearch"].window) == ("additive", "global")
    assert (attention["luong"].score, attention["luong"].window) == ("general", "local-p")


def test_what_is_not_said_stays_the_models_own():
    model = load_experiment("luong", settings=["model.attention.normalizer=sparsemax"]).model
    assert isinstance(model, LuongConfig)
    assert (model.attention.score, model.attention.window) == ("general", "local-p")
    model = load_experiment("rnnsearch-tiny", settings=["model.attention.normalizer=entmax"]).model
    assert isinstance(model, RNNsearchConfig)
    assert (model.attention.score, model.attention.hidden_size) == ("additive", 128)


@pytest.mark.parametrize(
    ("name", "attention", "settings"),
    [
        (
            "luong",
            {"score": "concat", "hidden_size": 300, "window": "local-m", "half_width": 4, "past_source": "last"},
            ["model.attention.score=concat", "model.attention.hidden_size=300", "model.attention.window=local-m"],
        ),
        ("rnnsearch", {"score": "additive", "hidden_size": 96, "window": "global"}, ["model.attention.hidden_size=96"]),
        ("transformer", {"score": "scaled_dot", "normalizer": "softmax"}, []),
    ],
)
def test_a_stored_configuration_of_before_is_read(name: str, attention: dict[str, object], settings: list[str]):
    stored = validate(Experiment, read_toml(STORED / f"{name}.toml"))
    model = stored.model
    assert isinstance(model, LuongConfig | RNNsearchConfig | TransformerConfig)
    assert {key: getattr(model.attention, key) for key in attention} == attention
    again = validate(Experiment, load_experiment("", STORED / f"{name}.toml", settings).model_dump(mode="json"))
    assert again == stored
    assert "alignment_size" not in to_toml(stored)


def test_an_older_key_on_the_command_line_does_what_it_did():
    old = ["model.score=dot", "model.window=local-m", "model.half_width=3", "model.alignment_size=7"]
    new = ["score=dot", "window=local-m", "half_width=3", "hidden_size=7"]
    assert load_experiment("luong", settings=old) == load_experiment(
        "luong", settings=[f"model.attention.{each}" for each in new]
    )
    assert load_experiment("rnnsearch-tiny", settings=["model.alignment_size=64"]) == load_experiment(
        "rnnsearch-tiny", settings=["model.attention.hidden_size=64"]
    )


# ------------------------------------------------------------------------------------------------ refusals
REFUSED: dict[str, tuple[str, list[str], str]] = {
    "no such score": ("luong", ["score=generall"], "no score 'generall'; did you mean 'general'"),
    "no such normalizer": ("luong", ["normalizer=softmacks"], "no normalizer 'softmacks'; did you mean 'softmax'"),
    "sizes": ("rnnsearch", ["score=dot"], "query size 384 and key size 768 differ"),
    "no gradient": ("luong", ["normalizer=hard"], "no gradient reaches the score"),
    "a tree of a decoder": (
        "luong",
        ["normalizer=projective_tree"],
        "a tree needs queries and keys that are the same words",
    ),
    "heads": ("small", ["window=local-p"], "local-p predicts its centre from the state of a recurrent decoder"),
    "no such setting": ("luong", ["normalizer=linear_chain", "temperature=0.5"], "linear_chain has no temperature"),
    "not above 0": ("luong", ["temperature=0"], "expected more than 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_is_refused_in_one_line(case: str):
    preset, settings, reason = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        load_experiment(preset, settings=[f"model.attention.{each}" for each in settings])
    message = str(caught.value)
    assert reason in message
    assert message.startswith("model")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["encoder_attention.normalizer=sampled"], "encoder_attention: scaled_dot with sampled: drawn keys of self"),
        (
            ["decoder_attention.normalizer=projective_tree"],
            "decoder_attention: scaled_dot with projective_tree: a tree",
        ),
    ],
)
def test_self_attention_is_refused_by_its_name(settings: list[str], reason: str):
    with pytest.raises(ConfigError, match=reason):
        load_experiment("small", settings=[f"model.{each}" for each in settings])


def test_links_are_taught_to_weights_above_zero_alone():
    taught = ["training.alignment_weight=0.1", "model.attention.normalizer=sparsemax"]
    with pytest.raises(ConfigError, match="weights of sparsemax may be 0"):
        load_experiment("rnnsearch", settings=taught)


def test_a_check_draws_no_random_number():
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    AttentionConfig(score="concat")
    load_experiment("rnnsearch", settings=["model.attention.score=concat"])
    assert torch.equal(torch.rand(1), wanted)


# ------------------------------------------------------------------------------------------------ parts
def test_a_normalizer_gets_the_settings_that_it_has():
    entmax = build_normalizer(AttentionConfig(normalizer="entmax", alpha=1.25, temperature=2.0))
    assert (entmax.alpha, entmax.temperature) == (1.25, 2.0)  # type: ignore[attr-defined]
    gumbel = build_normalizer(AttentionConfig(normalizer="gumbel_softmax", is_hard=True))
    assert isinstance(gumbel, GumbelSoftmax)
    assert gumbel.is_hard


@pytest.mark.parametrize("score", SCORES)
def test_projections_let_every_score_compare_any_sizes(score: str):
    made = build_score(AttentionConfig(score=score, projection_size=4), 3, 5)
    query, key = torch.randn(1, 2, 3), torch.randn(1, 6, 5)
    lowered = made.lower(query, made.prepare(key))
    assert lowered.query.shape[:2] == (1, 2)
    assert lowered.key.shape[-2] == 6


def test_fused_operations_are_for_the_papers_attention():
    assert is_scaled_dot_softmax(AttentionConfig())
    for settings in (
        {"score": "dot"},
        {"normalizer": "sparsemax"},
        {"window": "local-m"},
        {"temperature": 2.0},
        {"projection_size": 3},
    ):
        assert not is_scaled_dot_softmax(AttentionConfig(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("normalizer", ["sampled", "gumbel_softmax"])
def test_inference_leaves_nothing_to_chance_and_training_repeats_from_a_seed(normalizer: str):
    model = make_model(changed(CONFIGS["rnnsearch"], dropout=0.0, attention={"normalizer": normalizer}))
    source, lengths = make_sources()
    target_in = make_targets(len(source))

    def features(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(TokenInputs(source, lengths), target_in).features.detach()

    assert torch.equal(features(1), features(2))
    model.train()
    assert torch.equal(features(1), features(1))
    assert not torch.equal(features(1), features(2))


# ------------------------------------------------------------------------------------------------ training
ONE_STEP = [
    each
    for each in combinations()
    if (each.window == "global" and (each.variant == "softmax" or each.score == "general"))
    or (each.score == "general" and each.variant in {"softmax", "sampled"})
]
FALLING = [
    Combination("RNNsearch", "additive", "sampled", "global"),
    Combination("RNNsearch", "dot", "gumbel_softmax", "local-p"),
    Combination("Luong", "general", "sampled", "local-p"),
    Combination("Luong", "general", "monotonic", "global"),
    Combination("Luong", "gaussian", "straight_through", "local-m"),
    Combination("Transformer, attention", "additive", "sparsemax", "global"),
    Combination("Transformer, attention", "scaled_dot", "sampled", "global"),
    Combination("Transformer, encoder_attention", "general", "projective_tree", "global"),
]


@sampled(3)
@pytest.mark.parametrize("model", MODELS)
def test_one_step_of_each_or_a_refusal(model: str):
    chosen = [each for each in ONE_STEP if each.model == model]
    assert len(chosen) > 20
    complaints: list[str] = []
    for each in chosen:
        if reason := each.refusal():
            assert "\n" not in reason
            continue
        made = each.build()
        if found := complaint(made, each.score, find_attention(made, each), num_steps=1):
            complaints.append(f"{each}: {found}")
    assert complaints == []


@sampled(3)
@pytest.mark.parametrize("combination", FALLING, ids=str)
def test_fifty_steps_learn(combination: Combination):
    assert not combination.refusal()
    model = combination.build()
    assert complaint(model, combination.score, find_attention(model, combination)) == ""


def test_what_is_refused_is_what_has_no_gradient_or_no_such_nodes():
    by_variant = {
        (each.model, each.variant): bool(each.refusal()) for each in combinations() if each.score == "general"
    }
    for (model, variant), is_refused in by_variant.items():
        is_self = "encoder" in model or "decoder" in model
        wanted = (
            variant in ("hard", "hard_monotonic")
            or (variant == "monotonic" and (is_self or "Transformer" in model))
            or (variant == "projective_tree" and "encoder" not in model)
            or (variant == "sampled" and is_self)
        )
        assert is_refused == wanted, (model, variant)
    assert {variant for _, variant in by_variant} == VARIANTS.keys()
    assert set(WINDOWS) == {"global", "local-m", "local-p"}


@dataclass(frozen=True, eq=False)
class Planted(Normalizer):
    """A softmax with a fault."""

    fault: Callable[[Tensor], Tensor] = lambda weights: weights

    provides = frozenset({"weights"})
    weights_lie_in = "simplex"

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def normalize(self, scores: Tensor, allowed: Tensor | None, row_ids: Tensor | None = None) -> Normalized:
        return Normalized(self.fault(SOFTMAX.normalize(scores, allowed).weights))


def with_nan_gradient(weights: Tensor) -> Tensor:
    return weights + (weights - weights.detach()).clamp(min=0).sqrt() * 0.0


FAULTS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "no gradient": (lambda weights: weights.detach(), "zero|no gradient"),
    "a gradient that is not a number": (with_nan_gradient, "not finite"),
    "weights that are not numbers": (lambda weights: weights / (weights.detach() * 0.0), "not finite"),
}


@pytest.mark.parametrize("model", ["RNNsearch", "Luong", "Transformer, attention"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_normalizer_is_found(model: str, fault: str, monkeypatch: pytest.MonkeyPatch):
    function, reason = FAULTS[fault]
    monkeypatch.setitem(NORMALIZERS, "softmax", lambda: Planted(function))  # type: ignore[arg-type]
    combination = Combination(model, "general", "softmax", "global")
    made = combination.build()
    found = complaint(made, "general", find_attention(made, combination), num_steps=3)
    assert any(word in found for word in reason.split("|")), found


def test_without_a_fault_the_planted_one_is_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(NORMALIZERS, "softmax", lambda: Planted())  # type: ignore[arg-type]
    combination = Combination("RNNsearch", "general", "softmax", "global")
    made = combination.build()
    assert complaint(made, "general", find_attention(made, combination)) == ""


def test_a_score_that_reads_no_query_is_found():
    combination = Combination("RNNsearch", "uniform", "softmax", "global")
    made = combination.build()
    assert "gradient" in complaint(made, "general", find_attention(made, combination), 2)


def test_sampled_is_hard_at_inference():
    assert isinstance(Sampled().without_noise(), Hard)
    assert GumbelSoftmax(temperature=0.5).without_noise().inverse_temperature == 2.0


# ------------------------------------------------------------------------------------------------ biases by positions
@pytest.mark.parametrize("bias", BIASES)
def test_a_bias_is_built_for_its_role(bias: str):
    config = AttentionConfig(bias=bias)
    encoder, decoder = (build_score(config, 8, 8, 2, role) for role in ("encoder", "decoder"))
    for score, is_causal in ((encoder, False), (decoder, True)):
        assert isinstance(score, Biased)
        assert isinstance(score.bias, BIASES[bias])
        assert score.bias.is_causal == is_causal
        assert score.bias.num_heads == 2
    assert not is_scaled_dot_softmax(config)


def test_settings_of_a_bias():
    buckets = build_score(AttentionConfig(bias="relative_buckets", num_buckets=8, max_distance=20), 8, 8, 2, "encoder")
    assert isinstance(buckets, Biased)
    assert isinstance(buckets.bias, RelativeBuckets)
    assert (buckets.bias.max_distance, buckets.bias.weight.shape) == (20, (8, 2))
    keys = build_score(AttentionConfig(bias="relative_keys"), 8, 8, 2, "encoder")
    assert isinstance(keys, Biased)
    assert isinstance(keys.bias, RelativeKeys)
    assert keys.bias.max_distance == 16


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"attention": {"bias": "alibi"}}, "attention: scaled_dot with alibi with softmax: a bias by positions needs"),
        ({"encoder_attention": {"bias": "alibi", "max_distance": 3}}, "the bias alibi has no max_distance"),
        ({"encoder_attention": {"num_buckets": 3}}, "the bias none has no num_buckets"),
        ({"encoder_attention": {"bias": "alib"}}, "no bias 'alib'; did you mean 'alibi'"),
        ({"decoder_attention": {"bias": "relative_buckets", "max_distance": 2}}, "must be fewer than the largest"),
    ],
)
def test_biases_that_cannot_be_trained_are_refused(table: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        validate(TransformerConfig, table, "test")


def test_a_bias_is_for_self_attention():
    for config in (RNNsearchConfig, LuongConfig):
        with pytest.raises(ConfigError, match="needs queries and keys of one sequence"):
            validate(config, {"attention": {"bias": "relative_keys"}}, "test")
