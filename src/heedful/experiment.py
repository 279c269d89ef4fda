"""One run as one value: model, text, training and search; built, saved, loaded and run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self

import torch
from pydantic import model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from heedful.config import Config, Tree, merge, parse_overrides, read_toml, to_toml, validate
from heedful.custom_code import is_custom, named_code
from heedful.data.encoded import EncodedCorpus
from heedful.errors import ConfigError, FileRefused, ResourceError, did_you_mean
from heedful.export.marian import read_marian
from heedful.files import sync, write_through, written_whole
from heedful.formats import KEY
from heedful.models.attention_config import AttentionConfig, build_normalizer, upgrade_attention
from heedful.models.interface import Seq2Seq
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.table import DEFAULT_PRESET, MODELS, PRESETS, AnyModelConfig, ModelConfig, model_class
from heedful.models.transformer import TransformerConfig
from heedful.runtime.folder import CONFIG, MANIFEST, ModelFolder, commit, open_folder
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import TextConfig, Units
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Ranks
from heedful.training.loop import Trainer, Validation, Watcher
from heedful.training.precision import resolve_precision
from heedful.training.step_times import NOT_TIMED, StepTimes
from heedful.version import __version__

LEFT_OPEN: Final[Mapping[str, int | str]] = {"batch_tokens": 0, "validate_every": 0, "select_by": "auto"}
"""Settings of training, and the values by which a person leaves them to `adapt`."""


class Experiment(Config):
    """Everything that decides what a run does, beside its data."""

    model: ModelConfig = TransformerConfig()
    text: TextConfig = TextConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()

    @model_validator(mode="after")
    def _check_positions(self) -> Self:
        model, most = self.model, self.text.max_tokens
        if isinstance(model, TransformerConfig) and model.positions == "learned" and model.max_positions < most:
            raise ValueError(f"model.max_positions {model.max_positions} is below text.max_tokens {most}; raise it")
        if self.training.alignment_weight and (reason := _why_not_guided(model)):
            raise ValueError(f"training.alignment_weight: {reason}; leave it at 0")
        return self


def _why_not_guided(model: AnyModelConfig) -> str:
    if isinstance(model, RNNEncoderDecoderConfig):
        return f"a {model.kind} has no attention that could be taught"
    attention = getattr(model, "attention", None)
    if not isinstance(attention, AttentionConfig):
        return ""
    if attention.window != "global":
        return f"the window {attention.window} hides most words, so links cannot be taught"
    normalizer = build_normalizer(attention)
    if normalizer.weights_lie_in != "simplex" or "log_normalizer" not in normalizer.provides:
        return f"weights of {attention.normalizer} may be 0, and links are taught by their logarithms"
    return ""


def load_experiment(
    preset: str = "", file: Path | None = None, settings: Sequence[str] = (), adapted: Mapping[str, Any] | None = None
) -> Experiment:
    """Assemble a configuration: defaults < what suits the corpus < preset < file < settings.

    Args:
        preset: name of model sizes; empty = "small", or the first of the kind that file or settings name.
        file: TOML.
        settings: each ``dotted.key=value``.
        adapted: values chosen from the corpus, of keys that nobody set.

    Returns:
        The configuration, fully resolved.

    Raises:
        ConfigError: an unknown preset or key, or a bad value.
    """
    if preset and preset not in PRESETS:
        raise ConfigError(f"--preset {preset}: no such preset{did_you_mean(preset, PRESETS)}")
    given = merge(*(upgraded(tree) for tree in (read_toml(file) if file else {}, parse_overrides(settings))))
    if isinstance(training := given.get("training"), dict):
        given["training"] = {key: value for key, value in training.items() if not _is_left_open(key, value)}
    chosen = _preset_tree(preset, given, adapted or {})
    suited = {**(adapted or {}), "model": _of_kind((adapted or {}).get("model", {}), chosen["model"]["kind"])}
    return validate(Experiment, merge(merge(suited, chosen), given))


def upgraded(tree: Tree) -> Tree:
    """Bring keys of older configurations to where they are now; models do so with stored ones by themselves.

    Args:
        tree: of a configuration, or a part of one.

    Returns:
        The same in today's keys.
    """
    return {**tree, "model": upgrade_attention(tree["model"])} if "model" in tree else tree


def _is_left_open(key: str, value: object) -> bool:
    return not isinstance(value, bool) and key in LEFT_OPEN and value == LEFT_OPEN[key]


def _of_kind(suited: Tree, kind: str) -> Tree:
    """Keep what a kind of model has; a table is of the kind that it was chosen for."""
    known = model_class(kind).model_fields
    is_same = suited.get("kind", kind) == kind
    return {key: value for key, value in suited.items() if key in known and (is_same or not isinstance(value, dict))}


def _preset_tree(preset: str, given: Tree, adapted: Mapping[str, Any]) -> Tree:
    """Give what the preset sets; where another kind of model is asked for, the middle preset of that kind.

    The kind that suits the corpus counts where neither preset nor kind was given, nor settings that it has not.

    Raises:
        ConfigError: no such kind, or the preset is of another kind.
    """
    kind = given.get("model", {}).get("kind") if isinstance(given.get("model"), dict) else None
    if is_custom(str(kind)) and not preset:
        return {"model": {"kind": kind}}
    if kind is not None and str(kind) not in MODELS:
        raise ConfigError(f"model.kind: no model {kind!r}{did_you_mean(str(kind), MODELS)}")
    if not preset:
        wanted = _suited_kind(given, adapted) if kind is None else kind
        preset = DEFAULT_PRESET if wanted == "transformer" else str(wanted)
    config = PRESETS[preset]
    if kind is not None and kind != config.kind:
        raise ConfigError(f"model.kind: {kind!r}, but preset {preset!r} is a {config.kind}; leave one of them out")
    return {"model": config.model_dump(mode="json", exclude_unset=True) | {"kind": config.kind}}


def _suited_kind(given: Tree, adapted: Mapping[str, Any]) -> str:
    """The kind that suits the corpus, if it has all that was set by hand; else the default one."""
    suited = str(adapted.get("model", {}).get("kind", "transformer"))
    set_by_hand = given.get("model", {})
    has_all = isinstance(set_by_hand, dict) and set_by_hand.keys() <= MODELS[suited].model_fields.keys()
    return suited if has_all else "transformer"


def adapt_units(units: Units) -> Tree:
    """Choose what suits tokens of a kind: short items of characters go to a small recurrent network.

    They are rewritten from left to right, mostly, which it learns several times sooner than a Transformer.

    Args:
        units: what a token is where nobody says.

    Returns:
        Values for `load_experiment`.
    """
    if units != "characters":
        return {}
    sizes = PRESETS["rnnsearch-tiny"].model_dump(mode="json", exclude_unset=True)
    return {"text": {"source_units": units, "target_units": units}, "model": {**sizes, "kind": "rnnsearch"}}


def adapt(num_pairs: int, num_target_tokens: int, text: TextConfig) -> Tree:
    """Choose what suits a corpus: the smaller it is, the smaller the batches and the larger the dropout.

    Args:
        num_pairs: for training.
        num_target_tokens: of all of them, eos included.
        text: how text becomes ids.

    Returns:
        Values for `load_experiment`.
    """
    dropout = 0.3 if num_pairs < 50_000 else 0.2 if num_pairs < 500_000 else 0.1
    if text.target_units == "characters":
        dropout = 0.1  # a few dozen tokens are learned from far fewer pairs than thousands of pieces
    batch_tokens = max(512, min(4096, num_target_tokens // 220 // 64 * 64))
    steps_per_epoch = max(1, num_target_tokens // batch_tokens)
    # Of characters without spaces, a whole output is one token: an error rate of tokens would see no progress at first.
    select_by = {"pieces": "bleu", "words": "token_error_rate", "characters": "chrf"}[text.target_units]
    return {
        "model": {"dropout": dropout},
        "training": {
            "batch_tokens": batch_tokens,
            "validate_every": max(100, min(1000, steps_per_epoch)),
            "select_by": select_by,
            "optimizer": {"schedule": {"warmup_steps": max(400, min(4000, 2 * steps_per_epoch))}},
        },
    }


def has_attention(experiment: Experiment) -> bool:
    """Say whether a model attends to its source.

    Args:
        experiment: what to build.

    Returns:
        Whether its outputs can be aligned.
    """
    return not isinstance(experiment.model, RNNEncoderDecoderConfig)


def build_model(experiment: Experiment, num_source_tokens: int, num_target_tokens: int) -> Seq2Seq:
    """Make the model with fresh parameters, a function of the seed.

    Args:
        experiment: what to build.
        num_source_tokens: size of the source vocabulary.
        num_target_tokens: size of the target vocabulary.

    Returns:
        The model.
    """
    torch.manual_seed(experiment.training.seed)
    return experiment.model.build(num_source_tokens, num_target_tokens, experiment.text.is_shared)


def save_model(folder: Path, experiment: Experiment, weights: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Make a folder that holds tokenizers a model, or give the model in it new weights.

    Args:
        folder: the model's folder.
        experiment: written as config.toml, every value resolved.
        weights: by parameter name.
        facts: what `heedful.json` should say: languages, tokenizers.

    Raises:
        ResourceError: the disk is full or refuses; the model that was there is untouched.
    """
    temporary = folder / ".weights.safetensors"
    try:
        temporary.unlink(missing_ok=True)
        content = save({name: tensor.detach().contiguous().cpu() for name, tensor in weights.items()})
        write_through(temporary, content)
        name = f"model-{sha256(content).hexdigest()[:8]}.safetensors"
        temporary.replace(folder / name)
        _write_config(folder, to_toml(experiment))
        sync(folder)
        roles = ("source_tokenizer", "target_tokenizer", "dictionary")
        text_files = {str(facts[role]) for role in roles if role in facts}
        code = sorted(named_code(experiment.model.model_dump()))
        needed = {"code": code} if code else {}
        about = {"heedful": __version__, "kind": experiment.model.kind, **facts, **needed, "weights": name}
        commit(folder, about, [CONFIG, name, *sorted(text_files)])
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        raise ResourceError(f"{folder}: model not saved: {error}") from None
    with suppress(OSError):  # what stays is in nobody's way
        for old in folder.glob("model-*.safetensors"):
            if old.name != name:
                old.unlink()


