"""Translation of a text, and scores of the translations of an evaluation set."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from heedful.engines.scored_pairs import word_links
from heedful.engines.translation_memory import MemoryMatch
from heedful.errors import FileRefused
from heedful.evaluation.shown import Shown
from heedful.search.interface import Hypothesis
from heedful.text.counts import counted
from heedful.text.degenerate import Fault
from heedful.text.inline_terms import source_words
from heedful.text.links import format_pharaoh
from heedful.text.quoting import shortened
from heedful.text.segments import Segment
from heedful.text.tag_placement import CharacterLink
from heedful.text.terms import TermCounts
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import EOS, UNK
from heedful.text.weighted_words import EOS_PIECES

# Evaluation and pages are imported where they are used: they take as long to import as the rest.
if TYPE_CHECKING:
    from heedful.evaluation.bootstrap import Difference
    from heedful.evaluation.report import Report
    from heedful.evaluation.worst import ScoredOutput
    from heedful.pages.sentence import SentenceView


@dataclass(frozen=True)
class Alternative:
    """One of the outputs for a source.

    Example:
        >>> Alternative("Good day", log_prob=-0.5, score=-0.2).text
        'Good day'
    """

    text: str
    log_prob: float
    """Log probability of the whole output, in nats."""
    score: float
    """Score that outputs are ranked by: log_prob after the length penalty."""


@dataclass(frozen=True)
class Translation:
    """Best output for a source, with alternatives and attention.

    Example:
        >>> output = heedful.load("pairs.model").translate(["March 5th, 2021"], attention=True)[0]  # doctest: +SKIP
        >>> output.text, output.attention.shape  # [output token, source token]  # doctest: +SKIP
        ('2021-03-05', (11, 16))
    """

    source: str
    text: str
    log_prob: float
    score: float
    alternatives: tuple[Alternative, ...]
    """All requested outputs, best first, including the best one."""
    source_pieces: tuple[str, ...] = ()
    """Tokens of the source as the model saw them, EOS included; empty without attention."""
    target_pieces: tuple[str, ...] = ()
    """Tokens of the output, including EOS where the model generated it."""
    attention: NDArray[np.float32] | None = None
    """[target piece, source piece] weights."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Alignment links (source word, target word), 0-based."""
    links: tuple[CharacterLink, ...] = ()
    """Weighted links between characters of source and text where the model read and wrote another form of them."""
    decoded: tuple[str, str] | None = None
    """Source as the model read it and the output that it wrote, where source and text are other forms of them: in other
    case, or with the spans that stay as they are; None where they are the same."""
    was_cut: bool = False
    """Whether the source exceeded the model's length limit and was truncated."""
    unknown: tuple[str, ...] = ()
    """Letters of the source that the model does not know in any form; only of models that read characters."""
    unreplaced: str = ""
    """Text before its unknown words were replaced; empty where there were none."""
    memory: MemoryMatch | None = None
    """Correction of the same source, which is then the text, or of the most similar one, which the text follows; None
    where there is none."""
    unbiased: str = ""
    """Output of the model alone where the text follows corrections of similar sources; empty where it does not."""
    confidence: float | None = None
    """Calibrated probability that the text is right; None unless requested."""
    segments: tuple["SegmentOutput", ...] = ()
    """Outputs of the segments that the source was split into; empty where it was translated as a whole."""
    fault: Fault = ""
    """Fault for which the source stands in place of the output; of a text, that of its first such segment."""
    lost: tuple[str, ...] = ()
    """Spans of the source that should have stayed as they are and do not stand in the text, as where it follows
    corrections of similar sources."""

    def __repr__(self) -> str:
        others = f", {len(self.alternatives)} alternatives" if len(self.alternatives) > 1 else ""
        has = ", with attention" if self.attention is not None else ""
        texts = f"{shortened(self.source)} -> {shortened(self.text)}"
        return f"<Translation {texts}, log_prob {self.log_prob:.2f}{others}{has}>"

    def _repr_html_(self) -> str:
        """Draw the translation in a notebook: the page of the sentence where there is attention, else its text."""
        if self.attention is None:
            return f"<p dir='auto'>{escape(self.source)} → {escape(self.text)}</p>"
        from heedful.pages.bundle import offline_page

        page = offline_page(f"{self.source} → {self.text}", _view(self).to_dict())
        return (
            f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" title="{escape(self.text)}" '
            'style="width: 100%; height: 42rem; border: 0"></iframe>'
        )

    def pharaoh(self) -> str:
        """Write the alignment as ``0-0 1-2``.

        Returns:
            Source-target links; empty where there are none.
        """
        return format_pharaoh(self.alignment or ())


@dataclass(frozen=True)
class SegmentOutput:
    """Segment of a text with its translation."""

    segment: Segment
    """Segment, with its place in the source of the text."""
    start: int
    """Index of the first character of its output in the translation of the text."""
    output: Translation

    @property
    def end(self) -> int:
        """Index after the last character of its output in the translation of the text."""
        return self.start + len(self.output.text)


