"""Decoding of segments: spans that stay as they are, upper case, and outputs that are no translation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, final

from heedful.engines.text_constraints import SourceConstraints
from heedful.predictors.decoding import Decoding
from heedful.predictors.translation import Alternative, Translation
from heedful.search.config import SearchConfig
from heedful.text.degenerate import fault_of
from heedful.text.kept import Kept, has_words
from heedful.text.kept_places import lift, put_back
from heedful.text.segments import Segment

_FEWEST_LETTERS: Final = 6
"""Number of letters from which on text in upper case is no abbreviation."""
_READ: Final = frozenset({"number", "date", "identifier"})
"""Kinds of kept spans that models may have learned to write."""
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
        A segment in upper case is translated in lower case, and its output raised again, because capitals are cut into
        single letters. In place of an output with a fault stands the next one without, else the source.

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
            yield next(outputs) if has_text else _unchanged(segment.reading)

    def _outputs(
        self, segments: Sequence[Segment], constraints: SourceConstraints, indices: Sequence[int]
    ) -> list[Translation]:
        """Outputs with kept spans and in the case of the segments."""
        is_upper = [_is_upper(one) for one in segments]
        read = [_lowered(one) if upper else one for one, upper in zip(segments, is_upper, strict=True)]
        outputs = self._keeping(read, constraints, indices)
        return [
            _raised(output, one) if upper else output
            for output, one, upper in zip(outputs, segments, is_upper, strict=True)
        ]

    def _keeping(
        self, segments: Sequence[Segment], constraints: SourceConstraints, indices: Sequence[int]
    ) -> list[Translation]:
        """Outputs in which each kept span stands once."""
        readings = [one.reading for one in segments]
        is_read = [all(span.kind in _READ for span in one.kept) for one in segments]
        own = list(compress(range(len(segments)), is_read))
        read = self.decoding.translate(
            [readings[row] for row in own], constraints, indices=[indices[row] for row in own]
        )
        outputs = {row: output for row, output in zip(own, read, strict=True) if _has_all(output, segments[row])}
        lifted = {row: lift(readings[row], one.kept) for row, one in enumerate(segments) if row not in outputs}
        attentive = replace(self.decoding, attention=bool(lifted) and self.decoding.can_align)
        texts = [one.text for one in lifted.values()]
        again = attentive.translate(texts, constraints, indices=[indices[row] for row in lifted])
        for row, output in zip(lifted, again, strict=True):
            written = [put_back(lifted[row], each.text, output.alignment or ()) for each in output.alternatives]
            links = tuple(written[0][1]) if self.decoding.attention else None
            # The attention is that of the text without its spans.
            one = replace(output, source=readings[row], alignment=links, attention=None)
            outputs[row] = _with_texts(one, [text for text, _ in written])
        return [outputs[row] for row in range(len(segments))]

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
        again = self._again(search)
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
                outputs[row] = replace(_unchanged(source), fault=fault)
        return outputs

    @staticmethod
    def _again(search: SearchConfig) -> SearchConfig:
        """Search for other outputs than degenerate ones."""
        if search.method == "sampling":
            return search
        width = max(search.beam, _ALTERNATIVES)
        return search.model_copy(
            update={"beam": width, "nbest": width, "no_repeat_ngram_size": _NGRAM, "num_groups": 1, "min_length": 1}
        )


def _unchanged(text: str) -> Translation:
    return Translation(text, text, 0.0, 0.0, (Alternative(text, 0.0, 0.0),))


def _is_upper(segment: Segment) -> bool:
    text = _outside(segment.reading, segment.kept)
    return text.isupper() and sum(map(str.isalpha, text)) >= _FEWEST_LETTERS


def _outside(text: str, fixed: Sequence[Kept]) -> str:
    last, parts = 0, list[str]()
    for one in fixed:
        parts.append(text[last : one.start])
        last = one.end
    return " ".join([*parts, text[last:]])


def _lowered(segment: Segment) -> Segment:
    """Segment in lower case outside its kept spans, which stay at their places."""
    text = segment.reading
    letters = [letter.lower() if len(letter.lower()) == 1 else letter for letter in text]
    for one in segment.kept:
        letters[one.start : one.end] = text[one.start : one.end]
    return replace(segment, source="".join(letters))


def _raised(output: Translation, segment: Segment) -> Translation:
    """Output in upper case outside its kept spans, for a segment that was lowered."""
    spans = [re.escape(segment.reading[one.start : one.end]) for one in segment.kept]
    pattern = re.compile(f"({'|'.join(sorted(spans, key=len, reverse=True))})" if spans else "(?!)")

    def upper(text: str) -> str:
        parts = pattern.split(text)
        return "".join(part if index % 2 else part.upper() for index, part in enumerate(parts))

    written = _with_texts(replace(output, source=segment.reading), [upper(each.text) for each in output.alternatives])
    # Attention is of pieces of a text of that length.
    return written if len(written.text) == len(output.text) else replace(written, attention=None)


def _has_all(output: Translation, segment: Segment) -> bool:
    """Tell whether each kept span stands in each alternative as often as in its segment."""
    spans = [segment.reading[one.start : one.end] for one in segment.kept]
    return all(_stand_once(spans, each.text) for each in output.alternatives) if spans else True


def _stand_once(spans: Sequence[str], text: str) -> bool:
    for span in sorted(spans, key=len, reverse=True):
        if span not in text:
            return False
        text = text.replace(span, "\n", 1)
    return not any(span in text for span in spans)


def _with_texts(output: Translation, texts: Sequence[str]) -> Translation:
    """Translation with other texts of its alternatives, of which blank ones are left out."""
    others: dict[str, Alternative] = {}
    for each, text in zip(output.alternatives, texts, strict=True):
        if text:
            others.setdefault(text, replace(each, text=text))
    alternatives = tuple(others.values()) or output.alternatives
    return replace(output, text=alternatives[0].text, alternatives=alternatives)
