"""Translations of tagged texts: a text is translated without its inline tags, which are then placed by attention."""

from collections.abc import Callable, Sequence
from typing import Protocol

from heedful.predictors.translation import Translation
from heedful.text.attention_links import attention_links
from heedful.text.segments import Text
from heedful.text.tag_placement import AlignedSegment, CharacterLink, place_tags
from heedful.text.tagged_text import TaggedText


class TextTranslator(Protocol):
    """Model that translates texts."""

    @property
    def has_attention(self) -> bool:
        """Whether it can say where the words of a translation come from."""
        ...

    @property
    def steps_later(self) -> int:
        """Number of steps between the one that predicts a token and the one whose attention aligns it."""
        ...

    def split(self, text: str) -> Text:
        """Split a text into the segments that are translated one by one."""
        ...

    def translate(self, texts: Sequence[str], *, attention: bool, segments: None) -> list[Translation]:
        """Translate segments."""
        ...


def links_of(translation: Translation, steps_later: int) -> list[CharacterLink]:
    """Link the characters of a segment to those of its translation.

    Args:
        translation: translation of one segment.
        steps_later: as in `PairScorer`.

    Returns:
        The links; none without attention.
    """
    if translation.attention is None:
        return []
    tokens = translation.source_pieces, translation.target_pieces
    return attention_links(translation.source, translation.text, *tokens, translation.attention[steps_later:])


def tagged_output(
    source: TaggedText, text: Text, outputs: Sequence[str], links: Sequence[Sequence[CharacterLink]]
) -> TaggedText:
    """Join the outputs of the segments of a text, and place its tags in the whole.

    Args:
        source: the text with its tags.
        text: its segments.
        outputs: output of each segment.
        links: links between each segment and its output, counted from the beginnings of both.

    Returns:
        The translation with the same tags.
    """
    target = text.join(outputs)
    if not source.tags:
        return TaggedText(target)
    aligned: list[AlignedSegment] = []
    for segment, start, output, segment_links in zip(text.segments, text.starts(outputs), outputs, links, strict=True):
        moved = [
            CharacterLink(
                link.source_start + segment.start,
                link.source_end + segment.start,
                link.target_start + start,
                link.target_end + start,
                link.weight,
            )
            for link in segment_links
        ]
        aligned.append(AlignedSegment(segment.start, segment.end, start, start + len(output), moved))
    return place_tags(source, target, aligned)


def translate_tagged(
    translator: TextTranslator,
    passages: Sequence[TaggedText],
    translate: Callable[..., list[Translation]] | None = None,
) -> list[TaggedText]:
    """Translate texts with inline tags.

    Args:
        translator: the model.
        passages: the texts.
        translate: function in place of `translator.translate`, with the same arguments.

    Returns:
        Translation of each, with the same tags.
    """
    texts = [translator.split(passage.text) for passage in passages]
    has_tags = any(passage.tags for passage in passages) and translator.has_attention
    sources = [segment.reading for text in texts for segment in text.segments]
    remaining = iter((translate or translator.translate)(sources, attention=has_tags, segments=None))
    outputs: list[TaggedText] = []
    for passage, text in zip(passages, texts, strict=True):
        ours = [next(remaining) for _ in text.segments]
        links = [links_of(one, translator.steps_later) if passage.tags else [] for one in ours]
        outputs.append(tagged_output(passage, text, [one.text for one in ours], links))
    return outputs
