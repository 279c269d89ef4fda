"""Links between the characters of a segment and those of its translation."""

from collections.abc import Sequence

from heedful.predictors.translation import Translation
from heedful.text.attention_links import attention_links, lexical_links
from heedful.text.lexicon import Lexicon
from heedful.text.tag_placement import CharacterLink


def links_of(translation: Translation, alignment_shift: int, lexicon: Lexicon | None) -> Sequence[CharacterLink]:
    """Link the characters of a segment to those of its translation.

    Args:
        alignment_shift: as in `PairScorer`.
        lexicon: lexicon of the model; None = it has none.

    Returns:
        The links, by attention and the lexicon, or by the one of them that there is.
    """
    if translation.links:
        return translation.links
    source, target = translation.source, translation.text
    if translation.attention is not None:
        tokens = translation.source_pieces, translation.target_pieces
        return attention_links(source, target, *tokens, translation.attention[alignment_shift:], lexicon)
    return lexical_links(source, target, lexicon) if lexicon is not None else ()
