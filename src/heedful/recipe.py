"""From files of pairs to a model folder: prepare, choose settings, train, and score once on the test set."""

import json
import shutil
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from heedful.config import Tree, merge, parse_overrides, read_toml, to_toml, validate
from heedful.custom_code import allow_code, named_code
from heedful.data.corpus import find_pairs
from heedful.data.corpus_links import read_linked
from heedful.data.prepare import EvaluationSet, Prepared, Sources, choose_units, link_words, prepare
from heedful.data.pretrained_vectors import SIDES, Pretrained, check_vectors, read_pretrained, vectors_file
from heedful.data.rows import Columns
from heedful.errors import (
    ConfigError,
    DataError,
    EndedElsewhere,
    NewerFormat,
    NonFiniteError,
    ResourceError,
    Stopped,
    UsageError,
)
from heedful.experiment import Experiment, adapt, adapt_units, build_model, has_attention, load_experiment, make_trainer
from heedful.files import written_whole
from heedful.formats import DATA_FORMAT
from heedful.inspection.tensorboard import shown_in_tensorboard
from heedful.models.interface import Seq2Seq
from heedful.models.pretrained import place_vectors
from heedful.pages.training import PAGE, write_training_page
from heedful.runtime.folder import claim
from heedful.text.text_files import language_names
from heedful.text.tokenizer import TextConfig
from heedful.training.distributed import Ranks, joined
from heedful.training.history import History
from heedful.training.lock import locked
from heedful.training.loop import Outcome, Trainer, Validation, Watcher
from heedful.training.step_times import NOT_TIMED, StepTimes
from heedful.translator import Translator, load
from heedful.validation import Validator
from heedful.version import __version__

FREE_ON_RESUME: Final = (
    "training.max_steps",
    "training.max_epochs",
    "training.max_target_tokens",
    "training.max_minutes",
    "training.patience",
    "training.parallel",
    "training.tensorboard",
    "search.",
)
"""Settings that may change when a run goes on; all others would make another model."""
EXPERIMENT: Final = "run/experiment.toml"


@dataclass(frozen=True)
class Recipe:
    """What a person can say about a training run."""

    data: tuple[Path, ...]
    """One TSV or JSONL file of pairs, or two aligned files."""
    out: Path | None = None
    """The model folder; None = named after the data."""
    dev: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    columns: Columns = (1, 2)
    languages: tuple[str, str] = ("", "")
    preset: str = ""
    config: Path | None = None
    settings: tuple[str, ...] = ()
    device: str = "cpu"


@dataclass(frozen=True)
class Started:
    """What is known once data and model are ready, before the first step."""

    folder: Path
    report: tuple[str, ...]
    experiment: Experiment
    num_parameters: int
    num_source_tokens: int
    """Size of the source vocabulary."""
    num_target_tokens: int
    test: EvaluationSet
    """What was held out or given for testing; may be empty."""
    step: int
    """Of the newest checkpoint that is whole, from which training goes on; 0 = it begins."""


def train(
    recipe: Recipe,
    watch: Watcher,
    started: Callable[[Started], None],
    warn: Callable[[str], None],
    times: StepTimes = NOT_TIMED,
) -> Outcome:
    """Train, or go on training, and leave the best model in its folder.

    Where `torchrun` started several processes, each calls this with the same recipe.

    Args:
        recipe: data and settings.
        watch: told how it goes.
        started: told what was found, before the first step; of several processes, the first alone is told anything.
        warn: told what a person should know.
        times: takes the time of every phase.

    Returns:
        How it ended.

    Raises:
        DataError: the data cannot be used.
        ConfigError: a setting is wrong, or the folder holds another run.
        UsageError: another training is at work in the folder, or it holds something else.
        ResourceError: the folder cannot be written, or another process of this training is lost.
        NewerFormat: a newer heedful trained in the folder; all stays as it is.
        Stopped: a signal; everything is saved, and the same call goes on.
        EndedElsewhere: not on the first of several processes, which says what it was.
    """
    with joined(recipe.device) as ranks, ExitStack() as held:
        begun: list[_Begun] = []

        def begin() -> list[float]:
            files = _find(recipe)
            folder = _folder(recipe, files)
            claim(folder)
            held.enter_context(locked(folder / "run"))
            begun.append(_begin(recipe, files, folder))
            return [float(size) for size in begun[0].sizes]

        sizes = ranks.first(begin)
        if ranks.is_first:
            is_wanted = begun[0].experiment.training.tensorboard
            shown = held.enter_context(shown_in_tensorboard(watch, begun[0].folder, is_wanted, warn))
            return _lead(begun[0], ranks, recipe.device, shown, started, warn, times)
        return _follow(_folder(recipe, _find(recipe)), (int(sizes[0]), int(sizes[1])), ranks, recipe.device)


@dataclass(frozen=True)
class _Begun:
    """What the first process found and made before the first step."""

    folder: Path
    prepared: Prepared
    experiment: Experiment
    languages: tuple[str, str]
    validator: Validator
    pretrained: list[Pretrained]

    @property
    def sizes(self) -> tuple[int, int]:
        """Of the vocabularies."""
        return len(self.prepared.source_tokenizer), len(self.prepared.target_tokenizer)