@dataclass(frozen=True)
class MeasuredTranslations(Shown):
    """A model's outputs on an evaluation set, and their scores.

    Example:
        >>> from pathlib import Path
        >>> translator = heedful.load("de-en.model")  # doctest: +SKIP
        >>> measured = translator.measure(translator.read_items([Path("de-en.tsv")], (1, 2)))  # doctest: +SKIP
        >>> measured.report["bleu"].score, len(measured.outputs) == measured.report.num_items  # doctest: +SKIP
        (38.4, True)
    """

    outputs: list[str]
    """Output for each source."""
    report: "Report"
    """Scores of the outputs."""
    seconds: float
    """Seconds spent translating, without the loading of the model."""
    beam: int
    """Beam width of the search."""
    num_replaced: int = 0
    """Number of outputs whose unknown words were replaced."""
    unreplaced: "Report | None" = None
    """Scores before unknown words were replaced; None where nothing was replaced."""
    worst: "tuple[str, tuple[ScoredOutput, ...]]" = ("", ())
    """Key of a metric, and the outputs that it scores worst."""
    terms: TermCounts | None = None
    """Terms of the sources, and how many of them the outputs use; None without a term list."""
    generated: tuple[str, ...] = ()
    """The outputs before unknown words were replaced, which is where the model's confidence is; empty if none was."""
    log_probs: tuple[float, ...] = ()
    """Log probability of each output."""

    def __repr__(self) -> str:
        return f"<MeasuredTranslations {self.report!r}, beam {self.beam}, {self.seconds:.1f} s>"

    def summary(self) -> str:
        """Summarise the scores in a few lines."""
        lines = [f"test:  {counted(self.report.num_items, 'source')}, beam {self.beam}; 95 % intervals"]
        for result in self.report.results:
            unit = " %" if result.metric.unit == "%" else ""
            interval = f"[{result.interval.low:.2f}, {result.interval.high:.2f}]"
            lines.append(f"       {result.metric.name} {result.score:.2f}{unit} {interval} {result.signature}")
        if self.report.lead:
            lines.append(f"       {self.report.lead}")
        return "".join(line + "\n" for line in lines)

    def to_text(self) -> str:
        """Write the report as tables.

        Returns:
            Lines that end in a newline.
        """
        return self.report.to_text()

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        metric, outputs = self.worst
        return {
            **self.report.to_dict(),
            "beam": self.beam,
            "worst_by": metric,
            "worst": [output.to_dict() for output in outputs],
        }

    def differences(self, baseline: Self, seed: int = 12345) -> "tuple[Difference, ...]":
        """Compare every metric; see `heedful.predictors.interface.Measured.differences`."""
        from heedful.evaluation.evaluate import compare

        return compare(self.report, baseline.report, seed=seed)


def decoded_texts(tokenizer: Tokenizer, hypotheses: Sequence[Hypothesis]) -> list[str]:
    """Decode the outputs of a search.

    Raises:
        FileRefused: there are tokens that the vocabulary does not have, as from an engine of another model.
    """
    largest = max((token for each in hypotheses for token in each.token_ids), default=0)
    if largest >= len(tokenizer):
        raise FileRefused(
            f"the engine gives token {largest:,}, but the vocabulary has {len(tokenizer):,}; export the model again"
        )
    return [tokenizer.decode(each.token_ids) for each in hypotheses]


def translation_of(
    text: str,
    ids: NDArray[np.int64],
    hypotheses: Sequence[Hypothesis],
    was_cut: bool,
    replaced: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    alignment_shift: int,
) -> Translation:
    """Make a translation of the hypotheses of a search.

    Args:
        ids: source tokens, with terms that were written into it, EOS included.
        hypotheses: hypotheses, best first.
        was_cut: whether the source was truncated.
        replaced: text of each hypothesis after its unknown words were replaced; empty where there were none.
        alignment_shift: as in `PairScorer`.
    """
    source_tokenizer, target_tokenizer = tokenizers
    plain = decoded_texts(target_tokenizer, hypotheses)
    alternatives = tuple(
        Alternative(known or written, alternative.log_prob, alternative.score)
        for known, written, alternative in zip(replaced, plain, hypotheses, strict=True)
    )
    best, hypothesis = alternatives[0], hypotheses[0]
    unreplaced = plain[0] if replaced[0] else ""
    if hypothesis.weights is None:
        return Translation(
            text, best.text, best.log_prob, best.score, alternatives, was_cut=was_cut, unreplaced=unreplaced
        )
    ended = [EOS] if hypothesis.finish_reason == "eos" else []
    # An output that was cut has no step that reads its last token, which is then left without a link.
    weights = hypothesis.weights[alignment_shift:]
    words = word_links(
        weights,
        source_words(source_tokenizer, ids[:-1].tolist()),
        target_tokenizer.word_indices(hypothesis.token_ids[: len(weights)]),
    )
    return Translation(
        text,
        best.text,
        best.log_prob,
        best.score,
        alternatives,
        tuple(source_tokenizer.pieces(ids.tolist())),
        tuple(target_tokenizer.pieces([*hypothesis.token_ids, *ended])),
        hypothesis.weights,
        tuple(words),
        was_cut=was_cut,
        unreplaced=unreplaced,
    )


def _view(translation: Translation) -> "SentenceView":
    """View with what a translation holds: words, attention and alternatives; no probabilities of words."""
    from heedful.pages.sentence import Output, SentenceView
    from heedful.pages.words import Words

    source, target = (
        Words.of(_ids(pieces), pieces) for pieces in (translation.source_pieces, translation.target_pieces)
    )
    best = translation.alternatives[0]
    others = [
        Output(one.text, (UNK,), Words((one.text,), (0,), (one.text,)), (), one.log_prob, one.score)
        for one in translation.alternatives[1:]
    ]
    ids, weights = _ids(translation.target_pieces), translation.attention
    return SentenceView(
        model="",
        kind="",
        languages=("", ""),
        engine="",
        text=translation.source,
        source_ids=_ids(translation.source_pieces),
        source=source,
        was_cut=translation.was_cut,
        outputs=(Output(translation.text, ids, target, (), best.log_prob, best.score, weights), *others),
    )


def _ids(pieces: Sequence[str]) -> tuple[int, ...]:
    """Stand-ins for token ids, which translations do not keep: EOS where the last piece is one, else unknown."""
    ended = bool(pieces) and pieces[-1] in EOS_PIECES
    return (UNK,) * (len(pieces) - ended) + (EOS,) * ended
