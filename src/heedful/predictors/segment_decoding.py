"""Decoding of segments: spans that stay as they are, text in unusual case, and outputs that are no translation."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, final

from heedful.engines.text_constraints import SourceConstraints
from heedful.predictors.decoding import Decoding
from heedful.predictors.output_links import links_of
from heedful.predictors.reading import Reading, lowered, with_texts
from heedful.predictors.translation import Alternative, Translation
from heedful.search.config import SearchConfig
from heedful.text.attention_links import lexical_links, moved_links
from heedful.text.degenerate import fault_of
from heedful.text.entities import decoded_entities
from heedful.text.kept import ACRONYM, has_words
from heedful.text.kept_places import Lifted, lift, put_back, word_places
from heedful.text.segments import Segment
from heedful.text.span_places import span_places
from heedful.text.tag_placement import CharacterLink
from heedful.text.word_forms import WORD, WordForms

_READ: Final = frozenset({"number", "date", "identifier", ACRONYM})
"""Kinds of kept spans that models may have learned to write."""
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*+")
_WORD: Final = re.compile(r"\S+")
_NO_WORDS: Final = ("<", "(", "[", "（")
"""Beginnings of spans that are no words of a sentence, but tags or its number."""
_NGRAM: Final = 3
"""Number of tokens in a row that come once only when a degenerate output is searched again."""
_ALTERNATIVES: Final = 5
"""Number of outputs that are searched in place of a degenerate one."""


@final
@dataclass(frozen=True)
class SegmentDecoding:
    """Decoding of segments by a model of sentences.

    Attributes:
        decoding: decoding of sources.
    """

    decoding: Decoding

    def translate(
        self, segments: Sequence[Segment], constraints: SourceConstraints, indices: Sequence[int]
    ) -> Iterator[Translation]:
        """Translate segments.

        A segment without words outside its kept spans stays as it is. Each kept span stands in each output once:
        numbers where the model wrote them, all others beside the translations of the words that they stood beside.
        A segment in lower case, Title Case or upper case is read with the usual forms of its words, and the output for
        one in upper case is raised. In place of an output with a fault stands the next one without, else the source.

        Args:
            indices: index of the text of each, for random samples.

        Yields:
            One translation for each segment.
        """
        is_text = [has_words(one.reading, one.kept) for one in segments]
        texts = list(compress(segments, is_text))
        places = list(compress(indices, is_text))
        outputs = iter(self._sound(texts, self._outputs(texts, constraints, places), constraints, places))
        for segment, has_text in zip(segments, is_text, strict=True):
            yield next(outputs) if has_text else self._unchanged(segment.reading)

    def _outputs(
        self, segments: Sequence[Segment], constraints: SourceConstraints, indices: Sequence[int]
    ) -> list[Translation]:
        """Outputs with kept spans and in the case of the segments."""
        tables = self.decoding.model.tables
        readings = [Reading.of(one, tables, _is_free(constraints, one.reading)) for one in segments]
        outputs = self._keeping([one.segment for one in readings], constraints, indices)
        return [
            one.written(output, self._links(output) if self.decoding.attention else (), tables)
            for one, output in zip(readings, outputs, strict=True)
        ]

    def _keeping(
        self, segments: Sequence[Segment], constraints: SourceConstraints, indices: Sequence[int]
    ) -> list[Translation]:
        """Outputs in which each kept span stands once."""
        readings = [one.reading for one in segments]
        is_read = [all(span.kind in _READ for span in one.kept) for one in segments]
        own = list(compress(range(len(segments)), is_read))
        read = self._plain(self.decoding, [readings[row] for row in own], constraints, [indices[row] for row in own])
        outputs = {row: output for row, output in zip(own, read, strict=True) if _has_all(output, segments[row])}
        lifted = {row: lift(readings[row], one.kept) for row, one in enumerate(segments) if row not in outputs}
        attentive = replace(self.decoding, attention=bool(lifted) and self.decoding.can_align)
        texts = [one.text for one in lifted.values()]
        again = self._plain(attentive, texts, constraints, [indices[row] for row in lifted])
        tables = self.decoding.model.tables
        for row, output in zip(lifted, again, strict=True):
            source = readings[row]
            if _begins_within(lifted[row], source, tables.forms) and _is_free(constraints, source):
                output = with_texts(output, [lowered(each.text, source, tables) for each in output.alternatives])
            outputs[row] = self._with_spans(output, lifted[row], source)
        return [outputs[row] for row in range(len(segments))]

    def _plain(
        self, decoding: Decoding, texts: Sequence[str], constraints: SourceConstraints, indices: Sequence[int]
    ) -> list[Translation]:
        """Outputs for plain texts, without entities that these lack."""
        outputs = decoding.translate(texts, constraints, indices=indices) if texts else ()
        return [self._without_entities(one) for one in outputs]

    def _without_entities(self, output: Translation) -> Translation:
        source = output.source
        written = [decoded_entities(source, each.text) for each in output.alternatives]
        texts = [text for text, _ in written]
        if texts == [each.text for each in output.alternatives]:
            return output
        links = moved_links(self._links(output), range(len(source) + 1), written[0][1]) if output.text else ()
        decoded = source, output.unreplaced or output.text
        return with_texts(replace(output, links=tuple(links), decoded=decoded), texts)

    def _with_spans(self, output: Translation, lifted: Lifted, source: str) -> Translation:
        """Output for a text without its kept spans, with them."""
        lexicon = self.decoding.model.tables.lexicon
        links = self._links(output)
        others = [lexical_links(lifted.text, each.text, lexicon) if lexicon else () for each in output.alternatives[1:]]
        written = [
            put_back(lifted, each.text, each_links)
            for each, each_links in zip(output.alternatives, [links, *others], strict=True)
        ]
        best, targets = written[0]
        decoded = output.decoded or (lifted.text, output.unreplaced or output.text)
        one = replace(output, source=source, alignment=None, attention=None, links=(), decoded=decoded)
        if self.decoding.attention:  # which is that of the text without its spans
            left = word_places(lifted.text, source, lifted.origins)
            right = word_places(output.text, best, targets)
            # Attention also links words that are no words of the text, such as EOS.
            aligned = {(left[i], right[j]) for i, j in output.alignment or () if i < len(left) and j < len(right)}
            spans = [*_span_links(lifted, source, best, targets)]
            aligned.update(_word_pairs(spans, source, best))
            moved = *moved_links(links, lifted.origins, targets), *spans
            one = replace(one, links=moved, alignment=tuple(sorted(aligned)))
        return with_texts(one, [text for text, _ in written])

    def _links(self, output: Translation) -> Sequence[CharacterLink]:
        model = self.decoding.model
        return links_of(output, model.alignment_shift, model.tables.lexicon)

    def _sound(
        self,
        segments: Sequence[Segment],
        outputs: list[Translation],
        constraints: SourceConstraints,
        indices: Sequence[int],
    ) -> list[Translation]:
        """Outputs without faults; the source where every output has one."""
        faulty = {
            row: fault
            for row, one in enumerate(segments)
            if (fault := fault_of(one.reading, outputs[row].text)) and outputs[row].source.strip()
        }
        if not faulty:
            return outputs
        search = self.decoding.search
        again = self._again(search, bool(constraints.strictest.required))
        searched = replace(self, decoding=replace(self.decoding, search=again))._outputs(
            [segments[row] for row in faulty], constraints, [indices[row] for row in faulty]
        )
        for (row, fault), output in zip(faulty.items(), searched, strict=True):
            source = segments[row].reading
            sound = [one for one in output.alternatives if not fault_of(source, one.text)]
            if sound:
                best, number = sound[0], search.nbest
                outputs[row] = replace(
                    output, text=best.text, log_prob=best.log_prob, score=best.score, alternatives=tuple(sound[:number])
                )
            else:
                outputs[row] = replace(self._unchanged(source), fault=fault)
        return outputs

    def _unchanged(self, text: str) -> Translation:
        """Text that stands for its own translation, each word linked to itself."""
        words = range(len(text.split())) if self.decoding.attention else None
        alignment = None if words is None else tuple(zip(words, words, strict=True))
        return Translation(text, text, 0.0, 0.0, (Alternative(text, 0.0, 0.0),), alignment=alignment)

    @staticmethod
    def _again(search: SearchConfig, has_phrases: bool) -> SearchConfig:
        """Search for other outputs than degenerate ones; repeats may be part of required phrases."""
        if search.method == "sampling":
            return search
        width = max(search.beam, _ALTERNATIVES)
        size = search.no_repeat_ngram_size if has_phrases else _NGRAM
        return search.model_copy(
            update={"beam": width, "nbest": width, "no_repeat_ngram_size": size, "num_groups": 1, "min_length": 1}
        )


def _is_free(constraints: SourceConstraints, source: str) -> bool:
    """Tell whether the output for a source has to begin with or contain nothing."""
    strictest = constraints.strictest
    if not (len(strictest.prefix) or len(strictest.required)):
        return True
    own = constraints.of(source, 0)
    return not (len(own.prefix) or len(own.required))


def _has_all(output: Translation, segment: Segment) -> bool:
    """Tell whether each kept span stands in each alternative as often as in its segment, and no other number does."""
    spans = [segment.reading[one.start : one.end] for one in segment.kept]
    numbers = Counter(_NUMBER.findall(segment.reading))
    return all(_stand_once(spans, each.text, numbers) for each in output.alternatives) if spans else True


def _begins_within(lifted: Lifted, source: str, forms: WordForms) -> bool:
    """True for a text without its spans that a word such as a number stood before, as in "12 dogs run"."""
    word = WORD.match(lifted.text)
    if word is None or not (len(forms) and forms.has_capitals) or forms.usual(word[0]) != word[0]:
        return False
    before = source[: lifted.origins[0]]
    last = before.split()[-1] if before[-1:].isspace() else ""
    return any(map(str.isalnum, last)) and not last.startswith(_NO_WORDS)


def _stand_once(spans: Sequence[str], text: str, numbers: Counter[str]) -> bool:
    """Tell whether a text has each span once, and no number but those of the source."""
    if Counter(_NUMBER.findall(text)) - numbers:
        return False
    for span in sorted(spans, key=len, reverse=True):
        if span not in text:
            return False
        text = text.replace(span, "\n", 1)
    return not any(span in text for span in spans)


def _span_links(lifted: Lifted, source: str, output: str, targets: Sequence[int]) -> Iterator[CharacterLink]:
    """Links between the kept spans of a source and the same spans in its output.

    Args:
        targets: index in the output of each character that is of no span.
    """
    left, right = (span_places(lifted.spans, *side) for side in ((source, lifted.origins), (output, targets)))
    for number in sorted(left.keys() & right.keys()):
        yield CharacterLink(*left[number], *right[number])


def _word_pairs(links: Iterable[CharacterLink], source: str, output: str) -> Iterator[tuple[int, int]]:
    """Numbers of the words of linked spans, which have equally many on both sides."""
    left, right = ([match.end() for match in _WORD.finditer(text)] for text in (source, output))
    for link in links:
        first, second = bisect_right(left, link.source_start), bisect_right(right, link.target_start)
        for number in range(len(source[link.source_start : link.source_end].split())):
            yield first + number, second + number
