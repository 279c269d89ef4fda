import itertools
from pathlib import Path

import pytest
import torch

from heedful.config.base import Tree, merge, to_toml
from heedful.data.prepare import PronunciationPairs
from heedful.errors import ConfigError
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.table import PRESETS
from heedful.models.transformer import TransformerConfig
from heedful.runs.settings import SettingsLayers
from heedful.tasks.experiment import Experiment, build_model
from heedful.tasks.plan import CorpusSize, adapt, adapt_units
from heedful.tasks.translation import TranslationTask
from tests.requests import load_experiment, make_request

TINY = {
    "transformer": ["model.model_size=8", "model.num_heads=2", "model.feedforward_size=8"],
    "rnnsearch": ["model.kind=rnnsearch", "model.embedding_size=4", "model.hidden_size=5", "model.alignment_size=3"],
}


# -------------------------------------------------------------------------------------------- configuration


def test_the_default_is_the_small_transformer():
    assert load_experiment().model == PRESETS["small"]
    assert load_experiment() == Experiment()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_loads(preset: str):
    assert load_experiment(preset).model == PRESETS[preset]


def test_defaults_then_corpus_then_preset_then_file_then_settings(tmp_path: Path):
    file = tmp_path / "my.toml"
    file.write_text("[model]\nnum_heads = 8\n[training]\npatience = 3\naccumulate = 2\n", encoding="utf-8")
    adapted = {"model": {"dropout": 0.3, "model_size": 64}, "training": {"patience": 99, "clip_norm": 0.5}}
    loaded = load_experiment("tiny", file, ["training.accumulate=4"], adapted)
    assert isinstance(loaded.model, TransformerConfig)
    assert loaded.model.dropout == 0.3  # the corpus's, as nobody else says
    assert loaded.model.model_size == 128  # the preset's
    assert loaded.model.num_heads == 8  # the file's
    assert loaded.training.patience == 3
    assert loaded.training.accumulate == 4  # the setting's
    assert loaded.training.clip_norm == 0.5
    assert loaded.training.label_smoothing == 0.1  # the default


def test_what_a_preset_says_stands_against_the_corpus():
    loaded = load_experiment("rnnsearch-paper", adapted={"model": {"dropout": 0.3}})
    assert loaded.model.dropout == 0.0


def test_asking_for_a_kind_gives_its_middle_preset():
    assert load_experiment(settings=["model.kind=rnnsearch"]).model == RNNsearchConfig()
    assert load_experiment("rnnsearch-tiny", settings=["model.kind=rnnsearch"]).model == PRESETS["rnnsearch-tiny"]