def _write_config(folder: Path, text: str) -> None:
    """Give a model another config.toml; where training goes on, only settings that do not change the model differ."""
    path = folder / CONFIG
    if path.is_file() and path.read_bytes() == text.encode():
        return
    if (folder / MANIFEST).is_file():
        # Two files cannot change at one instant: until the next commit the model is whole with either config.
        with suppress(FileRefused):  # a damaged one has nothing to lose
            before = open_folder(folder).facts
            names = [name for name in before["files"] if name != CONFIG]
            commit(folder, {key: value for key, value in before.items() if key not in (KEY, "files")}, names)
    with written_whole(path) as stream:
        stream.write(text)


def load_model(folder: ModelFolder, num_source_tokens: int, num_target_tokens: int, device: str = "cpu") -> Seq2Seq:
    """Load the PyTorch model of a folder.

    Args:
        folder: verified.
        num_source_tokens: size of the source vocabulary.
        num_target_tokens: size of the target vocabulary.
        device: where to.

    Returns:
        The model in evaluation mode.

    Raises:
        FileRefused: the weights do not fit the configuration.
    """
    experiment = validate(Experiment, read_toml(folder.path / CONFIG))
    path = folder.file("weights")
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise FileRefused(f"{path}: not readable: {error}") from None
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        model = build_model(experiment, num_source_tokens, num_target_tokens)
    wanted = {name: (parameter.shape, parameter.dtype) for name, parameter in model.named_parameters()}
    held = {name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()}
    if wanted != held:
        wrong = sorted(name for name in wanted.keys() | held.keys() if wanted.get(name) != held.get(name))
        raise FileRefused(f"{path}: does not fit {folder.path / MANIFEST}: {', '.join(wrong[:3])}")
    # The caller's random numbers are none of a model's that is only loaded.
    with torch.random.fork_rng(devices=[]):
        model = build_model(experiment, num_source_tokens, num_target_tokens)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])  # into aligned memory: what is mapped gives other last bits
    return model.to(device).eval()


