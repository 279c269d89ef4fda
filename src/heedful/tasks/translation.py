"""Translation and similar tasks: pairs of texts, learned by a sequence-to-sequence model."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
from torch import nn

from heedful.config.base import Tree, merge
from heedful.data.batch import Sampler
from heedful.data.batching import PairSampler, pairs_by_length
from heedful.data.check import check_corpus
from heedful.data.corpus import PairFile, find_pairs
from heedful.data.corpus_links import read_linked
from heedful.data.corrected_links import CorrectedLinks
from heedful.data.corrections import NAME as CORRECTIONS
from heedful.data.corrections import CorrectionJournal
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.kept_kinds import kept_kinds
from heedful.data.learned_corrections import LEARNED
from heedful.data.mixing import MIX, MixedSampler, held_out_sources, store_mix
from heedful.data.noise import Noise
from heedful.data.prepare import (
    PREPARED,
    EvaluationSet,
    PreparedPairs,
    Sources,
    choose_units,
    find_pronunciations,
    link_words,
    prepare,
)
from heedful.data.prepared_files import read_prepared
from heedful.data.prepared_tokenizers import load_tokenizers
from heedful.data.pretrained_vectors import SIDES, Pretrained, check_vectors, read_pretrained, vectors_file
from heedful.data.random_changes import RandomChanges
from heedful.data.resegmentation import Resegmentation
from heedful.data.sentence_counts import final_marks, opening_words, usual_characters, usual_sentences
from heedful.data.term_offers import TermOffers
from heedful.data.term_pairs import read_terms, store_terms
from heedful.data.word_tables import store_word_tables
from heedful.engines.engine import decode_sorted
from heedful.errors import ConfigError, UsageError
from heedful.evaluation.evaluate import quick_scores
from heedful.evaluation.metrics.table import METRICS, metric_directions, quick_metrics
from heedful.evaluation.summaries import longest_summary
from heedful.models.attention_config import AttentionConfig
from heedful.models.device_memory import as_memory_allows
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.models.pretrained import place_vectors
from heedful.predictors.interface import spaced
from heedful.predictors.source_columns import COLUMNS, DIVIDES
from heedful.search.config import SearchConfig
from heedful.tasks.advice import expectation, reasons
from heedful.tasks.experiment import Experiment, has_attention
from heedful.tasks.interface import DataPaths, Prepared, Task
from heedful.tasks.plan import SPARE_TOKENS, CorpusSize, adapt, adapt_summaries, adapt_units
from heedful.tasks.throughput import Throughput
from heedful.text.counts import counted
from heedful.text.encoding import encode_source
from heedful.text.piece_splits import piece_splits
from heedful.text.pronunciations import has_ipa
from heedful.text.text_files import language_names
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS
from heedful.training.likelihood import validation_loss
from heedful.training.pair_step import PairStep
from heedful.training.progress import Validation

VALIDATION_SOURCES: Final = 1000
VALIDATION_TOKENS: Final = 8192
VALIDATION_PAIRS: Final = 128
"""Number of pairs in a batch of the validation loss that suits a CPU."""
MOST_CHECKED_BYTES: Final = 30_000_000
"""Size of data up to which training begins with a check, which takes a few seconds for each ten megabytes."""
MOST_CALIBRATED: Final = 1500
"""Largest number of validation sources that a confidence is fitted on after a training."""
POOR_SCORES: Final = {
    **{"bleu": 15.0, "chrf": 40.0, "exact_match": 50.0},
    **{"token_error_rate": 40.0, "character_error_rate": 30.0, "ter": 80.0},
}
"""Scores of models of little use, in percent or points."""


@final
@dataclass(frozen=True)
class TranslationData(Prepared):
    """Pairs of texts, ready to train on."""

    pairs: PreparedPairs
    languages: tuple[str, str]
    pretrained: tuple[Pretrained, ...] = ()
    """Word vectors that initialise the embeddings."""


@final
class TranslationTask(Task[PairFile, TranslationData]):
    """Task of translation: from pairs of texts to a `heedful.predictors.translator.Translator`."""

    name = "translation"
    default_preset = "small"
    command = "translate"
    kinds = frozenset({"transformer", "rnnsearch", "luong", "rnn_encoder_decoder", "hard_attention"})
    model = Seq2Seq
    higher_is_better: ClassVar = {"loss": False, **metric_directions()}
    without_effect = ("text.labels", "images")

    def find(self, paths: DataPaths) -> dict[str, PairFile]:
        pairs = {name: find_pairs(files, paths.columns, True) for name, files in paths.parts.items()}
        if pairs["train"].divides_targets:
            for each in pairs.values():
                each.divide_targets()
        return pairs

    def warnings(self, paths: DataPaths, experiment: Experiment) -> Iterable[str]:
        files = (*paths.data, *paths.dev, *paths.test)
        if not all(path.is_file() for path in files):
            return []  # a pipe is read once
        if sum(path.stat().st_size for path in files) > MOST_CHECKED_BYTES:
            return ["data of this size are not checked; heedful check does so"]
        text = experiment.text
        report = check_corpus(paths.data, paths.dev, paths.test, paths.columns, text.max_characters, text.cut_sources)
        findings = (each for each in report.findings if each.level == "warning" or each.kind == "labels")
        return [str(each).removeprefix(f"{each.level}: ") for each in findings]

    def file_defaults(self, files: Mapping[str, PairFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        most = TextConfig().max_characters
        units = choose_units(files["train"], most)
        file_defaults = adapt_units(units, find_pronunciations(files["train"], most) if units == "characters" else None)
        longest = longest_summary(files["train"]) if units == "pieces" and _may_copy(resolve) else 0
        if longest:
            file_defaults = merge(file_defaults, adapt_summaries(longest))
        attention = getattr(resolve(file_defaults).model, "attention", None)
        is_document = isinstance(attention, AttentionConfig) and attention.has_sentences
        text: Tree = {"split_sentences": True} if is_document else {}
        if kinds := files["train"].source_kinds:
            text["source_columns"] = [*kinds]
        return merge(
            file_defaults, {"text": text} if text else {}
        )  # naming the units of tokens chooses no other kind of model

    def own_validation(self, folder: Path) -> EvaluationSet:
        items = EvaluationSet.read(read_prepared(folder / "run/data" / PREPARED)["dev"])
        # Corrections of their sources are learned.
        corrected = {one.source.strip() for one in CorrectionJournal(folder / CORRECTIONS, str).read().corrections}
        left = [row for row in zip(items.sources, items.references, strict=True) if row[0].strip() not in corrected]
        return EvaluationSet([source for source, _ in left], [texts for _, texts in left])

    def prepare(
        self, files: Mapping[str, PairFile], experiment: Experiment, folder: Path, paths: DataPaths
    ) -> TranslationData:
        check_vectors(experiment.text)  # before reading tokenizers that may not fit the vectors
        journal = folder / LEARNED
        file = files["train"]
        _check_columns(file, experiment.text)
        sources = Sources(file, files.get("dev"), files.get("test"), journal if journal.is_file() else None)
        pairs = prepare(sources, experiment.text, folder)
        if experiment.training.mix:
            pairs = self._mixed(pairs, experiment, folder, paths)
        languages = _languages(paths)
        sizes = len(pairs.source_tokenizer), len(pairs.target_tokenizer)
        text = experiment.text
        vocabulary = f"{sizes[0]:,} {text.source_units}{' and features' if 'features' in text.source_columns else ''}"
        if not text.is_shared:
            vocabulary = f"{vocabulary} of the source, {sizes[1]:,} {text.target_units} of the target"
        usual = usual_sentences(pairs.train.source, pairs.source_tokenizer)
        facts: dict[str, Any] = {"languages": list(languages), "sentences": usual, **pairs.tokenizer_files}
        if file.source_names:
            facts[COLUMNS] = ["+".join(file.source_names), file.columns[1]]
        if file.divides_targets:
            facts[DIVIDES] = True
        if {text.source_units, text.target_units} == {"pieces"} and not (text.split_sentences or text.source_columns):
            tokenizers = pairs.source_tokenizer, pairs.target_tokenizer
            facts["kept"] = kept_kinds(pairs.train, tokenizers)
            facts["usual_characters"] = usual_characters(pairs.train.source, pairs.source_tokenizer)
            facts["openings"] = opening_words(pairs.train.source, pairs.source_tokenizer)
            facts["final_marks"] = final_marks(pairs.train, tokenizers)
            facts |= store_word_tables(pairs.train, tokenizers, folder)
        numbers = (*sizes, text.is_shared)
        return TranslationData(numbers, facts, pairs.report, len(pairs.train), vocabulary, pairs.test, pairs, languages)

    def _mixed(self, pairs: PreparedPairs, experiment: Experiment, folder: Path, paths: DataPaths) -> PreparedPairs:
        """Prepared pairs whose report names the older pairs, which are encoded for the sampler."""
        # What a correction replaces is not learned again.
        corrected = [one.source for one in CorrectionJournal(folder / LEARNED, str).read().corrections]
        own = held_out_sources(paths.pretrained) if paths.pretrained else []
        left_out = [*pairs.dev.sources, *pairs.test.sources, *corrected, *own]
        older = find_pairs([Path(path) for path in experiment.training.mix], paths.columns)
        mix = store_mix(older, (pairs.source_tokenizer, pairs.target_tokenizer), experiment.text, folder, left_out)
        lines = mix.lines(older, experiment.training.mix_share, len(pairs.train))
        return replace(pairs, report=(*pairs.report, *lines))

    def data_defaults(self, data: TranslationData, experiment: Experiment) -> Tree:
        return self._settings(data, experiment)

    def time_limited_defaults(
        self, data: TranslationData, experiment: Experiment, pace: Throughput, is_named: bool = False
    ) -> Tree:
        return self._settings(data, experiment, pace, is_named)

    def _settings(
        self, data: TranslationData, experiment: Experiment, pace: Throughput | None = None, is_named: bool = False
    ) -> Tree:
        train = data.pairs.train
        lengths = train.source.lengths, train.target.lengths
        size = CorpusSize(len(train), int(lengths[1].sum()), int(np.maximum(*lengths).sum()))
        chosen = adapt(size, experiment, pace, is_named)
        replaces = "dictionary" in data.pairs.tokenizer_files and has_attention(experiment)
        return chosen | {"search": {"replace_unknown": replaces}}

    def reasons(self, data: TranslationData, experiment: Experiment) -> Mapping[str, str]:
        units, kind = experiment.text.target_units, experiment.model.kind
        has_copy = getattr(experiment.model, "has_copy", False)
        minutes, are_phones = experiment.training.max_minutes, _are_pronunciations(data, experiment)
        return reasons(units, kind, data.num_examples, minutes, has_copy, are_phones)

    def expectation(self, data: TranslationData, experiment: Experiment) -> str:
        are_phones, text = _are_pronunciations(data, experiment), experiment.text
        return expectation(text.source_units, data.num_examples, are_phones, text.cut_sources)

    @property
    def poor_scores(self) -> Mapping[str, float]:
        return POOR_SCORES

    def completed(self, data: TranslationData, experiment: Experiment, folder: Path) -> TranslationData:
        training = experiment.training
        pairs = data.pairs
        if training.alignment_weight:
            corrections = CorrectedLinks(Path(training.links)) if training.links else None
            pairs = link_words(pairs, folder, training.alignment_model, corrections)
        if share := training.term_share:
            number = store_terms(pairs.train, (pairs.source_tokenizer, pairs.target_tokenizer), folder)
            line = (
                f"{counted(number, 'term')} in the pairs; {100 * share:.0f} % of the sources are given some of theirs"
            )
            pairs = replace(pairs, report=(*pairs.report, line))
        pretrained = _pretrained(pairs, experiment)
        facts = dict(data.facts)
        if pretrained:
            facts["vectors"] = {one.side: str(one) for one in pretrained}
        report = (*pairs.report, *(f"{one.side} vectors: {one}" for one in pretrained))
        return replace(data, pairs=pairs, pretrained=pretrained, facts=facts, report=report)

    def trial_sizes(self, experiment: Experiment) -> tuple[int | bool, ...]:
        return (8, 8, experiment.text.is_shared)

    def initialize(self, model: nn.Module, data: TranslationData) -> None:
        place_vectors(model, data.pretrained)

    def sampler(self, experiment: Experiment, folder: Path, data: TranslationData | None) -> Sampler:
        corpus = read_linked(folder / "run/data") if data is None else data.pairs.train
        training = experiment.training
        changes = RandomChanges(
            _resegmentations(experiment, folder),
            _term_offers(experiment, folder, corpus),
            _noise(experiment, folder),
        )
        common = training.batch_tokens, training.seed, changes, training.has_few_shapes
        if training.mix:
            return MixedSampler(corpus, EncodedCorpus.read(folder / MIX), training.mix_share, *common)
        return PairSampler(corpus, *common)

    def step(self, experiment: Experiment, model: nn.Module) -> PairStep:
        training = experiment.training
        return PairStep(_seq2seq(model), training.label_smoothing, experiment.guidance)

    def validator(self, data: TranslationData, experiment: Experiment) -> Callable[[nn.Module], Validation]:
        return Validator(data.pairs, experiment, data.languages[1])

    def encoded_sides(self, data: TranslationData) -> Mapping[str, tuple[EncodedSide, Tokenizer]]:
        pairs = data.pairs
        return {
            "source": (pairs.train.source, pairs.source_tokenizer),
            "target": (pairs.train.target, pairs.target_tokenizer),
        }

    def calibration_items(self, data: TranslationData) -> EvaluationSet:
        return spaced(data.pairs.dev, MOST_CALIBRATED)


@final
class Validator:
    """Validation of a model by its loss on references and by scores of its greedy outputs."""

    def __init__(self, prepared: PreparedPairs, experiment: Experiment, target_language: str) -> None:
        """Encode the validation set once.

        Args:
            prepared: tokenizers and validation set, of which the first 1,000 sources are used, or as many as
                `training.validation_items` says.
            experiment: configuration, of which text settings and the selecting score matter.
            target_language: language code, which determines BLEU's tokenizer.
        """
        number = experiment.training.validation_items
        self._dev: Final = spaced(prepared.dev, number) if number else prepared.dev[:VALIDATION_SOURCES]
        self._experiment: Final = experiment
        self._target_tokenizer: Final = prepared.target_tokenizer
        self._language: Final = target_language
        selected, text = experiment.training.select_by, experiment.text
        usual = quick_metrics(text.target_units, text.cut_sources)
        self._metrics: Final = tuple(dict.fromkeys((*usual, *((selected,) if selected in METRICS else ()))))
        self._sources: Final = [
            encode_source(prepared.source_tokenizer, s, experiment.text)[0] for s in self._dev.sources
        ]
        most = experiment.text.max_tokens - 1
        gold = [[*prepared.target_tokenizer.encode(texts[0])[:most], EOS] for texts in self._dev.references]
        # An untrained model seldom ends an output.
        self._most: Final = min(most + 1, SPARE_TOKENS + 2 * max(map(len, gold), default=most))
        self._corpus: Final = EncodedCorpus(EncodedSide.of([s.tolist() for s in self._sources]), EncodedSide.of(gold))
        by_length = sorted(range(len(self._dev)), key=lambda i: len(self._sources[i]))
        # Sources of short, medium and long length; the median one is the sample shown during training.
        self._shown: Final = [*dict.fromkeys(by_length[len(by_length) * tenth // 10] for tenth in (5, 1, 3, 7, 9))]

    def __call__(self, model: nn.Module) -> Validation:
        """Validate by loss and by greedy decoding.

        Returns:
            Scores: "loss", the metrics that suit the target's tokens, and the selecting one; and samples.

        Raises:
            TypeError: the model is of another task.
        """
        model = _seq2seq(model)
        greedy = SearchConfig(beam=1, max_length_ratio=2.0, max_length_offset=20)
        backend = torch_backend(model, self._most)
        decoded = as_memory_allows(
            lambda tokens: decode_sorted(backend, self._sources, greedy, batch_tokens=tokens),
            VALIDATION_TOKENS,
            next(model.parameters()).device,
        )
        outputs = [self._target_tokenizer.decode(hypotheses[0].token_ids) for hypotheses in decoded]
        scores = quick_scores(outputs, self._dev.references, self._language, metrics=self._metrics)
        texts = self._dev.sources, [texts[0] for texts in self._dev.references], outputs
        middle, *others = ((texts[0][i], texts[1][i], texts[2][i]) for i in self._shown)
        loss = validation_loss(
            PairStep(model, label_smoothing=0.0), lambda number: pairs_by_length(self._corpus, number), VALIDATION_PAIRS
        )
        middle_index = len(others) // 2
        samples = (*others[:middle_index], middle, *others[middle_index:])
        return Validation({"loss": loss, **scores}, middle, samples)


def _are_pronunciations(data: TranslationData, experiment: Experiment) -> bool:
    """True for letters as sources and phones as targets: symbols between spaces, or letters of the IPA."""
    text, target = experiment.text, data.pairs.target_tokenizer
    if text.source_units != "characters" or text.target_units == "pieces":
        return False
    return text.target_units == "words" or has_ipa(target.pieces(range(len(target))))


def _may_copy(resolve: Callable[[Tree], Experiment]) -> bool:
    """Whether the settings for summaries go together with those of the user."""
    try:
        model = resolve(adapt_summaries()).model
    except ConfigError:
        return False
    attention = getattr(model, "attention", None)
    return bool(getattr(model, "has_copy", False) and getattr(attention, "has_coverage", False))


def _seq2seq(model: nn.Module) -> Seq2Seq:
    if not isinstance(model, Seq2Seq):
        raise TypeError(f"translation needs a sequence-to-sequence model, got {type(model).__name__}")
    return model


def _check_columns(file: PairFile, text: TextConfig) -> None:
    """Refuse kinds of columns for another number of columns.

    Raises:
        ConfigError: there are more or fewer columns than kinds.
    """
    if file.source_kinds and len(text.source_columns) != len(file.source_names):
        number = max(1, len(file.source_names))
        raise ConfigError(
            f"text.source_columns: {counted(len(text.source_columns), 'kind')}, but a source of {file.paths[0]} is "
            f"{counted(number, 'column')}; give one kind for each"
        )


def _languages(paths: DataPaths) -> tuple[str, str]:
    guessed = language_names(paths.data, paths.columns)
    return paths.languages[0] or guessed[0], paths.languages[1] or guessed[1]


def _pretrained(prepared: PreparedPairs, experiment: Experiment) -> tuple[Pretrained, ...]:
    text, seed = experiment.text, experiment.training.seed
    tokenizers = {"source": prepared.source_tokenizer, "target": prepared.target_tokenizer}
    corpora = {"source": prepared.train.source, "target": prepared.train.target}
    return tuple(
        read_pretrained(text, side, tokenizers[side], corpora[side], seed) for side in SIDES if vectors_file(text, side)
    )


def _resegmentations(experiment: Experiment, folder: Path) -> tuple[Resegmentation, Resegmentation] | None:
    """Random segmentations of sources and targets; None if there are none.

    Raises:
        UsageError: no token of either side can be split.
    """
    text, probability = experiment.text, experiment.training.split_pieces
    if not probability:
        return None
    splits = [piece_splits(tokenizer) for tokenizer in load_tokenizers(text, folder)]
    if not any(one.any() for one in splits):
        raise UsageError("training.split_pieces: no token can be split; leave it at 0")
    source, target = (Resegmentation(one, probability, text.max_tokens) for one in splits)
    return source, target


def _term_offers(experiment: Experiment, folder: Path, corpus: EncodedCorpus) -> TermOffers | None:
    """Terms for training sources; None if there are none."""
    share = experiment.training.term_share
    return TermOffers(read_terms(folder, corpus), share, experiment.text.max_tokens) if share else None


def _noise(experiment: Experiment, folder: Path) -> Noise | None:
    """Noise of training texts; None if there is none."""
    share, text = experiment.training.noise, experiment.text
    return Noise(load_tokenizers(text, folder), share, text.longest) if share else None
