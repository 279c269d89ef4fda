"""Classifier: a loaded model that assigns a label to each text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.in_memory import PAIR_KEYS, SIDES, example_files
from heedful.data.label_kinds import decide, log_complement, mixture, normalised
from heedful.data.labelled_texts import LabelledTexts
from heedful.data.row_faults import LEFT_OUT
from heedful.data.rows import Columns
from heedful.engines.folder import ModelFolder
from heedful.engines.label_arrays import Floats
from heedful.engines.labels import run_labels
from heedful.engines.ngram_model import DEFAULT_SHARE, NGRAMS, SHARE, SHIFTS, NgramModel
from heedful.errors import DataError, FileRefused
from heedful.pages.attention_text import TextView
from heedful.pages.attention_view import AttentionView
from heedful.predictors.call_texts import checked_texts
from heedful.predictors.label_predictor import SEPARATOR, TEXT_COLUMNS, LabelPredictor
from heedful.search.inputs import InputDraw, TokenArrays, token_draw
from heedful.text.encoding import encode_source
from heedful.text.label_sets import joined_labels, split_labels
from heedful.text.quoting import listed, shortened
from heedful.text.weighted_words import weighted_sentences

if TYPE_CHECKING:
    from heedful.evaluation.label_sets import NumberReport, SetReport
    from heedful.evaluation.labels import LabelReport
    from heedful.export.archived_labels import ArchivedLabels

USUAL_SEPARATOR: Final = "|"
"""Separator of several labels in outputs, where the training data had none."""
WINDOW_TEXTS: Final = 2048
"""Number of texts that are sorted by length together, so that memory does not grow with the input."""


@final
@dataclass(frozen=True)
class Classification:
    """Label of a text, with the probabilities of all labels.

    Example:
        >>> Classification("A quiet room", "good", 0.9, {"good": 0.9, "bad": 0.1})
        <Classification 'A quiet room' -> 'good', probability 0.9000>
    """

    text: str
    label: str
    """The label; several, each of a probability of one half and more, joined by the separator of the training data or
    "|", and empty if there is none; or a number in digits."""
    probability: float
    """Probability of `label`, in [0, 1]: of several labels, that exactly these are right; of a number that of the
    nearest value among those that the model knows, which says little."""
    probabilities: dict[str, float]
    """Probability of every label, the most probable first."""
    pieces: tuple[str, ...] = ()
    """Tokens of the text as the model saw them, EOS included."""
    attention: NDArray[np.float32] | None = None
    """[piece] weights; None from a model without attention."""
    was_cut: bool = False
    """Whether the text exceeded the model's length limit and was truncated."""
    labels: tuple[str, ...] = ()
    """The label; or those of several labels that the text has, in alphabetical order."""

    def __repr__(self) -> str:
        return f"<Classification {shortened(self.text)} -> {self.label!r}, probability {self.probability:.4f}>"


@final
@dataclass(frozen=True, eq=False)
class EncodedText:
    """Text and its vector.

    Example:
        >>> classifier = heedful.load("reviews.model", kind=Classifier)  # doctest: +SKIP
        >>> (encoded,) = classifier.encode_stream(["A quiet room"])  # doctest: +SKIP
        >>> encoded.text, encoded.vector.ndim  # doctest: +SKIP
        ('A quiet room', 1)
    """

    text: str
    """The text."""
    vector: Floats
    """[size] float32 input of the model's label layer."""
    was_cut: bool = False
    """Whether the text exceeded the model's length limit and was truncated."""
    num_tokens: int = 0
    """Tokens that the model read, EOS included."""


