"""Corrections applied to the outputs of a model: those of the same source, and those of similar ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from heedful.engines.scored_pairs import ScoredPair, TextPair
from heedful.engines.translation_memory import MemoryMatch, MemoryState
from heedful.predictors.translation import Alternative, Translation

MOST_MATCHES = 4
"""Number of corrections of similar sources that an output follows at most."""
Align = Callable[[list[TextPair]], list[ScoredPair]]
"""Function that aligns a source with its correction."""
DecodeWithMemory = Callable[[list[str], list[list[MemoryMatch]]], Iterable[Translation] | None]
"""Function that translates sources again, following the corrections of similar ones; None if it cannot."""


def with_corrections(
    translations: Iterable[Translation],
    memory: MemoryState,
    nbest: int,
    align: Align | None,
    decode_with_memory: DecodeWithMemory | None,
    is_free: bool = True,
) -> Iterator[Translation]:
    """Name the matches of a translation memory, and apply its corrections.

    A correction takes the place of the output of its source. The output of a similar source is translated again,
    following the correction. All other outputs stay as they are.

    Args:
        nbest: largest number of alternatives.
        align: aligns a source with its correction; None where no attention is needed.
        decode_with_memory: translates similar sources again; None = impossible, near matches are only named.
        is_free: whether outputs are free of constraints; under constraints matches are only named.

    Yields:
        Each translation. A correction has log probability 0, as what is certain, and stands before the model's outputs.
    """
    outputs = list(translations)
    matches = [memory.matches(one.source, MOST_MATCHES) for one in outputs]
    near = [index for index, of_source in enumerate(matches) if of_source and not of_source[0].is_exact]
    again: dict[int, Translation] = {}
    if near and is_free and decode_with_memory:
        remembered = decode_with_memory([outputs[index].source for index in near], [matches[index] for index in near])
        again = dict(zip(near, remembered, strict=True)) if remembered is not None else {}
    for index, (one, of_source) in enumerate(zip(outputs, matches, strict=True)):
        if not of_source:
            yield one
        elif of_source[0].is_exact and is_free:
            best = Alternative(of_source[0].correction, 0.0, 0.0)
            yield replace(replaced(one, best, nbest, align), memory=of_source[0])
        elif index in again:
            yield replace(again[index], memory=of_source[0], unbiased=one.text)
        else:
            yield replace(one, memory=of_source[0])


def replaced(one: Translation, best: Alternative, nbest: int, align: Align | None) -> Translation:
    """Replace an output.

    Args:
        one: output of a model.
        best: what takes its place; the output stays behind it.
        nbest: largest number of alternatives.
        align: function that aligns a source with a text; None where no attention is needed.
    """
    pair = align([(one.source, best.text)])[0] if align else None
    others: Sequence[Alternative] = [other for other in one.alternatives if other.text != best.text]
    return Translation(
        one.source,
        best.text,
        best.log_prob,
        best.score,
        (best, *others)[:nbest],
        pair.source_pieces if pair else (),
        pair.target_pieces if pair else (),
        pair.attention if pair else None,
        pair.alignment if pair else None,
    )
