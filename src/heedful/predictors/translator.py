"""Translator: a loaded model that translates, aligns, scores and evaluates."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from heedful.config.base import read_toml, validate
from heedful.data import corrections
from heedful.data.rows import Columns
from heedful.engines.engine import DEFAULT_BATCH_TOKENS
from heedful.engines.folder import CONFIG, ModelFolder, require_same_tokens
from heedful.engines.scored_pairs import PairScorer, ScoredPair, TextPair
from heedful.engines.text_constraints import SourceConstraints, TextConstraints
from heedful.engines.translation_memory import TranslationMemory
from heedful.predictors.bound_texts import BoundTexts
from heedful.predictors.call_texts import checked_texts
from heedful.predictors.corrected import with_corrections
from heedful.predictors.decoding import Decoding
from heedful.predictors.engine_choice import Backends
from heedful.predictors.search_predictor import SearchPredictor
from heedful.predictors.seen_sources import ROLE, stored_targets, with_targets
from heedful.predictors.segment_decoding import SegmentDecoding
from heedful.predictors.segmented import Segmenter, joined, with_lost_spans
from heedful.predictors.translation import MeasuredTranslations, Translation
from heedful.predictors.word_tables import WordTables
from heedful.search.config import SearchConfig, with_outputs
from heedful.search.inputs import token_draw
from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.dictionary import Dictionary
from heedful.text.segments import Policy, Text
from heedful.text.stand_ins import Span
from heedful.text.tokenizer import TextConfig
from heedful.text.tokenizer_files import load_tokenizer

# Evaluation is imported where it is used: it takes as long to import as the rest of translation.
if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet
    from heedful.evaluation.report import Report
    from heedful.export.archive import ArchivedTranslator
    from heedful.pages.attention_view import AttentionView

WINDOW_LINES: Final = 2048
"""Number of lines that are sorted by length together, so that memory does not grow with the input."""


@final
class Translator(SearchPredictor):
    """Loaded translation model."""

    engine_kinds = ("onnx", "ctranslate2")
    engine_parts = frozenset({"int8", "layers", "shortlist"})

    def __init__(
        self,
        folder: ModelFolder,
        device: str = "cpu",
        engine: str = "auto",
        ensemble: Sequence[ModelFolder] = (),
    ) -> None:
        """Load a model's tokenizers; its weights are loaded on first use.

        Args:
            folder: opened model folder.
            device: PyTorch device, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: torch, the name of an exported engine, or "auto": for each search the fastest one whose results
                equal PyTorch's.
            ensemble: further models of the same vocabulary; probabilities are averaged at each step.

        Raises:
            UsageError: there is no such engine, or a model of the ensemble has another vocabulary.
        """
        tree = read_toml(folder.path / CONFIG)
        self.folder = folder
        self.text = validate(TextConfig, tree.get("text", {}), "text")
        self.search = validate(SearchConfig, tree.get("search", {}), "search")
        self.alignment_shift: Final = int(tree.get("training", {}).get("alignment_step") == "read")
        """Number of steps between the one that predicts a token and the one whose attention aligns it. The last target
        token has EOS after it, so the step that reads it is there."""
        self.has_heads: Final = tree.get("model", {}).get("encoder") == "heads"
        """True for a model whose encoder attends to the heads of words."""
        trees = [tree, *(read_toml(each.path / CONFIG) for each in ensemble)]
        self.inflects_terms: Final = all(one.get("training", {}).get("term_share") for one in trees)
        """True for a model that was trained to use terms written into its sources."""
        units = (self.text.source_units, self.text.target_units)
        roles = ("source_tokenizer", "target_tokenizer")
        self.source_tokenizer, self.target_tokenizer = (
            load_tokenizer(folder.file(role), unit, self.text.normalization, reads_forms=role == roles[0])
            for role, unit in zip(roles, units, strict=True)
        )
        sizes = len(self.source_tokenizer), len(self.target_tokenizer), self.text.is_shared
        self.tables: Final = WordTables(folder, self.source_tokenizer, self.target_tokenizer)
        self.memory: Final = TranslationMemory(folder.path / corrections.NAME, self.source_tokenizer.normalize)
        self._segmenter: Final = Segmenter(folder, self.memory, self.tables, self.source_tokenizer, self.text)
        draw = token_draw(len(self.source_tokenizer))
        partners = [require_same_tokens(each, folder) for each in ensemble]
        with_partners = [Backends(each, sizes, draw, self.text.max_tokens, device, engine) for each in partners]
        self.backends = Backends(folder, sizes, draw, self.text.max_tokens, device, engine, with_partners)

    def __repr__(self) -> str:
        source, target = self.folder.facts.get("languages", ("source", "target"))
        kind = self.folder.facts.get("kind")
        return f"<Translator {str(self.folder.path)!r}: {kind}, {source} to {target}, engine {self.backends.engine}>"

    @property
    def source_language(self) -> str:
        """Code of the source language; empty if unknown."""
        return str(self.folder.facts.get("languages", ["", ""])[0])

    @property
    def target_language(self) -> str:
        """Code of the target language; empty if unknown."""
        return str(self.folder.facts.get("languages", ["", ""])[1])

    @cached_property
    def has_attention(self) -> bool:
        """Whether the model can say where the words of its translations come from."""
        return self.backends.searching(self.search, attention=True).supports(self.search, True) is None

    @cached_property
    def dictionary(self) -> Dictionary:
        """Translations for unknown words; empty where the model has none."""
        has_one = "dictionary" in self.folder.facts
        return Dictionary.load(self.folder.file("dictionary")) if has_one else Dictionary({})

    @cached_property
    def _seen(self) -> Dictionary:
        """Commonest targets of the training sources."""
        return stored_targets(self.folder, (self.source_tokenizer, self.target_tokenizer))

    def archived(self, has_layers: bool = False) -> "ArchivedTranslator":
        from heedful.export.archive import ArchivedTranslator

        tokenizers = self.source_tokenizer, self.target_tokenizer
        return ArchivedTranslator(self.folder, tokenizers, self.text, self.search, self.alignment_shift, has_layers)

    def translate(
        self,
        texts: Iterable[str],
        *,
        beam: int = 0,
        nbest: int = 1,
        attention: bool = False,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        search: SearchConfig | None = None,
        constraints: TextConstraints | None = None,
        exact: bool = False,
        corrected: bool = True,
        confidence: bool = False,
        cancelled: Callable[[], bool] | None = None,
        segments: Policy | None = "auto",
        memory: bool | None = None,
        kept_spans: Iterable[Sequence[Span]] | None = None,
    ) -> list[Translation]:
        """Translate texts.

        Args:
            texts: sentences, paragraphs or whole texts; a blank one stays as it is.
            beam: number of hypotheses per sentence; 0 = the model's default.
            nbest: number of outputs per sentence.
            attention: whether to return attention and alignment.
            batch_tokens: largest number of source positions times beam in a batch.
            search: all other search settings; None = the model's own.
            constraints: prefix, required and banned phrases of the outputs; None = no constraints.
            exact: whether each result is bit-identical regardless of the number and order of the other texts;
                `batch_tokens` then has no effect (`heedful.engines.exact`).
            corrected: whether corrections in force replace the outputs of their sources, and outputs of similar sources
                follow them; the outputs of other sources do not depend on it. They are only named under constraints
                and, for similar sources, where outputs are drawn or the named engine searches by itself.
            confidence: whether to compute the probability that each output is right; the model must be calibrated.
            cancelled: called between the steps of the search; once it returns True the search ends, and unfinished
                outputs are returned as they are. CTranslate2 asks only between batches.
            segments: what is translated by itself (see `split`); None = each text as a whole, whatever is in it.
            memory: whether sources that are training sources get their commonest targets; None = where validation
                showed that this is right more often. Never under constraints.
            kept_spans: spans of each text that stay as they are (see `split`); None = those that rules find.

        Returns:
            One translation for each text, in order.

        Raises:
            UsageError: a single string was given, an item is no text, such as None, or the settings do not fit.
        """
        texts = checked_texts(texts, "translate")
        config = with_outputs(search or self.search, beam, nbest)
        stream = partial(self.stream, constraints=constraints, exact=exact, corrected=corrected, confidence=confidence)
        stream = partial(stream, cancelled=cancelled, segments=segments, memory=memory, kept_spans=kept_spans)
        return list(stream(texts, config, attention, batch_tokens))

    def split(
        self,
        text: str,
        segments: Policy | None = "auto",
        constraints: TextConstraints | None = None,
        kept_spans: Sequence[Span] = (),
    ) -> Text:
        """Split a text into the segments that are translated one by one.

        Args:
            text: text of any number of lines.
            segments: lines, sentences, or with "auto" sentences of lines that have more of them than the training
                pairs usually have; None = the text as a whole.
            constraints: constraints on the output; None = none. They are about the whole output: the first segment
                gets the prefix, and each required phrase the segment where it fits best.
            kept_spans: first character and the one after the last of spans that stay as they are, beside those that
                rules find; only models of sentences can do so.

        Returns:
            The segments and the layout between them. Under "auto" a model of documents reads a text as a whole, and one
            of characters line by line, or as a whole where its output is bound; a text that was corrected is one.
        """
        return self._segmenter.split(text, segments, constraints, kept_spans)

    def stream(
        self,
        texts: Iterable[str],
        search: SearchConfig,
        attention: bool = False,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        window_lines: int = WINDOW_LINES,
        first_index: int = 0,
        constraints: TextConstraints | None = None,
        exact: bool = False,
        corrected: bool = False,
        confidence: bool = False,
        cancelled: Callable[[], bool] | None = None,
        segments: Policy | None = None,
        memory: bool | None = None,
        kept_spans: Iterable[Sequence[Span]] | None = None,
    ) -> Iterator[Translation]:
        """Translate any number of texts in constant memory.

        Args:
            texts: sentences, or with `segments` texts.
            search: beam, penalties and limits.
            attention: whether to return attention and alignment.
            batch_tokens: largest number of source positions times beam in a batch.
            window_lines: number of texts that are sorted by length together; 1 yields each result at once.
            first_index: index of the first text among all texts of the caller; random samples depend on it.
            constraints: prefix, required and banned phrases of the outputs; None = no constraints.
            exact: as for `translate`.
            corrected: as for `translate`; corrections given meanwhile are in force from the next window on.
            confidence: as for `translate`.
            cancelled: as for `translate`.
            segments: as for `translate`.
            memory: as for `translate`.
            kept_spans: as for `translate`.

        Yields:
            One translation for each text, in order.
        """
        remaining, spans = iter(texts), repeat(()) if kept_spans is None else iter(kept_spans)
        num_done = first_index
        rate = self._rate(1 if exact else batch_tokens) if confidence else None
        constraints = constraints or TextConstraints()
        bound = self._bound(first_index, constraints)
        decoding = Decoding(self, search, attention, batch_tokens, exact, cancelled, lambda: self.dictionary)
        align = self.align if attention else None
        can_imitate = bound.strictest.is_free and search.method != "sampling"
        while window := list(islice(remaining, window_lines)):
            texts_apart = [self.split(text, segments, constraints, next(spans)) for text in window]
            parts = [one for text in texts_apart for one in text.segments]
            is_keeping = segments is not None and self._segmenter.reads_sentences
            decode = SegmentDecoding(decoding).translate if is_keeping else decoding.translate_segments
            texts_bound = BoundTexts(decode, partial(self._bound, num_done), constraints)
            # Random samples of a text do not depend on the number of segments of the texts before it.
            outputs = texts_bound.translate(texts_apart, range(len(window)))
            if bound.general.is_free and (ROLE in self.folder.facts if memory is None else memory):
                outputs = with_targets(outputs, self._seen, self.source_tokenizer.normalize, search.nbest, align)
            if corrected:
                outputs = with_corrections(
                    outputs,
                    self.memory.state(),
                    search.nbest,
                    align,
                    decoding.decode_with_memory if can_imitate else None,
                    bound.general.is_free,
                )
            outputs = rate(list(outputs)) if rate else outputs
            outputs = map(with_lost_spans, parts, outputs) if is_keeping else iter(outputs)
            for source, text in zip(window, texts_apart, strict=True):
                yield joined(source, text, [next(outputs) for _ in text.segments])
            num_done += len(window)

    def _bound(self, index: int, constraints: TextConstraints) -> SourceConstraints:
        bound = constraints.of_sources(self.target_tokenizer, self.inflects_terms)
        return replace(bound, general=replace(bound.general, index=index))

    def _rate(self, batch_tokens: int) -> Callable[[list[Translation]], Iterable[Translation]]:
        """Function that adds the confidence to outputs."""
        from heedful.predictors.confidence import confidence_adder  # what it imports is needed by few calls

        return confidence_adder(
            self.folder, self.backends.scoring, partial(self.scored_pairs, batch_tokens=batch_tokens)
        )

    def correct(self, source: str, correction: str) -> None:
        """Correct a translation: from now on, `correction` is the output for this source, in every process.

        Args:
            source: text as `translate` takes it, one line.
            correction: translation that is preferred to the model's.

        Raises:
            UsageError: a side is blank or not one line, or a source has another number of columns than the model reads.
            ResourceError: the model folder cannot be written.
        """
        if isinstance(self.source_tokenizer, ColumnTokenizer):
            self.source_tokenizer.split(source)
        self.memory.journal.add([(source, correction)])

    def align(self, pairs: Iterable[TextPair], batch_tokens: int = DEFAULT_BATCH_TOKENS) -> list[ScoredPair]:
        """Align the words of sources and given targets, by forced decoding.

        The links come from the model's attention, in a Transformer the mean over the heads of the last two decoder
        layers; the weights are averaged and summed over the tokens of each word.

        Args:
            pairs: a source and a target each.
            batch_tokens: largest number of source positions in a batch.

        Returns:
            The alignment of each pair between words, with the attention behind it.

        Raises:
            UsageError: the model has no attention.

        Example:
            >>> heedful.load("de-en.model").align([("Guten Tag", "Good day")])[0].pharaoh()  # doctest: +SKIP
            '0-0 1-1'
        """
        return list(self.scored_pairs(pairs, attention=True, batch_tokens=batch_tokens))

    def score(self, pairs: Iterable[TextPair], batch_tokens: int = DEFAULT_BATCH_TOKENS) -> list[ScoredPair]:
        """Score given targets, by forced decoding.

        Args:
            pairs: a source and a target each.
            batch_tokens: largest number of source positions in a batch.

        Returns:
            The log probabilities of each pair; for an output of `translate` they equal those that `translate` returned,
            provided that its text is split into the same tokens.
        """
        return list(self.scored_pairs(pairs, batch_tokens=batch_tokens))

    def scored_pairs(
        self,
        pairs: Iterable[TextPair],
        attention: bool = False,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        window_lines: int = WINDOW_LINES,
    ) -> Iterator[ScoredPair]:
        """Score any number of pairs in constant memory, by forced decoding.

        Args:
            pairs: a source and a target each.
            attention: whether to return attention and alignment.
            batch_tokens: largest number of source positions in a batch.
            window_lines: number of pairs that are sorted by length together.

        Yields:
            The scores of each pair, in order.
        """
        tokenizers = self.source_tokenizer, self.target_tokenizer
        reader = PairScorer(self.backends.scoring(attention), *tokenizers, self.text, self.alignment_shift)
        remaining = iter(pairs)
        while window := list(islice(remaining, window_lines)):
            yield from reader.score(window, attention, batch_tokens)

    def evaluate(self, *data: Any, columns: Columns = (1, 2), **settings: Any) -> "Report":
        """Translate an evaluation set and score the output, as `heedful evaluate` does.

        Args:
            data: one file of pairs, or two aligned files, or pairs in memory as `heedful.train` takes them; rows with
                the same source give its references.
            columns: columns of source and target, by 1-based number or by name.
            settings: keywords of `measure`, such as metrics.

        Returns:
            Scores with signatures, of all sources and by source length.
        """
        from heedful.data.in_memory import example_files

        with example_files(data, "test", columns) as files:
            items = self.read_items(files.paths, files.columns)
        return self.measure(items, **settings).report

    def measure(
        self,
        items: "EvaluationSet",
        metrics: tuple[str, ...] = (),
        beam: int = 0,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        constraints: TextConstraints | None = None,
        segments: Policy | None = None,
        **settings: Any,
    ) -> MeasuredTranslations:
        """Translate sources and score the output.

        Args:
            items: sources with one or more references each, from `read_items`.
            metrics: keys of the table of metrics; empty = metrics that suit the model's tokens.
            beam: beam width; 0 = that of the search.
            search: search settings; None = the model's own.
            batch_tokens: largest number of source positions times beam in a batch.
            constraints: constraints on the outputs; None = none.
            segments: as for `translate`, whose "auto" suits sources that are texts; None = sentences of test sets.
            settings: other keywords of `heedful.evaluation.evaluate.evaluate`.
        """
        from heedful.predictors.measured_translations import measured

        config = with_outputs(search or self.search, beam, 1)
        self.backends.searching(config)  # loads the weights, so that their loading is not timed
        started = time.perf_counter()
        stream = partial(self.stream, batch_tokens=batch_tokens, constraints=constraints, segments=segments)
        outputs = list(stream(items.sources, config))
        seconds = time.perf_counter() - started
        terms = constraints.terms if constraints else None
        settings = {"target_language": self.target_language, **settings}
        return measured(items, outputs, seconds, config.beam, metrics, self.metrics, terms, settings)

    def attention_views(self, sources: Sequence[str]) -> "list[AttentionView]":
        from heedful.pages.attention_map import AttentionMap

        return [
            AttentionMap(f"{one.source} → {one.text}", one.source_pieces, one.target_pieces, one.attention.tolist())
            for one in self.translate(sources, attention=True, corrected=False)
            if one.attention is not None
        ]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that suit the translations."""
        from heedful.evaluation.metrics.table import default_metrics

        return default_metrics(self.text.target_units, self.text.cut_sources)

    def predict(self, sources: Sequence[str]) -> list[str]:
        return [output.text for output in self.stream(sources, self.search, batch_tokens=DEFAULT_BATCH_TOKENS)]

    def read_items(self, paths: tuple[Path, ...], columns: Columns) -> "EvaluationSet":
        from heedful.predictors.measured_translations import read_items
        from heedful.predictors.source_columns import model_pairs

        return read_items(model_pairs(self.folder, paths, columns, leaves_out_faults=True))