@final
class Classifier(LabelPredictor):
    """Loaded text classifier."""

    noun = "classifier"

    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "auto", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        super().__init__(folder, device, engine, ensemble)
        self.ngrams: Final = NgramModel.load(folder.file(NGRAMS)) if NGRAMS in folder.facts else None
        """Linear model of n-grams with which the classifier is mixed; None = it has none."""
        self._share: Final = float(folder.facts.get(SHARE, DEFAULT_SHARE))
        shifts = folder.facts.get(SHIFTS)
        self._shifts: Final = None if shifts is None else np.array(shifts, dtype=np.float32)
        self.separator: Final = str(folder.facts.get(SEPARATOR, USUAL_SEPARATOR))
        """Separator of several labels in a cell."""
        if self.ngrams is not None and len(self.ngrams.bias) != len(self.labels):
            raise FileRefused(
                f"{folder.file(NGRAMS)}: damaged: not for {len(self.labels)} labels; copy the folder again"
            )

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Names of the columns of texts in the training data; none = they had no names, or are not recorded.

        The key of the texts of pairs in memory, which have no names of their own, is none.
        """
        names = self.folder.facts.get(TEXT_COLUMNS)
        return tuple(map(str, names)) if isinstance(names, list) and names != [PAIR_KEYS[0]] else ()

    def _draw(self, num_tokens: int) -> InputDraw:
        return token_draw(num_tokens)

    def archived(self, has_layers: bool = False) -> "ArchivedLabels":
        from heedful.export.archived_labels import ArchivedLabels

        parts = self.tokenizer, self.text, self.labels, self.separator, self.ngrams
        return ArchivedLabels(self.folder, *parts)

    def classify(self, texts: Iterable[str]) -> list[Classification]:
        """Classify texts.

        Args:
            texts: any texts; a blank one is classified like any other.

        Returns:
            One classification for each text, in order.

        Raises:
            UsageError: a single string was given, or an item is no text, such as None or NaN.

        Example:
            >>> heedful.load("reviews.model", kind=Classifier).classify(["A quiet room"])[0].label  # doctest: +SKIP
            'good'
        """
        return list(self.stream(checked_texts(texts, "classify")))

    def stream(self, texts: Iterable[str], window_texts: int = WINDOW_TEXTS) -> Iterator[Classification]:
        """Classify any number of texts in constant memory.

        Args:
            texts: any texts; a blank one is classified like any other.
            window_texts: number of texts that are sorted by length together; 1 yields each result at once.

        Yields:
            One classification for each text, in order.
        """
        run, remaining, kind = self.label_run(), iter(texts), self.text.labels
        while window := list(islice(remaining, window_texts)):
            encoded = [encode_source(self.tokenizer, text, self.text) for text in window]
            log_probs, _, attention = run_labels(run, TokenArrays([ids for ids, _ in encoded]))
            if self.ngrams is not None:
                linear = normalised(kind, self.ngrams.scores(window))
                log_probs = [*mixture(kind, np.stack(log_probs), linear, self._share)]
            if self._shifts is not None:
                log_probs = [*normalised(kind, np.stack(log_probs) + self._shifts)]
            chosen = decide(kind, np.stack(log_probs), self.labels)
            rows = zip(window, encoded, chosen, log_probs, attention, strict=True)
            for text, (ids, was_cut), label, row, weights in rows:
                order = np.argsort(-row, kind="stable")
                shares = dict(zip((self.labels[index] for index in order), np.exp(row[order]).tolist(), strict=True))
                labels = split_labels(label) if kind == "several" else (label,)
                probability = self._probability(row, label)
                pieces = tuple(self.tokenizer.pieces(ids.tolist()))
                joined = self.separator.join(labels)
                yield Classification(text, joined, probability, shares, pieces, weights, was_cut, labels)

    def _probability(self, log_probs: Floats, label: str) -> float:
        """Probability of a label; of exactly these labels; or of the value that a number is nearest to."""
        if self.text.labels == "several":
            own = {*split_labels(label)}
            has = np.array([each in own for each in self.labels])
            return float(np.exp(np.where(has, log_probs, log_complement(log_probs)).sum()))
        if self.text.labels == "number":
            distances = [abs(float(each) - float(label)) for each in self.labels]
            return float(np.exp(log_probs[int(np.argmin(distances))]))
        return float(np.exp(log_probs[self.labels.index(label)]))

    def encode(self, texts: Iterable[str]) -> Floats:
        """Encode texts as vectors, for search by similarity or as input of other models.

        Returns:
            [text, size] float32 inputs of the model's label layer, in order.

        Raises:
            UsageError: as for `classify`.
        """
        vectors = [each.vector for each in self.encode_stream(checked_texts(texts, "encode"))]
        if not vectors:  # a blank text has a vector of the same size
            return np.stack([each.vector for each in self.encode_stream([""])])[:0]
        return np.stack(vectors)

    def encode_stream(self, texts: Iterable[str], window_texts: int = WINDOW_TEXTS) -> Iterator[EncodedText]:
        """Encode any number of texts as vectors in constant memory.

        Args:
            texts: any texts; a blank one is encoded like any other.
            window_texts: number of texts that are sorted by length together.

        Yields:
            The vector of each text, in order.
        """
        run, remaining = self.label_run(), iter(texts)
        while window := list(islice(remaining, window_texts)):
            encoded = [encode_source(self.tokenizer, text, self.text) for text in window]
            _, vectors, _ = run_labels(run, TokenArrays([ids for ids, _ in encoded]))
            for text, vector, (ids, was_cut) in zip(window, vectors, encoded, strict=True):
                yield EncodedText(text, vector, was_cut, len(ids))

    def evaluate(self, *data: Any, columns: Columns = (1, 2)) -> "LabelReport | SetReport | NumberReport":
        """Classify texts and compare with their labels, as `heedful evaluate` does.

        Args:
            data: one file of texts and labels, of any format that `heedful.data.corpus.find_pairs` reads, or two
                aligned files; or examples in memory as `heedful.train` takes them.
            columns: columns of text and label, by 1-based number or by name; headings tell whether the label is first.

        Returns:
            Accuracy, macro-F1 and scores of each label; of several labels micro-F1 too, of numbers the mean error.
        """
        with example_files(data, "test", columns, SIDES["classification"]) as files:
            items = self.read_items(files.paths, files.columns)
        return self.measure(items)

    def measure(
        self, items: Any, metrics: tuple[str, ...] = (), beam: int = 0
    ) -> "LabelReport | SetReport | NumberReport":
        # Measuring takes modules that a start without it does not wait for.
        from heedful.evaluation.label_sets import NumberReport, report_labels
        from heedful.evaluation.labels import UnseenLabels
        from heedful.evaluation.selective import selections

        self._refuse_search(metrics, beam)
        if not isinstance(items, LabelledTexts):
            raise TypeError(f"a classifier is measured on labelled texts, got {type(items).__name__}")
        results = [*self.stream(items.texts)]
        report = report_labels(self.text.labels, self._values(results), items.labels)
        num_cut = sum(each.was_cut for each in results)
        if isinstance(report, NumberReport):
            return replace(report, num_cut=num_cut)
        unseen = UnseenLabels.of(map(split_labels, items.labels), self.labels)
        confidences = tuple(each.probability for each in results)
        selected = selections(confidences, report.right)
        return replace(report, num_cut=num_cut, unseen=unseen, selected=selected, confidences=confidences)

    def attention_views(self, sources: Sequence[str]) -> list[AttentionView]:
        return [
            TextView(
                f"{shortened(one.text)} → {one.label}",
                [*weighted_sentences(one.pieces, one.attention.tolist(), one.text)],
            )
            for one in self.classify(sources)
            if one.attention is not None
        ]

    def predict(self, sources: Sequence[str]) -> list[str]:
        return self._values(self.stream(checked_texts(sources, "predict")))

    def _values(self, results: Iterable[Classification]) -> list[str]:
        """The label of each text, or its set of labels."""
        join = joined_labels if self.text.labels == "several" else "".join
        return [join(each.labels) for each in results]

    def read_items(self, paths: tuple[Path, ...], columns: Columns) -> LabelledTexts:
        separator = self.separator if SEPARATOR in self.folder.facts else ""
        from heedful.data.labelled import find_labelled
        from heedful.predictors.trained_columns import labelled_columns

        columns = labelled_columns(paths, self.text_columns, columns)
        file = find_labelled(paths, columns, separator, leaves_out_faults=True)
        items = LabelledTexts.of(file)
        items = replace(items, notes=tuple(note for note in file.notes if LEFT_OUT in note))
        if not len(items):
            raise DataError(f"{paths[0]}: no row has a text and a label; name their columns with --columns TEXT,LABEL")
        if self.text.labels in ("one", "ordered") and {*self.labels}.isdisjoint(items.labels):
            names = sorted({"|".join(split_labels(each)) for each in items.labels})
            own, others = listed(self.labels, 3), listed(names, 3)
            raise DataError(
                f"{paths[0]}: no label of the model, such as {own}, but {others}; name the columns of text and label "
                "with --columns TEXT,LABEL"
            )
        return items