def _begin(recipe: Recipe, files: Sources, folder: Path) -> _Begun:
    _same_data(folder, files)
    suited = _suited(recipe, files)
    given = load_experiment(recipe.preset, recipe.config, recipe.settings, suited)
    check_vectors(given.text)
    _same_experiment(folder, given, "text.")  # before tokenizers are read that would not fit
    prepared = prepare(files, given.text, folder)
    num_tokens = int(prepared.train.target.lengths.sum())
    adapted = merge(suited, adapt(len(prepared.train), num_tokens, given.text))
    adapted["search"] = {"replace_unknown": "dictionary" in prepared.tokenizer_files and has_attention(given)}
    experiment = load_experiment(recipe.preset, recipe.config, recipe.settings, adapted)
    _same_experiment(folder, experiment)
    if experiment.training.alignment_weight:
        prepared = link_words(prepared, folder)
    with written_whole(folder / EXPERIMENT) as stream:
        stream.write(to_toml(experiment))
    languages, pretrained = _languages(recipe), _pretrained(prepared, experiment)
    return _Begun(folder, prepared, experiment, languages, Validator(prepared, experiment, languages[1]), pretrained)


def _lead(
    begun: _Begun,
    ranks: Ranks,
    device: str,
    watch: Watcher,
    started: Callable[[Started], None],
    warn: Callable[[str], None],
    times: StepTimes,
) -> Outcome:
    folder, prepared, experiment = begun.folder, begun.prepared, begun.experiment
    model = build_model(experiment, *begun.sizes)
    place_vectors(model, begun.pretrained)
    facts: dict[str, Any] = {"languages": list(begun.languages), **prepared.tokenizer_files}
    if begun.pretrained:
        facts["vectors"] = {one.side: str(one) for one in begun.pretrained}
    model.to(ranks.device(device))
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    report = (*prepared.report, *(f"{one.side} vectors: {one}" for one in begun.pretrained))
    about = {"kind": experiment.model.kind, "num_parameters": num_parameters, "device": device}
    versions = f"heedful {__version__}, PyTorch {torch.__version__}"
    history = History(folder / "run", 0, {**about, "versions": versions, "report": report})
    followed, corpus = history.watched(watch), prepared.train
    trainer = make_trainer(experiment, model, corpus, folder, facts, begun.validator, followed, warn, ranks, times)
    with _recorded(history, trainer, folder, warn) as outcomes:
        history.step = trainer.resume()
        started(Started(folder, report, experiment, num_parameters, *begun.sizes, prepared.test, history.step))
        outcomes.append(trainer.run())
    return outcomes[0]


@contextmanager
def _recorded(
    history: History, trainer: Trainer, folder: Path, warn: Callable[[str], None]
) -> Generator[list[Outcome]]:
    """Note how training ends, and leave a page about it.

    Raises:
        Stopped: as it came.
        NewerFormat: as it came.
    """
    outcomes: list[Outcome] = []
    try:
        yield outcomes
    except Stopped as error:
        history.end("stopped", trainer.saved_step, str(error))
        raise
    except NewerFormat:  # nothing began, and nothing may change
        raise
    except Exception as error:
        history.end("failed", trainer.saved_step, str(error))
        raise
    else:
        history.end("finished", outcomes[0].step, outcomes[0].reason)
    finally:
        try:
            write_training_page(folder, folder / "run" / PAGE)
        except (NewerFormat, ResourceError, UsageError) as error:
            warn(str(error))


def _follow(folder: Path, sizes: tuple[int, int], ranks: Ranks, device: str) -> Outcome:
    """Train with what the first process left in the folder, and with its weights.

    Raises:
        EndedElsewhere: a signal or a loss that is not finite, of which the first process tells.
    """
    experiment = validate(Experiment, read_toml(folder / EXPERIMENT))
    model = build_model(experiment, *sizes).to(ranks.device(device))
    corpus = read_linked(folder / "run/data")

    def first_does(model: Seq2Seq) -> Validation:
        raise UsageError("train: the first process validates")

    def say_nothing(progress: object) -> None: ...

    try:
        return make_trainer(experiment, model, corpus, folder, {}, first_does, say_nothing, say_nothing, ranks).run()
    except (Stopped, NonFiniteError) as error:  # all know it, and the first says it
        raise EndedElsewhere(error.exit_code) from None


def _folder(recipe: Recipe, files: Sources) -> Path:
    return recipe.out or Path(f"{files.train.name}.model")


def _pretrained(prepared: Prepared, experiment: Experiment) -> list[Pretrained]:
    text, seed = experiment.text, experiment.training.seed
    tokenizers = {"source": prepared.source_tokenizer, "target": prepared.target_tokenizer}
    corpora = {"source": prepared.train.source, "target": prepared.train.target}
    return [
        read_pretrained(text, side, tokenizers[side], corpora[side], seed) for side in SIDES if vectors_file(text, side)
    ]


