"""Decoding of texts whose outputs have to begin with or contain something, whatever the number of their segments."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from heedful.engines.text_constraints import SourceConstraints, TextConstraints
from heedful.predictors.translation import Translation
from heedful.text.segments import Segment, Text

Decode = Callable[[Sequence[Segment], SourceConstraints, Sequence[int]], Iterable[Translation]]
"""Function that gives one translation for each segment, under constraints, with the index of the text of each."""


@final
@dataclass(frozen=True)
class BoundTexts:
    """Decoding of texts under constraints on their whole outputs.

    Attributes:
        decode: decoding of segments.
        bind: function that converts constraints to those of tokens.
        constraints: the constraints.
    """

    decode: Decode
    bind: Callable[[TextConstraints], SourceConstraints]
    constraints: TextConstraints

    def translate(self, texts: Sequence[Text], indices: Sequence[int]) -> Iterator[Translation]:
        """Translate texts.

        The output of the first segment begins with the prefix. A required phrase that no output has stands in the one
        whose probability it lessens least, which takes a search of every segment for each such phrase.

        Args:
            indices: index of each text, for random samples.

        Yields:
            One translation for each segment of the texts, in order.
        """
        bounds = self.constraints
        is_bound = bool(bounds.prefix.strip() or bounds.required)
        apart = {row for row, text in enumerate(texts) if is_bound and len(text.segments) > 1}
        rest = [
            (segment, indices[row]) for row, text in enumerate(texts) if row not in apart for segment in text.segments
        ]
        outputs = iter(self.decode([one for one, _ in rest], self.bind(bounds), [index for _, index in rest]))
        for row, text in enumerate(texts):
            if row in apart:
                yield from self._of_segments(text, indices[row])
            else:
                yield from (next(outputs) for _ in text.segments)

    def _of_segments(self, text: Text, index: int) -> list[Translation]:
        segments = text.segments
        # Who completes an output gives its layout, too.
        first = replace(self.constraints, prefix=self.constraints.prefix.removeprefix(text.layout[0]), required=())
        bounds = [first, *(replace(first, prefix="") for _ in segments[1:])]
        outputs = self._decoded(segments, bounds, index)
        for phrase in self.constraints.required:
            if any(_has(one, phrase) for one in outputs):
                continue
            bound = [replace(one, required=(*one.required, phrase)) for one in bounds]
            others = self._decoded(segments, bound, index)
            losses = [
                one.log_prob - other.log_prob if phrase in other.text else float("inf")
                for one, other in zip(outputs, others, strict=True)
            ]
            least = losses.index(min(losses))
            bounds[least], outputs[least] = bound[least], others[least]
        return outputs

    def _decoded(self, segments: Sequence[Segment], bounds: Sequence[TextConstraints], index: int) -> list[Translation]:
        """Outputs of segments, which are searched together where their constraints are the same."""
        outputs: dict[int, Translation] = {}
        for each in {(one.prefix, one.required): one for one in bounds}.values():
            rows = [row for row, one in enumerate(bounds) if one == each]
            decoded = self.decode([segments[row] for row in rows], self.bind(each), [index] * len(rows))
            outputs.update(zip(rows, decoded, strict=True))
        return [outputs[row] for row in range(len(segments))]


def _has(output: Translation, phrase: str) -> bool:
    """True for an output with a phrase of whole words; with a part of a word, the search may give it again."""
    return re.search(rf"(?<!\w){re.escape(phrase.strip())}(?!\w)", output.text) is not None
