"""Translations of tagged texts: a text is translated without its inline tags, which are then placed by attention."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from heedful.predictors.output_links import links_of
from heedful.predictors.translation import Translation
from heedful.text.segments import Text
from heedful.text.tag_placement import AlignedSegment, CharacterLink, place_tags
from heedful.text.tagged_text import TaggedText

if TYPE_CHECKING:
    from heedful.predictors.translator import Translator


def tagged_output(
    source: TaggedText, text: Text, outputs: Sequence[str], links: Sequence[Sequence[CharacterLink]]
) -> TaggedText:
    """Join the outputs of the segments of a text, and place its tags in the whole.

    Args:
        outputs: output of each segment.
        links: links between each segment and its output, counted from the beginnings of both.

    Returns:
        The translation with the same tags.
    """
    target = text.join(outputs)
    if not source.tags:
        return TaggedText(target)
    starts = text.starts(outputs)
    aligned = [
        _aligned(segment.start, segment.end, start, start + len(output), segment_links)
        for segment, start, output, segment_links in zip(text.segments, starts, outputs, links, strict=True)
    ]
    return place_tags(source, target, aligned)


def translate_tagged(
    translator: "Translator", passages: Sequence[TaggedText], **settings: Any
) -> list[tuple[TaggedText, Translation]]:
    """Translate texts with inline tags.

    Args:
        settings: other keywords of `Translator.translate`, such as search.

    Returns:
        Translation of each with the same tags, and without them.
    """
    has_tags = any(passage.tags for passage in passages) and translator.has_attention
    settings["kept_spans"] = [passage.kept for passage in passages]
    outputs = translator.translate([passage.text for passage in passages], attention=has_tags, **settings)
    return [(with_tags(passage, output, translator), output) for passage, output in zip(passages, outputs, strict=True)]


def with_tags(source: TaggedText, output: Translation, translator: "Translator") -> TaggedText:
    """Place the tags of a text in its translation.

    Args:
        output: translation with attention, where the translator has it.
        translator: model that gave the translation.
    """
    if not source.tags:
        return TaggedText(output.text)
    links = partial(links_of, alignment_shift=translator.alignment_shift, lexicon=translator.tables.lexicon)
    aligned = [
        _aligned(one.segment.start, one.segment.end, one.start, one.end, links(one.output)) for one in output.segments
    ] or [_aligned(0, len(source.text), 0, len(output.text), links(output))]
    return place_tags(source, output.text, aligned)


def _aligned(
    source_start: int, source_end: int, target_start: int, target_end: int, links: Sequence[CharacterLink]
) -> AlignedSegment:
    """Segment with links that were counted from its beginning."""
    moved = [
        CharacterLink(
            link.source_start + source_start,
            link.source_end + source_start,
            link.target_start + target_start,
            link.target_end + target_start,
            link.weight,
        )
        for link in links
    ]
    return AlignedSegment(source_start, source_end, target_start, target_end, moved)
