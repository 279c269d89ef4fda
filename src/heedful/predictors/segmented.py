"""Segments of texts as a model reads them, and translations of texts joined from those of their segments."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import inf, prod
from typing import Final, final

from heedful.engines.folder import ModelFolder
from heedful.engines.text_constraints import TextConstraints
from heedful.engines.translation_memory import TranslationMemory
from heedful.predictors.translation import Alternative, SegmentOutput, Translation
from heedful.predictors.word_tables import WordTables
from heedful.text.degenerate import Fault
from heedful.text.kept import Kept, find_kept, known_scripts, own_spans
from heedful.text.kept_places import lift
from heedful.text.segments import Policy, Segment, Text, split
from heedful.text.span_places import span_places
from heedful.text.stand_ins import Span, StandIns
from heedful.text.tokenizer import TextConfig, Tokenizer

_MOST_UNUSUAL: Final = 3
"""Largest size of a sentence in that of the usual ones; of longer ones, models leave most words out."""
_MOST_SHORT: Final = 0.2
"""Largest size of a clause of a longer sentence that is not cut further, in that of the usual sentences."""


@final
class Segmenter:
    """Segmenter of the texts of one model: what the model reads at once, and the spans that it keeps."""

    def __init__(
        self, folder: ModelFolder, memory: TranslationMemory, tables: WordTables, tokenizer: Tokenizer, text: TextConfig
    ) -> None:
        """Read what the model knows about its training pairs."""
        self._tables: Final = tables
        self._memory: Final = memory
        self._tokenizer: Final = tokenizer
        self._text: Final = text
        self._language: Final = str(folder.facts.get("languages", ("", ""))[0])
        self._usual: Final = int(folder.facts.get("sentences", 1))
        self._most_usual: Final = float(folder.facts.get("usual_characters", inf))
        self._openings: Final = frozenset[str](folder.facts.get("openings", ()))
        self._kinds: Final[Sequence[str] | None] = folder.facts.get("kept")
        self.reads_sentences: Final = text.reads_sentences

    def split(
        self,
        text: str,
        policy: Policy | None = "auto",
        constraints: TextConstraints | None = None,
        kept_spans: Sequence[Span] = (),
    ) -> Text:
        """Split a text, as `Translator.split` does.

        Args:
            policy: as for `Translator.split`.
            constraints: as for `Translator.split`.
            kept_spans: as for `Translator.split`.

        Returns:
            The segments and the layout between them.
        """
        policy = self._suited(text, constraints) if policy == "auto" else policy
        keeps = self.reads_sentences and not self._text.reads_whole and not self._memory.state().has(text)
        find = self._finder(constraints) if keeps else lambda _: ()
        if not (keeps and kept_spans):
            return self._split(text, policy, find)
        marked = StandIns.of(text, kept_spans)
        return marked.restored(self._split(marked.text, policy, partial(marked.find, others=find)))

    def _split(self, text: str, policy: Policy | None, find: Callable[[str], Sequence[Kept]]) -> Text:
        if policy is None:
            return whole(text, find)
        if not self.reads_sentences:
            return split(text, self._language, policy, self._usual, self._is_read)
        sizes = (share * self._most_usual for share in (_MOST_SHORT, 1, _MOST_UNUSUAL))
        is_short, is_usual, fits = (partial(self._has_size, find, most) for most in sizes)
        begins = self._openings.__contains__
        return split(text, self._language, policy, self._usual, fits, find, is_usual, begins, is_short)

    def _suited(self, text: str, constraints: TextConstraints | None) -> Policy | None:
        """Policy that suits a text; None = the text is one segment."""
        if self._text.reads_whole or self._memory.state().has(text):
            return None
        if self.reads_sentences:
            return "auto"
        is_bound = constraints is not None and bool(constraints.prefix.strip() or constraints.required)
        return "line" if "\n" in text and not is_bound else None

    def _is_read(self, sentence: str) -> bool:
        """Tell whether the model takes a sentence without cutting it."""
        most = self._text.max_tokens - 1  # room for EOS
        if len(sentence) <= most // 4:
            return True
        # No piece is longer than 16 characters; a space belongs to the piece of a word.
        return len(sentence) <= 16 * most and len(self._tokenizer.encode(sentence)) <= most

    def _has_size(self, find: Callable[[str], Sequence[Kept]], most: float, sentence: str) -> bool:
        """Tell whether the model takes a sentence, which without what stays as it is has a number of characters."""
        if not self._is_read(sentence):
            return False
        return len(sentence) <= most or len(lift(sentence, find(sentence)).text) <= most

    def _finder(self, constraints: TextConstraints | None) -> Callable[[str], Sequence[Kept]]:
        """Function that finds the spans that stay as they are; those that the user gives already do not."""
        patterns = constraints.keep if constraints else ()
        own = own_spans(patterns) if patterns else None
        knows, lacks = self._scripts.__contains__, self._lacks
        find = partial(find_kept, kinds=self._kinds, own=own, knows=knows, lacks=lacks)
        phrases = (constraints.prefix, *constraints.required) if constraints else ()
        if not any(phrases):
            return find
        return lambda text: [
            one for one in find(text) if not any(text[one.start : one.end] in each for each in phrases)
        ]

    def _lacks(self, word: str) -> bool:
        return self._tables.forms.lacks(word)

    @cached_property
    def _scripts(self) -> frozenset[str]:
        """Scripts that the vocabulary has."""
        return known_scripts(self._tokenizer.pieces(range(len(self._tokenizer))))


def whole(source: str, find: Callable[[str], Sequence[Kept]] = lambda _: ()) -> Text:
    """Take a text for a single segment, whatever is in it.

    Args:
        find: finds the spans that stay as they are.

    Returns:
        The text with one segment, even if it is blank, and no layout.
    """
    one = Segment(source, 0, len(source))
    return Text((replace(one, kept=tuple(find(one.reading))),), ("", ""))


def joined(source: str, text: Text, outputs: Sequence[Translation]) -> Translation:
    """Join the translations of the segments of a text to that of the text.

    Args:
        outputs: translation of each segment.

    Returns:
        The translation of the whole text. Log probabilities and scores are sums, the confidence is the product, and the
        k-th outputs of all segments are the k-th alternative. Links count the words of the whole text. Attention,
        pieces and corrections stand in `segments` alone. A text that is one segment has the translation of that.

    Raises:
        ValueError: not one translation for each segment.
    """
    if len(outputs) == 1 and text.segments[0].source == source:
        return outputs[0]
    number = max((len(each.alternatives) for each in outputs), default=1)
    alternatives: dict[str, Alternative] = {}
    for rank in range(number):
        ranked = [each.alternatives[min(rank, len(each.alternatives) - 1)] for each in outputs]
        log_prob, score = sum(each.log_prob for each in ranked), sum(each.score for each in ranked)
        one = Alternative(text.join([each.text for each in ranked]), log_prob, score)
        alternatives.setdefault(one.text, one)
    best = next(iter(alternatives.values()))
    starts = text.starts([each.text for each in outputs])
    segments = tuple(map(SegmentOutput, text.segments, starts, outputs))
    links = _links(source, best.text, segments) if any(each.alignment is not None for each in outputs) else None
    confidences = [each.confidence for each in outputs]
    faults: list[Fault] = [*(each.fault for each in outputs if each.fault), ""]
    return Translation(
        source,
        best.text,
        best.log_prob,
        best.score,
        tuple(alternatives.values()),
        alignment=links,
        was_cut=any(each.was_cut for each in outputs),
        unknown=tuple(dict.fromkeys(letter for each in outputs for letter in each.unknown)),
        unreplaced=_text(text, outputs, lambda each: each.unreplaced),
        unbiased=_text(text, outputs, lambda each: each.unbiased),
        confidence=None if None in confidences else prod(one for one in confidences if one is not None),
        segments=segments,
        fault=faults[0],
        lost=tuple(span for each in outputs for span in each.lost),
    )


def with_lost_spans(segment: Segment, output: Translation) -> Translation:
    """Name the kept spans of a segment that its output lacks; a correction of the segment may leave them out."""
    if not segment.kept or (output.memory and output.memory.is_exact):
        return output
    spans = [segment.reading[one.start : one.end] for one in segment.kept]
    places = span_places(spans, output.text)
    return replace(output, lost=tuple(span for number, span in enumerate(spans) if number not in places))


def _text(text: Text, outputs: Sequence[Translation], other: Callable[[Translation], str]) -> str:
    """Whole text with another form of some outputs; empty where none has one."""
    forms = [other(each) for each in outputs]
    return text.join([form or each.text for form, each in zip(forms, outputs, strict=True)]) if any(forms) else ""


def _links(source: str, target: str, segments: Sequence[SegmentOutput]) -> tuple[tuple[int, int], ...]:
    """Links of segments between words of the whole text."""
    first_sources = _nums_words(source, [one.segment.start for one in segments])
    first_targets = _nums_words(target, [one.start for one in segments])
    return tuple(
        (first_source + left, first_target + right)
        for one, first_source, first_target in zip(segments, first_sources, first_targets, strict=True)
        for left, right in one.output.alignment or ()
    )


def _nums_words(text: str, stops: Iterable[int]) -> list[int]:
    """Numbers of words that end before places, which ascend."""
    numbers: list[int] = []
    number = last = 0
    for stop in stops:
        part = text[max(0, last - 1) : stop]  # with the character before it, whose word may end here
        number += len(part.split()) - bool(part and not part[-1].isspace())
        numbers.append(number)
        last = stop
    return numbers