def _find(recipe: Recipe) -> Sources:
    sides = (recipe.data, recipe.dev, recipe.test)
    train, dev, test = (find_pairs(paths, recipe.columns) if paths else None for paths in sides)
    if train is None:
        raise UsageError("train: no data given; give one file of pairs, or two aligned files")
    return Sources(train, dev, test)


def _suited(recipe: Recipe, files: Sources) -> Tree:
    """What suits the length of the texts, unless the recipe says what a token is."""
    suited = adapt_units(choose_units(files.train, TextConfig().max_characters))
    if not suited:
        return suited
    chosen = load_experiment(recipe.preset, recipe.config, recipe.settings, suited).text
    wanted = suited["text"]
    return suited if (chosen.source_units, chosen.target_units) == tuple(wanted.values()) else {}


def _languages(recipe: Recipe) -> tuple[str, str]:
    guessed = language_names(recipe.data)
    if recipe.columns == (2, 1) and len(recipe.data) == 2:
        guessed = guessed[1], guessed[0]
    return recipe.languages[0] or guessed[0], recipe.languages[1] or guessed[1]


def _same_data(folder: Path, files: Sources) -> None:
    """Refuse to go on with other data than the run began with.

    Raises:
        DataError: the data changed.
    """
    kept = folder / "run" / "data.json"
    parts = {"train": files.train, "dev": files.dev, "test": files.test}
    now = {name: pairs.fingerprint() for name, pairs in parts.items() if pairs}
    if not (folder / EXPERIMENT).is_file():
        # Nothing was trained here: what a refused or interrupted try left of other data or settings must not be used.
        shutil.rmtree(folder / "run" / "data", ignore_errors=True)
        with written_whole(kept) as stream:
            json.dump(DATA_FORMAT.stamp(now), stream, indent=1)
        return
    before = DATA_FORMAT.strip(kept, json.loads(kept.read_text(encoding="utf-8")))
    if changed := sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
        raise DataError(
            f"{folder}: was trained on other data ({', '.join(changed)} changed); "
            "choose another --out, or delete the folder to start over"
        )


def _same_experiment(folder: Path, experiment: Experiment, section: str = "") -> None:
    """Refuse to go on with settings that would make another model than the one begun.

    Raises:
        ConfigError: a setting changed.
    """
    kept = folder / EXPERIMENT
    if not kept.is_file():
        return
    # A run begun before a setting existed has its default.
    begun = validate(Experiment, read_toml(kept))
    before, now = (_leaves(one.model_dump(mode="json")) for one in (begun, experiment))
    for key in sorted(key for key in before.keys() | now.keys() if key.startswith(section)):
        if before.get(key) != now.get(key) and not key.startswith(FREE_ON_RESUME):
            raise ConfigError(
                f"{folder}: holds a run with {key} = {before.get(key)}, not {now.get(key)}; "
                "choose another --out, or delete the folder to start over"
            )


def _leaves(tree: dict[str, Any], path: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        leaves |= _leaves(value, here) if isinstance(value, dict) else {here: value}
    return leaves


def train_model(*data: str | Path, quiet: bool = False, **options: Any) -> Translator:
    """Train a model from Python; `heedful train` with the same words.

    Args:
        data: one TSV or JSONL file of pairs, or two aligned files.
        quiet: whether to print nothing.
        options: fields of `Recipe` by name (out, dev, test, columns, languages, preset, config, device), `minutes`,
            and `settings`, a mapping of dotted keys to values.

    Returns:
        The trained translator.

    Raises:
        UsageError: an option that does not exist.

    Example:
        >>> train_model("pairs.tsv", preset="small", minutes=10)  # doctest: +SKIP
    """
    known = set(Recipe.__dataclass_fields__) - {"data"} | {"minutes"}
    if unknown := options.keys() - known:
        raise UsageError(f"train: no option {sorted(unknown)[0]!r}; known: {', '.join(sorted(known))}")
    settings = [f"{key}={json.dumps(value)}" for key, value in dict(options.pop("settings", {})).items()]
    if minutes := options.pop("minutes", 0):
        settings.append(f"training.max_minutes={float(minutes)}")
    for name in ("dev", "test"):
        given = options.pop(name, ())
        options[name] = tuple(Path(path) for path in ([given] if isinstance(given, str | Path) else given))
    for name in ("out", "config"):
        if name in options:
            options[name] = Path(options[name])
    say = (lambda _text: None) if quiet else print

    def started(facts: Started) -> None:
        for line in facts.report:
            say(line)

    def watch(progress: Any) -> None:
        if progress.validation is not None:
            scores = ", ".join(f"{name} {value:.2f}" for name, value in progress.validation.scores.items())
            say(f"step {progress.step}: {scores}")

    allow_code(named_code(parse_overrides(settings)))
    recipe = Recipe(tuple(Path(path) for path in data), settings=tuple(settings), **options)
    train(recipe, watch, started, say)
    return load(_folder(recipe, _find(recipe)), options.get("device", "cpu"))
