"""Learning of a tokenizer from text, and the number of pieces that suits a corpus."""

from collections.abc import Sequence

from heedful.text.folding import normal_form
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, Units, UnitTokenizer
from heedful.text.vocabulary import Vocabulary


def choose_size(num_pairs: int, num_characters: int = 0, pieces_per_character: float = 2.0) -> int:
    """Choose the number of pieces for a corpus: fewer for a smaller corpus, so that each occurs often enough.

    Args:
        num_pairs: number of pairs in the training corpus.
        num_characters: number of different characters. Chinese has thousands, and needs pieces of several as well.
        pieces_per_character: least number of pieces for each character, above 1.

    Returns:
        A multiple of 8 in [704, 32000]: 4,000 for 30,000 pairs, proportional to the square root of the number of pairs,
        and at least that many for each character, besides the 256 that stand for bytes.

    Example:
        >>> choose_size(30_000), choose_size(1_000), choose_size(10_000_000), choose_size(30_000, 3_500)
        (4000, 728, 32000, 7256)
    """
    size = max(4_000 * (num_pairs / 30_000) ** 0.5, 256 + pieces_per_character * num_characters)
    return int(min(32_000, max(704, round(size / 8) * 8)))


def train_tokenizer(lines: Sequence[str], units: Units, size: int, config: TextConfig) -> Tokenizer:
    """Learn a tokenizer for one side, or for both from the text of both.

    Args:
        lines: text, not yet normalized.
        units: kind of token.
        size: maximum number of tokens; for characters and words, 0 = no maximum.
        config: normal form and minimum count.

    Raises:
        DataError: the text is too small to learn pieces from.
    """
    form = config.normalization
    normalized = [normal_form(line, form) for line in lines]
    if units == "pieces":
        return PieceTokenizer.train(normalized, size, form)
    split = (UnitTokenizer.split(line, units) for line in normalized)
    return UnitTokenizer(Vocabulary.build(split, size, config.min_count), units, form)