def make_trainer(
    experiment: Experiment,
    model: Seq2Seq,
    corpus: EncodedCorpus,
    folder: Path,
    facts: Mapping[str, Any],
    validate_model: Callable[[Seq2Seq], Validation],
    watch: Watcher,
    warn: Callable[[str], None],
    ranks: Ranks | None = None,
    times: StepTimes = NOT_TIMED,
) -> Trainer:
    """Prepare a training that keeps the best model in a folder all along.

    Args:
        experiment: fully resolved.
        model: fresh, on its device.
        corpus: training pairs.
        folder: the model's folder; checkpoints go to `run` in it, and are gone on from.
        facts: what `heedful.json` should say: languages, tokenizers.
        validate_model: gives scores.
        watch: told how it goes.
        warn: told what a person should know.
        ranks: the processes that train together; None = this one alone.
        times: takes the time of every phase.

    Returns:
        The trainer, before its first step.
    """
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    device = next(model.parameters()).device
    precision = resolve_precision(experiment.training.precision, device, num_parameters)
    return Trainer(
        model,
        validate(TrainingConfig, experiment.training.model_dump(mode="json") | {"precision": precision}, "training"),
        corpus,
        folder / "run",
        validate_model,
        lambda weights: save_model(folder, experiment, weights, facts),
        watch,
        warn,
        ranks,
        times,
    )


def import_marian(source: Path, folder: Path, languages: tuple[str, str] = ("", "")) -> Experiment:
    """Make a model folder of a Marian model in Hugging Face's layout; see `heedful.export.marian`.

    Args:
        source: their folder; left as it is.
        folder: where the model goes; made if need be.
        languages: codes of source and target; empty = what their folder says.

    Returns:
        The model's configuration.

    Raises:
        UsageError: there is no such folder, or it holds no model.
        FileRefused: a file of it is missing, damaged, unsafe or does not fit the others.
        ResourceError: the disk is full or refuses.
    """
    read = read_marian(source)
    experiment = Experiment(
        model=read.config,
        text=TextConfig(normalization="none", max_tokens=read.max_tokens, shared=read.config.tie == "all"),
        search=SearchConfig(beam=read.num_beams),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {
            "source_tokenizer": read.source_tokenizer.save(folder, "source"),
            "target_tokenizer": read.target_tokenizer.save(folder, "target"),
        }
    except OSError as error:
        raise ResourceError(f"{folder}: model not saved: {error}") from None
    save_model(
        folder, experiment, read.weights, {"languages": list(languages if any(languages) else read.languages), **files}
    )
    return experiment