@pytest.mark.parametrize(
    ("preset", "settings", "complaint"),
    [
        ("smal", [], "no such preset; did you mean 'small'"),
        ("tiny", ["model.kind=rnnsearch"], "preset 'tiny' is a transformer; leave one of them out"),
        ("", ["model.kind=rnsearch"], "no model 'rnsearch'; did you mean 'rnnsearch'"),
        ("", ["model.kind=[1]"], r"no model \[1\]"),
        ("", ["model.layers=3"], "model.*layers: unknown key"),
        (
            "",
            ["model.kind=luong", "model.num_heads=2"],
            r"model\.num_heads: unknown key; (?!did you mean 'num_heads')",
        ),
        ("", ["model=3"], "model"),
        ("", ["training.patience=x"], "training.patience"),
        ("", ["training.optimizer.schedule.kind=linear"], "set a limit, such as training.max_steps"),
        ("", ["model.positions=learned", "model.max_positions=100"], "max_positions 100 is below text.max_tokens 250"),
        (
            "image_transformer",
            ["model.layers.positions=learned", "model.layers.max_positions=8"],
            "model.layers.max_positions 8 is below text.max_tokens",
        ),
        ("", ["model.model_size=10"], "not divisible"),
        ("rnn_encoder_decoder", ["training.alignment_weight=1"], "no attention that could be taught"),
        ("luong", ["training.alignment_weight=0.5"], "the window local-p hides"),
        ("luong", ["training.alignment_weight=0.5", "model.window=local-m"], "the window local-m hides"),
        ("", ["training.alignment_weight=-1"], "training.alignment_weight"),
        ("rnnsearch", ["training.alignment_weight=1", "model.attention.score=uniform"], "uniform weights cannot be"),
        *(
            ("image_transformer", ["training.alignment_weight=1", f"model.layers.attention.{setting}"], complaint)
            for setting, complaint in (
                ("normalizer=straight_through", "weights of straight_through may be 0"),
                ("normalizer=sparsemax", "weights of sparsemax may be 0"),
                ("window=local-m", "the window local-m hides"),
                ("score=uniform", "uniform weights cannot be"),
            )
        ),
        ("luong", ["training.soft_start=9"], "no attention but softmax"),
        ("tiny", ["training.mix_share=0.3"], "training.mix_share: no older pairs are mixed in"),
        ("tiny", ["training.soft_start=9"], "no attention but softmax"),
        ("show_attend_tell", ["training.soft_share=0.5"], "no attention but softmax"),
        ("rnn_encoder_decoder", ["training.soft_share=0.5"], "no attention but softmax"),
        ("hierarchical", ["training.soft_share=0.5"], "no attention but softmax"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(preset: str, settings: list[str], complaint: str):
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_experiment(preset, settings=settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["attention", "encoder_attention", "decoder_attention"])
def test_one_attention_that_is_not_softmax_may_start_softly(name: str):
    settings = ["training.soft_start=9", f"model.{name}.normalizer=sparsemax"]
    assert load_experiment("tiny", settings=settings).training.soft_start == 9


def test_guidance_sees_the_attention_of_an_images_transformer():
    settings = ["training.alignment_weight=1", "training.soft_start=9", "model.layers.attention.normalizer=sparsemax"]
    assert load_experiment("image_transformer", settings=settings).guidance.is_for_soft_steps
    assert not load_experiment("image_transformer", settings=settings[:1]).guidance.is_for_soft_steps
    assert load_experiment("syntactic", settings=["training.soft_start=9"]).training.soft_start == 9


@pytest.mark.parametrize("preset", ["tiny", "rnnsearch", "luong"])
def test_alignment_may_be_taught_where_all_words_are_attended(preset: str):
    window = ["model.window=global"] if preset == "luong" else []
    assert load_experiment(preset, settings=["training.alignment_weight=0.5", *window]).training.alignment_weight == 0.5
    assert load_experiment(preset).training.alignment_weight == 0.0


def chosen(num_pairs: int, length: int, *settings: str) -> Tree:
    """Settings by a corpus of pairs of equal lengths."""
    num_tokens = num_pairs * length
    return adapt(CorpusSize(num_pairs, num_tokens, num_tokens), load_experiment(settings=settings))


@pytest.mark.parametrize("name", ["batch_tokens=0", "validate_every=0", "select_by=auto"])
def test_what_is_left_open_is_chosen_from_the_corpus(name: str):
    adapted = chosen(1000, 20)
    loaded = load_experiment(settings=[f"training.{name}"], adapted=adapted)
    assert loaded == load_experiment(adapted=adapted)
    assert loaded.training.batch_tokens > 0
    assert loaded.training.validate_every > 0
    assert loaded.training.select_by == "bleu"


def test_what_is_set_is_not_left_open():
    adapted = chosen(1000, 20)
    loaded = load_experiment(settings=["training.batch_tokens=77", "training.select_by=loss"], adapted=adapted)
    assert (loaded.training.batch_tokens, loaded.training.select_by) == (77, "loss")


@pytest.mark.parametrize("num_pairs", [0, 10, 1000, 30_000, 100_000, 10_000_000])
def test_what_suits_a_corpus_is_a_configuration(num_pairs: int):
    loaded = load_experiment(adapted=chosen(num_pairs, 15))
    assert 512 <= loaded.training.batch_tokens <= 4096
    assert 100 <= loaded.training.validate_every <= 1000


def test_small_corpora_get_more_dropout_and_smaller_batches():
    small, large = (chosen(num, 15) for num in (1000, 10_000_000))
    assert small["model"]["dropout"] > large["model"]["dropout"]
    assert small["training"]["batch_tokens"] < large["training"]["batch_tokens"]


def test_what_selects_a_model_fits_what_a_token_is():
    selected = {
        units: chosen(1000, 12, f"text.target_units={units}")["training"]["select_by"]
        for units in ("pieces", "words", "characters")
    }
    assert selected == {"pieces": "bleu", "words": "token_error_rate", "characters": "character_error_rate"}


def test_a_configuration_survives_its_file(tmp_path: Path):
    loaded = load_experiment("rnnsearch-tiny", settings=["training.optimizer.epsilon=1e-6", "text.normalization=none"])
    (tmp_path / "c.toml").write_text(to_toml(loaded), encoding="utf-8")
    assert load_experiment(file=tmp_path / "c.toml") == loaded


def test_fresh_parameters_are_a_function_of_the_seed():
    one, same, other = (
        build_model(load_experiment(settings=[*TINY["rnnsearch"], f"training.seed={seed}"]), (9, 7, True)).state_dict()
        for seed in (3, 3, 4)
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["encoder.forward_unit.gates_map"], other["encoder.forward_unit.gates_map"])


def test_characters_that_suit_the_corpus_bring_the_model_that_learns_them():
    assert adapt_units("pieces") == {}
    suited = adapt_units("characters")
    loaded = load_experiment(adapted=suited)
    assert (loaded.text.source_units, loaded.text.target_units) == ("characters", "characters")
    assert loaded.model == PRESETS["rnnsearch-tiny"]
    assert load_experiment("tiny", adapted=suited).model == PRESETS["tiny"]
    assert load_experiment(settings=["model.kind=transformer"], adapted=suited).model == PRESETS["small"]
    assert load_experiment(settings=["text.source_units=words"], adapted=suited).text.source_units == "words"


def test_symbols_bring_attention_that_never_goes_back_for_a_number_of_epochs():
    suited = adapt_units("characters", PronunciationPairs(has_spaces=True, are_few=True))
    loaded = load_experiment(adapted=suited)
    assert (loaded.text.source_units, loaded.text.target_units) == ("characters", "words")
    assert (loaded.model.kind, loaded.model) == ("hard_attention", PRESETS["hard_attention-tiny"])
    size = CorpusSize(800, 7_200, 7_600)
    planned = load_experiment(adapted=merge(suited, adapt(size, loaded)))
    assert planned.training.max_epochs == 75
    assert planned.training.optimizer.schedule.kind == "linear"
    assert planned.model.dropout == 0.3
    epochs = [adapt(CorpusSize(n, 9 * n, 9 * n), loaded)["training"]["max_epochs"] for n in (50, 800, 8_000, 10**6)]
    assert epochs == [300, 75, 24, 10]
    limited = load_experiment(settings=["training.max_steps=100"], adapted=suited)
    assert "max_epochs" not in adapt(size, limited)["training"]
    soft = load_experiment(settings=["model.kind=rnnsearch"], adapted=suited)
    assert "max_epochs" not in adapt(size, soft)["training"]


@pytest.mark.parametrize(
    ("phones", "units", "kind"),
    [
        ((True, False), "words", "rnnsearch"),
        ((False, False), "characters", "rnnsearch"),
        ((False, True), "characters", "hard_attention"),
    ],
)
def test_phones_choose_the_tokens_and_their_number_the_model(phones: tuple[bool, bool], units: str, kind: str):
    loaded = load_experiment(adapted=adapt_units("characters", PronunciationPairs(*phones)))
    assert (loaded.text.source_units, loaded.text.target_units, loaded.model.kind) == ("characters", units, kind)


@pytest.mark.parametrize("unit", ["characters", "words", "pieces"])
@pytest.mark.parametrize("phones", [None, PronunciationPairs(True, True), PronunciationPairs(False, False)])
def test_naming_units_chooses_no_other_kind_of_model(unit: str, phones: PronunciationPairs | None):
    suited = adapt_units("characters", phones)
    named = load_experiment(settings=[f"text.source_units={unit}", f"text.target_units={unit}"], adapted=suited)
    assert named.text.target_units == unit
    assert named.model == load_experiment(adapted=suited).model


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.max_steps=x", "training.max_steps: expected a whole number, got 'x'"),
        ("training.max_steps=1.5", "training.max_steps: expected a whole number, got 1.5"),
        ("training.max_steps=-1", "training.max_steps: expected 0 or more, got -1"),
        ("model.dropout=2", "model.dropout: expected less than 1"),
        ("model.dropout='high'", "model.dropout: expected a number, got 'high'"),
        ("text.source_units=x", "text.source_units: expected 'pieces', 'characters' or 'words', got 'x'"),
        ("model=3", "model: expected "),
        ("training.tensorboard=1", "training.tensorboard: expected true or false, got 1"),
        ("text.source_vectors=1", "text.source_vectors: expected a text in quotes, got 1"),
    ],
)
def test_a_wrong_value_is_explained_in_plain_words(setting: str, message: str):
    with pytest.raises(ConfigError) as caught:
        load_experiment(settings=(setting,))
    assert str(caught.value).startswith(message)
    assert "input" not in str(caught.value).lower()
    assert "valid" not in str(caught.value)


def test_a_run_goes_on_with_another_rate_but_not_with_another_batch(tmp_path: Path):
    layers = SettingsLayers(TranslationTask(), make_request(()), earlier=load_experiment())
    linear = [
        "training.optimizer.schedule.kind=linear",
        "training.optimizer.learning_rate=0.002",
        "training.max_steps=9",
    ]
    layers.check_resumable(tmp_path, load_experiment(settings=[*linear, "training.precision=bfloat16"]))
    with pytest.raises(ConfigError, match=r"holds a run with training\.batch_tokens = "):
        layers.check_resumable(tmp_path, load_experiment(settings=["training.batch_tokens=77"]))


@pytest.mark.parametrize("phones", [None, *itertools.starmap(PronunciationPairs, itertools.product([0, 1], repeat=2))])
def test_what_the_units_choose_stays_when_a_run_is_resumed(phones: PronunciationPairs | None, tmp_path: Path):
    earlier = load_experiment(adapted=adapt_units("characters", phones))
    layers = SettingsLayers(TranslationTask(), make_request(()), earlier)
    layers.check_resumable(tmp_path, layers.resolve({}))


@pytest.mark.parametrize(
    ("kind", "rate", "warmup"), [("adam", 1e-3, 40), ("muon", 0.003, 40), ("adadelta", 1.0, 0), ("sgd", 1.0, 0)]
)
def test_a_chosen_rate_is_for_the_optimizer_it_was_chosen_for(kind: str, rate: float, warmup: int):
    chosen = {"kind": "muon", "learning_rate": 0.003, "schedule": {"warmup_steps": 40}}
    settings = [f"training.optimizer.kind={kind}"]
    optimizer = load_experiment(settings=settings, adapted={"training": {"optimizer": chosen}}).training.optimizer
    assert (optimizer.learning_rate, optimizer.schedule.warmup_steps) == (rate, warmup)
    del chosen["kind"]
    chosen["learning_rate"] = 0.004
    settings = ["training.optimizer.kind=sgd"]
    optimizer = load_experiment(settings=settings, adapted={"training": {"optimizer": chosen}}).training.optimizer
    assert optimizer.learning_rate == 1.0
